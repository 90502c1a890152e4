/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A queue pair whose peer is the software GPU: rings in GPU memory or host memory, data
 * in GPU memory, doorbells and status page imported by its driver. In mediated mode all rings
 * are in host memory.
 */
#ifndef GPU_QP_H
#define GPU_QP_H

#include <nvmepeer_serve.h>
#include <softgpu_drv.h>
#include <softgpu_programs.h>

#include "nptest.h"

/* np_gpu_qp_open() flags */
#define NP_GPU_HOST_SQ		(1U << 0)	/* submission ring in host memory, else in HBM */
#define NP_GPU_STATIC_DOORBELL	(1U << 1)	/* the GPU's driver imports statically */
#define NP_GPU_HOST_CQ		(1U << 2)	/* completion ring in host memory */
#define NP_GPU_WINDOW		(1U << 3)	/* data in the window of GPU memory */
#define NP_GPU_SGL		(1U << 4)	/* SGLs, if the controller supports them */
#define NP_GPU_HOST_RINGS	(NP_GPU_HOST_SQ | NP_GPU_HOST_CQ)

/**
 * struct np_gpu_memory - GPU memory that the controller can access
 * @fd: dma-buf
 * @address: GPU address
 * @size: bytes
 * @bytes: the CPU's mapping of it
 * @handle: buffer handle
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
 * struct np_gpu_qp - a queue pair of the software GPU
 * @gpu: open /dev/softgpu0; closing it frees its handles and jobs
 * @qp_fd: queue pair file
 * @create: result of the creation
 * @tenant: in mediated mode its window
 * @memory: rings, bookkeeping and data
 * @window: data in place of that in @memory; the CPU has no mapping of it
 * @cq: the CPU's mapping of the completion ring
 * @cq_bytes: its size
 * @ring_maps: host rings
 * @doorbell_fd: dma-buf
 * @doorbell_address: GPU address of the tail doorbell
 * @doorbell_handle: import handle in the GPU's driver
 * @status: the status page, mapped
 * @request: the control page, mapped
 * @io: parameters of block programs, complete except for the range
 */
struct np_gpu_qp {
	int gpu;
	int qp_fd;
	struct nvme_peer_qp_create create;
	struct np_tenant tenant;
	struct np_gpu_memory memory;
	struct np_gpu_memory window;
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

/* Why @ctrl cannot have a software GPU as a peer, or NULL. */
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

/* Does a real GPU run the jobs? The software GPU has no meaningful timing. */
bool np_gpu_is_real(void);

/*
 * A job on several queue pairs, each with an equal share of its threads; it belongs to
 * qps[0].gpu.
 * @more: GPU memory of np_gpu_more_bytes() bytes, mapped, not used by another job.
 */
uint64_t np_gpu_more_bytes(unsigned int pairs);
int np_gpu_start_many(struct np_gpu_qp *qps, unsigned int pairs, uint32_t program,
		      uint32_t threads, const struct np_gpu_memory *more);
/* GPU memory that is not imported to the controller. */
int np_gpu_memory_open(struct np_gpu_memory *memory, int gpu, uint64_t size);
/* Memory in the window, imported to the controller; the CPU has no mapping of it. */
int np_gpu_window_open(struct np_gpu_memory *memory, int gpu, int ctrl_fd, uint64_t size);
void np_gpu_memory_close(struct np_gpu_memory *memory);

/* Initialises a queue pair so that it may be closed without having been opened. */
void np_gpu_qp_clear(struct np_gpu_qp *qp);
/* Creates the queue pair on @ctrl and initialises its state on the GPU. */
int np_gpu_qp_open(struct np_gpu_qp *qp, const struct np_ctrl *ctrl, uint32_t entries,
		   uint32_t flags);
/*
 * The same for a queue pair of @entries that this process serves, on a namespace of @ctrl.
 * @staging: dma-buf of @data, the memory that was added to @serve; CUDA only
 */
int np_gpu_qp_open_served(struct np_gpu_qp *qp, const struct np_ctrl *ctrl, uint32_t entries,
			  struct nvmepeer_serve *serve, const struct nvmepeer_ns_info *ns,
			  int staging, const struct nvmepeer_buffer *data);
/*
 * After a loss, when no program uses the queue pair: clears the completion ring in GPU
 * memory and re-arms in the driver and on the GPU.
 */
int np_gpu_qp_rearm(struct np_gpu_qp *qp, int timeout_ms);
/* Replaces the doorbells' dma-buf and import by new ones. */
int np_gpu_qp_import_doorbell(struct np_gpu_qp *qp);
/* Closes queue pair and GPU; the controller's import stays until its node is closed. */
void np_gpu_qp_close(struct np_gpu_qp *qp);
/* Parameters for @count bytes of disk at @disk, @bytes per command. */
void np_gpu_range(struct np_gpu_qp *qp, uint64_t disk, uint64_t count, uint32_t bytes,
		  uint64_t seed);

/* Write or check the GPU's pattern by the CPU: -EBADMSG if it differs. */
int np_gpu_pattern_write(int disk_fd, uint64_t disk, uint64_t length, uint64_t seed);
int np_gpu_pattern_check(int disk_fd, uint64_t disk, uint64_t length, uint64_t seed);

#endif /* GPU_QP_H */
