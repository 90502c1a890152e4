/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/nvme.h: the statuses of this library, and the parts of the
 * NVMe protocol that it needs (base specification 2.0, NVM and ZNS command
 * sets).
 */
#ifndef NVMEPEER_DEVICE_NVME_H
#define NVMEPEER_DEVICE_NVME_H

#include "platform.h"

/*
 * For nvmepeer_command.control: command dword 12 without its lower half, which the
 * library sets, in bits 31..16, and dword 13 in bits 63..32.  Dwords 14 and 15 are for
 * metadata only, which the library refuses.
 */
#define NVMEPEER_CONTROL_DEALLOCATE		(1u << 25)	/* write zeroes only */
#define NVMEPEER_CONTROL_FORCE_UNIT_ACCESS	(1u << 30)
#define NVMEPEER_CONTROL_LIMITED_RETRY		(1u << 31)

/*
 * Not part of a dword: a command in the background, for instance of a prefetch or a
 * write-back.  It is submitted only while it leaves nvmepeer_geometry.reserve slots of
 * the queue pair free, so that a command that a thread waits for finds a slot; CIDs are
 * not reserved.  The call waits for that like for any room, and steady demand may end it
 * with NVMEPEER_E_FULL, and with it a prefetch.  Lanes of a warp that call together make
 * one submission to a queue pair, in the background if the command of the first lane is
 * and none demands.  A call of both kinds takes reserved slots: submit the two kinds by
 * different calls.  Calls on an exclusive queue pair ignore the flag.
 */
#define NVMEPEER_CONTROL_BACKGROUND		(1u << 0)

/*
 * A directive of writes and zone appends: its type, up to 15, and what is specific to
 * it (base specification: directives).  The controller refuses one that is not enabled.
 */
#define NVMEPEER_CONTROL_DIRECTIVE(type, specific) \
	((uint64_t)((specific) & 0xffffu) << 48 | (uint64_t)((type) & 15u) << 20)
/* Flexible data placement: a placement identifier, of reclaim group and handle. */
#define NVMEPEER_CONTROL_PLACEMENT(identifier)	NVMEPEER_CONTROL_DIRECTIVE(2u, identifier)

/* Hints of reads and writes about the blocks, combined by OR (NVM: dataset management). */
#define NVMEPEER_CONTROL_HINTS(hints)		((uint64_t)((hints) & 0xffu) << 32)
enum nvmepeer_hint {
	NVMEPEER_HINT_TYPICAL = 1,
	NVMEPEER_HINT_RARELY_ACCESSED = 2,
	NVMEPEER_HINT_RARELY_WRITTEN = 3,
	NVMEPEER_HINT_RARELY_READ = 4,
	NVMEPEER_HINT_OFTEN_ACCESSED = 5,
	NVMEPEER_HINT_READ_ONCE = 6,
	NVMEPEER_HINT_READ_AHEAD = 7,
	NVMEPEER_HINT_OVERWRITTEN_SOON = 8,
	NVMEPEER_HINT_LATENCY_IDLE = 1 << 4,
	NVMEPEER_HINT_LATENCY_NORMAL = 2 << 4,
	NVMEPEER_HINT_LATENCY_LOW = 3 << 4,
	NVMEPEER_HINT_SEQUENTIAL = 1 << 6,
	NVMEPEER_HINT_INCOMPRESSIBLE = 1 << 7,
};

/*
 * What a call returns: 0, or the status field of the completion entry without
 * its phase tag (Status Code Type << 8 | Status Code, with More and Do Not
 * Retry above: 1 to 0x7fff), or one of these.
 *
 * After NVMEPEER_E_TIMEOUT the controller may still access the buffer.  After
 * nvmepeer_wait(), _execute() and the calls made of them: until
 * nvmepeer_abandoned() returns 0.  After nvmepeer_wait_any(), nvmepeer_flag_wait()
 * and nvmepeer_counter_wait(): until the tokens or the batches have been waited for.
 * A counter also reports NVMEPEER_E_TIMEOUT of a wait that has been counted: it may
 * be either, so follow both rules.
 * After an exclusive call, or after NVMEPEER_E_LOST: until the queue pair is no
 * longer LIVE; nvmepeer_abandoned() does not cover these.  On a queue pair that is
 * lost it does not return to 0: while waiting for it call nvmepeer_check(), too.
 *
 * Of several commands the worst status is returned: the greatest as an unsigned
 * number.  NVMEPEER_E_TIMEOUT and _E_LOST, after which the controller may still
 * access the buffer, so come before other errors, and those before statuses of
 * the controller.  The worst status may hide the other of these two: after either
 * follow the rules of both, for each queue pair of a set.
 */
