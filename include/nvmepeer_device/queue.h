/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/queue.h: the queue pair: the geometry that the host fills,
 * the device queue that kernels read, and the state that the threads of a queue
 * pair share.
 */
#ifndef NVMEPEER_DEVICE_QUEUE_H
#define NVMEPEER_DEVICE_QUEUE_H

#include "nvme.h"
#include "platform.h"

#define NVMEPEER_GEOMETRY_VERSION 1

/* nvmepeer_geometry.flags */
enum {
	/*
	 * The ring is accessed over a bus: use fewer, wider accesses and longer
	 * pauses.
	 */
	NVMEPEER_SQ_REMOTE = 1u << 0,
	NVMEPEER_CQ_REMOTE = 1u << 1,
	/*
	 * The completion ring and the data are in different memories, so that a
	 * completion entry may overtake the data that it announces.  The peer
	 * reads @readback before it uses the data.  Requires
	 * NVMEPEER_DATA_REMOTE.
	 */
	NVMEPEER_CQ_APART_FROM_DATA = 1u << 2,
	/*
	 * The controller supports SGLs in I/O commands (Identify SGLS bits
	 * 1:0).
	 */
	NVMEPEER_SGL = 1u << 3,
	/*
	 * The peer accesses the data and @readback over a bus.  PCIe ordering
	 * then makes a read of @readback return after earlier data writes of
	 * the controller have arrived.  A peer that reads its own memory
	 * crosses no bus, and its read flushes nothing.
	 */
	NVMEPEER_DATA_REMOTE = 1u << 4,
	/*
	 * With NVMEPEER_SGL: the controller supports bit bucket descriptors
	 * (Identify SGLS bit 16).
	 */
	NVMEPEER_SGL_BIT_BUCKET = 1u << 5,
	/*
	 * With NVMEPEER_SGL: of a data pointer only the first address is used, and a
	 * command's data is one range of addresses: mediated queue pairs.
	 */
	NVMEPEER_ONE_RANGE = 1u << 6,
	/* All of these.  A geometry with others is refused: it may depend on them. */
	NVP_GEOMETRY_FLAGS = (1u << 7) - 1,
};

/**
 * struct nvmepeer_buffer - data memory of commands
 * @length: bytes
 * @dma: DMA address of the first byte in the controller's domain if the memory
 *	is one segment (@pages is 0); with a table what its entries cover
 * @pages: otherwise the address, in the peer's own memory, of a table of DMA addresses
 *	(uint64_t each), of the buffer's controller pages if @dma is 0; the buffer
 *	then starts on a controller page
 *
 * Memory whose segments all end at multiples of 2^n controller pages may have a shorter
 * table.  An entry then is the DMA address of 2^n controller pages; bits 6..2 of @dma are n, and @dma
 * without its bits 11..0 is how many bytes of the table's memory lie before the buffer.
 * An entry has at most 2 GiB.  nvmepeer_cuda_buffer_open() makes such tables.
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
 * @cq: address of the completion ring, which must be zeroed
 * @sq_doorbell: address of the tail doorbell register
 * @cq_doorbell: address of the head doorbell register
 * @status: address of the status page (struct nvme_peer_status), or 0
 * @control: address of the control page (struct nvme_peer_control), or 0
 * @state: address, in the peer's own memory, of nvmepeer_state_bytes() bytes
 *	for the shared state, aligned to 128
 * @list_area: address of memory for PRP lists, @cids lists of @list_bytes each;
 *	0: none, a command may touch at most two controller pages
 * @list_memory: the same memory as the controller sees it
 * @readback: for NVMEPEER_CQ_APART_FROM_DATA: address of a word in data memory
 *	that the peer reads over the bus, so that the read returns after data
 *	that was written earlier; never a word of the peer's own memory.  If some
 *	of the data is beside the completion ring: a word of the other data
 * @timeout_ns: default timeout of every wait; 0 means 10 s
 * @sq_entries: a power of two, 2 to 32768
 * @cq_entries: a power of two, at least @sq_entries, up to 65536
 * @cids: number of commands whose results are kept: at least the number of
 *	outstanding tokens plus the number of threads that submit at the same
 *	time; a power of two from 32 to 65536, at least @sq_entries; 0 means
 *	four times @sq_entries
 * @list_bytes: bytes of one PRP list: a power of two from 8 to the controller
 *	page, or a multiple of the controller page
 * @generation: nvme_peer_qp_info.losses: it changes whenever entries are lost.
 *	nvmepeer_geometry_build() sets one less for a queue pair that is QUIESCED, so
 *	that a queue opened before the re-arm is lost: build the geometry after the
 *	re-arm, or call nvmepeer_queue_rearm() with the losses passed to
 *	NVME_PEER_QP_REARM
 * @qid: queue identifier
 * @nsid: namespace
 * @lba_shift: log2 of the bytes of a logical block
 * @page_shift: log2 of the bytes of a controller page (CC.MPS)
 * @max_transfer: maximum bytes of one command (nvme_peer_info.max_transfer)
 * @metadata_bytes: metadata of a logical block; must be 0, as the library never
 *	sets MPTR
 * @reserve: slots that commands in the background leave free, see
 *	NVMEPEER_CONTROL_BACKGROUND; more than there are: they wait until nothing else is
 *	in flight.  0 means a quarter of the slots, and at least one of two or more
 *
 * All addresses are in the peer's address space; DMA addresses of buffers are
 * in the controller's.  Unused fields are 0.
 */
