// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands of a mediated queue pair: check, build, complete.
 *
 * Ranges are checked by subtraction: a sum of values of the tenant could wrap.
 *
 * PSDT and the second half of the data pointer are ignored: there are no lists
 * in memory of the tenant, so nothing is read twice.  What the command for the
 * controller does not need is 0 in it, whatever the tenant wrote: metadata
 * pointer, tags, hints.
 */
#include <linux/nospec.h>
#include <linux/nvme.h>

#include "core/ctrl.h"
#include "core/prp_sgl.h"
#include "mediate.h"

/* Dword 0: fused operation. */
#define NVMEP_FUSED		(3u << 8)

/*
 * Dword 12: the caller may ask for Force Unit Access and Limited Retry.  The
 * other bits of the upper half are protection information, storage tag check,
 * deallocation and directive type.
 */
#define NVMEP_CONTROL_SHIFT	16
#define NVMEP_CONTROL_ALLOWED	(NVME_RW_FUA | NVME_RW_LR)

static u64 nvmep_entry64(const __le32 *dwords)
{
	return le32_to_cpu(dwords[0]) | (u64)le32_to_cpu(dwords[1]) << 32;
}

/**
 * nvmep_mediate_window() - find a window
 * @rights: of a queue pair
 * @id: ID of the window
 *
 * Return: the window, or NULL.
 */
const struct nvmep_mediate_window *
nvmep_mediate_window(const struct nvmep_mediate_rights *rights, u32 id)
{
	u32 slot = NVMEP_WINDOW_SLOT(id);

	if (!slot || slot >= rights->window_slots)
		return NULL;
	slot = array_index_nospec(slot, rights->window_slots);
	return rights->windows[slot].id == id ? &rights->windows[slot] : NULL;
}

/* Within the window, and within what the block device has now. */
static bool nvmep_in_window(const struct nvmep_mediate_window *window, u64 lba,
			    u32 blocks)
{
	u64 left = window->device_blocks -
		   min(window->device_blocks, window->first);

	if (blocks > window->blocks || lba > window->blocks - blocks)
		return false;
	return blocks <= left && lba <= left - blocks;
}

static u16 nvmep_check_blocks(const struct nvmep_mediate_window *window,
			      const __le32 *entry,
			      struct nvmep_mediate_command *command)
{
	u32 dword12 = le32_to_cpu(entry[12]);
	u64 lba = nvmep_entry64(&entry[10]);

	command->blocks = (dword12 & 0xffff) + 1;
	command->control = dword12 >> NVMEP_CONTROL_SHIFT;
	if (command->control & ~NVMEP_CONTROL_ALLOWED)
		return nvmep_refuse(NVME_SC_INVALID_FIELD);
	if (!nvmep_in_window(window, lba, command->blocks))
		return nvmep_refuse(NVME_SC_LBA_RANGE);
	command->slba = window->base + window->first + lba;
	return 0;
}

static u16 nvmep_check_write(const struct nvmep_mediate_window *window)
{
	if (!window->write)
		return nvmep_refuse(NVME_SC_ACCESS_DENIED);
	return window->device_read_only ? nvmep_refuse(NVME_SC_READ_ONLY) : 0;
}

static u16 nvmep_check_rights(const struct nvmep_mediate_window *window,
			      const struct nvmep_mediate_command *command)
{
	if (command->opcode != nvme_cmd_read)
		return nvmep_check_write(window);
	return window->read ? 0 : nvmep_refuse(NVME_SC_ACCESS_DENIED);
}

/* The slot comes from 16 bits of the address, the offset from the other 48. */
static u16 nvmep_check_data(const struct nvmep_mediate_rights *rights,
			    const __le32 *entry,
			    struct nvmep_mediate_command *command)
{
	u64 address = nvmep_entry64(&entry[6]);
	const struct nvmep_mediate_buffer *buffer;

	command->buffer = address >> NVMEP_HANDLE_SHIFT;
	command->offset = address & ((1ULL << NVMEP_HANDLE_SHIFT) - 1);
	if (!command->buffer || command->buffer >= rights->buffer_slots)
		return nvmep_refuse(NVME_SC_DATA_XFER_ERROR);
	command->buffer = array_index_nospec(command->buffer,
					     rights->buffer_slots);
	buffer = &rights->buffers[command->buffer];
	if (buffer->ended)
		return nvmep_refuse(NVMEP_SC_BUFFER_GONE);
	if (command->bytes > buffer->length ||
	    command->offset > buffer->length - command->bytes)
		return nvmep_refuse(NVME_SC_DATA_XFER_ERROR);
	if (command->offset & NVMEP_DATA_ALIGNMENT)
		return nvmep_refuse(NVME_SC_PRP_INVALID_OFFSET);
	if (command->opcode == nvme_cmd_read ? !buffer->write : !buffer->read)
		return nvmep_refuse(NVME_SC_ACCESS_DENIED);
	return 0;
}

static u16 nvmep_check_transfer(const struct nvmep_mediate_rights *rights,
				const struct nvmep_mediate_window *window,
				const __le32 *entry,
				struct nvmep_mediate_command *command)
{
	u64 bytes = (u64)command->blocks << window->shift;

