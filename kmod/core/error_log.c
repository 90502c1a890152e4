// SPDX-License-Identifier: GPL-2.0-only
/*
 * Log lines of failed commands: the in-tree driver's form, so that programs
 * which read the log find the same line, and the names of the specifications.
 */
#include <linux/blk-mq.h>
#include <linux/log2.h>

#include "compat.h"
#include "ctrl.h"
#include "error_log.h"
#include "queue.h"
#include "request.h"

/* --- names --------------------------------------------------------------- */

struct nvmep_name {
	u16 code;
	const char *name;
};

/* Opcodes of the NVM and the Zoned Namespace command set. */
static const struct nvmep_name nvmep_io_opcodes[] = {
	{ 0x00, "Flush" },
	{ 0x01, "Write" },
	{ 0x02, "Read" },
	{ 0x04, "Write Uncorrectable" },
	{ 0x05, "Compare" },
	{ 0x08, "Write Zeroes" },
	{ 0x09, "Dataset Management" },
	{ 0x0c, "Verify" },
	{ 0x0d, "Reservation Register" },
	{ 0x0e, "Reservation Report" },
	{ 0x11, "Reservation Acquire" },
	{ 0x12, "I/O Management Receive" },
	{ 0x15, "Reservation Release" },
	{ 0x18, "Cancel" },
	{ 0x19, "Copy" },
	{ 0x1d, "I/O Management Send" },
	{ 0x79, "Zone Management Send" },
	{ 0x7a, "Zone Management Receive" },
	{ 0x7d, "Zone Append" },
};

static const struct nvmep_name nvmep_admin_opcodes[] = {
	{ 0x00, "Delete SQ" },
	{ 0x01, "Create SQ" },
	{ 0x02, "Get Log Page" },
	{ 0x04, "Delete CQ" },
	{ 0x05, "Create CQ" },
	{ 0x06, "Identify" },
	{ 0x08, "Abort Command" },
	{ 0x09, "Set Features" },
	{ 0x0a, "Get Features" },
	{ 0x0c, "Async Event" },
	{ 0x0d, "Namespace Management" },
	{ 0x10, "Activate Firmware" },
	{ 0x11, "Download Firmware" },
	{ 0x14, "Device Self Test" },
	{ 0x15, "Namespace Attach" },
	{ 0x18, "Keep Alive" },
	{ 0x19, "Directive Send" },
	{ 0x1a, "Directive Receive" },
	{ 0x1c, "Virtual Management" },
	{ 0x1d, "NVMe Send MI" },
	{ 0x1e, "NVMe Receive MI" },
	{ 0x24, "Lockdown" },
	{ 0x7c, "Doorbell Buffer Config" },
	{ 0x80, "Format NVM" },
	{ 0x81, "Security Send" },
	{ 0x82, "Security Receive" },
	{ 0x84, "Sanitize" },
	{ 0x86, "Get LBA Status" },
};

