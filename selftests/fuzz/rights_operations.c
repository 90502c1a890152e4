// SPDX-License-Identifier: GPL-2.0-only
/* Privileged operations, tried by callers without the rights. */
#include "judge.h"
#include "operations.h"
#include "pool.h"
#include "random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "nptest.h"

/* Open and close a file of the module that may exist. */
static void open_file(struct fuzz_thread *thread)
{
	const struct np_opening *opening = &np_openings[fuzz_below(thread, NP_OPENINGS)];
	char path[64];
	int fd;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(path, sizeof(path), opening->path, fuzz_instance(thread));
#pragma GCC diagnostic pop
	fd = open(path, opening->flags | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	else
		fd = -errno;
	/* Unbound: there is nothing to refuse. */
	if (fd != -ENOENT && fd != -ENXIO && fd != -ENODEV)
		fuzz_judge(thread, opening->path, np_permit_open(&thread->caller, opening), true, fd);
}

/* Privileged callers reset the controller elsewhere: see chaos.h. */
static void manage(struct fuzz_thread *thread)
{
	static const unsigned long cmds[] = {
		NVME_IOCTL_RESET, NVME_IOCTL_SUBSYS_RESET, NVME_IOCTL_RESCAN,
	};
	unsigned long cmd = cmds[fuzz_below(thread, 3)];
	struct np_permit permit = np_permit_ioctl(&thread->caller, cmd);
	struct fuzz_resource file;

	if (permit.allowed || !fuzz_hold(thread, FUZZ_CONTROLLER, &file))
		return;
	fuzz_judge(thread, "reset or rescan", permit, true, np_ioctl(file.held, cmd, NULL));
	fuzz_let_go(&file);
}

const struct fuzz_operation fuzz_rights_operations[] = {
	{ "open", 2, false, open_file },
	{ "reset or rescan", 2, false, manage },
	{ NULL }
};
