// SPDX-License-Identifier: GPL-2.0-only
/*
 * Capabilities belong to a thread, and the kernel checks those of the calling thread: one
 * process has callers with different rights, which share their files. See caller.h.
 */
#include "caller.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY	65534

int fuzz_caller_leave_root(void)
{
	return prctl(PR_SET_KEEPCAPS, 1) || setgroups(0, NULL) ||
	       setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ? -errno : 0;
}

int fuzz_caller_become(const struct np_caller *caller)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	data[0].effective = (caller->admin ? 1U << CAP_SYS_ADMIN : 0) |
			    (caller->rawio ? 1U << CAP_SYS_RAWIO : 0);
	data[0].permitted = data[0].effective;
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}