/* Status Code Type and Status Code; base specification 4.2.3. */
static const struct nvmep_name nvmep_statuses[] = {
	{ 0x001, "Invalid Command Opcode" },
	{ 0x002, "Invalid Field in Command" },
	{ 0x003, "Command ID Conflict" },
	{ 0x004, "Data Transfer Error" },
	{ 0x005, "Commands Aborted due to Power Loss Notification" },
	{ 0x006, "Internal Error" },
	{ 0x007, "Command Abort Requested" },
	{ 0x008, "Command Aborted due to SQ Deletion" },
	{ 0x009, "Command Aborted due to Failed Fused Command" },
	{ 0x00a, "Command Aborted due to Missing Fused Command" },
	{ 0x00b, "Invalid Namespace or Format" },
	{ 0x00c, "Command Sequence Error" },
	{ 0x00d, "Invalid SGL Segment Descriptor" },
	{ 0x00e, "Invalid Number of SGL Descriptors" },
	{ 0x00f, "Data SGL Length Invalid" },
	{ 0x010, "Metadata SGL Length Invalid" },
	{ 0x011, "SGL Descriptor Type Invalid" },
	{ 0x012, "Invalid Use of Controller Memory Buffer" },
	{ 0x013, "PRP Offset Invalid" },
	{ 0x014, "Atomic Write Unit Exceeded" },
	{ 0x015, "Operation Denied" },
	{ 0x016, "SGL Offset Invalid" },
	{ 0x018, "Host Identifier Inconsistent Format" },
	{ 0x019, "Keep Alive Timeout Expired" },
	{ 0x01a, "Keep Alive Timeout Invalid" },
	{ 0x01b, "Command Aborted due to Preempt and Abort" },
	{ 0x01c, "Sanitize Failed" },
	{ 0x01d, "Sanitize In Progress" },
	{ 0x01e, "SGL Data Block Granularity Invalid" },
	{ 0x01f, "Command Not Supported for Queue in CMB" },
	{ 0x020, "Namespace is Write Protected" },
	{ 0x021, "Command Interrupted" },
	{ 0x022, "Transient Transport Error" },
	{ 0x023, "Command Prohibited by Command and Feature Lockdown" },
	{ 0x024, "Admin Command Media Not Ready" },
	{ 0x02c, "Invalid IO Command Set" },
	{ 0x080, "LBA Out of Range" },
	{ 0x081, "Capacity Exceeded" },
	{ 0x082, "Namespace Not Ready" },
	{ 0x083, "Reservation Conflict" },
	{ 0x084, "Format In Progress" },
	{ 0x100, "Completion Queue Invalid" },
	{ 0x101, "Invalid Queue Identifier" },
	{ 0x102, "Invalid Queue Size" },
	{ 0x103, "Abort Command Limit Exceeded" },
	{ 0x105, "Asynchronous Event Request Limit Exceeded" },
	{ 0x106, "Invalid Firmware Slot" },
	{ 0x107, "Invalid Firmware Image" },
	{ 0x108, "Invalid Interrupt Vector" },
	{ 0x109, "Invalid Log Page" },
	{ 0x10a, "Invalid Format" },
	{ 0x10b, "Firmware Activation Requires Conventional Reset" },
	{ 0x10c, "Invalid Queue Deletion" },
	{ 0x10d, "Feature Identifier Not Saveable" },
	{ 0x10e, "Feature Not Changeable" },
	{ 0x10f, "Feature Not Namespace Specific" },
	{ 0x110, "Firmware Activation Requires NVM Subsystem Reset" },
	{ 0x111, "Firmware Activation Requires Reset" },
	{ 0x112, "Firmware Activation Requires Maximum Time Violation" },
	{ 0x113, "Firmware Activation Prohibited" },
	{ 0x114, "Overlapping Range" },
	{ 0x115, "Namespace Insufficient Capacity" },
	{ 0x116, "Namespace Identifier Unavailable" },
	{ 0x118, "Namespace Already Attached" },
	{ 0x119, "Namespace Is Private" },
	{ 0x11a, "Namespace Not Attached" },
	{ 0x11b, "Thin Provisioning Not Supported" },
	{ 0x11c, "Controller List Invalid" },
	{ 0x11d, "Device Self-test In Progress" },
	{ 0x11e, "Boot Partition Write Prohibited" },
	{ 0x11f, "Invalid Controller Identifier" },
	{ 0x120, "Invalid Secondary Controller State" },
	{ 0x121, "Invalid Number of Controller Resources" },
	{ 0x122, "Invalid Resource Identifier" },
	{ 0x123, "Sanitize Prohibited" },
	{ 0x124, "ANA Group Identifier Invalid" },
	{ 0x125, "ANA Attach Failed" },
	{ 0x180, "Conflicting Attributes" },
	{ 0x181, "Invalid Protection Information" },
	{ 0x182, "Attempted Write to Read Only Range" },
	{ 0x183, "Command Size Limit Exceeded" },
	{ 0x1b8, "Zoned Boundary Error" },
	{ 0x1b9, "Zone Is Full" },
	{ 0x1ba, "Zone Is Read Only" },
	{ 0x1bb, "Zone Is Offline" },
	{ 0x1bc, "Zone Invalid Write" },
	{ 0x1bd, "Too Many Active Zones" },
	{ 0x1be, "Too Many Open Zones" },
	{ 0x1bf, "Invalid Zone State Transition" },
	{ 0x280, "Write Fault" },
	{ 0x281, "Unrecovered Read Error" },
	{ 0x282, "End-to-end Guard Check Error" },
	{ 0x283, "End-to-end Application Tag Check Error" },
	{ 0x284, "End-to-end Reference Tag Check Error" },
	{ 0x285, "Compare Failure" },
	{ 0x286, "Access Denied" },
	{ 0x287, "Deallocated or Unwritten Logical Block" },
	{ 0x300, "Internal Pathing Error" },
	{ 0x301, "Asymmetric Access Persistent Loss" },
	{ 0x302, "Asymmetric Access Inaccessible" },
	{ 0x303, "Asymmetric Access Transition" },
	{ 0x360, "Controller Pathing Error" },
	{ 0x370, "Host Pathing Error" },
	{ 0x371, "Host Aborted Command" },
};

