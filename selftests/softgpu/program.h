/* SPDX-License-Identifier: GPL-2.0-only */
/* Interface between the engine and programs. */
#ifndef SOFTGPU_PROGRAM_H
#define SOFTGPU_PROGRAM_H

#include "gpu.h"

/**
 * struct program - one entry of the table of programs
 * @prepare: check parameters, once, before the lanes; enum softgpu_status,
 *	SOFTGPU_RUNNING to go on
 * @run: in each lane
 */
struct program {
	enum softgpu_status (*prepare)(struct slot *slot);
	enum softgpu_status (*run)(struct lane *lane);
};

#endif /* SOFTGPU_PROGRAM_H */
