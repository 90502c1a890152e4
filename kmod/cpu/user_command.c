// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rights, effects and lengths of passthrough commands.
 *
 * Rights: some admin commands are rejected for all users.  They would create or
 * delete queues that the driver or a peer owns; take asynchronous events from
 * the driver; change features that nvmep_feature_refused() lists; or enable
 * shadow doorbells, with which the controller may ignore a peer's store to the
 * doorbell register.
 * Effects: the CPU's I/O is frozen while an exclusive command (CSE) is
 * executed, and namespaces are scanned after a command that may change them
 * (NCC, NIC).
 * Lengths: the controller trusts the length of a command, so the buffer must be
 * as long as the data and metadata that the command moves.
 */
#include <linux/capability.h>

#include "core/ctrl.h"
#include "cpu.h"
#include "namespace.h"
#include "passthru.h"
#include "scan.h"
#include "user_command.h"

/* --- effects ------------------------------------------------------------ */

/*
 * Effects of admin commands, even if the controller does not report them.
 * Changed blocks (LBCC) matter for the rights of I/O commands only.
 */
static u32 nvmep_known_admin_effects(u8 opcode)
{
	switch (opcode) {
	case nvme_admin_format_nvm:
		return NVME_CMD_EFFECTS_NCC | NVME_CMD_EFFECTS_CSE_MASK;
	case nvme_admin_sanitize_nvm:
		return NVME_CMD_EFFECTS_CSE_MASK;
	case nvme_admin_ns_mgmt:
	case nvme_admin_ns_attach:
		return NVME_CMD_EFFECTS_NIC;
	default:
		return 0;
	}
}

/*
 * The same of I/O commands of the NVM command set.  Bit 0 of the opcode is the
 * direction of the data and does not say whether a command changes blocks.
 */
static u32 nvmep_known_io_effects(u8 opcode)
{
	switch (opcode) {
	case nvme_cmd_write:
	case nvme_cmd_write_uncor:
	case nvme_cmd_write_zeroes:
		return NVME_CMD_EFFECTS_LBCC;
	default:
		return 0;
	}
}

/*
 * CSE of an admin command is ignored if the controller relaxes it (CSER), and
 * for Security Receive: some controllers declare it there to have it sent after
 * its Security Send.  Both are admin commands, so freezing I/O is no help.
 */
static u32 nvmep_admin_effects(const struct nvmep_ctrl *ctrl, u8 opcode)
{
	u32 effects = ctrl->effects ? le32_to_cpu(ctrl->effects->acs[opcode]) :
				      0;

	if (effects & NVMEP_CMD_EFFECTS_CSER_MASK ||
	    opcode == nvme_admin_security_recv)
		effects &= ~NVME_CMD_EFFECTS_CSE_MASK;
	return effects | nvmep_known_admin_effects(opcode);
}

/*
 * CSE is cleared for I/O commands: one holds a request of the queue that would
 * be frozen, and would deadlock.
 */
static u32 nvmep_io_effects(const struct nvmep_ns *ns, u8 opcode)
{
	const struct nvme_effects_log *log = ns->ids.csi ? ns->effects :
							   ns->ctrl->effects;
	u32 effects = log ? le32_to_cpu(log->iocs[opcode]) : 0;

	return (effects & ~NVME_CMD_EFFECTS_CSE_MASK) |
	       nvmep_known_io_effects(opcode);
}

/**
 * nvmep_effects_begin() - prepare for the effects of a command
 * @ctrl: controller; peers are blocked
 * @effects: of the command
 *
 * For an exclusive command, freezes the I/O of the CPU and takes scan_lock.
 */
void nvmep_effects_begin(struct nvmep_ctrl *ctrl, u32 effects)
{
	if (!nvmep_effects_exclusive(effects))
		return;
	mutex_lock(&ctrl->cpu->scan_lock);
	nvmep_namespaces_freeze(ctrl);
}

