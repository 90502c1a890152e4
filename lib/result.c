// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Explanations of results that come by themselves, later, and to any thread: completions
 * of io_uring, and what calls of the device library returned.  Nothing is remembered for
 * them: kind and number say it all.
 */
#include <stdio.h>
#include <string.h>

#include <nvmepeer_device.h>

#include "internal.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/**
 * struct reason - what one result means
 * @result: as it came
 * @error: errno of that, for programs
 * @limit: the rule that refused it
 * @help: what would help
 */
struct reason {
	int result;
	int error;
	const char *limit;
	const char *help;
};

/**
 * struct kind - results of one kind
 * @call: where they come from
 * @what: which were not good
 * @reasons: what is known; others are an errno
 * @count: of @reasons
 */
struct kind {
	const char *call;
	const char *what;
	const struct reason *reasons;
	size_t count;
};

#define INTERRUPTED "the controller was stopped under it, and nobody knows whether it was carried out"
#define AGAIN_IF_READ "a read may be repeated, and a write of the same data to blocks that nobody else writes"

static const struct reason command_reasons[] = {
	{ -EINTR, EINTR, INTERRUPTED, AGAIN_IF_READ },
	{ -EACCES, EACCES,
	  "a write through a node that is open for reading, or a command that the controller does not declare to be harmless",
	  "open the node for writing, or have CAP_SYS_ADMIN" },
	{ -EOPNOTSUPP, EOPNOTSUPP, "the ring has entries of 64 bytes",
	  "make it by nvmepeer_uring_init(), or with IORING_SETUP_SQE128 and IORING_SETUP_CQE32" },
	{ -EINVAL, EINVAL,
	  "the transfer is above the controller's max_transfer, or the memory is not 4-byte aligned",
	  "split the transfer; nvme-peer info shows max_transfer" },
	{ -ENODEV, ENODEV, "the controller or the namespace is gone", "" },
};

static const struct reason buffer_reasons[] = {
	{ -EINTR, EINTR, INTERRUPTED, AGAIN_IF_READ },
	{ -EACCES, EACCES,
	  "the buffer was imported for the other direction, or the node is open for reading and this writes",
	  "import with NVME_PEER_ACCESS_BOTH; open the node for writing" },
	{ -EOPNOTSUPP, EOPNOTSUPP,
	  "the ring has entries of 64 bytes, or the namespace is of another command set",
	  "make the ring by nvmepeer_uring_init()" },
	{ -EINVAL, EINVAL,
	  "no blocks, no range, an offset that is no multiple of 4, or an unknown flag", "" },
	{ -E2BIG, E2BIG, "the list has more than 32 ranges (NVME_PEER_IO_RANGES)",
	  "split the list; several go in one submission" },
	{ -EFAULT, EFAULT, "the list of ranges cannot be read", "" },
	{ -EMSGSIZE, EMSGSIZE, "the transfer is above the controller's max_transfer",
	  "split the transfer; nvme-peer info shows max_transfer" },
	{ -EMEDIUMTYPE, EMEDIUMTYPE, "the namespace's blocks carry metadata that needs a place", "" },
	{ -ENOENT, ENOENT, "no buffer has this handle on this open file",
	  "handles belong to the open file that imported them" },
	{ -ERANGE, ERANGE, "the data ends behind the buffer", "import more of the dma-buf" },
	{ -ESTALE, ESTALE, "the exporter has taken the memory back",
	  "release the buffer and import it again" },
	{ -ESHUTDOWN, ESHUTDOWN, "the driver is being unbound", "" },
	{ -ENODEV, ENODEV, "there is no such namespace, or the controller is gone", "" },
};

#define INIT_HELP "nvmepeer_geometry_build() refuses it before a device sees it"

