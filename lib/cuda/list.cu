// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * list.cu: the kernel that executes a list on a stream, for the file
 * nvmepeer_list.fatbin, which the library loads.
 */
#include "list_kernel.h"

extern "C" __global__ void __launch_bounds__(LIST_THREADS)
nvmepeer_list(const __grid_constant__ list_parameters parameters)
{
	__shared__ uint32_t worst;

	list_run(&parameters, &worst);
}