/**
 * nvmep_effects_end() - handle the effects of a command that has ended
 * @ctrl: controller
 * @effects: of the command
 *
 * If namespaces may have changed, returns after a scan, which may fail, and
 * waits 5 s at most for removed disks; peers get no queue pair meanwhile.  If
 * the controller is not LIVE, its restart will scan.  The scan waits for I/O and
 * for resets, and a reset waits until ended requests are freed: the caller has
 * freed its request, or this would deadlock.
 */
void nvmep_effects_end(struct nvmep_ctrl *ctrl, u32 effects)
{
	bool changed = nvmep_effects_change_ns(effects);

	if (nvmep_effects_exclusive(effects)) {
		/* I/O that waits must be built for the new format. */
		if (changed)
			nvmep_namespaces_reread(ctrl);
		nvmep_namespaces_unfreeze(ctrl);
		mutex_unlock(&ctrl->cpu->scan_lock);
	}
	if (changed)
		nvmep_scan_settled(ctrl);
}

/* --- rights ------------------------------------------------------------- */

/*
 * As the in-tree driver of Linux 7: the driver sets the feature at each start,
 * or would have to act on it and does not.
 */
static bool nvmep_feature_refused(u32 dword10)
{
	switch (dword10 & 0xff) {
	/* Set at the start, when no queue exists. */
	case NVME_FEAT_NUM_QUEUES:
	/* Formats and delays of retries are read according to it. */
	case NVME_FEAT_HOST_BEHAVIOR:
	/* A wake-up may take longer than a peer waits for a command. */
	case NVME_FEAT_AUTO_PST:
	/* DMA to memory that the driver neither maps nor frees. */
	case NVME_FEAT_HOST_MEM_BUF:
	/* The driver sends no Keep Alive, so the controller would stop. */
	case NVME_FEAT_KATO:
		return true;
	default:
		return false;
	}
}

static bool nvmep_admin_refused(const struct nvme_command *sqe)
{
	switch (sqe->common.opcode) {
	case nvme_admin_create_sq:
	case nvme_admin_create_cq:
	case nvme_admin_delete_sq:
	case nvme_admin_delete_cq:
	case nvme_admin_async_event:
	case nvme_admin_dbbuf:
		return true;
	case nvme_admin_set_features:
		return nvmep_feature_refused(le32_to_cpu(sqe->common.cdw10));
	default:
		return false;
	}
}

/* Identify data from which I/O commands are built. */
static bool nvmep_identify_unprivileged(const struct nvme_command *sqe)
{
	if (sqe->common.opcode != nvme_admin_identify)
		return false;
	switch (le32_to_cpu(sqe->common.cdw10) & 0xff) {
	case NVME_ID_CNS_NS:
	case NVME_ID_CNS_CTRL:
	case NVME_ID_CNS_CS_NS:
	case NVME_ID_CNS_CS_CTRL:
	case NVME_ID_CNS_NS_CS_INDEP:
		return true;
	default:
		return false;
	}
}

/* I/O commands that do not require CAP_SYS_ADMIN. */
static bool nvmep_io_unprivileged(const struct nvmep_passthru *from,
				  const struct nvme_command *sqe, u32 effects)
{
	u32 harmless = NVME_CMD_EFFECTS_CSUPP | NVME_CMD_EFFECTS_LBCC |
		       NVME_CMD_EFFECTS_UUID_SEL | NVME_CMD_EFFECTS_SCOPE_MASK;

	/*
	 * The controller must report the command as supported and without other
	 * effects.  Vendor specific commands are rejected later, as their
	 * length is unknown.
	 */
	if (!(effects & NVME_CMD_EFFECTS_CSUPP) || effects & ~harmless)
		return false;
	if (sqe->common.opcode & NVMEP_OPCODE_TO_CTRL ||
	    effects & NVME_CMD_EFFECTS_LBCC)
		return from->write;
	return true;
}

/* Commands that require no more than access to the device node. */
static bool nvmep_command_unprivileged(const struct nvmep_passthru *from,
				       const struct nvmep_user_command *command)
{
	if (from->partition)
		return false;
	if (command->admin)
		return nvmep_identify_unprivileged(&command->sqe);
	return nvmep_io_unprivileged(from, &command->sqe, command->effects);
}