struct nvmepeer_geometry {
	uint32_t version;
	uint32_t flags;
	uint64_t sq;
	uint64_t cq;
	uint64_t sq_doorbell;
	uint64_t cq_doorbell;
	uint64_t status;
	uint64_t control;
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
	uint32_t reserve;
};

/*
 * struct nvmepeer_state - state that the threads of a queue pair share
 *
 * No lock protects a field.  The rules of each:
 *
 * @tail: three counters and two bits in one word.  Bits 63..32, tickets:
 *	submission slots taken so far; slot = ticket modulo entries.  Bit 31,
 *	NVP_TAIL_LOST: the queue pair is lost and slots are no longer valid.
 *	Bit 30, NVP_TAIL_OFFERED: doorbell ownership is offered (see
 *	@doorbell_offer).  Bits 29..16, unwritten: slots taken whose entry has
 *	not been written yet.  Bits 15..0, waiting: groups that need the
 *	doorbells rung, including the owner.  The group that raises waiting from
 *	0 owns the doorbells.  It rings them for all groups until it has brought
 *	waiting back to 0 or another group has taken its offer.  The other
 *	groups do not wait for it.
 * @credits: commands that may still be submitted.  Never more are in flight
 *	than either ring can hold.  A group takes credits before a slot; the
 *	group that reaps the completion entry returns them.  The value is
 *	negative only while a group returns credits that it took in excess, or,
 *	from NVP_EXCLUSIVE_CREDITS on, while one group owns the queue pair
 *	exclusively.
 * @head: completion entries consumed so far, in bits 30..0.  A group that has
 *	read entries advances it past them by compare-and-exchange, and then
 *	delivers their results.  Bit 31 is set while one group owns the queue
 *	pair exclusively; no other group may advance the head then.
 * @head_rung: last head doorbell; only the doorbell owner or the exclusive
 *	owner of the queue pair accesses it.
 * @doorbell_offer: 1 while the doorbell owner offers ownership; an exchange
 *	with 0 takes it.
 * @tail_rung: last ticket for which the tail doorbell was rung; written by the
 *	doorbell owner.
 * @abandoned: commands that timed out and have not been reclaimed.
 * @lost: bit 0, NVP_LOST: the queue pair was found not LIVE.  The thread that
 *	sets it then sets NVP_TAIL_LOST.  A thread that observes that bit stores
 *	nothing more to the queue pair.  A thread that took slots before may
 *	still store their entries, a doorbell owner past its check may still
 *	ring each doorbell once, and an exclusive owner continues until its next
 *	check of the status page.  Bits 31..1 count polls that found nothing:
 *	calls that never wait have no other counter that says when to check the
 *	status page.
 * @generation: nvme_peer_qp_info.losses when the queue pair became LIVE with the
 *	present entries.
 * @protocol_errors: completion entries with a CID that no command can have.
 * @layout: NVMEPEER_LAYOUT of the code that initialised the state; constant.
 *
 * Four arrays follow the structure.  results: the result of each CID; the group
 * that reaps the completion entry writes it, and the owner of the CID clears it
 * before it submits.  free_cids: a bit for each free CID.  abandoned_cids: a
 * bit for each abandoned CID.  owners: for each CID the token that may wait for
 * it (NVP_OWNED and the ticket), or 0; the submitter writes it, a waiter takes
 * it by compare-and-exchange.
 */
