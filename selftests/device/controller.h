/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * controller.h: an NVMe controller in software with one queue pair, for tests
 * of the device library on the CPU.  It is strict: @errors counts everything
 * that the library must never do (a CID twice in flight, a doorbell that does
 * not move, goes backwards or out of range, a torn entry).
 *
 * DMA addresses of lists and data are addresses of this process, with @iova
 * added to those of data.  One thread steps a controller; doorbells, rings and
 * data are shared with the threads of the library.  A machine with a memory
 * model of its own defines CONTROLLER_MEMORY and implements these accesses.
 */
#ifndef SELFTESTS_DEVICE_CONTROLLER_H
#define SELFTESTS_DEVICE_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTROLLER_BLOCK = 512, CONTROLLER_PAGE = 4096 };

/* Order of completions. */
enum controller_order { CONTROLLER_IN_ORDER, CONTROLLER_SHUFFLED };

/*
 * Registers as the peer stores them; only the peer writes them.  @beside is a
 * word that can be read back on the path of the data.
 */
struct controller_doorbells {
	uint32_t tail;
	uint32_t head;
	uint32_t beside;
};

/*
 * The thread that steps the controller owns the fields below @doorbells.
 * @fetched entries are in @held until they are completed.
 */
struct controller {
	struct controller_doorbells *doorbells;
	uint8_t *sq;
	uint8_t *cq;
	uint32_t sq_entries;
	uint32_t cq_entries;
	uint8_t *disk;
	uint64_t disk_blocks;
	uint32_t block;			/* bytes of a logical block */
	bool buckets;			/* takes SGL bit buckets */
	bool one_range;			/* uses the first address of a data pointer only */
	enum controller_order order;
	uint64_t iova;			/* DMA address offset of data memory */
	bool checked_entries;		/* dwords 13..15 of each entry carry a checksum */
	bool mute;			/* fetches and never completes */
	uint32_t last[16];		/* entry of the last command executed */
	uint32_t refusal;		/* status of all commands, none of which is executed; or 0 */
	uint32_t last_tail;
	uint32_t last_head;
	uint32_t fetch;			/* next entry to fetch */
	uint32_t posted;		/* completion entries so far */
	uint32_t acknowledged;		/* entries consumed according to the head doorbell */
	uint32_t held_count;
	uint32_t seed;
	uint64_t completed;
	uint64_t tail_doorbells;
	uint64_t head_doorbells;
	uint64_t errors;
	const char *error;
	uint8_t in_flight[65536];
	uint32_t (*held)[16];
};

#ifndef CONTROLLER_MEMORY

/* The next value stored to a register; false if there is none. */
static inline bool controller_register(const uint32_t *address, uint32_t last, uint32_t *value)
{
	*value = __atomic_load_n(address, __ATOMIC_ACQUIRE);
	return *value != last;
}

static inline void controller_read(const void *from, void *to, uint32_t bytes)
{
	const uint32_t *words = (const uint32_t *)from;

	for (uint32_t i = 0; i < bytes / 4; i++)
		((uint32_t *)to)[i] = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
}

/* Store a completion entry, its phase tag last. */
static inline void controller_write(void *to, const uint32_t entry[4])
{
	uint32_t *slot = (uint32_t *)to;

	for (int i = 0; i < 3; i++)
		__atomic_store_n(&slot[i], entry[i], __ATOMIC_RELAXED);
	__atomic_store_n(&slot[3], entry[3], __ATOMIC_RELEASE);
}

static inline uint64_t controller_read_list(const uint64_t *from)
{
	return *from;
}

static inline void controller_fetch_data(void *to, const void *from, uint64_t bytes)
{
	memcpy(to, from, bytes);
}

static inline void controller_store_data(void *to, const void *from, uint64_t bytes)
{
	memcpy(to, from, bytes);
}
#endif /* CONTROLLER_MEMORY */

static inline void controller_fault(struct controller *controller, const char *what)
{
	if (!controller->errors++)
		controller->error = what;
}

static inline uint32_t controller_random(struct controller *controller)
{
	controller->seed = controller->seed * 1664525u + 1013904223u;
	return controller->seed >> 8;
}

