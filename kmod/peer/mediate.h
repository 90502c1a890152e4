/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands of a mediated queue pair: from an untrusted entry of the submission
 * ring to a command for the controller, or to an NVMe status.
 *
 * No kernel state: selftests compile mediate.c for user space.
 *
 * The caller copies the entry out of the ring, checks the copy, resolves the
 * data to DMA segments, and builds the command.  What the tenant has written is
 * read in nvmep_mediate_check() only: the command is built from the result.
 */
#ifndef _NVMEP_MEDIATE_H
#define _NVMEP_MEDIATE_H

#include <linux/nvme.h>
#include <linux/types.h>

#include "core/data.h"

struct nvmep_ctrl;

/* Dwords of a submission and of a completion queue entry. */
#define NVMEP_SQE_DWORDS	16
#define NVMEP_CQE_DWORDS	4

/* A namespace ID is the ID of a window: epoch << 16 | slot. */
#define NVMEP_WINDOW_SLOT(id)	((id) & 0xffff)
#define NVMEP_WINDOW_EPOCH(id)	((id) >> 16)
#define NVMEP_WINDOW_ID(slot, epoch)	((u32)(epoch) << 16 | (slot))

/* A data pointer is a handle address: slot << 48 | offset in the buffer. */
#define NVMEP_HANDLE_SHIFT	48

/* Most bytes of a command: one page of a PRP list describes them. */
#define NVMEP_MEDIATE_TRANSFER	(NVMEP_PRPS_PER_LIST * SZ_4K)

/* Bytes that a command costs in addition to those that it transfers. */
#define NVMEP_COMMAND_COST	4096

/* Bytes that a Flush costs in addition to them. */
#define NVMEP_FLUSH_COST	SZ_64K

/*
 * Vendor specific status codes of this driver, status code type 7, with Do Not
 * Retry where the same command would fail again.
 */
#define NVMEP_SCT_VENDOR	0x700
#define NVMEP_SC_BUFFER_GONE	0x7c1

/**
 * struct nvmep_mediate_window - a right to a range of blocks
 * @id: its ID in this epoch, 0 if there is none in the slot
 * @nsid: NSID on the controller
 * @shift: log2 of the bytes of a block
 * @read: for Read
 * @write: for Write and Write Zeroes
 * @base: LBA of the first block of the block device
 * @first: first block of the window on the block device
 * @blocks: of the window; @base + @first + @blocks does not overflow
 * @device_blocks: of the block device now
 * @device_read_only: the block device takes no writes now
 */
struct nvmep_mediate_window {
	u32 id;
	u32 nsid;
	u8 shift;
	bool read;
	bool write;
	bool device_read_only;
	u64 base;
	u64 first;
	u64 blocks;
	u64 device_blocks;
};

/**
 * struct nvmep_mediate_buffer - memory that commands may transfer
 * @length: bytes, less than 1 << 48; 0 if there is none in the slot
 * @ended: there was one, until its exporter invalidated it
 * @read: the controller may read it, for Write
 * @write: the controller may write it, for Read
 */
struct nvmep_mediate_buffer {
	u64 length;
	bool ended;
	bool read;
	bool write;
};

/**
 * struct nvmep_mediate_rights - what the commands of one queue pair may do
 * @windows: by slot, from 1 on
 * @buffers: by slot, from 1 on
 * @window_slots: entries of @windows, the unused one at 0 included
 * @buffer_slots: entries of @buffers, the unused one at 0 included
 * @max_transfer: most bytes of Read and Write
 * @max_write_zeroes: most bytes of Write Zeroes, %NVMEP_MEDIATE_TRANSFER at most,
 *	0 if it is not supported
 */
struct nvmep_mediate_rights {
	struct nvmep_mediate_window *windows;
	struct nvmep_mediate_buffer *buffers;
	u32 window_slots;
	u32 buffer_slots;
	u32 max_transfer;
	u32 max_write_zeroes;
};

/**
 * struct nvmep_mediate_command - a command that has been checked
 * @cid: of the tenant
 * @opcode: nvme_cmd_flush, _write, _read or _write_zeroes
 * @window: slot; valid if the status is 0
 * @buffer: slot, for Read and Write
 * @nsid: NSID on the controller
 * @control: upper half of dword 12
 * @blocks: 0 for Flush
 * @slba: on the namespace, 0 for Flush
 * @offset: of the data in the buffer, bytes
 * @bytes: of data, 0 for Flush and Write Zeroes
 * @zeroes: bytes of Write Zeroes
 */
struct nvmep_mediate_command {
	u16 cid;
	u8 opcode;
	u32 window;
	u32 buffer;
	u32 nsid;
	u16 control;
	u32 blocks;
	u64 slba;
	u64 offset;
	u32 bytes;
	u32 zeroes;
};

const struct nvmep_mediate_window *
nvmep_mediate_window(const struct nvmep_mediate_rights *rights, u32 id);
u16 nvmep_mediate_check(const struct nvmep_mediate_rights *rights,
			const __le32 entry[NVMEP_SQE_DWORDS],
			struct nvmep_mediate_command *command);
void nvmep_mediate_build(const struct nvmep_ctrl *ctrl,
			 const struct nvmep_mediate_command *command,
			 const struct nvmep_segment *segment, __le64 *list,
			 dma_addr_t list_dma, u16 cid,
			 __le32 entry[NVMEP_SQE_DWORDS]);

/**
 * nvmep_mediate_cost() - cost of a command for the share of its tenant
 * @command: after the check, also one that is refused
 *
 * Return: bytes plus a constant, which is more for Flush.
 */
static inline u32
nvmep_mediate_cost(const struct nvmep_mediate_command *command)
{
	u32 cost = command->bytes + command->zeroes + NVMEP_COMMAND_COST;

	return command->opcode == nvme_cmd_flush ? cost + NVMEP_FLUSH_COST :
						   cost;
}

/* The status of a command that fails again if it is sent again. */
static inline u16 nvmep_refuse(u16 status)
{
	return status | NVME_STATUS_DNR;
}

/**
 * nvmep_mediate_status() - the status of the controller, for the tenant
 * @status: 15 bits of the completion, without the phase tag
 *
 * More refers to a log page that the tenant cannot read, and the retry delay to
 * a feature that it cannot read.  The vendor specific codes of the controller
 * must not be mistaken for those of this driver.
 *
 * Return: status code, type, and Do Not Retry.
 */
static inline u16 nvmep_mediate_status(u16 status)
{
	u16 retry = status & NVME_STATUS_DNR;

	status &= NVMEP_SCT_VENDOR | 0xff;
	if (status >= NVMEP_SCT_VENDOR)
		status = NVME_SC_INTERNAL;
	return status | retry;
}

/**
 * nvmep_mediate_cqe_last() - the last dword of a completion queue entry
 * @cid: of the tenant
 * @status: without phase tag
 * @phase: tag of this round of the ring
 *
 * Return: the dword, which is written after the others.
 */
static inline __le32 nvmep_mediate_cqe_last(u16 cid, u16 status, bool phase)
{
	return cpu_to_le32(cid | (u32)phase << 16 | (u32)status << 17);
}

#endif /* _NVMEP_MEDIATE_H */
