// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Reads and writes in the order of a stream.
 *
 * A call adds to the stream: a function of the host that reads the parameters and makes the
 * items, a list for each member, and a function that reports the end.  Without lists one
 * function does all by I/O of the host.  Functions of a stream call nothing of CUDA.
 */
#include <stdlib.h>
#include <string.h>

#include <nvmepeer_cuda.h>

#include "store.h"

static const char opening[] = "nvmepeer_store_streams_open";
static const char reading[] = "nvmepeer_store_read_async";
static const char writing[] = "nvmepeer_store_write_async";
static const char reading_pages[] = "nvmepeer_store_read_pages_async";
static const char writing_pages[] = "nvmepeer_store_write_pages_async";

/*
 * Longest item.  One thread of the GPU executes the commands of an item one after the other;
 * adjacent items are transferred by one command as far as they fit into it.
 */
enum { ITEM_BYTES = NVMEPEER_STORE_PIECE_BYTES };

/**
 * struct operation - a call that a stream has not passed
 * @next: in the list of those that are not used
 * @streams: where it belongs
 * @kind: IO_READ or IO_WRITE
 * @size: the caller's, as @offset, @base_offset and @done
 * @memory: number of the memory
 * @base: the caller's base, from the start of that memory
 * @pages: in place of these, if @pages.tensors is set
 * @counts: for each member the length of its list; the GPU reads it
 * @items: for each member as many items as a call has at most
 * @result: what the caller gets in *@done
 * @abandoned: the call has failed, and its caller may have freed the parameters
 */
struct operation {
	struct operation *next;
	struct nvmepeer_store_streams *streams;
	enum io_kind kind;
	const size_t *size;
	const int64_t *offset;
	const int64_t *base_offset;
	int64_t *done;
	uint32_t memory;
	uint64_t base;
	struct nvmepeer_store_pages pages;
	uint32_t *counts;
	struct nvmepeer_list_item *items;
	int64_t result;
	bool abandoned;
};

/**
 * struct nvmepeer_store_streams - how a store is accessed in the order of streams
 * @store: the store
 * @given: the caller's options, with copies of its arrays
 * @most_items: items of a call on one member
 * @pinned: memory for counts and items that was allocated here
 * @operations: all of them
 * @lock: guards what follows, and operation.abandoned
 * @unused: operations that no stream has
 * @in_flight: operations whose end a stream will report
 */
struct nvmepeer_store_streams {
	struct nvmepeer_store *store;
	struct nvmepeer_store_streams_options given;
	uint32_t most_items;
	void *pinned;
	struct operation *operations;
	pthread_mutex_t lock;
	struct operation *unused;
	uint32_t in_flight;
};

static uint64_t items_of(const struct nvmepeer_store *store, uint64_t bytes)
{
	/* A page ends an item, and a call may begin and end inside a page. */
	return bytes / ITEM_BYTES + bytes / store->layout.page_bytes + 2;
}

/* Bytes of an operation in memory that the GPU accesses. */
static uint64_t operation_bytes(const struct nvmepeer_store *store, uint64_t items)
{
	return store->layout.members * (items * sizeof(struct nvmepeer_list_item) + sizeof(uint64_t));
}

uint64_t nvmepeer_store_streams_bytes(struct nvmepeer_store *store, uint32_t operations,
				      uint64_t most_bytes)
{
	return operations * operation_bytes(store, items_of(store, most_bytes));
}

static struct operation *operation_take(struct nvmepeer_store_streams *streams)
{
	struct operation *operation;

	pthread_mutex_lock(&streams->lock);
	operation = streams->unused;
	if (operation) {
		streams->unused = operation->next;
		streams->in_flight++;
		operation->abandoned = false;
	}
	pthread_mutex_unlock(&streams->lock);
	return operation;
}

/* The stream has passed the operation, or does not have it.  Reports the end if @report. */
static void operation_put(struct operation *operation, bool report)
{
	struct nvmepeer_store_streams *streams = operation->streams;

	pthread_mutex_lock(&streams->lock);
	if (report && !operation->abandoned)
		__atomic_store_n(operation->done, operation->result, __ATOMIC_RELEASE);
	operation->next = streams->unused;
	streams->unused = operation;
	streams->in_flight--;
	pthread_mutex_unlock(&streams->lock);
}

