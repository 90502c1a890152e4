/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/queue.h: the queue pair: the geometry that a host fills, the
 * handle that device code reads and the state that its threads share.
 */
#ifndef NVMEPEER_DEVICE_QUEUE_H
#define NVMEPEER_DEVICE_QUEUE_H

#define NVMEPEER_GEOMETRY_VERSION 1

/* nvmepeer_geometry.flags */
enum {
	/* Ring lies behind a bus: fewer, wider accesses, longer pauses. */
	NVMEPEER_SQ_REMOTE = 1u << 0,
	NVMEPEER_CQ_REMOTE = 1u << 1,
	/*
	 * The completion ring does not lie beside the data: a completion entry
	 * may overtake the data it announces, so @readback is read before a
	 * completion is believed.  Needs NVMEPEER_DATA_REMOTE.
	 */
	NVMEPEER_CQ_APART_FROM_DATA = 1u << 2,
	/* The controller takes SGLs for I/O commands (Identify SGLS bits 1:0). */
	NVMEPEER_SGL = 1u << 3,
	/*
	 * Data lies behind a bus, and so does @readback: the answer to a read of
	 * it comes the way on which data lies ahead.  A peer that reads its own
	 * memory crosses no bus, and flushes nothing.
	 */
	NVMEPEER_DATA_REMOTE = 1u << 4,
};

/**
 * struct nvmepeer_buffer - memory that commands move data from and to
 * @length: bytes
 * @dma: DMA address of its first byte in the controller's domain, if it is one
 *	contiguous range of DMA addresses (@pages is 0)
 * @pages: else the address, in the peer's own memory, of the DMA addresses of
 *	its controller pages (uint64_t each); the buffer starts on such a page
 */
struct nvmepeer_buffer {
	uint64_t length;
	uint64_t dma;
	uint64_t pages;
};

/**
 * struct nvmepeer_geometry - one queue pair as the peer sees it
 * @version: NVMEPEER_GEOMETRY_VERSION
 * @flags: NVMEPEER_SQ_REMOTE and so on
 * @sq: address of the submission ring
 * @cq: address of the completion ring; the ring is zero
 * @sq_doorbell: address of the tail doorbell register
 * @cq_doorbell: address of the head doorbell register
 * @status: address of the status page (struct nvme_peer_status), or 0
 * @request: address of the request page (struct nvme_peer_request), or 0
 * @state: address, in the peer's own memory, of nvmepeer_state_bytes() bytes
 *	aligned to 128 for the book-keeping
 * @list_area: address of memory for PRP lists, @cids lists of @list_bytes
 *	each, or 0: then a command may touch at most two controller pages
 * @list_memory: the same memory as the controller sees it
 * @readback: for NVMEPEER_CQ_APART_FROM_DATA: address of a word of data memory
 *	that the peer reads over the bus that data takes, so that the answer
 *	cannot come before data which was written earlier; never a word of the
 *	peer's own memory
 * @timeout_ns: default limit of every wait; 0 means 10 s
 * @sq_entries: a power of two, 2 to 32768
 * @cq_entries: a power of two, at least @sq_entries
 * @cids: commands whose results are kept at once; no fewer than tokens that are not
 *	spent and threads that submit at a time; a power of two from 32 to 65536, at
 *	least @sq_entries; 0 means four times @sq_entries
 * @list_bytes: bytes of one PRP list: a power of two from 8 to the controller
 *	page, or a multiple of the controller page
 * @generation: nvme_peer_qp_info.generation
 * @qid: queue identifier
 * @nsid: namespace
 * @lba_shift: log2 of the bytes of a logical block
 * @page_shift: log2 of the bytes of a controller page (CC.MPS)
 * @max_transfer: most bytes of one command (nvme_peer_info.max_transfer)
 * @metadata_bytes: metadata of a logical block; must be 0, as commands here
 *	name no memory for it
 * @reserved: 0
 *
 * All addresses are in the peer's address space, the DMA addresses of buffers
 * in the controller's.  Fill what is not used with 0.
 */