enum nvmepeer_error {
	NVMEPEER_OK = 0,
	NVMEPEER_AGAIN = -1,		/* not complete yet; from a poll, or a test of a flag or counter */
	NVMEPEER_E_TIMEOUT = -2,	/* submitted, no completion in time */
	/* queue pair no longer LIVE; the status page may report that a little later */
	NVMEPEER_E_LOST = -3,
	NVMEPEER_E_FULL = -4,		/* not submitted: the queue stayed full */
	NVMEPEER_E_RANGE = -5,		/* not submitted: outside the buffer or the set */
	/* not submitted: no blocks, or above the limit of a command, batch or gather */
	NVMEPEER_E_TOO_LARGE = -6,
	/* not submitted: misaligned; data: 4 bytes, gather: 16 bytes, scatter: controller pages */
	NVMEPEER_E_ALIGN = -7,
	/* not submitted: needs a PRP list without list memory; NVMEPEER_ONE_RANGE: not one range */
	NVMEPEER_E_NO_LIST = -8,
	/* init: ring entries are no power of two; SQ: 2..32768, CQ: at least the SQ, up to 65536 */
	NVMEPEER_E_ENTRIES = -9,
	/* init: cids is no power of two in 32..65536, or less than sq_entries */
	NVMEPEER_E_CIDS = -10,
	/* init: an address is 0 or misaligned; quiesce: no control page; list: no scratch page */
	NVMEPEER_E_ADDRESS = -11,
	/* init: invalid version, flags, page size, block size, max_transfer or lists; gather: unit size */
	NVMEPEER_E_GEOMETRY = -12,
	/* not the token of a command in flight, or nothing is in flight; nothing was changed */
	NVMEPEER_E_TOKEN = -13,
	/* init: completions may overtake data that the peer cannot read back over a bus */
	NVMEPEER_E_PLACEMENT = -14,
	NVMEPEER_E_METADATA = -15,	/* init: the namespace has metadata */
	/* exclusive: the queue pair was in use at open; a list: its scratch memory is, after a timeout */
	NVMEPEER_E_BUSY = -16,
	/* the queue was made by code with another version of the library */
	NVMEPEER_E_LAYOUT = -17,
	/* not submitted: not a command on a range of blocks, see struct nvmepeer_command */
	NVMEPEER_E_OPCODE = -18,
};

/* The worse of two statuses.  Shared words take the same one by nvp_block_max(). */
NVP_HOST_FN int nvp_worse(int one, int other)
{
	return (uint32_t)other > (uint32_t)one ? other : one;
}

/*
 * After this status a call that submits several commands submits no more: each
 * would wait for another timeout, or use memory that the controller may still
 * access.
 */
NVP_HOST_FN bool nvp_ends(int status)
{
	return status == NVMEPEER_E_TIMEOUT || status == NVMEPEER_E_LOST ||
	       status == NVMEPEER_E_FULL;
}

/* Completion entry: dword 3 holds CID, phase tag and status (base 4.2.4). */
NVP_HOST_FN uint32_t nvp_cqe_cid(const uint32_t entry[4])
{
	return entry[3] & 0xffff;
}

NVP_HOST_FN uint32_t nvp_cqe_phase(const uint32_t entry[4])
{
	return entry[3] >> 16 & 1;
}

NVP_HOST_FN uint32_t nvp_cqe_status(const uint32_t entry[4])
{
	return entry[3] >> 17;
}

/*
 * Status of a command that was aborted as its submission queue was deleted
 * (base 4.2.3).
 */
#define NVP_SC_QUEUE_DELETED 0x008

/*
 * The return value of a call for @status.  A controller may complete commands
 * with "Aborted due to SQ Deletion" when the kernel deletes the queue.  Those
 * commands are lost like the ones it never completes, so the caller gets
 * NVMEPEER_E_LOST for both.
 */
NVP_HOST_FN int nvp_return_status(int status)
{
	return (status & 0x7ff) == NVP_SC_QUEUE_DELETED ? (int)NVMEPEER_E_LOST : status;
}

/* A submission queue entry, stored by four 16-byte stores (base 4.2.3). */
struct nvmepeer_sqe {
	uint32_t dword[16];
};

#endif /* NVMEPEER_DEVICE_NVME_H */