struct nvmepeer_state {
	uint64_t tail;
	uint8_t pad0[120];
	uint32_t credits;
	uint32_t lost;
	uint32_t abandoned;
	uint32_t protocol_errors;
	uint32_t generation;
	uint32_t doorbell_offer;
	uint32_t tail_rung;
	uint32_t layout;
	uint8_t pad1[96];
	uint32_t head;
	uint8_t pad2[60];
	uint32_t head_rung;
	uint8_t pad3[60];
};

/* Byte offsets in the status page, and its state LIVE (linux/nvme_peer.h). */
enum {
	NVP_STATUS_STATE = 8,
	NVP_STATUS_LOSSES = 28,
	NVP_STATE_LIVE = 1,
};

#define NVP_TICKET_SHIFT 32
#define NVP_UNWRITTEN_SHIFT 16
#define NVP_UNWRITTEN_MASK 0x3fffu
#define NVP_WAITING_MASK 0xffffu
#define NVP_TAIL_LOST (1u << 31)
#define NVP_TAIL_OFFERED (1u << 30)

/*
 * Limit of the unwritten counter, which has 14 bits.  The waiting counter has
 * 16; a command in flight adds at most 2 to it: for its publication and for the
 * head doorbell.
 */
#define NVP_MAX_IN_FLIGHT NVP_UNWRITTEN_MASK

/* Word @lost. */
enum {
	NVP_LOST = 1,
	NVP_ONE_POLL = 2,
};

/*
 * Credits of an exclusive queue pair: so low that no return makes them
 * positive.
 */
#define NVP_EXCLUSIVE_CREDITS (-(1 << 30))

/* Word @head: the counter, and the mark of an exclusive queue pair. */
#define NVP_HEAD_MASK 0x7fffffffu
#define NVP_HEAD_EXCLUSIVE (1u << 31)

/*
 * Bit of @owners: the CID has a token; the ticket's lower bits are beside it.
 */
#define NVP_OWNED (1u << 31)

/*
 * A result: status field in bits 15..0, dword 0 of the completion in bits
 * 63..32.
 */
#define NVP_RESULT_DONE ((uint64_t)1 << 16)

/**
 * struct nvmepeer_queue - device queue: a queue pair as kernels use it,
 * read-only after init
 *
 * Plain data: pass it by value, keep it in constant, shared or global memory,
 * copy it to where reads are fastest.  All copies refer to the same queue pair.
 * Callers may read @lba_shift, log2 of the bytes of a logical block, and
 * @timeout_ns, the default timeout.  @layout is NVMEPEER_LAYOUT.  The other
 * fields are internal.
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
	uint64_t control;
	uint64_t readback;
	uint64_t list_area;
	struct nvmepeer_buffer list_memory;
	uint32_t list_bytes;
	uint32_t cq_shift;
	uint32_t generation;
	uint32_t qid;
	uint32_t layout;
	uint32_t reserve;
};

/*
 * Version and sizes of struct nvmepeer_queue and struct nvmepeer_state.  The
 * host library fills structures that kernels compiled with another header would
 * read at other offsets: they would ring doorbells at addresses that are none.
 * Raise the version with every change of either structure that keeps its size, of
 * struct nvmepeer_set, struct nvmepeer_buffer, struct nvmepeer_memory, struct
 * nvmepeer_list, struct nvmepeer_scratch, the parameters of a kernel of the library or
 * what struct nvmepeer_cuda_list points to, and of the meaning of a field or of a
 * status.
 */