struct nvmepeer_geometry {
	uint32_t version;
	uint32_t flags;
	uint64_t sq;
	uint64_t cq;
	uint64_t sq_doorbell;
	uint64_t cq_doorbell;
	uint64_t status;
	uint64_t request;
	uint64_t state;
	uint64_t list_area;
	struct nvmepeer_buffer list_memory;
	uint64_t readback;
	uint64_t timeout_ns;
	uint32_t sq_entries;
	uint32_t cq_entries;
	uint32_t cids;
	uint32_t list_bytes;
	uint32_t generation;
	uint32_t qid;
	uint32_t nsid;
	uint32_t lba_shift;
	uint32_t page_shift;
	uint32_t max_transfer;
	uint32_t metadata_bytes;
	uint32_t reserved;
};

/*
 * struct nvmepeer_state - what the threads of a queue pair share
 *
 * No field is guarded by a lock.  Each line below has one rule:
 *
 * @tail: three counts and two bits in one word.  Bits 63..32, tickets:
 *	submission slots handed out so far; slot = ticket modulo entries.  Bit
 *	31: the queue pair is lost, no slot counts any more.  Bit 30: the bell
 *	is offered (see @bell).  Bits 29..16, inside: slots handed out whose
 *	entry is not yet written.  Bits 15..0, waiting: groups that want the
 *	doorbells rung, the one that rings among them.  Whoever raises waiting
 *	from 0 has the bell, and rings for all until it brings waiting back to 0
 *	or has given the bell away; the others go on without waiting for it.
 * @credits: commands that may still be sent: never more are in flight than
 *	either ring can hold.  Taken before a slot, given back by whoever takes
 *	the completion entry; below 0 only while somebody gives back what it
 *	took too many, or from NVMEPEER_SOLO_CREDITS on while one group has the
 *	queue pair for itself.
 * @head: completion entries taken so far, in bits 30..0.  Moved by
 *	compare-and-exchange by whoever has read the entries it moves over; that
 *	thread hands them out.  Bit 31 is set while one group has the queue pair
 *	for itself: then nobody else moves it, as the entries are that group's.
 * @head_rung: last head doorbell; only whoever has the bell touches it, or the queue
 *	pair for itself.
 * @bell: 1 while who had the bell offers it; an exchange for 0 takes it.
 * @bell_rung: last ticket that was rung; written by who has the bell.
 * @abandoned: commands whose callers stopped waiting and which have not been
 *	swept up.
 * @lost: bit 0, NVMEPEER_LOST: the queue pair was found reset, failed or gone; who
 *	sets it then sets the bit in @tail, from where on nobody stores anything.  Bits
 *	31..1: polls that found nothing, as polls that never wait have no other count
 *	that tells when to look at the status page.
 * @generation: the one that the entries belong to.
 * @protocol_errors: completion entries with a cid that no command could have.
 *
 * Behind the structure lie four arrays: a result for each cid: written by the
 * taker of the completion entry, cleared by the owner of the cid before it
 * sends; a bit for each free cid; a bit for each abandoned cid; and for each cid
 * which token names it (NVMEPEER_OWNED and the ticket), or 0: written by who
 * sent the command, and taken by compare-and-exchange by who waits for it.
 */
struct nvmepeer_state {
	uint64_t tail;
	uint8_t pad0[120];
	uint32_t credits;
	uint32_t lost;
	uint32_t abandoned;
	uint32_t protocol_errors;
	uint32_t generation;
	uint32_t bell;
	uint32_t bell_rung;
	uint8_t pad1[100];
	uint32_t head;
	uint8_t pad2[60];
	uint32_t head_rung;
	uint8_t pad3[60];
};

/* Byte offsets in the status page, and its live state (linux/nvme_peer.h). */
enum {
	NVMEPEER_STATUS_STATE = 8,
	NVMEPEER_STATUS_GENERATION = 12,
	NVMEPEER_STATE_LIVE = 1,
};

#define NVMEPEER_TICKET_SHIFT 32
#define NVMEPEER_INSIDE_SHIFT 16
#define NVMEPEER_INSIDE_MASK 0x3fffu
#define NVMEPEER_WAITING_MASK 0xffffu
#define NVMEPEER_TAIL_LOST (1u << 31)
#define NVMEPEER_TAIL_OFFERED (1u << 30)

/* So many slots fit the count of those inside, twice as many groups that of waiting. */
#define NVMEPEER_MOST_IN_FLIGHT NVMEPEER_INSIDE_MASK

/* Of the word @lost. */
enum {
	NVMEPEER_LOST = 1,
	NVMEPEER_ONE_POLL = 2,
};

/* Credits of a queue pair that is solo: so few that no giving back makes one. */
#define NVMEPEER_SOLO_CREDITS (-(1 << 30))