/**
 * struct range - the parameters of a call, read once
 * @bytes: length
 * @offset: in the slots
 * @at: in the memory
 */
struct range {
	uint64_t bytes;
	uint64_t offset;
	uint64_t at;
};

static int64_t check_range(const struct operation *operation, const struct range *range)
{
	const struct nvmepeer_store_streams_options *given = &operation->streams->given;
	const struct layout *layout = &operation->streams->store->layout;
	uint64_t slots = given->slot_count * layout->page_bytes;
	uint64_t memory = given->memories[operation->memory].bytes;

	if (range->offset % layout->block || range->bytes % layout->block)
		return -EINVAL;
	if (range->bytes > given->most_bytes)
		return -E2BIG;
	/* A negative offset is beyond all. */
	if (range->offset > slots || range->bytes > slots - range->offset ||
	    range->at > memory || range->bytes > memory - range->at)
		return -ERANGE;
	return (int64_t)range->bytes;
}

/* Read the parameters now that the stream has come to them.  Sets the result. */
static struct range range_read(struct operation *operation)
{
	struct nvmepeer_store_streams *streams = operation->streams;
	struct range range = { 0 };

	pthread_mutex_lock(&streams->lock);
	operation->result = -ECANCELED;
	if (!operation->abandoned) {
		range.bytes = *operation->size;
		range.offset = (uint64_t)*operation->offset;
		range.at = operation->base + (uint64_t)*operation->base_offset;
		operation->result = check_range(operation, &range);
	}
	pthread_mutex_unlock(&streams->lock);
	return range;
}

/**
 * struct piece - a part of a range in one slot
 * @slot: the slot
 * @offset: in the slot
 * @bytes: length
 */
struct piece {
	uint32_t slot;
	uint32_t offset;
	uint32_t bytes;
};

static struct piece piece_at(const struct nvmepeer_store_streams *streams, const struct range *range,
			     uint64_t done)
{
	uint32_t page = streams->store->layout.page_bytes;
	uint64_t offset = range->offset + done, rest = range->bytes - done;
	struct piece piece = { .offset = (uint32_t)(offset % page) };

	piece.slot = streams->given.slots[offset / page];
	piece.bytes = page - piece.offset;
	if (piece.bytes > ITEM_BYTES)
		piece.bytes = ITEM_BYTES;
	if (piece.bytes > rest)
		piece.bytes = (uint32_t)rest;
	return piece;
}

/* Make the items.  Stops at a slot of a lost member, which fails the call. */
static void make_items(struct operation *operation, const struct range *range)
{
	const struct nvmepeer_store_streams *streams = operation->streams;
	struct nvmepeer_store *store = streams->store;

	for (uint64_t done = 0; done < range->bytes;) {
		struct piece piece = piece_at(streams, range, done);
		uint32_t number = piece.slot % store->layout.members;
		struct nvmepeer_list_item *item;

		if (member_is_lost(store, number)) {
			operation->result = -ENODEV;
			return;
		}
		item = &operation->items[number * streams->most_items + operation->counts[number]++];
		memset(item, 0, sizeof(*item));
		item->lba = slot_lba(store, piece.slot) +
			    piece.offset / store->members[number].disk.block;
		item->offset = range->at + done;
		item->memory = operation->memory;
		item->bytes = piece.bytes;
		item->status = -1;
		done += piece.bytes;
	}
}

/* ---- Pages of tensors ---- */

/* Whether a piece of page @number is in its slot and its memory. */
static bool piece_valid(const struct nvmepeer_store_streams *streams,
			const struct nvmepeer_list_tensor *tensor, uint32_t number)
{
	const struct layout *layout = &streams->store->layout;
	uint64_t room = layout->slot_bytes / layout->block, bytes, offset;
	uint64_t blocks = ((uint64_t)tensor->bytes + layout->block - 1) / layout->block;

	if (tensor->memory >= streams->given.memory_count || !tensor->bytes || tensor->bytes % 4 ||
	    tensor->block > room || blocks > room - tensor->block)
		return false;
	bytes = streams->given.memories[tensor->memory].bytes;
	return !__builtin_mul_overflow(number, tensor->stride, &offset) &&
	       !__builtin_add_overflow(offset, tensor->offset, &offset) && offset % 4 == 0 &&
	       offset <= bytes && tensor->bytes <= bytes - offset;
}

