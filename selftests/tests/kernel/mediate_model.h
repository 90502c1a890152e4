/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kmod/peer/mediate.c, compiled for user space, and a model of it for unit-mediate and fuzz_mediate:
 * what a command may be is computed here in 128 bits, and the data pointers are followed as a
 * controller does.
 */
#ifndef SELFTESTS_MEDIATE_MODEL_H
#define SELFTESTS_MEDIATE_MODEL_H

#include <stdlib.h>

#include "mediate.h"
#include "../../../kmod/core/prp_sgl.c"
#include "../../../kmod/peer/mediate.c"

enum { MODEL_PAGE = 4096, MODEL_SEGMENTS = 8, MODEL_WINDOWS = 4, MODEL_BUFFERS = 4 };

bool kernel_warned;

/* Of prp_sgl.c, for commands of the CPU. */
struct dma_pool *dma_pool_create(const char *name, void *dev, size_t size, size_t align, size_t boundary)
{
	(void)name, (void)dev, (void)size, (void)align, (void)boundary;
	return NULL;
}

void dma_pool_destroy(struct dma_pool *pool)
{
	(void)pool;
}

void *dma_pool_alloc(struct dma_pool *pool, int flags, dma_addr_t *dma)
{
	(void)pool, (void)flags, (void)dma;
	return NULL;
}

void dma_pool_free(struct dma_pool *pool, void *memory, dma_addr_t dma)
{
	(void)pool, (void)memory, (void)dma;
}

/**
 * struct model - rights, and the segments of each buffer
 * @list: PRP list of the command, at @list_dma
 */
struct model {
	struct nvmep_ctrl ctrl;
	struct nvmep_mediate_rights rights;
	struct nvmep_mediate_window windows[MODEL_WINDOWS];
	struct nvmep_mediate_buffer buffers[MODEL_BUFFERS];
	struct nvmep_segment segments[MODEL_BUFFERS][MODEL_SEGMENTS];
	__le64 list[NVMEP_PRPS_PER_LIST + 1];
};

#define MODEL_LIST_DMA	0xfeed000ULL

static inline void model_init(struct model *model)
{
	model->ctrl = (struct nvmep_ctrl){ .page_size = MODEL_PAGE };
	model->rights = (struct nvmep_mediate_rights){
		.windows = model->windows,
		.buffers = model->buffers,
		.window_slots = MODEL_WINDOWS,
		.buffer_slots = MODEL_BUFFERS,
		.max_transfer = NVMEP_MEDIATE_TRANSFER,
		.max_write_zeroes = 1 << 20,
	};
}

/* Cuts @pages of the buffer in @slot into segments, by the bits of @cuts. */
static inline void model_buffer(struct model *model, u32 slot, u32 pages, u32 cuts)
{
	struct nvmep_segment *segment = model->segments[slot];
	u32 page, count = 0;

	for (page = 0; page < pages; page++) {
		if (page && (count == MODEL_SEGMENTS - 1 || !(cuts >> page % 32 & 1))) {
			segment->length += MODEL_PAGE;
			continue;
		}
		segment = &model->segments[slot][count++];
		*segment = (struct nvmep_segment){
			.offset = (u64)page * MODEL_PAGE,
			.length = MODEL_PAGE,
			.dma = (u64)slot << 44 | (u64)count << 36,
		};
	}
	model->buffers[slot].length = (u64)pages * MODEL_PAGE;
}

static inline const struct nvmep_segment *model_segment(const struct model *model, u32 slot, u64 offset)
{
	const struct nvmep_segment *segment = model->segments[slot];

	while (offset - segment->offset >= segment->length)
		segment++;
	return segment;
}

static inline u64 model_address(const struct model *model, u32 slot, u64 offset)
{
	const struct nvmep_segment *segment = model_segment(model, slot, offset);

	return segment->dma + (offset - segment->offset);
}

static inline u64 model_word(const __le32 *entry, int dword)
{
	return le32_to_cpu(entry[dword]) | (u64)le32_to_cpu(entry[dword + 1]) << 32;
}

