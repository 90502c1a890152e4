// SPDX-License-Identifier: GPL-2.0-only
/*
 * A refusal does not prove that the command was not submitted. The module traces each
 * submission, and a trace instance records commands with the mark: see trace_check.h.
 */
#include "trace_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nptest.h"

#define INSTANCE	NP_TRACE "instances/fuzz"
#define EVENT		INSTANCE "/events/nvme_peer/nvmep_submit"

int fuzz_trace_begin(void)
{
	char filter[64];

	/* Left by a run that was killed. */
	rmdir(INSTANCE);
	if (mkdir(INSTANCE, 0700))
		return -errno;
	/* The event has dwords 10 and 11 as one number. */
	snprintf(filter, sizeof(filter), "cdw10 >= 0x%x00000000 && cdw10 <= 0x%xffffffff",
		 FUZZ_REFUSED, FUZZ_REFUSED);
	return np_write_file(EVENT "/filter", filter) ?: np_write_file(EVENT "/enable", "1");
}

int fuzz_trace_end(void)
{
	const char *const texts[] = { "nvmep_submit:", NULL };
	int count = np_count_trace(INSTANCE "/trace", texts);

	return count >= 0 && rmdir(INSTANCE) ? -errno : count;
}