static const char *nvmep_name(const struct nvmep_name *names,
			      unsigned int count, u16 code)
{
	for (; count; count--, names++)
		if (names->code == code)
			return names->name;
	return "Unknown";
}

#define NVMEP_NAME(names, code)	nvmep_name(names, ARRAY_SIZE(names), code)

static const char *nvmep_opcode_name(const struct request *rq, u8 opcode)
{
	return rq->q->disk ? NVMEP_NAME(nvmep_io_opcodes, opcode) :
			     NVMEP_NAME(nvmep_admin_opcodes, opcode);
}

/* --- lines --------------------------------------------------------------- */

/* Where the data of a block layer request is, in blocks. */
static void nvmep_error_range(char *text, size_t size, const struct request *rq)
{
	unsigned int shift = ilog2(queue_logical_block_size(rq->q));

	snprintf(text, size, " @ LBA %llu, %u blocks",
		 blk_rq_pos(rq) >> (shift - SECTOR_SHIFT),
		 blk_rq_bytes(rq) >> shift);
}

static void nvmep_error_dwords(char *text, size_t size,
			       const struct nvme_common_command *sqe)
{
	snprintf(text, size,
		 "cdw10=%#x cdw11=%#x cdw12=%#x cdw13=%#x cdw14=%#x cdw15=%#x",
		 le32_to_cpu(sqe->cdw10), le32_to_cpu(sqe->cdw11),
		 le32_to_cpu(sqe->cdw12), le32_to_cpu(sqe->cdw13),
		 le32_to_cpu(sqe->cdw14), le32_to_cpu(sqe->cdw15));
}

/**
 * nvmep_error_log() - log a failed command, at most ten in five seconds
 * @rq: its request, with the NVMe status
 *
 * A request that its submitter marked as quiet is not logged.
 */
void nvmep_error_log(struct request *rq)
{
	const struct nvmep_queue *queue = rq->mq_hctx->driver_data;
	const struct nvmep_request *req = nvmep_request(rq);
	char range[64] = "", dwords[128] = "";

	if (rq->rq_flags & RQF_QUIET)
		return;
	if (blk_rq_is_passthrough(rq))
		nvmep_error_dwords(dwords, sizeof(dwords), &req->sqe.common);
	else
		nvmep_error_range(range, sizeof(range), rq);
	dev_err_ratelimited(queue->ctrl->dev,
			    "%s: %s(%#x)%s, %s (sct %#x / sc %#x) %s%s%s\n",
			    rq->q->disk ? rq->q->disk->disk_name :
					  dev_name(&queue->ctrl->device),
			    nvmep_opcode_name(rq, req->sqe.common.opcode),
			    req->sqe.common.opcode, range,
			    NVMEP_NAME(nvmep_statuses,
				       req->status & NVME_SCT_SC_MASK),
			    NVME_SCT(req->status), req->status & NVME_SC_MASK,
			    req->status & NVMEP_STATUS_MORE ? "MORE " : "",
			    req->status & NVME_STATUS_DNR ? "DNR " : "",
			    dwords);
}