/* Is the entry a command that the rights allow? Written as the rule reads, in wide arithmetic. */
static inline bool model_allows(const struct model *model, const __le32 *entry)
{
	unsigned __int128 lba = model_word(entry, 10), blocks = (le32_to_cpu(entry[12]) & 0xffff) + 1;
	u32 dword0 = le32_to_cpu(entry[0]), id = le32_to_cpu(entry[1]), slot = id & 0xffff;
	u64 address = model_word(entry, 6), offset = address & 0xffffffffffff;
	const struct nvmep_mediate_window *window = &model->windows[slot % MODEL_WINDOWS];
	const struct nvmep_mediate_buffer *buffer = &model->buffers[(address >> 48) % MODEL_BUFFERS];
	u8 opcode = (u8)dword0;
	bool read = opcode == 2, zeroes = opcode == 8;
	u64 bytes = (u64)(blocks << window->shift);

	if ((opcode > 2 && !zeroes) || (dword0 & 0x300) || !slot || slot >= MODEL_WINDOWS || window->id != id)
		return false;
	if (!opcode)
		return true;
	if (read ? !window->read : !window->write || window->device_read_only)
		return false;
	if (le32_to_cpu(entry[12]) & 0x3fff0000 || lba + blocks > window->blocks ||
	    window->first + lba + blocks > window->device_blocks)
		return false;
	if (zeroes)
		return bytes <= model->rights.max_write_zeroes;
	return bytes <= model->rights.max_transfer && address >> 48 && address >> 48 < MODEL_BUFFERS &&
	       !buffer->ended && (unsigned __int128)offset + bytes <= buffer->length && !(offset & 3) &&
	       (read ? buffer->write : buffer->read);
}

/* The pages that PRP1, PRP2 and the list describe are those of the data, in order. */
static inline bool model_data_is_right(const struct model *model, const struct nvmep_mediate_command *command,
				       const __le32 *built)
{
	u64 offset = command->offset, end = offset + command->bytes, prp2 = model_word(built, 8);
	u64 next = (offset / MODEL_PAGE + 1) * MODEL_PAGE;
	u32 slot = command->buffer, entry = 0;

	if (model_word(built, 6) != model_address(model, slot, offset))
		return false;
	if (next >= end)
		return !prp2;
	if (next + MODEL_PAGE >= end)
		return prp2 == model_address(model, slot, next);
	for (; next < end; next += MODEL_PAGE)
		if (entry == NVMEP_PRPS_PER_LIST ||
		    le64_to_cpu(model->list[entry++]) != model_address(model, slot, next))
			return false;
	return prp2 == MODEL_LIST_DMA;
}

static inline bool model_built_is_right(struct model *model, const __le32 *entry,
					const struct nvmep_mediate_command *command)
{
	const struct nvmep_mediate_window *window = &model->windows[command->window];
	__le32 built[NVMEP_SQE_DWORDS], guard = htole32(0x5afe);
	int dword;

	memset(built, 0xee, sizeof(built));
	model->list[NVMEP_PRPS_PER_LIST] = guard;
	nvmep_mediate_build(&model->ctrl, command, command->bytes ?
			    model_segment(model, command->buffer, command->offset) : NULL,
			    model->list, MODEL_LIST_DMA, 0x1234, built);
	/* Tags, metadata pointer, hints and PSDT are not those of the tenant. */
	for (dword = 2; dword < NVMEP_SQE_DWORDS; dword++)
		if ((dword < 6 || dword > 12) && built[dword])
			return false;
	if (le32_to_cpu(built[0]) != (0x12340000U | (u8)le32_to_cpu(entry[0])) ||
	    le32_to_cpu(built[1]) != window->nsid || model->list[NVMEP_PRPS_PER_LIST] != guard)
		return false;
	if (!(u8)le32_to_cpu(entry[0]))
		return !model_word(built, 6) && !model_word(built, 8) && !model_word(built, 10) && !built[12];
	if (built[12] != entry[12] ||
	    model_word(built, 10) != window->base + window->first + model_word(entry, 10))
		return false;
	if (!command->bytes)
		return (u8)le32_to_cpu(entry[0]) == nvme_cmd_write_zeroes && !model_word(built, 6) &&
		       !model_word(built, 8);
	return command->bytes == (u64)command->blocks << window->shift &&
	       model_data_is_right(model, command, built);
}

/** model_agrees() - does mediate.c treat the entry as the model does? */
static inline bool model_agrees(struct model *model, const __le32 *entry)
{
	struct nvmep_mediate_command command;
	u16 status = nvmep_mediate_check(&model->rights, entry, &command);

	if (command.cid != le32_to_cpu(entry[0]) >> 16 || model_allows(model, entry) != !status)
		return false;
	if (status)
		return status & NVME_STATUS_DNR;
	return model_built_is_right(model, entry, &command);
}

#endif /* SELFTESTS_MEDIATE_MODEL_H */
