// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * list.cu: the kernels that execute a list, and a step of page tables, on a stream, for
 * the file nvmepeer_list.fatbin, which the library loads.
 */
#include "list_kernel.h"
#include "pages_kernel.h"

extern "C" __global__ void __launch_bounds__(LIST_THREADS)
nvmepeer_list(const __grid_constant__ list_parameters parameters)
{
	__shared__ uint32_t worst;

	list_run(&parameters, &worst);
}

extern "C" __global__ void __launch_bounds__(PAGES_THREADS)
nvmepeer_pages_step(const __grid_constant__ pages_parameters parameters)
{
	__shared__ nvmepeer_page_request request;

	pages_run(&parameters, blockIdx.x, &request);
}