/* 0, or why a page cannot be transferred. */
static int check_page(const struct operation *operation, uint32_t page)
{
	const struct nvmepeer_store_item *item = &operation->pages.items[page];
	const struct nvmepeer_store_streams *streams = operation->streams;

	if (!slot_exists(streams->store, item->slot) ||
	    (operation->kind == IO_WRITE && item->generation) ||
	    slot_check_access(streams->store, item))
		return -EINVAL;
	if (member_is_lost(streams->store, item->slot % streams->store->layout.members))
		return -ENODEV;
	for (uint32_t i = 0; i < operation->pages.tensor_count; i++)
		if (!piece_valid(streams, &operation->pages.tensors[i], operation->pages.numbers[page]))
			return -ERANGE;
	return 0;
}

/* The items of a page that has been checked. */
static int make_page(struct operation *operation, uint32_t page)
{
	uint32_t slot = operation->pages.items[page].slot, number = operation->pages.numbers[page];
	const struct nvmepeer_store_streams *streams = operation->streams;
	struct nvmepeer_store *store = streams->store;
	uint32_t member = slot % store->layout.members, *count = &operation->counts[member];

	if (operation->pages.tensor_count > streams->most_items - *count)
		return -E2BIG;
	for (uint32_t i = 0; i < operation->pages.tensor_count; i++) {
		const struct nvmepeer_list_tensor *tensor = &operation->pages.tensors[i];

		operation->items[member * streams->most_items + (*count)++] = (struct nvmepeer_list_item){
			.lba = slot_lba(store, slot) + (uint64_t)tensor->block *
			       (store->layout.block / store->members[member].disk.block),
			.offset = tensor->offset + number * tensor->stride,
			.memory = tensor->memory,
			.bytes = tensor->bytes,
			.status = -1,
			.reserved = page,
		};
	}
	return 0;
}

/* Call @make for each page that is valid, until one fails, which fails the call. */
static void make_pages(struct operation *operation,
		       int (*make)(struct operation *operation, uint32_t page))
{
	uint32_t count = *operation->pages.count;

	operation->result = 0;
	for (uint32_t i = 0; i < count && !operation->result; i++) {
		struct nvmepeer_store_item *item = &operation->pages.items[i];

		item->result = check_page(operation, i);
		if (!item->result)
			operation->result = make(operation, i);
	}
}

/* The number of pages that were transferred. */
static void count_pages(struct operation *operation)
{
	uint32_t count = *operation->pages.count;

	for (uint32_t i = 0; i < count && operation->result >= 0; i++)
		operation->result += !operation->pages.items[i].result;
}

/* First function on the stream: the lists.  A call that fails has empty ones. */
static void prepare(void *argument)
{
	struct operation *operation = argument;
	struct nvmepeer_store_streams *streams = operation->streams;
	size_t bytes = streams->store->layout.members * sizeof(*operation->counts);

	memset(operation->counts, 0, bytes);
	if (operation->pages.tensors) {
		/* The parameters stay while the lock is held. */
		pthread_mutex_lock(&streams->lock);
		if (operation->abandoned)
			operation->result = -ECANCELED;
		else
			make_pages(operation, make_page);
		pthread_mutex_unlock(&streams->lock);
	} else {
		struct range range = range_read(operation);

		if (operation->result > 0)
			make_items(operation, &range);
	}
	if (operation->result < 0)
		memset(operation->counts, 0, bytes);
}

