// SPDX-License-Identifier: GPL-2.0-only
/* The rights that the module promises, as tables: see permit.h. */
#include "permit.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "nptest.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

#define LOG_EFFECTS		0x05

/* --- commands ------------------------------------------------------------ */

/* Refused to everybody: queues, events and doorbells have one owner, the driver. */
static const uint8_t drivers_own[] = {
	NP_ADMIN_DELETE_SQ, NP_ADMIN_CREATE_SQ, NP_ADMIN_DELETE_CQ, NP_ADMIN_CREATE_CQ,
	NP_ADMIN_ASYNC_EVENT, NP_ADMIN_DOORBELL_BUFFER,
};

/* Number of Queues, power states, Host Memory Buffer, Keep Alive, Host Behavior. */
static const uint8_t drivers_features[] = { 0x07, 0x0c, 0x0d, 0x0f, 0x16 };

/* Identify data (CNS) that I/O commands are built from: namespace and controller. */
static const uint8_t public_data[] = { 0x00, 0x01, 0x05, 0x06, 0x08 };

/* Commands that say how much memory they move. */
static const uint8_t measured[] = {
	NP_CMD_FLUSH, NP_CMD_WRITE, NP_CMD_READ, NP_CMD_COMPARE, NP_CMD_WRITE_ZEROES,
	NP_CMD_DATASET, NP_CMD_VERIFY,
};

static bool among(const uint8_t *list, size_t count, uint32_t value)
{
	return value < NP_OPCODES && memchr(list, (int)value, count);
}

static bool is_drivers_own(const struct np_sending *sending)
{
	if (sending->opcode == NP_ADMIN_SET_FEATURES)
		return among(drivers_features, COUNT(drivers_features), sending->dword10 & 0xff);
	return among(drivers_own, COUNT(drivers_own), sending->opcode);
}

static bool is_public_data(const struct np_sending *sending)
{
	return sending->opcode == NP_ADMIN_IDENTIFY &&
	       among(public_data, COUNT(public_data), sending->dword10 & 0xff);
}

/* Only what the controller knows and calls harmless. */
static bool is_harmless(const struct np_sending *sending)
{
	return sending->effects & NP_EFFECT_SUPPORTED && !(sending->effects & NP_EFFECTS_HARMFUL);
}

/* Data to the controller, as the lowest bit says, or data that becomes another. */
static bool writes(const struct np_sending *sending)
{
	return sending->opcode & 1 || sending->effects & NP_EFFECT_CONTENT;
}

static bool is_anybodys(const struct np_sending *sending)
{
	/* Commands name blocks of the whole disk. */
	if (sending->partition)
		return false;
	if (sending->admin)
		return is_public_data(sending);
	return is_harmless(sending) && (sending->writable || !writes(sending));
}

struct np_permit np_permit_command(const struct np_caller *caller,
				   const struct np_sending *sending)
{
	struct np_permit permit = { .refusal = EACCES };

	if (sending->admin && is_drivers_own(sending))
		return permit;
	permit.allowed = caller->admin || is_anybodys(sending);
	permit.late = permit.allowed && !caller->admin && !sending->admin &&
		      !among(measured, COUNT(measured), sending->opcode);
	permit.allowed &= !permit.late;
	return permit;
}

/* --- other calls --------------------------------------------------------- */

struct np_permit np_permit_ioctl(const struct np_caller *caller, unsigned long number)
{
	switch (number) {
	case NVME_PEER_QP_CREATE:
	case NVME_PEER_BUF_TABLE:
		return (struct np_permit){ .allowed = caller->rawio, .refusal = EPERM };
	case NVME_IOCTL_RESET:
	case NVME_IOCTL_SUBSYS_RESET:
	case NVME_IOCTL_RESCAN:
		return (struct np_permit){ .allowed = caller->admin, .refusal = EACCES };
	default:
		return (struct np_permit){ .allowed = true, .refusal = EPERM };
	}
}

const struct np_opening np_openings[NP_OPENINGS] = {
	{ "/dev/nvmep%d", O_RDWR, false },
	{ "/dev/nvmep%d", O_RDONLY, false },
	{ "/dev/ngp%dn1", O_RDWR, false },
	{ "/dev/ngp%dn1", O_RDONLY, false },
	{ "/dev/nvmep%dn1", O_RDWR, false },
	{ "/dev/nvmep%dn1", O_RDONLY, false },
	{ "/sys/class/nvme-peer/nvmep%d/reset_controller", O_WRONLY, false },
	{ "/sys/class/nvme-peer/nvmep%d/rescan_controller", O_WRONLY, false },
	{ "/sys/class/nvme-peer/nvmep%d/state", O_RDONLY, true },
	{ "/sys/block/nvmep%dn1/wwid", O_RDONLY, true },
	{ "/sys/module/nvme_peer/parameters/admin_timeout", O_RDONLY, true },
	{ "/sys/module/nvme_peer/parameters/admin_timeout", O_WRONLY, false },
	{ "/sys/kernel/debug/nvme-peer/objects", O_RDONLY, false },
};

struct np_permit np_permit_open(const struct np_caller *caller, const struct np_opening *opening)
{
	return (struct np_permit){
		.allowed = caller->root || opening->anybody,
		.refusal = EACCES,
	};
}

/* --- answers ------------------------------------------------------------- */

/* Errors of arguments, which may be found before rights are asked for. */
static bool is_argument_error(int answer)
{
	switch (-answer) {
	case EINVAL:
	case EFAULT:
	case E2BIG:
	case ENOTTY:
	case EOPNOTSUPP:
		return true;
	default:
		return false;
	}
}

const char *np_permit_broken(const struct np_permit *permit, bool exact, int answer)
{
	if (permit->allowed)
		return answer == -permit->refusal ? "refused, but the caller has the right" : NULL;
	if (answer >= 0)
		return "done, but the caller has no right to it";
	if (answer == -permit->refusal || permit->late || (!exact && is_argument_error(answer)))
		return NULL;
	return "refused by an error that does not say why";
}

int np_read_effects(int ctrl_fd, uint32_t effects[NP_OPCODES])
{
	/* Admin commands come first. */
	uint32_t page[NP_PAGE / sizeof(uint32_t)] = { 0 };
	struct nvme_admin_cmd cmd = {
		.opcode = NP_ADMIN_GET_LOG,
		.addr = (uintptr_t)page,
		.data_len = sizeof(page),
		.cdw10 = (sizeof(page) / sizeof(uint32_t) - 1) << 16 | LOG_EFFECTS,
	};
	int ret = np_admin(ctrl_fd, &cmd);

	memcpy(effects, page + NP_OPCODES, NP_OPCODES * sizeof(uint32_t));
	return ret > 0 ? -EIO : ret;
}
