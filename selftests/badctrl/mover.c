// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moves of data by a GPU, see mover_ring.h.
 *
 * From the look at the memory map until the move is in the ring, the thread holds the lock of the
 * ring, so that an unmap, which takes all of these locks, waits for each move to that memory. A
 * thread that holds one must not wait for the serving thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "mover.h"

/* Less than QEMU's limit for a reply, 5 s. */
#define LOST_NS		3000000000ULL

uint64_t bad_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool bad_mover_open(struct bad *ctrl, int folder)
{
	int fd = folder < 0 ? -1 : openat(folder, BADCTRL_SHARED_MOVER, O_RDWR | O_CLOEXEC);
	unsigned int i;
	void *shared;

	for (i = 0; i < MOVER_RINGS; i++)
		pthread_mutex_init(&ctrl->mover_locks[i], NULL);
	if (fd < 0)
		return true;
	shared = mmap(NULL, sizeof(*ctrl->mover), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return false;
	ctrl->mover = shared;
	/* A poller has a ring of its own. */
	errno = EINVAL;
	return ctrl->poller_count <= MOVER_RINGS;
}

static bool is_done(const struct mover_ring *ring, uint32_t move)
{
	uint32_t done = __atomic_load_n(&ring->done[move % MOVER_MOVES], __ATOMIC_ACQUIRE);

	return (int32_t)(done - (move + 1)) >= 0;
}

static bool wait_for(const struct mover_ring *ring, uint32_t move)
{
	uint64_t until = bad_now_ns() + LOST_NS;
	unsigned int looks;

	for (looks = 1; !is_done(ring, move); looks++) {
		if (looks % 64 == 0)
			sched_yield();
		if (looks % 1024 == 0 && bad_now_ns() > until)
			return false;
	}
	return true;
}

/* Store the pending move, in pieces; returns 0 or a status. */
static uint16_t store(struct bad *ctrl, struct bad_moves *moves)
{
	struct mover_ring *ring = &ctrl->mover->rings[moves->ring];
	struct mover_move move = moves->next;
	uint32_t left = move.bytes;

	while (left) {
		move.bytes = left < MOVER_MOST ? left : MOVER_MOST;
		/* Also true before the first one. */
		if (!wait_for(ring, ring->tail - MOVER_MOVES))
			return NVME_STATUS_DNR | NVME_SC_DATA_TRANSFER;
		ring->moves[ring->tail % MOVER_MOVES] = move;
		__atomic_store_n(&ring->tail, ring->tail + 1, __ATOMIC_RELEASE);
		moves->last++;
		move.disk += move.bytes;
		move.window += move.bytes;
		left -= move.bytes;
		atomic_fetch_add(&ctrl->mover_words[BADCTRL_MOVER_MOVES / 4], 1);
	}
	return 0;
}

/* The lock is held while a move is pending. */
static void begin(struct bad *ctrl, struct bad_moves *moves)
{
	if (moves->pending)
		return;
	pthread_mutex_lock(&ctrl->mover_locks[moves->ring]);
	if (moves->first == moves->last)
		moves->first = moves->last = ctrl->mover->rings[moves->ring].tail;
}

static bool continues(const struct bad_moves *moves, const struct mover_move *move)
{
	return moves->pending && moves->next.to_disk == move->to_disk &&
	       moves->next.disk + moves->next.bytes == move->disk &&
	       moves->next.window + moves->next.bytes == move->window;
}

static uint16_t add(struct bad *ctrl, struct bad_moves *moves, const struct mover_move *move)
{
	uint16_t status = 0;

	if (continues(moves, move)) {
		moves->next.bytes += move->bytes;
		return BAD_PENDING;
	}
	if (moves->pending)
		status = store(ctrl, moves);
	moves->next = *move;
	moves->pending = true;
	return status ? status : BAD_PENDING;
}

uint16_t bad_moves_add(struct bad *ctrl, struct bad_moves *moves, uint64_t address,
		       const uint8_t *data, size_t length, bool to_host)
{
	struct mover_move move = {
		.disk = (uint64_t)(data - ctrl->disk),
		.bytes = (uint32_t)length,
		.to_disk = !to_host,
	};
	uint16_t status = 0, ended = 0;
	struct vfu_place place;

	if (!ctrl->mover)
		return 0;
	if (moves)
		begin(ctrl, moves);
	if (!vfu_locate(ctrl->vfu, address, length, to_host, &place) && place.neighbour &&
	    place.offset >= ctrl->mover->window) {
		move.window = place.offset;
		status = !moves || length % 4 || move.disk + length > ctrl->mover->disk_bytes ?
			 NVME_STATUS_DNR | NVME_SC_DATA_TRANSFER : add(ctrl, moves, &move);
	}
	if (moves && !moves->pending)
		pthread_mutex_unlock(&ctrl->mover_locks[moves->ring]);
	else if (moves && status != BAD_PENDING)
		ended = bad_moves_end(ctrl, moves);
	return status ? status : ended;
}

uint16_t bad_moves_end(struct bad *ctrl, struct bad_moves *moves)
{
	uint16_t status;

	if (!moves || !moves->pending)
		return 0;
	status = store(ctrl, moves);
	moves->pending = false;
	pthread_mutex_unlock(&ctrl->mover_locks[moves->ring]);
	return status;
}

bool bad_moves_done(const struct bad *ctrl, struct bad_moves *moves)
{
	while (moves->first != moves->last) {
		if (!is_done(&ctrl->mover->rings[moves->ring], moves->first))
			return false;
		moves->first++;
	}
	return true;
}

uint16_t bad_moves_wait(const struct bad *ctrl, struct bad_moves *moves)
{
	for (; moves->first != moves->last; moves->first++)
		if (!wait_for(&ctrl->mover->rings[moves->ring], moves->first))
			return NVME_STATUS_DNR | NVME_SC_DATA_TRANSFER;
	return 0;
}

static void settle(const struct mover_ring *ring)
{
	uint32_t move;

	for (move = ring->tail - MOVER_MOVES; move != ring->tail; move++)
		if (!wait_for(ring, move)) {
			fprintf(stderr, "badctrl: the GPU still moves what was taken away\n");
			return;
		}
}

void bad_mover_settle(struct bad *ctrl)
{
	unsigned int i;

	for (i = 0; ctrl->mover && i < MOVER_RINGS; i++) {
		pthread_mutex_lock(&ctrl->mover_locks[i]);
		settle(&ctrl->mover->rings[i]);
		pthread_mutex_unlock(&ctrl->mover_locks[i]);
	}
}

uint32_t bad_mover_sms(const struct bad *ctrl)
{
	uint32_t count = 0;
	unsigned int i, k;

	for (i = 0; ctrl->mover && i < MOVER_RINGS; i++) {
		for (k = 0; k < i && ctrl->mover->rings[k].sm != ctrl->mover->rings[i].sm; k++)
			;
		count += k == i;
	}
	return count;
}