static const struct reason device_reasons[] = {
	{ NVMEPEER_AGAIN, EAGAIN, "the command is not complete yet", "" },
	{ NVMEPEER_E_TIMEOUT, ETIMEDOUT,
	  "it was sent, and no completion came in time; it may still be carried out",
	  "leave its memory alone until nvmepeer_abandoned() is 0, or nvmepeer_queue_give_up()" },
	{ NVMEPEER_E_FULL, EBUSY, "no room in the queue in time; it was not sent",
	  "take results, or ask for a longer ring or more cids" },
	{ NVMEPEER_E_LOST, EINTR, INTERRUPTED " (the queue pair was reset, failed or gone)",
	  AGAIN_IF_READ ", once the queue pair is re-armed" },
	{ NVMEPEER_E_RANGE, ERANGE, "outside the buffer; it was not sent", "" },
	{ NVMEPEER_E_TOO_LARGE, EMSGSIZE, "above the limit of one command; it was not sent",
	  "split the transfer" },
	{ NVMEPEER_E_ALIGN, EINVAL,
	  "data must begin at a multiple of 4 bytes, pieces of 16; it was not sent", "" },
	{ NVMEPEER_E_NO_LIST, ENOBUFS,
	  "it needs a PRP list, and the queue pair has no memory for them; it was not sent",
	  "give the geometry a list_area, or move no more than two controller pages" },
	{ NVMEPEER_E_ENTRIES, EINVAL, "ring entries that the device library does not take", INIT_HELP },
	{ NVMEPEER_E_CIDS, EINVAL, "cids that the device library does not take", INIT_HELP },
	{ NVMEPEER_E_ADDRESS, EINVAL, "an address is 0 or misaligned", INIT_HELP },
	{ NVMEPEER_E_GEOMETRY, EINVAL, "the geometry makes no sense", INIT_HELP },
	{ NVMEPEER_E_TOKEN, EBADF, "not a token of a command in flight; nothing was changed", "" },
	{ NVMEPEER_E_PLACEMENT, EINVAL, "completions may overtake data, and nothing can be read back",
	  INIT_HELP },
	{ NVMEPEER_E_METADATA, EOPNOTSUPP, "the namespace's blocks carry metadata", INIT_HELP },
	{ NVMEPEER_E_BUSY, EBUSY, "somebody else uses the queue pair", "" },
};

static const struct kind kinds[] = {
	[NVMEPEER_RESULT_COMMAND] = { "nvmepeer_prep_command", "the command failed", command_reasons,
				      ARRAY_SIZE(command_reasons) },
	[NVMEPEER_RESULT_BUFFER] = { "nvmepeer_prep_buf_rw", "the I/O with an imported buffer failed",
				     buffer_reasons, ARRAY_SIZE(buffer_reasons) },
	[NVMEPEER_RESULT_DEVICE] = { "nvmepeer_device", "the command of a peer failed", device_reasons,
				     ARRAY_SIZE(device_reasons) },
};

static void say(char *text, size_t length, const char *from)
{
	snprintf(text, length, "%s", from);
}

static void explain_error(const struct kind *kind, int result,
			  struct nvmepeer_explanation *told)
{
	char text[128];

	for (size_t i = 0; i < kind->count; i++)
		if (kind->reasons[i].result == result) {
			told->error = kind->reasons[i].error;
			say(told->limit, sizeof(told->limit), kind->reasons[i].limit);
			say(told->help, sizeof(told->help), kind->reasons[i].help);
			return;
		}
	told->error = -result;
	say(told->limit, sizeof(told->limit), strerror_r(-result, text, sizeof(text)));
}

static void explain_status(int status, struct nvmepeer_explanation *told)
{
	told->status = status;
	snprintf(told->limit, sizeof(told->limit), "the controller answered: %s (status 0x%x%s)",
		 nvmepeer_status_text(status), (unsigned int)status & 0x7ff,
		 status & 0x4000 ? ", do not retry" : "");
}

int nvmepeer_explain_result(enum nvmepeer_result kind, int result,
			    struct nvmepeer_explanation *explanation, size_t size)
{
	struct nvmepeer_explanation told = { 0 };

	if (size < EXPLANATION_LEAST || (size_t)kind >= ARRAY_SIZE(kinds))
		return -EINVAL;
	told.call = kinds[kind].call;
	say(told.what, sizeof(told.what), result ? kinds[kind].what : "nothing has failed");
	if (result < 0)
		explain_error(&kinds[kind], result, &told);
	else if (result)
		explain_status(result, &told);
	sized_copy(explanation, size, &told, sizeof(told));
	return told.error ? -told.error : told.status;
}