static inline void controller_init(struct controller *controller, uint32_t sq_entries,
				   uint32_t cq_entries, uint64_t disk_blocks)
{
	memset(controller, 0, sizeof(*controller));
	controller->sq_entries = sq_entries;
	controller->cq_entries = cq_entries;
	controller->disk_blocks = disk_blocks;
	controller->block = CONTROLLER_BLOCK;
	controller->seed = 1;
	controller->sq = aligned_alloc(4096, (64 * sq_entries + 4095) / 4096 * 4096);
	controller->cq = aligned_alloc(4096, (16 * cq_entries + 4095) / 4096 * 4096);
	controller->doorbells = aligned_alloc(4096, 4096);
	controller->disk = calloc(disk_blocks + 1, CONTROLLER_BLOCK);
	controller->held = calloc(sq_entries, sizeof(controller->held[0]));
	memset(controller->sq, 0, 64 * sq_entries);
	memset(controller->cq, 0, 16 * cq_entries);
	memset(controller->doorbells, 0, 4096);
}

static inline void controller_exit(struct controller *controller)
{
	free(controller->sq);
	free(controller->cq);
	free(controller->doorbells);
	free(controller->disk);
	free(controller->held);
}

/* Reset the controller: rings and registers are zero, the disk is unchanged. */
static inline void controller_again(struct controller *controller)
{
	struct controller fresh = { 0 };

	fresh.doorbells = controller->doorbells;
	fresh.sq = controller->sq;
	fresh.cq = controller->cq;
	fresh.disk = controller->disk;
	fresh.held = controller->held;
	fresh.sq_entries = controller->sq_entries;
	fresh.cq_entries = controller->cq_entries;
	fresh.disk_blocks = controller->disk_blocks;
	fresh.block = controller->block;
	fresh.buckets = controller->buckets;
	fresh.one_range = controller->one_range;
	fresh.order = controller->order;
	fresh.iova = controller->iova;
	fresh.checked_entries = controller->checked_entries;
	fresh.seed = 1;
	memset(fresh.sq, 0, 64 * (size_t)fresh.sq_entries);
	memset(fresh.cq, 0, 16 * (size_t)fresh.cq_entries);
	memset(fresh.doorbells, 0, sizeof(*fresh.doorbells));
	*controller = fresh;
}

static inline uint32_t controller_checksum(const uint32_t entry[16])
{
	uint32_t sum = 0x9e3779b9u;

	for (int i = 1; i < 15; i++)
		sum = (sum ^ entry[i]) * 0x01000193u;
	return sum;
}

/*
 * The head doorbell was rung; it must advance, and not past the posted entries.
 */
static inline void controller_head(struct controller *controller, uint32_t head)
{
	uint32_t step = (head - controller->last_head) & (controller->cq_entries - 1);

	if (!step)
		controller_fault(controller, "head doorbell stands still");
	if (head >= controller->cq_entries ||
	    step > controller->posted - controller->acknowledged)
		controller_fault(controller, "head doorbell beyond what was posted");
	controller->acknowledged += step;
	controller->last_head = head;
	controller->head_doorbells++;
}

/* The same for the tail doorbell. */
static inline void controller_tail(struct controller *controller, uint32_t tail)
{
	uint32_t old = (controller->last_tail - controller->fetch) & (controller->sq_entries - 1);
	uint32_t now = (tail - controller->fetch) & (controller->sq_entries - 1);

	if (tail == controller->last_tail)
		controller_fault(controller, "tail doorbell stands still");
	if (tail >= controller->sq_entries || now < old)
		controller_fault(controller, "tail doorbell went back");
	controller->last_tail = tail;
	controller->tail_doorbells++;
}

static inline void controller_look(struct controller *controller)
{
	uint32_t value;

	while (controller_register(&controller->doorbells->tail, controller->last_tail, &value))
		controller_tail(controller, value);
	while (controller_register(&controller->doorbells->head, controller->last_head, &value))
		controller_head(controller, value);
}

/* Fetch one entry of the submission ring. */
static inline void controller_fetch(struct controller *controller)
{
	uint32_t *entry = controller->held[controller->held_count++];
	uint32_t cid;

	controller_read(controller->sq + 64 * (size_t)controller->fetch, entry, 64);
	cid = entry[0] >> 16;
	if (controller->in_flight[cid])
		controller_fault(controller, "cid is in flight already");
	if (controller->checked_entries && entry[15] != controller_checksum(entry))
		controller_fault(controller, "entry is not whole");
	controller->in_flight[cid] = 1;
	controller->fetch = (controller->fetch + 1) & (controller->sq_entries - 1);
}

