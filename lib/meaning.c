// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What errors mean: the texts of <linux/nvme_peer.h> by call and errno, and those of the
 * device library's header by its results.  errors.awk makes errors.inc from the headers.
 */
#include <stdio.h>

#include <nvmepeer_device.h>

#include "internal.h"

static const struct {
	enum call call;
	int error;
	const char *text;
} errors[] = {
#define MEANING(call, error, text) { call, error, text },
#define STATUS(status, text)
#include "errors.inc"
#undef MEANING
#undef STATUS
	{ CALL_NONE, 0, "no call has failed" },
};

static const struct {
	int status;
	const char *text;
} statuses[] = {
#define MEANING(call, error, text)
#define STATUS(status, text) { status, text },
#include "errors.inc"
	{ NVMEPEER_OK, "no call has failed" },
};

/* The errno that stands for a result of the device library, and the fix. */
static const struct {
	int status;
	int error;
	const char *help;
} fixes[] = {
	{ NVMEPEER_AGAIN, EAGAIN, "" },
	{ NVMEPEER_E_TIMEOUT, ETIMEDOUT,
	  "the command may still be executed: leave its memory alone until "
	  "nvmepeer_abandoned() is 0, or call nvmepeer_queue_quiesce()" },
	{ NVMEPEER_E_FULL, EBUSY, "reap results, or use a longer ring or more cids" },
	{ NVMEPEER_E_LOST, EINTR,
	  "the command may have been executed; re-arm the queue pair, then repeat reads, "
	  "and writes to blocks that nothing else writes" },
	{ NVMEPEER_E_RANGE, ERANGE, "" },
	{ NVMEPEER_E_TOO_LARGE, EMSGSIZE, "split the transfer" },
	{ NVMEPEER_E_ALIGN, EINVAL, "" },
	{ NVMEPEER_E_NO_LIST, ENOBUFS,
	  "set list_area in the geometry, or transfer at most two controller pages; "
	  "with NVMEPEER_ONE_RANGE one range, or part of one page" },
	{ NVMEPEER_E_ENTRIES, EINVAL,
	  "use rings of a power of two of entries, 2 to 32768, and a completion "
	  "ring that is at least as long" },
	{ NVMEPEER_E_CIDS, EINVAL,
	  "set cids to 0 for a suitable number, or to a power of two from the submission entries to 65536" },
	{ NVMEPEER_E_ADDRESS, EINVAL,
	  "set rings and doorbells to addresses of the peer, state to one aligned to 128 bytes, and "
	  "readback where the completion ring is not in the data's memory; give a list scratch memory" },
	{ NVMEPEER_E_GEOMETRY, EINVAL,
	  "check list_bytes, which each cid needs, block size, 512 bytes to 64 KiB, and flags: "
	  "NVMEPEER_ONE_RANGE needs a controller with SGLs" },
	{ NVMEPEER_E_TOKEN, EBADF, "" },
	{ NVMEPEER_E_PLACEMENT, EINVAL, "place the completion ring in the same memory as the data" },
	{ NVMEPEER_E_METADATA, EOPNOTSUPP, "use a namespace whose format has no metadata" },
	{ NVMEPEER_E_BUSY, EBUSY, "after a timeout: quiesce the queue pair and re-arm it" },
	{ NVMEPEER_E_LAYOUT, EPROTO, "compile host and device code with the headers of one version" },
	{ NVMEPEER_E_OPCODE, EOPNOTSUPP, "write the entry, and submit it with nvmepeer_submit_raw()" },
};

const char *meaning_of_error(enum call call, int error)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].call == call && errors[i].error == error)
			return errors[i].text;
	return NULL;
}

bool meaning_of_device_result(int result, struct nvmepeer_explanation *explanation)
{
	const char *text = "";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(statuses); i++)
		if (statuses[i].status == result)
			text = statuses[i].text;
	snprintf(explanation->limit, sizeof(explanation->limit), "%s", text);
	for (i = 0; i < ARRAY_SIZE(fixes); i++)
		if (fixes[i].status == result) {
			explanation->error = fixes[i].error;
			snprintf(explanation->help, sizeof(explanation->help), "%s", fixes[i].help);
			return *text;
		}
	return false;
}