#define NVMEPEER_LAYOUT_VERSION 6u
#define NVMEPEER_LAYOUT								\
	(NVMEPEER_LAYOUT_VERSION << 24 | (uint32_t)sizeof(struct nvmepeer_queue) << 12 | \
	 (uint32_t)sizeof(struct nvmepeer_state))

NVP_HOST_FN bool nvp_is_power_of_two(uint32_t value)
{
	return value && !(value & (value - 1));
}

NVP_HOST_FN uint32_t nvmepeer_cids(const struct nvmepeer_geometry *geometry)
{
	uint32_t entries = geometry->sq_entries;

	if (geometry->cids)
		return geometry->cids;
	return entries <= 8 ? 32 : entries > 16384 ? 65536 : 4 * entries;
}

/* Bytes of memory for nvmepeer_geometry.state. */
NVP_HOST_FN uint64_t nvmepeer_state_bytes(const struct nvmepeer_geometry *geometry)
{
	uint64_t cids = nvmepeer_cids(geometry);

	return sizeof(struct nvmepeer_state) + 2 * (cids / 8) + 12 * cids;
}

NVP_HOST_FN int nvp_check_rings(const struct nvmepeer_geometry *geometry)
{
	uint32_t cids = nvmepeer_cids(geometry);

	if (!nvp_is_power_of_two(geometry->sq_entries) ||
	    !nvp_is_power_of_two(geometry->cq_entries) ||
	    geometry->sq_entries < 2 || geometry->sq_entries > 32768 ||
	    geometry->cq_entries < geometry->sq_entries || geometry->cq_entries > 65536)
		return NVMEPEER_E_ENTRIES;
	if (!nvp_is_power_of_two(cids) || cids < 32 || cids > 65536 ||
	    cids < geometry->sq_entries)
		return NVMEPEER_E_CIDS;
	return NVMEPEER_OK;
}

NVP_HOST_FN int nvp_check_addresses(const struct nvmepeer_geometry *geometry)
{
	if (!geometry->sq || geometry->sq % 64 || !geometry->cq || geometry->cq % 16 ||
	    !geometry->sq_doorbell || geometry->sq_doorbell % 4 ||
	    !geometry->cq_doorbell || geometry->cq_doorbell % 4 ||
	    geometry->status % 4 || geometry->control % 8 ||
	    !geometry->state || geometry->state % 128)
		return NVMEPEER_E_ADDRESS;
	return NVMEPEER_OK;
}

/* Can the peer make sure that data has arrived once its completion has? */
NVP_HOST_FN int nvp_check_readback(const struct nvmepeer_geometry *geometry)
{
	if (!(geometry->flags & NVMEPEER_CQ_APART_FROM_DATA))
		return NVMEPEER_OK;
	if (!(geometry->flags & NVMEPEER_DATA_REMOTE))
		return NVMEPEER_E_PLACEMENT;
	if (!geometry->readback || geometry->readback % 4)
		return NVMEPEER_E_ADDRESS;
	return NVMEPEER_OK;
}

NVP_HOST_FN int nvp_check_lists(const struct nvmepeer_geometry *geometry)
{
	uint64_t bytes = geometry->list_bytes;
	uint64_t page = (uint64_t)1 << geometry->page_shift;

	if (!geometry->list_area)
		return NVMEPEER_OK;
	if (bytes < 8 || geometry->list_area % 8 ||
	    (bytes < page ? !nvp_is_power_of_two((uint32_t)bytes) : bytes % page) ||
	    geometry->list_memory.length < bytes * nvmepeer_cids(geometry) ||
	    (!geometry->list_memory.pages && geometry->list_memory.dma % page))
		return NVMEPEER_E_GEOMETRY;
	return NVMEPEER_OK;
}

