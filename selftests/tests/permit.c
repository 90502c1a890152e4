// SPDX-License-Identifier: GPL-2.0-only
/* The permissions that the module implements, as tables: see permit.h. */
#include "permit.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "nptest.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))


/* --- commands ------------------------------------------------------------ */

/* Refused to everyone: the driver owns queues, events and doorbells. */
static const uint8_t drivers_own[] = {
	NVME_ADMIN_DELETE_SQ, NVME_ADMIN_CREATE_SQ, NVME_ADMIN_DELETE_CQ, NVME_ADMIN_CREATE_CQ,
	NVME_ADMIN_ASYNC_EVENT, NVME_ADMIN_DOORBELL_BUFFER,
};

/* Refused to everyone: the driver sets these features. */
static const uint8_t drivers_features[] = {
	NVME_FEATURE_QUEUES, NVME_FEATURE_POWER_TRANSITION, NVME_FEATURE_HOST_MEMORY,
	NVME_FEATURE_KEEP_ALIVE, NVME_FEATURE_HOST_BEHAVIOR,
};

/* Identify data (CNS) that is needed to build I/O commands: namespace and controller. */
static const uint8_t public_data[] = {
	NVME_CNS_NAMESPACE, NVME_CNS_CONTROLLER, NVME_CNS_NAMESPACE_OF_SET,
	NVME_CNS_CONTROLLER_OF_SET, NVME_CNS_NAMESPACE_OF_ANY_SET,
};

/* Commands whose data length the driver can compute. */
static const uint8_t measured[] = {
	NVMEPEER_OP_FLUSH, NVMEPEER_OP_WRITE, NVMEPEER_OP_READ, NVMEPEER_OP_COMPARE,
	NVMEPEER_OP_WRITE_ZEROES, NVMEPEER_OP_DATASET_MANAGEMENT, NVME_IO_VERIFY,
};

static bool among(const uint8_t *list, size_t count, uint32_t value)
{
	return value < NP_OPCODES && memchr(list, (int)value, count);
}

static bool is_drivers_own(const struct np_sending *sending)
{
	if (sending->opcode == NVME_ADMIN_SET_FEATURES)
		return among(drivers_features, COUNT(drivers_features), sending->dword10 & 0xff);
	return among(drivers_own, COUNT(drivers_own), sending->opcode);
}

static bool is_public_data(const struct np_sending *sending)
{
	return sending->opcode == NVME_ADMIN_IDENTIFY &&
	       among(public_data, COUNT(public_data), sending->dword10 & 0xff);
}

/* Commands that the effects log lists without harmful effects. */
static bool is_harmless(const struct np_sending *sending)
{
	return sending->effects & NP_EFFECT_SUPPORTED && !(sending->effects & NP_EFFECTS_HARMFUL);
}

/* Commands that change media contents, declared or not. */
static const uint8_t changing[] = { NVMEPEER_OP_WRITE_ZEROES, NVME_IO_WRITE_UNCORRECTABLE };

/* Host-to-controller data, by the opcode's lowest bit, or a change of media contents. */
static bool writes(const struct np_sending *sending)
{
	return sending->opcode & 1 || sending->effects & NP_EFFECT_CONTENT ||
	       among(changing, COUNT(changing), sending->opcode);
}

static bool is_anybodys(const struct np_sending *sending)
{
	/* Commands address the blocks of the whole disk. */
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
		.allowed = caller->root || opening->everyone,
		.refusal = EACCES,
	};
}

/* --- results ------------------------------------------------------------- */

/* Errors of arguments, which may be checked before permissions. */
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

const char *np_permit_violation(const struct np_permit *permit, bool exact, int answer)
{
	if (permit->allowed)
		return answer == -permit->refusal ? "refused, but the caller has the permission" : NULL;
	if (answer >= 0)
		return "done, but the caller lacks the permission";
	if (answer == -permit->refusal || permit->late || (!exact && is_argument_error(answer)))
		return NULL;
	return "refused with an errno that does not mean a missing permission";
}

int np_read_effects(int ctrl_fd, uint32_t effects[NP_OPCODES])
{
	/* Entries of admin commands come first. */
	uint32_t page[NP_PAGE / sizeof(uint32_t)] = { 0 };
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.addr = (uintptr_t)page,
		.data_len = sizeof(page),
		.cdw10 = (sizeof(page) / sizeof(uint32_t) - 1) << 16 | NVME_LOG_EFFECTS,
	};
	int ret = np_admin(ctrl_fd, &cmd);

	memcpy(effects, page + NP_OPCODES, NP_OPCODES * sizeof(uint32_t));
	return ret > 0 ? -EIO : ret;
}