/* Address of byte @offset of a command's data, by its PRP entries. */
static inline uint64_t controller_data_at(const uint32_t entry[16], uint64_t offset, uint64_t bytes)
{
	uint64_t prp1 = entry[6] | (uint64_t)entry[7] << 32;
	uint64_t prp2 = entry[8] | (uint64_t)entry[9] << 32;
	uint64_t first = CONTROLLER_PAGE - prp1 % CONTROLLER_PAGE;
	const uint64_t *list;
	uint64_t left, index;

	if (offset < first)
		return prp1 + offset;
	if (bytes <= first + CONTROLLER_PAGE)
		return prp2 + offset - first;
	list = (const uint64_t *)(uintptr_t)prp2;
	left = (bytes - first + CONTROLLER_PAGE - 1) / CONTROLLER_PAGE;
	index = (offset - first) / CONTROLLER_PAGE;
	for (;;) {
		uint64_t here = (CONTROLLER_PAGE - (uintptr_t)list % CONTROLLER_PAGE) / 8;

		if (left <= here || index < here - 1)
			break;
		list = (const uint64_t *)(uintptr_t)controller_read_list(&list[here - 1]);
		left -= here - 1;
		index -= here - 1;
	}
	return controller_read_list(&list[index]) + (offset - first) % CONTROLLER_PAGE;
}

/* A piece of a command's data: consecutive memory; address 0: a bit bucket. */
struct controller_piece {
	uint64_t address;
	uint64_t bytes;
};

enum { CONTROLLER_SGL_BUCKET = 1, CONTROLLER_SGL_LAST_SEGMENT = 3 };

/*
 * The data from byte @offset on by an SGL: one data block descriptor, or one
 * segment of data blocks and bit buckets.  No bytes: the SGL is too short, or has
 * something else.
 */
static inline struct controller_piece controller_sgl_at(const uint32_t entry[16], uint64_t offset)
{
	const uint64_t *descriptor = (const uint64_t *)(uintptr_t)(entry[6] | (uint64_t)entry[7] << 32);
	struct controller_piece piece = { (uintptr_t)descriptor + offset, entry[8] - offset };

	if (!(entry[9] >> 28))
		return piece;
	piece.bytes = 0;
	if (entry[9] >> 28 != CONTROLLER_SGL_LAST_SEGMENT)
		return piece;
	for (uint32_t at = 0; at < entry[8]; at += 16, descriptor += 2) {
		uint64_t length = controller_read_list(&descriptor[1]);
		uint32_t type = length >> 60;

		length &= 0xffffffff;
		if (type > CONTROLLER_SGL_BUCKET)
			break;
		if (offset >= length) {
			offset -= length;
			continue;
		}
		piece.address = type ? 0 : controller_read_list(descriptor) + offset;
		piece.bytes = length - offset;
		break;
	}
	return piece;
}

/* Bytes that an SGL describes. */
static inline uint64_t controller_sgl_bytes(const uint32_t entry[16])
{
	uint64_t bytes = 0;

	for (struct controller_piece piece; (piece = controller_sgl_at(entry, bytes)).bytes;)
		bytes += piece.bytes;
	return bytes;
}

/* The data from byte @offset on, within a page. */
static inline struct controller_piece controller_data(const struct controller *controller,
						      const uint32_t entry[16], uint64_t offset,
						      uint64_t bytes)
{
	struct controller_piece piece = { 0, bytes };
	uint64_t in_page;

	if (controller->one_range)
		piece.address = (entry[6] | (uint64_t)entry[7] << 32) + offset;
	else if (entry[0] >> 14 & 3)
		piece = controller_sgl_at(entry, offset);
	else
		piece.address = controller_data_at(entry, offset, bytes);
	in_page = CONTROLLER_PAGE - piece.address % CONTROLLER_PAGE;
	if (piece.address) {
		piece.address -= controller->iova;
		piece.bytes = piece.bytes < in_page ? piece.bytes : in_page;
	}
	piece.bytes = piece.bytes < bytes - offset ? piece.bytes : bytes - offset;
	return piece;
}

/* Transfer one piece; returns the status. */
static inline uint32_t controller_transfer(const struct controller *controller, int opcode,
					   uint8_t *disk, struct controller_piece piece)
{
	uint8_t *data = (uint8_t *)(uintptr_t)piece.address;

	if (!data)
		return controller->buckets && opcode == 0x02 ? 0 : 0x4011;
	if (opcode == 0x01)
		controller_fetch_data(disk, data, piece.bytes);
	else if (opcode == 0x02)
		controller_store_data(data, disk, piece.bytes);
	else if (memcmp(data, disk, piece.bytes))
		return 0x0285;
	return 0;
}