/* Of the head: the count, and the mark of a queue pair that is solo. */
#define NVMEPEER_HEAD_MASK 0x7fffffffu
#define NVMEPEER_HEAD_SOLO (1u << 31)

/* Marks a token's claim on its cid; the ticket's lower bits stand beside it. */
#define NVMEPEER_OWNED (1u << 31)

/* A result: status field in bits 15..0, dword 0 of the completion in bits 63..32. */
#define NVMEPEER_RESULT_DONE ((uint64_t)1 << 16)

/**
 * struct nvmepeer_queue - handle of a queue pair, read-only after init
 *
 * Plain data: pass it by value, keep it in constant, shared or global memory,
 * copy it to where it is read fastest.  All copies name the same queue pair.
 */
struct nvmepeer_queue {
	uint64_t sq;
	uint64_t cq;
	uint64_t sq_doorbell;
	uint64_t cq_doorbell;
	struct nvmepeer_state *state;
	uint32_t *free_cids;
	uint32_t *abandoned_cids;
	uint64_t *results;
	uint32_t *owners;
	uint32_t sq_mask;
	uint32_t cq_mask;
	uint32_t cid_words_mask;
	uint32_t nsid;
	uint32_t flags;
	uint32_t lba_shift;
	uint32_t page_shift;
	uint32_t max_transfer;
	uint64_t timeout_ns;
	uint64_t status;
	uint64_t request;
	uint64_t readback;
	uint64_t list_area;
	struct nvmepeer_buffer list_memory;
	uint32_t list_bytes;
	uint32_t cq_shift;
	uint32_t generation;
	uint32_t qid;
};

NVMEPEER_HOST_FN bool nvmepeer_is_power_of_two(uint32_t value)
{
	return value && !(value & (value - 1));
}

NVMEPEER_HOST_FN uint32_t nvmepeer_cids(const struct nvmepeer_geometry *geometry)
{
	uint32_t cids = geometry->cids;

	if (!cids)
		cids = geometry->sq_entries <= 8 ? 32 : 4 * geometry->sq_entries;
	return cids > 65536 ? 65536 : cids;
}

/* Bytes of memory for nvmepeer_geometry.state. */
NVMEPEER_HOST_FN uint64_t nvmepeer_state_bytes(const struct nvmepeer_geometry *geometry)
{
	uint64_t cids = nvmepeer_cids(geometry);

	return sizeof(struct nvmepeer_state) + 2 * (cids / 8) + 12 * cids;
}

NVMEPEER_HOST_FN int nvmepeer_check_rings(const struct nvmepeer_geometry *geometry)
{
	uint32_t cids = nvmepeer_cids(geometry);

	if (!nvmepeer_is_power_of_two(geometry->sq_entries) ||
	    !nvmepeer_is_power_of_two(geometry->cq_entries) ||
	    geometry->sq_entries < 2 || geometry->sq_entries > 32768 ||
	    geometry->cq_entries < geometry->sq_entries || geometry->cq_entries > 65536)
		return NVMEPEER_E_ENTRIES;
	if (!nvmepeer_is_power_of_two(cids) || cids < 32 || cids < geometry->sq_entries)
		return NVMEPEER_E_CIDS;
	return NVMEPEER_OK;
}

NVMEPEER_HOST_FN int nvmepeer_check_addresses(const struct nvmepeer_geometry *geometry)
{
	if (!geometry->sq || geometry->sq % 64 || !geometry->cq || geometry->cq % 16 ||
	    !geometry->sq_doorbell || geometry->sq_doorbell % 4 ||
	    !geometry->cq_doorbell || geometry->cq_doorbell % 4 ||
	    geometry->status % 4 || geometry->request % 4 || !geometry->state || geometry->state % 128)
		return NVMEPEER_E_ADDRESS;
	return NVMEPEER_OK;
}

/* Can data be told to have arrived when a completion has? */
NVMEPEER_HOST_FN int nvmepeer_check_readback(const struct nvmepeer_geometry *geometry)
{
	if (!(geometry->flags & NVMEPEER_CQ_APART_FROM_DATA))
		return NVMEPEER_OK;
	if (!(geometry->flags & NVMEPEER_DATA_REMOTE))
		return NVMEPEER_E_PLACEMENT;
	if (!geometry->readback || geometry->readback % 4)
		return NVMEPEER_E_ADDRESS;
	return NVMEPEER_OK;
}