/**
 * nvmep_command_check() - check the right to submit a command
 * @from: device node
 * @command: command; filled with its effects
 *
 * Return: 0; -EINVAL for another namespace than the device node's; -EACCES.
 */
int nvmep_command_check(const struct nvmep_passthru *from,
			struct nvmep_user_command *command)
{
	u8 opcode = command->sqe.common.opcode;

	command->effects = command->admin ?
		nvmep_admin_effects(from->ctrl, opcode) :
		nvmep_io_effects(from->ns, opcode);
	if (!command->admin &&
	    le32_to_cpu(command->sqe.common.nsid) != from->ns->nsid)
		return -EINVAL;
	if (command->admin && nvmep_admin_refused(&command->sqe))
		return -EACCES;
	/* capable() last: a failed check is logged by security modules. */
	return nvmep_command_unprivileged(from, command) ||
	       capable(CAP_SYS_ADMIN) ? 0 : -EACCES;
}

/* --- lengths ------------------------------------------------------------ */

/* With PRACT the controller inserts and strips metadata that is only PI. */
static bool nvmep_pract_covers_metadata(const struct nvmep_ns *ns,
					const struct nvme_command *sqe)
{
	return ns->protection && ns->metadata_size == 8 &&
	       le32_to_cpu(sqe->common.cdw12) & NVME_RW_PRINFO_PRACT << 16;
}

static u32 nvmep_rw_blocks(const struct nvme_command *sqe)
{
	return (le32_to_cpu(sqe->common.cdw12) & 0xffff) + 1;
}

/* Metadata of a Read, Write or Compare, interleaved or separate, in bytes. */
u64 nvmep_rw_metadata(const struct nvmep_ns *ns, const struct nvme_command *sqe)
{
	if (nvmep_pract_covers_metadata(ns, sqe))
		return 0;
	return (u64)nvmep_rw_blocks(sqe) * ns->metadata_size;
}

/* Bytes of the metadata buffer that user space passed. */
u32 nvmep_command_metadata(const struct nvmep_user_command *command)
{
	return command->metadata ? command->metadata_length : 0;
}

/* Most metadata that a command may transfer in a separate buffer, bytes. */
static u64 nvmep_metadata_max(const struct nvmep_passthru *from,
			      const struct nvmep_user_command *command)
{
	const struct nvmep_ns *ns = from->ns;

	if (command->admin || ns->extended)
		return 0;
	switch (command->sqe.common.opcode) {
	case nvme_cmd_read:
	case nvme_cmd_write:
	case nvme_cmd_compare:
	case nvme_cmd_zone_append:
		return nvmep_rw_metadata(ns, &command->sqe);
	case nvme_cmd_flush:
	case nvme_cmd_dsm:
	case nvme_cmd_write_zeroes:
	case nvme_cmd_verify:
	case nvme_cmd_zone_mgmt_send:
	case nvme_cmd_zone_mgmt_recv:
		return 0;
	default:
		/* Unknown command: NLB has at most 16 bits. */
		return (u64)NVMEP_RW_MAX_BLOCKS * ns->metadata_size;
	}
}

static int nvmep_check_rw(const struct nvmep_ns *ns,
			  const struct nvmep_user_command *command, u64 length)
{
	u64 data = (u64)nvmep_rw_blocks(&command->sqe) << ns->block_shift;
	u64 metadata = nvmep_rw_metadata(ns, &command->sqe);

	if (ns->extended)
		data += metadata;
	else if (nvmep_command_metadata(command) < metadata)
		return -EINVAL;
	return length < data ? -EINVAL : 0;
}

/* The length is unknown: leave it to the administrator. */
static int nvmep_check_unknown(void)
{
	return capable(CAP_SYS_ADMIN) ? 0 : -EACCES;
}