/* Deallocate ranges of blocks, which then are zero. */
static inline uint32_t controller_deallocate(struct controller *controller, const uint32_t entry[16])
{
	uint64_t bytes = 16 * ((entry[10] & 0xff) + 1), lba;
	uint32_t range[4];

	for (uint64_t at = 0; at < bytes; at += 16) {
		/* A range may continue in another page. */
		for (int i = 0; i < 4; i++) {
			uint64_t word = controller_data(controller, entry, at + 4 * i, bytes).address;

			controller_fetch_data(&range[i], (void *)(uintptr_t)word, 4);
		}
		lba = range[2] | (uint64_t)range[3] << 32;
		if (lba >= controller->disk_blocks || range[1] > controller->disk_blocks - lba)
			return 0x4080;
		if (entry[11] & 4)
			memset(controller->disk + lba * controller->block, 0,
			       (size_t)range[1] * controller->block);
	}
	return 0;
}

/* Execute one command and return its status field. */
static inline uint32_t controller_execute(struct controller *controller, const uint32_t entry[16])
{
	uint64_t lba = entry[10] | (uint64_t)entry[11] << 32;
	uint64_t blocks = (entry[12] & 0xffff) + 1;
	uint8_t *disk = controller->disk + lba * controller->block;
	uint64_t bytes = blocks * controller->block;
	struct controller_piece piece;
	int opcode = entry[0] & 0xff;
	uint32_t status;

	memcpy(controller->last, entry, sizeof(controller->last));
	if (controller->refusal)
		return controller->refusal;
	if (opcode == 0x00)
		return 0;
	if (opcode == 0x09)
		return controller_deallocate(controller, entry);
	if (opcode != 0x01 && opcode != 0x02 && opcode != 0x05 && opcode != 0x08)
		return 0x4001;
	if (lba >= controller->disk_blocks || blocks > controller->disk_blocks - lba)
		return 0x4080;
	if (opcode == 0x08) {
		memset(disk, 0, bytes);
		return 0;
	}
	if ((entry[0] >> 14 & 3) && !controller->one_range && controller_sgl_bytes(entry) != bytes)
		return 0x400f;
	for (uint64_t at = 0; at < bytes; at += piece.bytes) {
		piece = controller_data(controller, entry, at, bytes);
		status = controller_transfer(controller, opcode, disk + at, piece);
		if (status)
			return status;
	}
	return 0;
}

/* Post one completion. */
static inline void controller_post(struct controller *controller, uint32_t which)
{
	uint32_t *entry = controller->held[which];
	uint32_t index = controller->posted % controller->cq_entries;
	uint32_t phase = (controller->posted / controller->cq_entries & 1) ^ 1;
	uint32_t cid = entry[0] >> 16;
	uint32_t status = controller_execute(controller, entry);
	uint32_t answer[4] = { entry[13], 0, controller->fetch, cid | phase << 16 | status << 17 };

	controller->in_flight[cid] = 0;
	controller->posted++;
	controller->completed++;
	controller->held_count--;
	memmove(entry, controller->held[controller->held_count], 64);
	controller_write(controller->cq + 16 * (size_t)index, answer);
}

/*
 * In-order completion needs the oldest entry: shift instead of swapping in the
 * last.
 */
static inline void controller_post_oldest(struct controller *controller)
{
	uint32_t rest = controller->held_count - 1;

	controller_post(controller, 0);
	if (rest) {
		uint32_t last[16];

		memcpy(last, controller->held[0], 64);
		memmove(controller->held[0], controller->held[1], 64 * (size_t)(rest - 1));
		memcpy(controller->held[rest - 1], last, 64);
	}
}

/* One step: fetch what was announced, complete a command.  False if idle. */
static inline bool controller_step(struct controller *controller)
{
	bool busy = false;

	controller_look(controller);
	while (controller->fetch != controller->last_tail &&
	       controller->held_count < controller->sq_entries) {
		controller_fetch(controller);
		busy = true;
	}
	if (controller->mute)
		return busy;
	while (controller->held_count &&
	       controller->posted - controller->acknowledged < controller->cq_entries - 1) {
		if (controller->order == CONTROLLER_IN_ORDER) {
			controller_post_oldest(controller);
		} else {
			controller_post(controller,
					controller_random(controller) % controller->held_count);
			if (controller_random(controller) % 4 == 0)
				return true;
		}
		busy = true;
	}
	return busy;
}

#endif /* SELFTESTS_DEVICE_CONTROLLER_H */
