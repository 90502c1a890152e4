// SPDX-License-Identifier: MIT OR GPL-2.0
/* The model of disks; see model.h. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/**
 * struct disk - a disk
 * @durable: what a power cut leaves
 * @cache: what is read
 * @dirty: for each block, whether both may differ
 * @ended: commands fail without an effect
 * @open: of io_open()
 */
struct disk {
	uint8_t durable[MODEL_BYTES];
	uint8_t cache[MODEL_BYTES];
	bool dirty[MODEL_BYTES / MODEL_BLOCK];
	uint64_t bytes;
	uint32_t block;
	bool ended;
	bool open;
	int hidden;
	uint32_t nsid;
	uint32_t fail_after[4];
	uint32_t fail_commands[4];
};

/* @lock guards all. */
static struct {
	pthread_mutex_t lock;
	struct disk disks[MODEL_DISKS];
	uint64_t random;
	uint32_t fuse;
	uint32_t victims;
	enum model_end end;
	int no_queues;
	uint64_t commands[4];
	void (*hook)(void *argument);
	void *hook_argument;
} model = { .lock = PTHREAD_MUTEX_INITIALIZER };

enum { MOST_PENDING = 256 };

struct io_queue {
	struct io *pending[MOST_PENDING];
	uint32_t count;
};

static uint32_t next_random(uint32_t range)
{
	model.random = model.random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(model.random >> 33) % range;
}

uint32_t model_random(uint32_t range)
{
	uint32_t number;

	pthread_mutex_lock(&model.lock);
	number = next_random(range);
	pthread_mutex_unlock(&model.lock);
	return number;
}

static uint8_t *at(uint8_t *memory, uint64_t block)
{
	return memory + block * MODEL_BLOCK;
}

static void flush_block(struct disk *disk, uint64_t block)
{
	memcpy(at(disk->durable, block), at(disk->cache, block), MODEL_BLOCK);
	disk->dirty[block] = false;
}

/* One logical block, which the disk has or has not written when it ends. */
static void write_block(struct disk *disk, const struct io *io, uint64_t block)
{
	uint64_t from = block * MODEL_BLOCK - io->offset;

	memcpy(at(disk->cache, block), (uint8_t *)io->data + from, MODEL_BLOCK);
	disk->dirty[block] = true;
}

static void execute(struct io *io)
{
	struct disk *disk = &model.disks[io->disk->fd];
	uint64_t first = io->offset / MODEL_BLOCK, end = first + io->bytes / MODEL_BLOCK;

	if (io->bytes && (io->offset % disk->block || io->bytes % disk->block ||
			  (uintptr_t)io->data % MODEL_BLOCK || io->offset + io->bytes > disk->bytes)) {
		fprintf(stderr, "misaligned command, or behind the end\n");
		abort();
	}
	switch (io->kind) {
	case IO_READ:
		memcpy(io->data, at(disk->cache, first), io->bytes);
		break;
	case IO_WRITE:
	case IO_WRITE_FUA:
		for (uint64_t block = first; block < end; block++) {
			write_block(disk, io, block);
			if (io->kind == IO_WRITE_FUA)
				flush_block(disk, block);
		}
		break;
	case IO_FLUSH:
		for (uint64_t block = 0; block < MODEL_BYTES / MODEL_BLOCK; block++)
			if (disk->dirty[block])
				flush_block(disk, block);
		break;
	}
}

/* A command that is interrupted: any of its blocks are written, none of them durably. */
static void execute_part(const struct io *io)
{
	struct disk *disk = &model.disks[io->disk->fd];
	uint64_t first = io->offset / MODEL_BLOCK, end = first + io->bytes / MODEL_BLOCK;

	if (io->kind != IO_WRITE && io->kind != IO_WRITE_FUA)
		return;
	for (uint64_t block = first; block < end; block++)
		if (next_random(2))
			write_block(disk, io, block);
}