/* The results of pages whose commands failed. */
static void finish_pages(struct operation *operation)
{
	struct nvmepeer_store_streams *streams = operation->streams;

	pthread_mutex_lock(&streams->lock);
	for (uint32_t i = 0; i < streams->store->layout.members && !operation->abandoned; i++)
		for (uint32_t j = 0; j < operation->counts[i]; j++) {
			const struct nvmepeer_list_item *item =
				&operation->items[i * streams->most_items + j];

			if (item->status)
				operation->pages.items[item->reserved].result = -EIO;
		}
	if (!operation->abandoned)
		count_pages(operation);
	pthread_mutex_unlock(&streams->lock);
	operation_put(operation, true);
}

/* Last function on the stream. */
static void finish(void *argument)
{
	struct operation *operation = argument;
	const struct nvmepeer_store_streams *streams = operation->streams;

	if (operation->pages.tensors) {
		finish_pages(operation);
		return;
	}
	for (uint32_t i = 0; i < streams->store->layout.members; i++)
		for (uint32_t j = 0; j < operation->counts[i]; j++)
			if (operation->items[i * streams->most_items + j].status)
				operation->result = -EIO;
	operation_put(operation, true);
}

static uint64_t whole_blocks(const struct nvmepeer_store *store, uint64_t bytes)
{
	return (bytes + store->layout.block - 1) / store->layout.block * store->layout.block;
}

/* Memory of a piece, which the disk needs aligned. */
static void *piece_memory(const struct nvmepeer_store *store, const struct piece *piece, char *data,
			  enum io_kind kind)
{
	void *copy;

	if (!((uintptr_t)data % store->layout.block) && piece->bytes % store->layout.block == 0)
		return data;
	copy = buffer_new(store, whole_blocks(store, piece->bytes));
	if (copy && kind == IO_WRITE)
		memcpy(copy, data, piece->bytes);
	return copy;
}

/* I/O of the host on one piece. */
static int run_piece(struct nvmepeer_store *store, struct io_queue *queue,
		     const struct piece *piece, char *data, enum io_kind kind)
{
	const struct member *member = member_of(store, piece->slot);
	uint64_t offset = slot_offset(member, number_of(store, piece->slot)) + piece->offset;
	void *memory;
	int error;

	if (member_is_lost(store, piece->slot % store->layout.members))
		return -ENODEV;
	memory = piece_memory(store, piece, data, kind);
	if (!memory)
		return -ENOMEM;
	error = run_one(queue, &member->disk, kind, memory, offset, whole_blocks(store, piece->bytes));
	if (memory != data) {
		if (!error && kind == IO_READ)
			memcpy(data, memory, piece->bytes);
		free(memory);
	}
	return error;
}

/* The pieces of a page, by the host. */
static int run_page(struct operation *operation, uint32_t page)
{
	const struct nvmepeer_store_streams *streams = operation->streams;
	struct nvmepeer_store_item *item = &operation->pages.items[page];
	struct io_queue *queue;
	int error = queue_get(streams->store, &queue);

	if (error)
		return error;
	for (uint32_t i = 0; i < operation->pages.tensor_count && !item->result; i++) {
		const struct nvmepeer_list_tensor *tensor = &operation->pages.tensors[i];
		char *start = streams->given.memories[tensor->memory].start;
		struct piece piece = {
			.slot = item->slot,
			.offset = tensor->block * streams->store->layout.block,
			.bytes = tensor->bytes,
		};

		item->result = run_piece(streams->store, queue, &piece, start + tensor->offset +
					 operation->pages.numbers[page] * tensor->stride,
					 operation->kind);
	}
	queue_put(streams->store, queue);
	return 0;
}

static void run_pages_on_host(void *argument)
{
	struct operation *operation = argument;

	make_pages(operation, run_page);
	count_pages(operation);
	operation_put(operation, true);
}

/* The only function on the stream if the host does the I/O. */
static void run_on_host(void *argument)
{
	struct operation *operation = argument;
	const struct nvmepeer_store_streams *streams = operation->streams;
	struct range range = range_read(operation);
	char *start = streams->given.memories[operation->memory].start;
	struct io_queue *queue;
	int error = 0;

	if (operation->result > 0)
		error = queue_get(streams->store, &queue);
	if (operation->result > 0 && !error) {
		for (uint64_t done = 0; done < range.bytes && !error;) {
			struct piece piece = piece_at(streams, &range, done);

			error = run_piece(streams->store, queue, &piece, start + range.at + done,
					  operation->kind);
			done += piece.bytes;
		}
		queue_put(streams->store, queue);
	}
	if (error)
		operation->result = error;
	operation_put(operation, true);
}