NVMEPEER_HOST_FN int nvmepeer_check_lists(const struct nvmepeer_geometry *geometry)
{
	uint64_t bytes = geometry->list_bytes;
	uint64_t page = (uint64_t)1 << geometry->page_shift;

	if (!geometry->list_area)
		return NVMEPEER_OK;
	if (bytes < 8 || geometry->list_area % 8 ||
	    (bytes < page ? !nvmepeer_is_power_of_two((uint32_t)bytes) : bytes % page) ||
	    geometry->list_memory.length < bytes * nvmepeer_cids(geometry) ||
	    (!geometry->list_memory.pages && geometry->list_memory.dma % page))
		return NVMEPEER_E_GEOMETRY;
	return NVMEPEER_OK;
}

/* Checks what can be checked without touching memory. */
NVMEPEER_HOST_FN int nvmepeer_geometry_check(const struct nvmepeer_geometry *geometry)
{
	int status;

	if (geometry->version != NVMEPEER_GEOMETRY_VERSION ||
	    geometry->page_shift < 12 || geometry->page_shift > 27 ||
	    geometry->lba_shift < 9 || geometry->lba_shift > 16 ||
	    geometry->max_transfer < (1u << geometry->lba_shift))
		return NVMEPEER_E_GEOMETRY;
	if (geometry->metadata_bytes)
		return NVMEPEER_E_METADATA;
	status = nvmepeer_check_rings(geometry);
	if (!status)
		status = nvmepeer_check_addresses(geometry);
	if (!status)
		status = nvmepeer_check_readback(geometry);
	return status ? status : nvmepeer_check_lists(geometry);
}

/**
 * nvmepeer_queue_open - make a handle from a geometry
 * @queue: filled
 * @geometry: what the host knows about the queue pair
 *
 * Touches no memory but @queue; may run on the host for a device.  The shared
 * state must be initialised once, by nvmepeer_queue_reset(), before any handle
 * is used.  Returns 0 or NVMEPEER_E_ENTRIES, _CIDS, _ADDRESS, _GEOMETRY,
 * _PLACEMENT, _METADATA.
 */
NVMEPEER_HOST_FN int nvmepeer_queue_open(struct nvmepeer_queue *queue,
					 const struct nvmepeer_geometry *geometry)
{
	uint32_t words = nvmepeer_cids(geometry) / 32;
	uint64_t state = geometry->state;
	uint32_t shift = 0;
	int status = nvmepeer_geometry_check(geometry);

	if (status)
		return status;
	while (1u << shift != geometry->cq_entries)
		shift++;
	queue->sq = geometry->sq;
	queue->cq = geometry->cq;
	queue->sq_doorbell = geometry->sq_doorbell;
	queue->cq_doorbell = geometry->cq_doorbell;
	queue->state = (struct nvmepeer_state *)(uintptr_t)state;
	state += sizeof(struct nvmepeer_state);
	queue->results = (uint64_t *)(uintptr_t)state;
	state += 8 * 32 * (uint64_t)words;
	queue->free_cids = (uint32_t *)(uintptr_t)state;
	queue->abandoned_cids = queue->free_cids + words;
	queue->owners = queue->abandoned_cids + words;
	queue->sq_mask = geometry->sq_entries - 1;
	queue->cq_mask = geometry->cq_entries - 1;
	queue->cid_words_mask = words - 1;
	queue->nsid = geometry->nsid;
	queue->flags = geometry->flags;
	queue->lba_shift = geometry->lba_shift;
	queue->page_shift = geometry->page_shift;
	queue->max_transfer = geometry->max_transfer;
	queue->timeout_ns = geometry->timeout_ns ? geometry->timeout_ns : 10000000000u;
	queue->status = geometry->status;
	queue->request = geometry->request;
	queue->readback = geometry->readback;
	queue->list_area = geometry->list_area;
	queue->list_memory = geometry->list_memory;
	queue->list_bytes = geometry->list_bytes;
	queue->cq_shift = shift;
	queue->generation = geometry->generation;
	queue->qid = geometry->qid;
	return NVMEPEER_OK;
}

/* Commands that may be in flight: one slot less than the ring has, or what can be counted. */
NVMEPEER_FN uint32_t nvmepeer_most_in_flight(const struct nvmepeer_queue *queue)
{
	return queue->sq_mask < NVMEPEER_MOST_IN_FLIGHT ? queue->sq_mask : NVMEPEER_MOST_IN_FLIGHT;
}

