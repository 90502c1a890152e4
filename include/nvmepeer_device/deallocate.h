/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/deallocate.h: deallocate ranges of blocks by Dataset Management: the
 * controller may erase them, and reads of them return what Identify Namespace DLFEAT
 * says.
 */
#ifndef NVMEPEER_DEVICE_DEALLOCATE_H
#define NVMEPEER_DEVICE_DEALLOCATE_H

#include "calls.h"
#include "command.h"
#include "nvme.h"
#include "opcodes.h"
#include "platform.h"
#include "queue.h"

/* Maximum number of ranges of a command. */
#define NVMEPEER_DEALLOCATE_RANGES 256u

/**
 * struct nvmepeer_range - one range of a Dataset Management command
 * @attributes: 0
 * @blocks: logical blocks
 * @lba: first logical block
 *
 * The controller reads it, so it is in data memory.
 */
struct nvmepeer_range {
	uint32_t attributes;
	uint32_t blocks;
	uint64_t lba;
};

/* Attribute Deallocate, in dword 11. */
#define NVP_DSM_DEALLOCATE (1u << 2)

/*
 * Encode the command.  4096 bytes of ranges touch at most two pages, so it never
 * has a PRP list.
 */
NVP_FN int nvp_deallocate_entry(const struct nvmepeer_queue *queue,
				const struct nvmepeer_buffer *buffer, uint64_t offset,
				uint32_t ranges, struct nvmepeer_sqe *entry)
{
	struct nvmepeer_command command = { NVMEPEER_OP_DATASET_MANAGEMENT, 0, 0, buffer,
					    offset, 0 };
	uint32_t bytes = ranges * (uint32_t)sizeof(struct nvmepeer_range);
	int status;

	if (!ranges || ranges > NVMEPEER_DEALLOCATE_RANGES || bytes > queue->max_transfer)
		return NVMEPEER_E_TOO_LARGE;
	status = nvp_data_check(queue, &command, bytes);
	if (status)
		return status;
	nvp_encode(queue, &command, bytes, entry);
	entry->dword[10] = ranges - 1;
	entry->dword[11] = NVP_DSM_DEALLOCATE;
	return NVMEPEER_OK;
}

/**
 * nvmepeer_submit_deallocate - submit a deallocation of ranges of blocks
 * @queue: the queue pair
 * @buffer: data memory with an array of struct nvmepeer_range, which the caller has
 *	written and the controller reads until the result has been taken
 * @offset: byte offset of the array in @buffer, a multiple of 4
 * @ranges: number of ranges, 1 to NVMEPEER_DEALLOCATE_RANGES
 * @token: out: identifies the command
 * @timeout_ns: how long to wait for room in the queue
 *
 * Otherwise as nvmepeer_submit(), except that NVMEPEER_E_OPCODE is not returned.  A
 * controller may have lower limits (Identify Controller of the NVM command set: DMRL,
 * DMRSL and DMSL) or not have the command (ONCS bit 2): it then returns a status.
 */
NVP_FN int nvmepeer_submit_deallocate(const struct nvmepeer_queue *queue,
				      const struct nvmepeer_buffer *buffer, uint64_t offset,
				      uint32_t ranges, struct nvmepeer_token *token,
				      uint64_t timeout_ns)
{
	struct nvmepeer_sqe entry;
	struct nvp_submission submission = { { 0, 0, 0, NULL, 0, 0 }, &entry, 0, 0 };

	submission.bad = nvp_deallocate_entry(queue, buffer, offset, ranges, &entry);
	return nvp_submit_one(queue, submission, token, timeout_ns);
}

/*
 * nvmepeer_deallocate - nvmepeer_submit_deallocate() and nvmepeer_wait() in one, each at
 * most nvmepeer_geometry.timeout_ns.
 */
NVP_FN int nvmepeer_deallocate(const struct nvmepeer_queue *queue,
			       const struct nvmepeer_buffer *buffer, uint64_t offset,
			       uint32_t ranges)
{
	struct nvmepeer_token token;
	int status = nvmepeer_submit_deallocate(queue, buffer, offset, ranges, &token,
						queue->timeout_ns);

	return status ? status : nvmepeer_wait(queue, token, NULL, queue->timeout_ns);
}

#endif /* NVMEPEER_DEVICE_DEALLOCATE_H */