static int call_host(const struct operation *operation, const char *call, void *stream,
		     void (*function)(void *argument))
{
	int error = operation->streams->given.call_host(stream, function, (void *)(uintptr_t)operation);

	if (!error)
		return 0;
	return store_fail(call, -EIO, "the stream does not take a function of the host",
			  "see the error in CUDA's documentation", "error %d", error);
}

/* The list of each member; those without items end at once. */
static int call_lists(const struct operation *operation, void *stream)
{
	const struct nvmepeer_store_streams *streams = operation->streams;
	int error = 0;

	for (uint32_t i = 0; i < streams->store->layout.members && !error; i++) {
		struct nvmepeer_cuda_list list = {
			.size = sizeof(list),
			.count = streams->most_items,
			.items = &operation->items[i * streams->most_items],
			.count_at = &operation->counts[i],
		};

		error = operation->kind == IO_READ ?
			streams->given.read_list(streams->given.lists[i], &list, stream) :
			streams->given.write_list(streams->given.lists[i], &list, stream);
	}
	return error;
}

/* Its caller gets an error and may free the parameters: do not access them any more. */
static void abandon(struct operation *operation)
{
	pthread_mutex_lock(&operation->streams->lock);
	operation->abandoned = true;
	pthread_mutex_unlock(&operation->streams->lock);
}

static int submit(struct operation *operation, const char *call, void *stream)
{
	bool lists = operation->streams->given.lists;
	struct nvmepeer_explanation why;
	int error = call_host(operation, call, stream, lists ? prepare :
			      operation->pages.tensors ? run_pages_on_host : run_on_host);

	if (error)
		operation_put(operation, false);
	if (error || !lists)
		return error;
	error = call_lists(operation, stream);
	if (error) {
		nvmepeer_explain(&why, sizeof(why));
		abandon(operation);
		/* If this fails, too, the operation is not used again. */
		call_host(operation, call, stream, finish);
		nvmepeer_fail(&why, sizeof(why));
		return error;
	}
	error = call_host(operation, call, stream, finish);
	if (error)
		abandon(operation);
	return error;
}

/* The memory that an address is in. */
static bool find_memory(const struct nvmepeer_store_streams *streams, const void *base,
			struct operation *operation)
{
	for (uint32_t i = 0; i < streams->given.memory_count; i++) {
		const struct nvmepeer_store_memory *memory = &streams->given.memories[i];

		operation->memory = i;
		operation->base = (uintptr_t)base - (uintptr_t)memory->start;
		if (operation->base < memory->bytes)
			return true;
	}
	return false;
}

/* Take an operation and add it to the stream. */
static int start(struct nvmepeer_store_streams *streams, const char *call, enum io_kind kind,
		 const struct operation *parameters, void *stream)
{
	struct operation *operation = operation_take(streams);

	if (!operation)
		return store_fail(call, -EBUSY, "too many calls are in flight",
				  "wait for one of them, or open the streams with more operations",
				  "all of %u operations", streams->given.operations);
	operation->kind = kind;
	operation->size = parameters->size;
	operation->offset = parameters->offset;
	operation->base_offset = parameters->base_offset;
	operation->done = parameters->done;
	operation->memory = parameters->memory;
	operation->base = parameters->base;
	operation->pages = parameters->pages;
	return submit(operation, call, stream);
}

static int transfer(struct nvmepeer_store_streams *streams, const char *call, enum io_kind kind,
		    struct operation *parameters, const void *base, void *stream)
{
	if (!find_memory(streams, base, parameters))
		return store_fail(call, -EFAULT, "the memory is not registered",
				  "pass it in the options of nvmepeer_store_streams_open()",
				  "%p is in none of %u memories", base, streams->given.memory_count);
	return start(streams, call, kind, parameters, stream);
}