/* Check everything that needs no memory access. */
NVP_HOST_FN int nvmepeer_geometry_check(const struct nvmepeer_geometry *geometry)
{
	int status;

	if (geometry->version != NVMEPEER_GEOMETRY_VERSION ||
	    geometry->page_shift < 12 || geometry->page_shift > 27 ||
	    geometry->lba_shift < 9 || geometry->lba_shift > 16 ||
	    geometry->max_transfer < (1u << geometry->lba_shift))
		return NVMEPEER_E_GEOMETRY;
	if (geometry->flags & ~(uint32_t)NVP_GEOMETRY_FLAGS)
		return NVMEPEER_E_GEOMETRY;
	if ((geometry->flags & NVMEPEER_ONE_RANGE) && !(geometry->flags & NVMEPEER_SGL))
		return NVMEPEER_E_GEOMETRY;
	if (geometry->metadata_bytes)
		return NVMEPEER_E_METADATA;
	status = nvp_check_rings(geometry);
	if (!status)
		status = nvp_check_addresses(geometry);
	if (!status)
		status = nvp_check_readback(geometry);
	return status ? status : nvp_check_lists(geometry);
}

/*
 * Maximum number of commands in flight: one less than the ring has slots,
 * limited by the unwritten counter.
 */
NVP_HOST_FN uint32_t nvp_max_in_flight(const struct nvmepeer_queue *queue)
{
	return queue->sq_mask < NVP_MAX_IN_FLIGHT ? queue->sq_mask : NVP_MAX_IN_FLIGHT;
}

/* Slots that commands in the background leave free: never all of them. */
NVP_HOST_FN uint32_t nvp_reserve(const struct nvmepeer_queue *queue, uint32_t reserve)
{
	uint32_t slots = nvp_max_in_flight(queue);

	if (!reserve)
		return slots / 4 ? slots / 4 : slots > 1;
	return reserve < slots ? reserve : slots - 1;
}

/**
 * nvmepeer_queue_open - make a device queue from a geometry
 * @queue: filled in
 * @geometry: description of the queue pair
 *
 * Accesses no memory but @queue and may run on the host.
 * nvmepeer_queue_reset() must initialise the shared state once before a copy of
 * @queue is used.  Returns 0 or NVMEPEER_E_ENTRIES, _CIDS, _ADDRESS, _GEOMETRY,
 * _PLACEMENT, _METADATA.
 */
NVP_HOST_FN int nvmepeer_queue_open(struct nvmepeer_queue *queue,
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
	queue->control = geometry->control;
	queue->readback = geometry->readback;
	/* Where data must be one range no command has a list. */
	queue->list_area = geometry->flags & NVMEPEER_ONE_RANGE ? 0 : geometry->list_area;
	queue->list_memory = geometry->list_memory;
	queue->list_bytes = geometry->list_bytes;
	queue->cq_shift = shift;
	queue->generation = geometry->generation;
	queue->qid = geometry->qid;
	queue->layout = NVMEPEER_LAYOUT;
	queue->reserve = nvp_reserve(queue, geometry->reserve);
	return NVMEPEER_OK;
}

/*
 * nvmepeer_queue_check_layout - were queue and state made by code with this
 * layout?  Returns 0 or NVMEPEER_E_LAYOUT.  Not part of the path of commands: a
 * kernel may call it once.
 */
NVP_FN int nvmepeer_queue_check_layout(const struct nvmepeer_queue *queue)
{
	if (queue->layout != NVMEPEER_LAYOUT ||
	    nvp_load32(&queue->state->layout) != NVMEPEER_LAYOUT)
		return NVMEPEER_E_LAYOUT;
	return NVMEPEER_OK;
}

/*
 * Initialise the state of an idle queue pair whose next ticket is @ticket: a
 * multiple of both rings' entries and of two passes of the completion ring, so
 * that the phase tag starts as 1.
 */