/* Commands of the zoned command set that the NVM command set does not have. */
static int nvmep_check_zoned(const struct nvmep_ns *ns,
			     const struct nvmep_user_command *command,
			     u64 length)
{
	const struct nvme_command *sqe = &command->sqe;
	u64 dwords = (u64)le32_to_cpu(sqe->common.cdw12) + 1;

	switch (sqe->common.opcode) {
	case nvme_cmd_zone_append:
		return nvmep_check_rw(ns, command, length);
	case nvme_cmd_zone_mgmt_recv:
		return length < dwords * sizeof(u32) ? -EINVAL : 0;
	case nvme_cmd_zone_mgmt_send:
		if ((le32_to_cpu(sqe->common.cdw13) & 0xff) !=
		    NVME_ZONE_SET_DESC_EXT)
			return 0;
		fallthrough;
	default:
		return nvmep_check_unknown();
	}
}

static int nvmep_check_io(const struct nvmep_ns *ns,
			  const struct nvmep_user_command *command, u64 length)
{
	u32 ranges = (le32_to_cpu(command->sqe.common.cdw10) & 0xff) + 1;

	/* The opcodes of other command sets differ. */
	if (!nvmep_has_blocks(&ns->ids))
		return nvmep_check_unknown();
	switch (command->sqe.common.opcode) {
	case nvme_cmd_read:
	case nvme_cmd_write:
	case nvme_cmd_compare:
		return nvmep_check_rw(ns, command, length);
	case nvme_cmd_dsm:
		return length < ranges * sizeof(struct nvme_dsm_range) ?
		       -EINVAL : 0;
	case nvme_cmd_flush:
	case nvme_cmd_write_zeroes:
	case nvme_cmd_verify:
		return 0;
	default:
		return ns->ids.csi ? nvmep_check_zoned(ns, command, length) :
				     nvmep_check_unknown();
	}
}

/* Dwords that a Get Log Page command asks for. */
static u64 nvmep_log_dwords(const struct nvme_command *sqe)
{
	return (le32_to_cpu(sqe->common.cdw10) >> 16) +
	       ((u64)(le32_to_cpu(sqe->common.cdw11) & 0xffff) << 16) + 1;
}

/**
 * nvmep_command_fit() - ask for no more of a log page than the buffer can hold
 * @command: admin command
 *
 * The in-tree driver sends such a command as it is, so there are programs that
 * pass the length of the page with a shorter buffer.  Without a buffer nothing
 * is changed, and the command is refused.
 */
void nvmep_command_fit(struct nvmep_user_command *command)
{
	struct nvme_common_command *common = &command->sqe.common;
	/* Without a whole dword, as many as a command can ask for. */
	u32 last = command->length / sizeof(u32) - 1;

	if (command->vector ||
	    common->opcode != nvme_admin_get_log_page ||
	    nvmep_log_dwords(&command->sqe) <= last)
		return;
	common->cdw10 &= cpu_to_le32(0xffff);
	common->cdw10 |= cpu_to_le32(last << 16);
	common->cdw11 &= cpu_to_le32(0xffff0000);
	common->cdw11 |= cpu_to_le32(last >> 16);
}

static int nvmep_check_admin(const struct nvme_command *sqe, u64 length)
{
	switch (sqe->common.opcode) {
	case nvme_admin_identify:
		return length < NVME_IDENTIFY_DATA_SIZE ? -EINVAL : 0;
	case nvme_admin_get_log_page:
		return length < sizeof(u32) * nvmep_log_dwords(sqe) ?
		       -EINVAL : 0;
	default:
		return 0;
	}
}

/**
 * nvmep_command_check_length() - check the length of the buffers of a command
 * @from: device node; a request is held, so the format cannot change
 * @command: command
 * @length: bytes of the data buffer
 *
 * Return: 0; -EINVAL if the controller would access memory beyond a buffer, or
 * if the metadata buffer is longer than the metadata of the command; -EACCES
 * without CAP_SYS_ADMIN if the length of the data is unknown.
 */
int nvmep_command_check_length(const struct nvmep_passthru *from,
			       const struct nvmep_user_command *command,
			       u64 length)
{
	u32 metadata = nvmep_command_metadata(command);

	if (metadata && metadata > nvmep_metadata_max(from, command))
		return -EINVAL;
	if (command->admin)
		return nvmep_check_admin(&command->sqe, length);
	return nvmep_check_io(from->ns, command, length);
}