/*
 * The state of an idle queue pair whose next ticket is @ticket: a multiple of
 * both rings' entries, and of two rounds of the completion ring, whose phase
 * tag starts as 1.
 */
NVMEPEER_FN void nvmepeer_state_begin(const struct nvmepeer_queue *queue, uint32_t ticket,
				      uint32_t generation)
{
	struct nvmepeer_state *state = queue->state;

	for (uint32_t word = 0; word <= queue->cid_words_mask; word++) {
		nvmepeer_store32(&queue->free_cids[word],
				 word == 2047 ? 0x7fffffffu : 0xffffffffu);
		nvmepeer_store32(&queue->abandoned_cids[word], 0);
	}
	for (uint32_t cid = 0; cid < 32 * (queue->cid_words_mask + 1); cid++)
		nvmepeer_store32(&queue->owners[cid], 0);
	nvmepeer_store32(&state->credits, nvmepeer_most_in_flight(queue));
	nvmepeer_store32(&state->abandoned, 0);
	nvmepeer_store32(&state->protocol_errors, 0);
	nvmepeer_store32(&state->generation, generation);
	nvmepeer_store32(&state->bell, 0);
	nvmepeer_store32(&state->bell_rung, ticket);
	nvmepeer_store32(&state->head, ticket & NVMEPEER_HEAD_MASK);
	nvmepeer_store32(&state->head_rung, ticket & NVMEPEER_HEAD_MASK);
	nvmepeer_store32(&state->lost, 0);
	nvmepeer_store64(&state->tail, (uint64_t)ticket << NVMEPEER_TICKET_SHIFT);
	nvmepeer_fence_device();
}

/**
 * nvmepeer_queue_reset - initialise the shared state of a new queue pair
 * @queue: handle of a queue pair that nobody has used yet
 *
 * Runs on the device, by one thread.  The caller orders it before the first
 * use by other threads (a kernel boundary does).  Cid 0xffff stays unused
 * (base specification 4.2.3: it marks no particular command in error logs).
 */
NVMEPEER_FN void nvmepeer_queue_reset(const struct nvmepeer_queue *queue)
{
	nvmepeer_state_begin(queue, 0, queue->generation);
}

/**
 * nvmepeer_queue_rearm - use a queue pair again after a reset
 * @queue: handle of a queue pair whose calls all returned NVMEPEER_E_LOST and
 *	which the kernel has created again, its completion ring zero
 * @generation: the new one; all copies of the handle stay good
 *
 * Tickets go on from where they were, so that no token from before names a
 * command from after.
 */
NVMEPEER_FN void nvmepeer_queue_rearm(const struct nvmepeer_queue *queue, uint32_t generation)
{
	uint32_t rounds = 2 * (queue->cq_mask + 1);
	uint64_t tail = nvmepeer_load64(&queue->state->tail);
	uint32_t ticket = (uint32_t)(tail >> NVMEPEER_TICKET_SHIFT) + rounds - 1;

	nvmepeer_state_begin(queue, ticket & ~(rounds - 1), generation);
}

/* Was the queue pair found lost? */
NVMEPEER_FN bool nvmepeer_known_lost(const struct nvmepeer_queue *queue)
{
	return nvmepeer_load32(&queue->state->lost) & NVMEPEER_LOST;
}

/*
 * The queue pair is lost.  Bit NVMEPEER_TAIL_LOST is set once, by who was
 * first, as an addition: every later addition to the tail sees it.
 */
NVMEPEER_FN void nvmepeer_mark_lost(const struct nvmepeer_queue *queue)
{
	if (!(nvmepeer_or32(&queue->state->lost, NVMEPEER_LOST) & NVMEPEER_LOST))
		nvmepeer_add64(&queue->state->tail, NVMEPEER_TAIL_LOST);
}

/* nvmepeer_queue_init - open and reset in one, for one thread on the device. */
NVMEPEER_FN int nvmepeer_queue_init(struct nvmepeer_queue *queue,
				    const struct nvmepeer_geometry *geometry)
{
	int status = nvmepeer_queue_open(queue, geometry);

	if (!status)
		nvmepeer_queue_reset(queue);
	return status;
}

#endif /* NVMEPEER_DEVICE_QUEUE_H */
