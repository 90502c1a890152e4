/* SPDX-License-Identifier: GPL-2.0-only */
/* hsa/hsa_ext_amd.h: as ../hip/hip_runtime.h, of AMD's extensions to that runtime. */
#ifndef SELFTESTS_TOOLKITS_HSA_EXT_AMD_H
#define SELFTESTS_TOOLKITS_HSA_EXT_AMD_H

#include <stddef.h>
#include <stdint.h>

#include "hsa.h"

#ifdef __cplusplus
extern "C"
#endif
hsa_status_t hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *dmabuf,
					    uint64_t *offset);

#endif /* SELFTESTS_TOOLKITS_HSA_EXT_AMD_H */