static int transfer_pages(struct nvmepeer_store_streams *streams, const char *call, enum io_kind kind,
			  const struct nvmepeer_store_pages *pages, void *stream)
{
	struct operation parameters = { .done = NULL };
	int error = store_check_size(call, pages->size, SIZE_THROUGH(struct nvmepeer_store_pages, done));

	if (!error)
		error = store_check_newer(call, pages, pages->size, sizeof(*pages));
	if (error)
		return error;
	if (!pages->tensors || !pages->tensor_count || !pages->count || !pages->items ||
	    !pages->numbers || !pages->done)
		return store_fail(call, -EINVAL, "the pages are invalid", "set all fields",
				  "one of them is NULL, or there are no tensors");
	parameters.done = pages->done;
	memcpy(&parameters.pages, pages, sizeof(*pages));
	return start(streams, call, kind, &parameters, stream);
}

int nvmepeer_store_read_async(struct nvmepeer_store_streams *streams, void *base,
			      const size_t *size, const int64_t *offset,
			      const int64_t *base_offset, int64_t *done, void *stream)
{
	struct operation parameters = {
		.size = size, .offset = offset, .base_offset = base_offset, .done = done,
	};

	return transfer(streams, reading, IO_READ, &parameters, base, stream);
}

int nvmepeer_store_write_async(struct nvmepeer_store_streams *streams, const void *base,
			       const size_t *size, const int64_t *offset,
			       const int64_t *base_offset, int64_t *done, void *stream)
{
	struct operation parameters = {
		.size = size, .offset = offset, .base_offset = base_offset, .done = done,
	};

	return transfer(streams, writing, IO_WRITE, &parameters, base, stream);
}

int nvmepeer_store_read_pages_async(struct nvmepeer_store_streams *streams,
				    const struct nvmepeer_store_pages *pages, void *stream)
{
	return transfer_pages(streams, reading_pages, IO_READ, pages, stream);
}

int nvmepeer_store_write_pages_async(struct nvmepeer_store_streams *streams,
				     const struct nvmepeer_store_pages *pages, void *stream)
{
	return transfer_pages(streams, writing_pages, IO_WRITE, pages, stream);
}

static int check_slots(struct nvmepeer_store *store,
		       const struct nvmepeer_store_streams_options *given)
{
	for (uint64_t i = 0; i < given->slot_count; i++) {
		bool allocated;

		if (!slot_exists(store, given->slots[i]))
			return -EINVAL;
		pthread_mutex_lock(&store->lock);
		allocated = slot_at(store, given->slots[i])->state == SLOT_ALLOCATED;
		pthread_mutex_unlock(&store->lock);
		if (!allocated)
			return -EINVAL;
	}
	return 0;
}

static int check_members(const struct nvmepeer_store *store)
{
	for (uint32_t i = 0; i < store->layout.members; i++)
		if (!store->members[i].disk.nsid)
			return store_fail(opening, -EOPNOTSUPP, "a GPU cannot access the slots",
					  "use a namespace or a partition of one, not dm, LVM, md, loop or a file",
					  "member %u is no NVMe namespace", i);
	return 0;
}

static int check_options(struct nvmepeer_store *store,
			 const struct nvmepeer_store_streams_options *given)
{
	static const char what[] = "the options are invalid";
	uint64_t bytes;

	if (store->layout.page_bytes % store->layout.block)
		return store_fail(opening, -EINVAL, "the store is not addressed by offsets",
				  "create it with pages of whole logical blocks",
				  "pages of %u bytes in blocks of %u", store->layout.page_bytes,
				  store->layout.block);
	if (!given->operations || !given->most_bytes || given->most_bytes > UINT32_MAX ||
	    !given->slot_count || !given->memory_count || !given->call_host ||
	    (given->lists && (!given->read_list || !given->write_list)))
		return store_fail(opening, -EINVAL, what, "set all of them; lists have two functions",
				  "%u operations of %llu bytes, %llu slots, %u memories",
				  given->operations, (unsigned long long)given->most_bytes,
				  (unsigned long long)given->slot_count, given->memory_count);
	if (check_slots(store, given))
		return store_fail(opening, -EINVAL, "a slot is not allocated",
				  "pass slots of nvmepeer_store_alloc()", "one of %llu slots",
				  (unsigned long long)given->slot_count);
	if (!given->lists)
		return 0;
	bytes = nvmepeer_store_streams_bytes(store, given->operations, given->most_bytes);
	if (!given->pinned || (uintptr_t)given->pinned % 8 || given->pinned_bytes < bytes)
		return store_fail(opening, -EINVAL, "the GPU needs memory for lists",
				  "pass as many bytes as nvmepeer_store_streams_bytes() returns, in units of 8, that CUDA has pinned",
				  "%llu bytes of %llu at %p", (unsigned long long)given->pinned_bytes,
				  (unsigned long long)bytes, given->pinned);
	return check_members(store);
}

