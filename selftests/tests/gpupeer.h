/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A queue pair whose peer is the stand-in GPU: rings in its memory or in the
 * host's, data in its memory, doorbells and status page imported by its driver.
 */
#ifndef GPUPEER_H
#define GPUPEER_H

#include <softgpu_drv.h>
#include <softgpu_programs.h>

#include "nptest.h"

/* np_gpu_qp_open() flags */
#define NP_GPU_HOST_SQ		(1U << 0)	/* submission ring in host memory, else in HBM */
#define NP_GPU_STATIC_DOORBELL	(1U << 1)	/* GPU driver cannot be told to let go */
#define NP_GPU_HOST_CQ		(1U << 2)	/* completion ring likewise */
#define NP_GPU_HOST_RINGS	(NP_GPU_HOST_SQ | NP_GPU_HOST_CQ)

/**
 * struct np_gpu_memory - HBM that the controller reaches
 * @fd: dma-buf
 * @address: GPU address
 * @size: bytes
 * @bytes: the CPU's mapping of it
 * @handle: as imported by the controller
 * @segments: of DMA addresses
 * @table: DMA address of each page
 */
struct np_gpu_memory {
	int fd;
	uint64_t address;
	uint64_t size;
	uint8_t *bytes;
	uint32_t handle;
	uint32_t segments;
	uint64_t *table;
};

/**
 * struct np_gpu_qp - a queue pair of the stand-in GPU
 * @gpu: open /dev/softgpu0; its handles and jobs go when it is closed
 * @qp_fd: queue pair file
 * @create: as created
 * @memory: rings, book-keeping and data
 * @cq: where the CPU sees the completion ring
 * @cq_bytes: of it
 * @ring_maps: host rings
 * @doorbell_fd: dma-buf
 * @doorbell_address: GPU address of the tail doorbell
 * @doorbell_handle: the GPU driver's import
 * @status: the status page, mapped
 * @request: the request page, mapped
 * @io: parameters of programs on blocks, ready but for the range
 */
struct np_gpu_qp {
	int gpu;
	int qp_fd;
	struct nvme_peer_qp_create create;
	struct np_gpu_memory memory;
	uint8_t *cq;
	uint32_t cq_bytes;
	struct np_export ring_maps[2];
	int doorbell_fd;
	uint64_t doorbell_address;
	uint32_t doorbell_handle;
	struct np_export status;
	struct np_export request;
	struct softgpu_io io;
};

/* Why there is no stand-in GPU that could be a peer of @ctrl, or NULL. */
const char *np_gpu_unusable(const struct np_ctrl *ctrl);
int np_gpu_open(void);
int np_gpu_alloc(int gpu, uint64_t size, uint32_t flags, struct softgpu_alloc *alloc);
int np_gpu_import(int gpu, int dmabuf, uint32_t flags, struct softgpu_import *import);
/* Start a program; returns the job or a negative errno. */
int np_gpu_start(int gpu, uint32_t program, uint32_t threads, const void *parameters,
		 size_t length);
int np_gpu_wait(int gpu, int job, uint32_t timeout_ms, struct softgpu_result *result);
int np_gpu_progress(int gpu, int job, struct softgpu_result *result);
int np_gpu_stop(int gpu, int job, uint32_t flags);
int np_gpu_run(int gpu, uint32_t program, uint32_t threads, const void *parameters,
	       size_t length, struct softgpu_result *result);

/* Is it a real one that does the jobs?  What a stand-in is asked for takes no time. */
bool np_gpu_is_real(void);

/*
 * A job on several queue pairs, each with an equal part of its threads; it is qps[0].gpu's.
 * @more: GPU memory for np_gpu_more_bytes(), mapped, not used by another job.
 */
uint64_t np_gpu_more_bytes(unsigned int pairs);
int np_gpu_start_many(struct np_gpu_qp *qps, unsigned int pairs, uint32_t program,
		      uint32_t threads, const struct np_gpu_memory *more);
/* Memory of the GPU that the controller does not know of. */
int np_gpu_memory_open(struct np_gpu_memory *memory, int gpu, uint64_t size);
void np_gpu_memory_close(struct np_gpu_memory *memory);

/* A queue pair that may be closed without having been opened. */
void np_gpu_qp_clear(struct np_gpu_qp *qp);
/* Creates the queue pair on @ctrl and initialises its state on the GPU. */
int np_gpu_qp_open(struct np_gpu_qp *qp, const struct np_ctrl *ctrl, uint32_t entries,
		   uint32_t flags);
/*
 * After a loss, when no program uses the queue pair: clears the completion ring in
 * GPU memory, and has kernel and GPU begin again.
 */
int np_gpu_qp_rearm(struct np_gpu_qp *qp, int timeout_ms);
/* A new dma-buf and a new import of the doorbells, in place of those it has. */
int np_gpu_qp_import_doorbell(struct np_gpu_qp *qp);
/* Queue pair and GPU first; the import in the controller stays until its node is closed. */
void np_gpu_qp_close(struct np_gpu_qp *qp);
/* Parameters for @count bytes of disk at @disk, @bytes per command. */
void np_gpu_range(struct np_gpu_qp *qp, uint64_t disk, uint64_t count, uint32_t bytes,
		  uint64_t seed);

/* The GPU's pattern, written or checked by the CPU: -EBADMSG if it differs. */
int np_gpu_pattern_write(int disk_fd, uint64_t disk, uint64_t length, uint64_t seed);
int np_gpu_pattern_check(int disk_fd, uint64_t disk, uint64_t length, uint64_t seed);

#endif /* GPUPEER_H */
