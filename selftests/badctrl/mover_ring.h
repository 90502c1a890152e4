/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moves between badctrl's disk and GPU memory. The last part of the GPU's memory BAR, from
 * @window on, is only a window: an offset in it is that offset of an allocation of the GPU. For
 * data there badctrl stores moves, and a kernel on the GPU, in the process of softgpu, performs
 * them.
 *
 * softgpu creates the file BADCTRL_SHARED_MOVER with a struct mover_shared before badctrl starts;
 * the data is in the file BADCTRL_SHARED_DISK. A ring has one producer at a time, a thread of badctrl, and
 * one block of the kernel. It is compiled as C and as CUDA.
 */
#ifndef BADCTRL_MOVER_RING_H
#define BADCTRL_MOVER_RING_H

#define MOVER_RINGS	8U	/* blocks of the kernel, one for an SM */
#define MOVER_MOVES	256U
#define MOVER_THREADS	1024U	/* of a block: a warp polls, each of the others moves */
/* Larger ones are divided, as a warp performs a move. */
#define MOVER_MOST	(16U << 10)

/**
 * struct mover_move - one move
 * @disk: offset in the disk
 * @window: offset in the GPU's memory
 * @bytes: a multiple of 4
 * @to_disk: 1: from the GPU's memory to the disk
 * @reserved: 0
 */
struct mover_move {
	uint64_t disk;
	uint64_t window;
	uint32_t bytes;
	uint32_t to_disk;
	uint64_t reserved;
};

/**
 * struct mover_ring - moves of a thread of badctrl
 * @tail: number of stored moves
 * @fetched: number of moves that a block has begun, while no kernel runs
 * @sm: number of the SM that runs the block
 * @done: @done[n % MOVER_MOVES] is n + 1 after the end of move n
 * @moves: move n is @moves[n % MOVER_MOVES]
 */
struct mover_ring {
	uint32_t tail;
	uint32_t aside[15];
	uint32_t fetched;
	uint32_t sm;
	uint32_t aside2[14];
	uint32_t done[MOVER_MOVES];
	struct mover_move moves[MOVER_MOVES];
};

/**
 * struct mover_shared - the shared file
 * @window: first offset of the window in the memory BAR
 * @disk_bytes: bytes at the start of the disk that can be moved; set by badctrl
 * @stop: the kernel ends, to be started again
 */
struct mover_shared {
	uint64_t window;
	uint64_t disk_bytes;
	uint32_t stop;
	uint32_t reserved[11];
	struct mover_ring rings[MOVER_RINGS];
};

#endif /* BADCTRL_MOVER_RING_H */