NVP_FN void nvp_state_begin(const struct nvmepeer_queue *queue, uint32_t ticket,
			    uint32_t generation)
{
	struct nvmepeer_state *state = queue->state;

	for (uint32_t word = 0; word <= queue->cid_words_mask; word++) {
		nvp_store32(&queue->free_cids[word],
			    word == 2047 ? 0x7fffffffu : 0xffffffffu);
		nvp_store32(&queue->abandoned_cids[word], 0);
	}
	for (uint32_t cid = 0; cid < 32 * (queue->cid_words_mask + 1); cid++)
		nvp_store32(&queue->owners[cid], 0);
	nvp_store32(&state->credits, nvp_max_in_flight(queue));
	nvp_store32(&state->abandoned, 0);
	nvp_store32(&state->protocol_errors, 0);
	nvp_store32(&state->generation, generation);
	nvp_store32(&state->layout, NVMEPEER_LAYOUT);
	nvp_store32(&state->doorbell_offer, 0);
	nvp_store32(&state->tail_rung, ticket);
	nvp_store32(&state->head, ticket & NVP_HEAD_MASK);
	nvp_store32(&state->head_rung, ticket & NVP_HEAD_MASK);
	nvp_store32(&state->lost, 0);
	nvp_store64(&state->tail, (uint64_t)ticket << NVP_TICKET_SHIFT);
	nvp_fence_device();		/* Q */
}

/**
 * nvmepeer_queue_reset - initialise the shared state of a new queue pair
 * @queue: a queue pair that no thread has used yet
 *
 * Called on the device by one thread.  The caller must order it before the
 * first use by other threads; a kernel boundary does.  CID 0xffff is never
 * used: in error logs it means "no particular command" (base specification
 * 4.2.3).  The first ticket differs from one queue pair to the next, so that a token
 * which is passed to the wrong one is refused.
 */
NVP_FN void nvmepeer_queue_reset(const struct nvmepeer_queue *queue)
{
	uint32_t rounds = 2 * (queue->cq_mask + 1);

	nvp_state_begin(queue, queue->qid * rounds, queue->generation);
}

/**
 * nvmepeer_queue_rearm - initialise the shared state after the kernel has
 * re-armed the queue pair
 * @queue: no thread is in a call or holds it exclusively, and the kernel has
 *	re-armed it with a zeroed completion ring
 * @generation: nvme_peer_qp_info.losses; all copies of @queue stay valid, every
 *	struct nvmepeer_exclusive becomes invalid
 *
 * Called by one thread; the caller orders it before the first use by others.
 * Tickets continue from their old value, so that a stale token does not match a
 * new command, within 2^31 commands.
 */
NVP_FN void nvmepeer_queue_rearm(const struct nvmepeer_queue *queue, uint32_t generation)
{
	uint32_t rounds = 2 * (queue->cq_mask + 1);
	uint64_t tail = nvp_load64(&queue->state->tail);
	uint32_t ticket = (uint32_t)(tail >> NVP_TICKET_SHIFT) + rounds - 1;

	nvp_state_begin(queue, ticket & ~(rounds - 1), generation);
}

/*
 * Number of a request to quiesce the queue pair, in nvme_peer_control.seq: that
 * of the loss that follows.  It remains when the kernel has taken the request, so
 * that the owner does not take the queue pair for usable while its queues are
 * being deleted.
 */
NVP_HOST_FN uint32_t nvp_request_number(uint32_t losses)
{
	return losses + 1;
}

/* Has a thread found the queue pair lost? */
NVP_FN bool nvp_known_lost(const struct nvmepeer_queue *queue)
{
	return nvp_load32(&queue->state->lost) & NVP_LOST;
}

/*
 * Mark the queue pair lost.  Only the first caller sets NVP_TAIL_LOST, by an
 * addition, so that every later addition to the tail observes it.
 */
NVP_FN void nvp_mark_lost(const struct nvmepeer_queue *queue)
{
	if (!(nvp_or32(&queue->state->lost, NVP_LOST) & NVP_LOST))
		nvp_add64(&queue->state->tail, NVP_TAIL_LOST);
}

/*
 * nvmepeer_queue_init - nvmepeer_queue_open() and _reset() by one thread on the
 * device.
 */
NVP_FN int nvmepeer_queue_init(struct nvmepeer_queue *queue,
			       const struct nvmepeer_geometry *geometry)
{
	int status = nvmepeer_queue_open(queue, geometry);

	if (!status)
		nvmepeer_queue_reset(queue);
	return status;
}

#endif /* NVMEPEER_DEVICE_QUEUE_H */
