/* SPDX-License-Identifier: GPL-2.0-only */
/* spin_platform.h: the platform of C11 for threads that have a core each: a pause spins. */
#ifndef SELFTESTS_CUDA_SPIN_PLATFORM_H
#define SELFTESTS_CUDA_SPIN_PLATFORM_H

#include <time.h>

#define NVP_PLATFORM_TIME

NVP_FN uint64_t nvmepeer_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

NVP_FN void nvp_pause(uint32_t ns)
{
	(void)ns;
	__builtin_ia32_pause();
}

#endif /* SELFTESTS_CUDA_SPIN_PLATFORM_H */