	if (command->opcode == nvme_cmd_write_zeroes) {
		if (bytes > rights->max_write_zeroes)
			return nvmep_refuse(NVME_SC_INVALID_FIELD);
		command->zeroes = bytes;
		return 0;
	}
	if (bytes > rights->max_transfer)
		return nvmep_refuse(NVME_SC_INVALID_FIELD);
	command->bytes = bytes;
	return nvmep_check_data(rights, entry, command);
}

/* Flush needs no right: any holder of a descriptor may call fsync(). */
static u16 nvmep_check_opcode(const struct nvmep_mediate_rights *rights,
			      u8 opcode)
{
	switch (opcode) {
	case nvme_cmd_flush:
	case nvme_cmd_read:
	case nvme_cmd_write:
		return 0;
	case nvme_cmd_write_zeroes:
		if (rights->max_write_zeroes)
			return 0;
		fallthrough;
	default:
		return nvmep_refuse(NVME_SC_INVALID_OPCODE);
	}
}

/**
 * nvmep_mediate_check() - check a command of a tenant
 * @rights: of its queue pair
 * @entry: copy of the entry, which the tenant cannot write
 * @command: out; @cid is set in any case
 *
 * Return: 0, or the NVMe status with which the command completes.
 */
u16 nvmep_mediate_check(const struct nvmep_mediate_rights *rights,
			const __le32 entry[NVMEP_SQE_DWORDS],
			struct nvmep_mediate_command *command)
{
	const struct nvmep_mediate_window *window;
	u32 dword0 = le32_to_cpu(entry[0]);
	u16 status;

	*command = (struct nvmep_mediate_command){
		.cid = dword0 >> 16,
		.opcode = dword0,
	};
	if (dword0 & NVMEP_FUSED)
		return nvmep_refuse(NVME_SC_INVALID_FIELD);
	status = nvmep_check_opcode(rights, command->opcode);
	if (status)
		return status;
	window = nvmep_mediate_window(rights, le32_to_cpu(entry[1]));
	if (!window)
		return nvmep_refuse(NVME_SC_INVALID_NS);
	command->window = NVMEP_WINDOW_SLOT(window->id);
	command->nsid = window->nsid;
	if (command->opcode == nvme_cmd_flush)
		return 0;
	status = nvmep_check_rights(window, command);
	if (!status)
		status = nvmep_check_blocks(window, entry, command);
	if (!status)
		status = nvmep_check_transfer(rights, window, entry, command);
	return status;
}

static void nvmep_entry_set64(__le32 *dwords, u64 value)
{
	dwords[0] = cpu_to_le32(lower_32_bits(value));
	dwords[1] = cpu_to_le32(upper_32_bits(value));
}

/*
 * PRP1 and PRP2.  Segments consist of whole controller pages, at multiples of
 * them in the buffer: the offset in the buffer is that in the page.
 */
static void nvmep_build_data(const struct nvmep_ctrl *ctrl,
			     const struct nvmep_mediate_command *command,
			     const struct nvmep_segment *segment, __le64 *list,
			     dma_addr_t list_dma, __le32 *entry)
{
	u32 first = ctrl->page_size - (command->offset & (ctrl->page_size - 1));
	u64 second = command->offset + first;
	u32 pages;

	nvmep_entry_set64(&entry[6], segment->dma +
			  (command->offset - segment->offset));
	if (command->bytes <= first)
		return;
	pages = DIV_ROUND_UP(command->bytes - first, ctrl->page_size);
	nvmep_prp_list_fill(ctrl, list, list_dma, segment, second, pages);
	nvmep_entry_set64(&entry[8], pages == 1 ? le64_to_cpu(list[0]) :
						  list_dma);
}

/* Dword 12 has one block less; it is 0 in Flush. */
static u32 nvmep_build_dword12(const struct nvmep_mediate_command *command)
{
	if (!command->blocks)
		return 0;
	return (u32)command->control << NVMEP_CONTROL_SHIFT |
	       (command->blocks - 1);
}

/**
 * nvmep_mediate_build() - build the command for the controller
 * @ctrl: the controller
 * @command: checked
 * @segment: segment of the first byte of its data; those that follow in the
 *	array cover the rest.  NULL without data
 * @list: a controller page, for a PRP list.  It has room for the data:
 *	max_transfer is NVMEP_MEDIATE_TRANSFER at most
 * @list_dma: DMA address of @list
 * @cid: on the queue of the controller
 * @entry: out
 */
void nvmep_mediate_build(const struct nvmep_ctrl *ctrl,
			 const struct nvmep_mediate_command *command,
			 const struct nvmep_segment *segment, __le64 *list,
			 dma_addr_t list_dma, u16 cid,
			 __le32 entry[NVMEP_SQE_DWORDS])
{
	entry[0] = cpu_to_le32((u32)cid << 16 | command->opcode);
	entry[1] = cpu_to_le32(command->nsid);
	nvmep_entry_set64(&entry[2], 0);
	nvmep_entry_set64(&entry[4], 0);
	nvmep_entry_set64(&entry[6], 0);
	nvmep_entry_set64(&entry[8], 0);
	nvmep_entry_set64(&entry[10], command->slba);
	/* Dword 13 has hints, which are dropped. */
	nvmep_entry_set64(&entry[12], nvmep_build_dword12(command));
	nvmep_entry_set64(&entry[14], 0);
	if (command->bytes)
		nvmep_build_data(ctrl, command, segment, list, list_dma, entry);
}
