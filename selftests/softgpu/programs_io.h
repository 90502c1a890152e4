/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs on blocks. */
#ifndef SOFTGPU_PROGRAMS_IO_H
#define SOFTGPU_PROGRAMS_IO_H

#include "program.h"

/* NULL if there is no such program. */
const struct program *io_program(uint32_t number);

#endif /* SOFTGPU_PROGRAMS_IO_H */