static void lose_cache(struct disk *disk)
{
	memcpy(disk->cache, disk->durable, sizeof(disk->cache));
	memset(disk->dirty, 0, sizeof(disk->dirty));
}

/* The cache of a disk without power is gone, except for what it had just written. */
static void end_disks(enum model_end end, uint32_t disks)
{
	for (uint32_t i = 0; i < MODEL_DISKS; i++) {
		struct disk *disk = &model.disks[i];
		uint32_t luck = next_random(3);

		if (!(disks >> i & 1) || disk->ended)
			continue;
		disk->ended = true;
		if (end == MODEL_KILL)
			continue;
		for (uint64_t block = 0; block < MODEL_BYTES / MODEL_BLOCK; block++)
			if (disk->dirty[block] && (luck == 0 || (luck == 1 && next_random(2))))
				flush_block(disk, block);
		lose_cache(disk);
	}
}

static bool fails(struct disk *disk, enum io_kind kind)
{
	if (!disk->fail_commands[kind])
		return false;
	if (disk->fail_after[kind]) {
		disk->fail_after[kind]--;
		return false;
	}
	disk->fail_commands[kind]--;
	return true;
}

/* What fails may have been executed, and a Flush may have lost what it should write. */
static int fail(struct io *io)
{
	struct disk *disk = &model.disks[io->disk->fd];

	if (io->kind == IO_FLUSH)
		lose_cache(disk);
	else if (next_random(2))
		execute(io);
	return -EIO;
}

/* Execute number @number of the pending commands; the fuse may end disks in it. */
static void run(struct io_queue *queue, uint32_t number)
{
	struct io *io = queue->pending[number];
	struct disk *disk = &model.disks[io->disk->fd];

	if (model.fuse && !--model.fuse) {
		for (uint32_t i = 0; i < queue->count; i++)
			if (model.victims >> queue->pending[i]->disk->fd & 1 &&
			    !model.disks[queue->pending[i]->disk->fd].ended)
				execute_part(queue->pending[i]);
		end_disks(model.end, model.victims);
	}
	queue->pending[number] = queue->pending[--queue->count];
	model.commands[io->kind]++;
	if (disk->ended)
		io->result = -EIO;
	else if (fails(disk, io->kind))
		io->result = fail(io);
	else
		execute(io);
}

void io_submit(struct io_queue *queue, struct io *io)
{
	pthread_mutex_lock(&model.lock);
	io->result = 0;
	queue->pending[queue->count++] = io;
	while (queue->count && (queue->count == MOST_PENDING || !next_random(4)))
		run(queue, next_random(queue->count));
	pthread_mutex_unlock(&model.lock);
}

void io_wait(struct io_queue *queue)
{
	if (model.hook)
		model.hook(model.hook_argument);
	pthread_mutex_lock(&model.lock);
	while (queue->count)
		run(queue, next_random(queue->count));
	pthread_mutex_unlock(&model.lock);
}

int io_queue_open(struct io_queue **queue)
{
	if (model.no_queues)
		return model.no_queues;
	*queue = calloc(1, sizeof(**queue));
	return *queue ? 0 : -ENOMEM;
}

/* Commands without an io_wait() are executed now. */
void io_queue_close(struct io_queue *queue)
{
	io_wait(queue);
	free(queue);
}

int io_open(const char *path, bool read_only, struct io_disk *disk)
{
	unsigned int number;
	int error = 0;

	(void)read_only;
	if ((sscanf(path, "disk%u", &number) != 1 && sscanf(path, "/dev/nvmep%un1", &number) != 1) ||
	    number >= MODEL_DISKS)
		return -ENOENT;
	pthread_mutex_lock(&model.lock);
	if (model.disks[number].hidden)
		error = model.disks[number].hidden;
	else if (model.disks[number].open)
		error = -EBUSY;
	else
		model.disks[number].open = true;
	memset(disk, 0, sizeof(*disk));
	disk->bytes = model.disks[number].bytes;
	disk->block = model.disks[number].block;
	disk->start = MODEL_OFFSET;
	disk->nsid = model.disks[number].nsid;
	disk->fd = (int)number;
	pthread_mutex_unlock(&model.lock);
	return error;
}

