/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lists_host.h: a thread of the host that reads lists by the C11 build of the device library, as a
 * program without a library on the GPU does. For lists.cu.
 */
#ifndef SELFTESTS_CUDA_LISTS_HOST_H
#define SELFTESTS_CUDA_LISTS_HOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nvmepeer_list;
struct nvmepeer_queue;
struct lists_host;

/*
 * Start a thread on its own processor. When @words[0] changes it reads @list, whose items are
 * distributed over the @count queue pairs, and stores the same number in @words[1]. @cids: of a queue
 * pair.
 */
struct lists_host *lists_host_start(const struct nvmepeer_queue *queues, uint32_t count, uint32_t cids,
				    const struct nvmepeer_list *list, volatile uint32_t *words);

/* Initialise the state of the queue pairs, which is in memory of the host. */
void lists_host_reset(const struct nvmepeer_queue *queues, uint32_t count);

/* Returns the worst status of all lists. */
int lists_host_stop(struct lists_host *host);

#ifdef __cplusplus
}
#endif

#endif /* SELFTESTS_CUDA_LISTS_HOST_H */