static void *copy_of(const void *array, size_t bytes)
{
	void *copy = malloc(bytes);

	return copy ? memcpy(copy, array, bytes) : NULL;
}

static void streams_free(struct nvmepeer_store_streams *streams)
{
	free(streams->operations);
	free(streams->pinned);
	free((void *)(uintptr_t)streams->given.slots);
	free((void *)(uintptr_t)streams->given.memories);
	free((void *)(uintptr_t)streams->given.lists);
	pthread_mutex_destroy(&streams->lock);
	free(streams);
}

/* Copies of the caller's arrays, and the operations. */
static bool build(struct nvmepeer_store_streams *streams,
		  const struct nvmepeer_store_streams_options *given)
{
	struct nvmepeer_store *store = streams->store;
	uint64_t bytes = operation_bytes(store, streams->most_items);
	char *place;

	streams->given.slots = copy_of(given->slots, given->slot_count * sizeof(*given->slots));
	streams->given.memories = copy_of(given->memories,
					  given->memory_count * sizeof(*given->memories));
	if (given->lists)
		streams->given.lists = copy_of(given->lists,
					       store->layout.members * sizeof(*given->lists));
	else
		streams->pinned = malloc(given->operations * bytes);
	place = given->lists ? given->pinned : streams->pinned;
	streams->operations = calloc(given->operations, sizeof(*streams->operations));
	if (!streams->given.slots || !streams->given.memories || !place || !streams->operations ||
	    (given->lists && !streams->given.lists))
		return false;
	for (uint32_t i = 0; i < given->operations; i++, place += bytes) {
		struct operation *operation = &streams->operations[i];

		operation->streams = streams;
		operation->items = (void *)place;
		operation->counts = (void *)(operation->items +
					     (size_t)store->layout.members * streams->most_items);
		operation->next = streams->unused;
		streams->unused = operation;
	}
	return true;
}

int nvmepeer_store_streams_open(struct nvmepeer_store *store,
				const struct nvmepeer_store_streams_options *options,
				struct nvmepeer_store_streams **streams)
{
	struct nvmepeer_store_streams *opened;
	int error = store_check_size(opening, options->size,
				     SIZE_THROUGH(struct nvmepeer_store_streams_options, pinned_bytes));

	if (!error)
		error = store_check_newer(opening, options, options->size, sizeof(*options));
	if (!error)
		error = check_options(store, options);
	if (error)
		return error;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return store_fail_memory(opening);
	pthread_mutex_init(&opened->lock, NULL);
	opened->store = store;
	opened->most_items = (uint32_t)items_of(store, options->most_bytes);
	opened->given = *options;
	opened->given.slots = NULL;
	opened->given.memories = NULL;
	opened->given.lists = NULL;
	if (!build(opened, options)) {
		streams_free(opened);
		return store_fail_memory(opening);
	}
	*streams = opened;
	return 0;
}

int nvmepeer_store_streams_close(struct nvmepeer_store_streams *streams)
{
	uint32_t in_flight;

	if (!streams)
		return 0;
	pthread_mutex_lock(&streams->lock);
	in_flight = streams->in_flight;
	pthread_mutex_unlock(&streams->lock);
	if (in_flight)
		return store_fail("nvmepeer_store_streams_close", -EBUSY, "calls are in flight",
				  "synchronize their streams, then close again", "%u calls", in_flight);
	streams_free(streams);
	return 0;
}