void io_close(struct io_disk *disk)
{
	pthread_mutex_lock(&model.lock);
	model.disks[disk->fd].open = false;
	pthread_mutex_unlock(&model.lock);
}

void model_reset(uint64_t seed)
{
	memset(model.disks, 0, sizeof(model.disks));
	memset(model.commands, 0, sizeof(model.commands));
	model.random = seed * 2654435761u + 1;
	model.fuse = 0;
	model.no_queues = 0;
	model.hook = NULL;
	for (uint32_t i = 0; i < MODEL_DISKS; i++) {
		model.disks[i].block = MODEL_BLOCK;
		model.disks[i].bytes = MODEL_BYTES;
		model.disks[i].nsid = 1;
	}
}

void model_arm(enum model_end end, uint32_t commands, uint32_t disks)
{
	pthread_mutex_lock(&model.lock);
	model.end = end;
	model.fuse = commands;
	model.victims = disks;
	pthread_mutex_unlock(&model.lock);
}

void model_end(enum model_end end, uint32_t disks)
{
	pthread_mutex_lock(&model.lock);
	model.fuse = 0;
	end_disks(end, disks);
	pthread_mutex_unlock(&model.lock);
}

uint32_t model_ended(void)
{
	uint32_t ended = 0;

	pthread_mutex_lock(&model.lock);
	for (uint32_t i = 0; i < MODEL_DISKS; i++)
		ended |= (uint32_t)model.disks[i].ended << i;
	pthread_mutex_unlock(&model.lock);
	return ended;
}

void model_start(void)
{
	pthread_mutex_lock(&model.lock);
	model.fuse = 0;
	for (uint32_t i = 0; i < MODEL_DISKS; i++)
		model.disks[i].ended = false;
	pthread_mutex_unlock(&model.lock);
}

void model_fail(uint32_t disk, enum io_kind kind, uint32_t after, uint32_t commands)
{
	pthread_mutex_lock(&model.lock);
	model.disks[disk].fail_after[kind] = after;
	model.disks[disk].fail_commands[kind] = commands;
	pthread_mutex_unlock(&model.lock);
}

void model_block(uint32_t disk, uint32_t bytes)
{
	model.disks[disk].block = bytes;
}

void model_bytes(uint32_t disk, uint64_t bytes)
{
	model.disks[disk].bytes = bytes;
}

void model_hide(uint32_t disk, int error)
{
	model.disks[disk].hidden = error;
}

void model_namespace(uint32_t disk, uint32_t nsid)
{
	model.disks[disk].nsid = nsid;
}

void model_no_queues(int error)
{
	model.no_queues = error;
}

void model_hook(void (*hook)(void *argument), void *argument)
{
	model.hook = hook;
	model.hook_argument = argument;
}

uint64_t model_commands(enum io_kind kind)
{
	uint64_t commands;

	pthread_mutex_lock(&model.lock);
	commands = model.commands[kind];
	pthread_mutex_unlock(&model.lock);
	return commands;
}

void model_peer_write(uint32_t disk, uint64_t offset, const void *data, uint64_t bytes)
{
	pthread_mutex_lock(&model.lock);
	memcpy(model.disks[disk].cache + offset, data, bytes);
	for (uint64_t block = offset / MODEL_BLOCK; block * MODEL_BLOCK < offset + bytes; block++)
		model.disks[disk].dirty[block] = true;
	pthread_mutex_unlock(&model.lock);
}

void model_peer_read(uint32_t disk, uint64_t offset, void *data, uint64_t bytes)
{
	pthread_mutex_lock(&model.lock);
	memcpy(data, model.disks[disk].cache + offset, bytes);
	pthread_mutex_unlock(&model.lock);
}
