/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/nvme.h: what of the NVMe protocol a peer needs (base
 * specification 2.0, NVM and ZNS command sets), and the statuses of this
 * library.
 */
#ifndef NVMEPEER_DEVICE_NVME_H
#define NVMEPEER_DEVICE_NVME_H

/* Opcodes of I/O commands. */
enum {
	NVMEPEER_OP_FLUSH = 0x00,
	NVMEPEER_OP_WRITE = 0x01,
	NVMEPEER_OP_READ = 0x02,
	NVMEPEER_OP_COMPARE = 0x05,
	NVMEPEER_OP_WRITE_ZEROES = 0x08,
	NVMEPEER_OP_ZONE_APPEND = 0x7d,
};

/* Bits for nvmepeer_command.control, as in the upper half of command dword 12. */
#define NVMEPEER_CONTROL_DEALLOCATE		(1u << 25)	/* write zeroes only */
#define NVMEPEER_CONTROL_FORCE_UNIT_ACCESS	(1u << 30)
#define NVMEPEER_CONTROL_LIMITED_RETRY		(1u << 31)

/*
 * What a call returns: 0, or the status field of the completion entry without
 * its phase tag (Status Code Type << 8 | Status Code, with More and Do Not
 * Retry above: 1 to 0x7fff), or one of these.  After a timeout the controller
 * may still write the data of the command: leave its buffer alone until
 * nvmepeer_abandoned() says that none is left or the queue pair is gone.
 */
enum nvmepeer_error {
	NVMEPEER_OK = 0,
	NVMEPEER_AGAIN = -1,		/* not complete yet; only from poll */
	NVMEPEER_E_TIMEOUT = -2,	/* sent, no completion in time */
	NVMEPEER_E_FULL = -3,		/* not sent: no room in the queue in time */
	NVMEPEER_E_LOST = -4,		/* queue pair reset, failed or gone; see the status page */
	NVMEPEER_E_RANGE = -5,		/* not sent: outside the buffer */
	NVMEPEER_E_TOO_LARGE = -6,	/* not sent: above the limit of one command */
	NVMEPEER_E_ALIGN = -7,		/* not sent: data must start at a multiple of 4 bytes, pieces of 16 */
	NVMEPEER_E_NO_LIST = -8,	/* not sent: needs a PRP list and the queue pair has no memory for them */
	NVMEPEER_E_ENTRIES = -9,	/* init: ring entries not a power of two in 2..32768, or CQ shorter than SQ */
	NVMEPEER_E_CIDS = -10,		/* init: cids not a power of two in 32..65536, or fewer than entries */
	NVMEPEER_E_ADDRESS = -11,	/* init: an address is 0 or misaligned */
	NVMEPEER_E_GEOMETRY = -12,	/* init: version, page or block size, or list area make no sense */
	NVMEPEER_E_TOKEN = -13,		/* not a token of a command in flight; nothing was changed */
	NVMEPEER_E_PLACEMENT = -14,	/* init: completions may overtake data and nothing can be read back */
	NVMEPEER_E_METADATA = -15,	/* init: the namespace's blocks carry metadata */
	NVMEPEER_E_BUSY = -16,		/* solo_open: somebody else uses the queue pair */
};

/* Completion entry: dword 3 holds cid, phase tag and status (base 4.2.4). */
NVMEPEER_HOST_FN uint32_t nvmepeer_cqe_cid(const uint32_t entry[4])
{
	return entry[3] & 0xffff;
}

NVMEPEER_HOST_FN uint32_t nvmepeer_cqe_phase(const uint32_t entry[4])
{
	return entry[3] >> 16 & 1;
}

NVMEPEER_HOST_FN uint32_t nvmepeer_cqe_status(const uint32_t entry[4])
{
	return entry[3] >> 17;
}

/* Status of a command that was ended as its submission queue was deleted (base 4.2.3). */
#define NVMEPEER_SC_QUEUE_DELETED 0x008

/*
 * What a call returns that came to @status: a controller that a queue was taken from
 * may say so of its commands, which are lost like those that it says nothing of.
 */
NVMEPEER_HOST_FN int nvmepeer_returned(int status)
{
	return (status & 0x7ff) == NVMEPEER_SC_QUEUE_DELETED ? (int)NVMEPEER_E_LOST : status;
}

/* A submission entry as four 16-byte stores (base 4.2.3). */
struct nvmepeer_sqe {
	uint32_t dword[16];
};

#endif /* NVMEPEER_DEVICE_NVME_H */
