/* SPDX-License-Identifier: GPL-2.0-only */
/* hsa/hsa.h: as ../hip/hip_runtime.h, of AMD's runtime below HIP. */
#ifndef SELFTESTS_TOOLKITS_HSA_H
#define SELFTESTS_TOOLKITS_HSA_H

typedef enum { HSA_STATUS_SUCCESS = 0 } hsa_status_t;

#endif /* SELFTESTS_TOOLKITS_HSA_H */
