/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs on memory. */
#ifndef SOFTGPU_PROGRAMS_MEMORY_H
#define SOFTGPU_PROGRAMS_MEMORY_H

#include "program.h"

/* NULL if there is no such program. */
const struct program *memory_program(uint32_t number);

#endif /* SOFTGPU_PROGRAMS_MEMORY_H */
