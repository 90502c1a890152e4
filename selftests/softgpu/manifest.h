/* SPDX-License-Identifier: GPL-2.0-only */
/* The program that describes queue pairs to another process. */
#ifndef SOFTGPU_MANIFEST_H
#define SOFTGPU_MANIFEST_H

#include "program.h"

/* SOFTGPU_MANIFEST, otherwise NULL. */
const struct program *manifest_program(uint32_t number);

#endif /* SOFTGPU_MANIFEST_H */
