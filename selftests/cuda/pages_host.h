/* SPDX-License-Identifier: GPL-2.0-only */
/* pages_host.h: host threads that resolve and read pages for kernels of pages.cu. */
#ifndef SELFTESTS_CUDA_PAGES_HOST_H
#define SELFTESTS_CUDA_PAGES_HOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PAGES_TOP = 128, PAGES_SEQUENCES = 64, PAGES_TAG = 24 };

struct nvmepeer_buffer;

/* In pinned memory.  Each word has the number of the ask from bit PAGES_TAG on: no fence orders them. */
struct pages_ask {
	uint32_t wanted[PAGES_TOP];
	uint32_t table;
	uint32_t reserved[15];
};

/* The answer: words with blocks, and with the number of the ask. */
struct pages_answer {
	uint32_t blocks[PAGES_TOP];
};

#ifdef __CUDACC__
__host__ __device__
#endif
static inline uint32_t pages_tag(uint32_t word, uint32_t number)
{
	return (word & ((1u << PAGES_TAG) - 1)) | number << PAGES_TAG;
}

/* Page tables of the host, and its queue pairs. */
struct pages_host {
	struct nvmepeer_pages *tables;
	const struct nvmepeer_queue *queues;
	struct pages_ask *asks;
	struct pages_answer *answers;
	uint32_t queue_count;
	uint32_t sequences;		/* served now */
	uint32_t threads;
	uint32_t wanted;		/* pages of an ask */
	uint32_t stop;
	uint32_t bad;			/* requests that failed */
};

/* Table @table: places from @places on, one for each page; the slots are empty. */
void pages_host_add(struct pages_host *host, uint32_t table, const struct nvmepeer_buffer *cache,
		    const uint32_t *places, uint32_t count, uint32_t slots, uint32_t first,
		    uint32_t blocks);
struct pages_host *pages_host_new(uint32_t tables);
void pages_host_reset_queues(struct pages_host *host);
/* Answers sequences @thread, @thread + threads, ... until host->stop. */
void pages_host_serve(struct pages_host *host, uint32_t thread);
/* Answers the asks of all sequences, by the calling thread, which have number 0. */
void pages_host_read(struct pages_host *host);

#ifdef __cplusplus
}
#endif

#endif /* SELFTESTS_CUDA_PAGES_HOST_H */
