/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_cuda.h: a CUDA GPU as the peer: queue pairs for its kernels, and the
 * memory that a program already has as their data.
 *
 * Loads libcuda at run time, so that nothing here needs the CUDA toolkit to be
 * built or a GPU to be linked.  Works beside the CUDA runtime: it uses the
 * device's primary context.  NVIDIA's driver must know CUDA 11.7 or newer and
 * be the open kernel module; kernels are compiled by CUDA 12.8 or newer.
 *
 * Functions return 0 or a negative errno; nvmepeer_explain() then says what was
 * refused, which limit refused it and what would help, for libcuda's refusals
 * as for the kernel's.  A handle may be used from several threads.
 *
 * What a process needs, unless it only lends memory (nvmepeer_cuda_dmabuf()):
 * CAP_SYS_RAWIO, because doorbells and DMA addresses are power over the whole controller; and CAP_SYS_ADMIN, because NVIDIA's driver
 * maps registers of other devices for nobody else, unless the nvidia module was
 * loaded with NVreg_RegistryDwords="PeerMappingOverride=1".
 */
#ifndef NVMEPEER_CUDA_H
#define NVMEPEER_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include <nvmepeer.h>
#include <nvmepeer_peer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** struct nvmepeer_cuda - one GPU. */
struct nvmepeer_cuda;

/**
 * nvmepeer_cuda_open() - load libcuda and take a GPU
 * @device: CUDA's number of the GPU
 * @cuda: receives it; undo with nvmepeer_cuda_close()
 *
 * NVMEPEER_LIBCUDA in the environment names another library to load.
 *
 * -ENOENT: no libcuda.  -ENODEV: no such GPU.  -ENOSYS: the library is too old.
 */
int nvmepeer_cuda_open(int device, struct nvmepeer_cuda **cuda);
void nvmepeer_cuda_close(struct nvmepeer_cuda *cuda);

/**
 * nvmepeer_cuda_alloc() - memory of a GPU, for who has no CUDA runtime
 * @cuda: GPU
 * @bytes: how many, rounded up to 2 MiB
 * @pointer: receives its GPU address; undo with nvmepeer_cuda_free()
 *
 * It is zero.  -ENOMEM: the GPU has not so much.
 */
int nvmepeer_cuda_alloc(struct nvmepeer_cuda *cuda, size_t bytes, void **pointer);
void nvmepeer_cuda_free(struct nvmepeer_cuda *cuda, void *pointer);

/**
 * nvmepeer_cuda_dmabuf() - GPU memory as a dma-buf, for nvmepeer_buf_import()
 * @cuda: the GPU whose memory it is
 * @pointer: as nvmepeer_cuda_buffer_open(), a multiple of the host's page size
 * @bytes: likewise
 * @fd: receives the dma-buf, to be closed when it was imported
 *
 * For reads and writes that the CPU starts (nvmepeer_prep_buf_rw()): those need the handle
 * of the import, no queue pair, and none of the rights above.
 *
 * -EINVAL: not memory of this GPU, or not of whole pages.  -EOPNOTSUPP: it cannot become
 * a dma-buf.
 */
int nvmepeer_cuda_dmabuf(struct nvmepeer_cuda *cuda, void *pointer, size_t bytes, int *fd);

/** struct nvmepeer_cuda_queues - queue pairs of one controller for one GPU. */
struct nvmepeer_cuda_queues;

/**
 * nvmepeer_cuda_queues_open() - queue pairs for a GPU, ready for its kernels
 * @ctrl: controller
 * @ns: namespace
 * @cuda: GPU
 * @entries: of each ring, a power of two
 * @count: how many queue pairs
 * @queues: receives them; undo with nvmepeer_cuda_queues_close() when no kernel
 *	uses them any more, before @ctrl and @cuda close
 *
 * Rings, PRP lists and book-keeping lie in GPU memory, beside the data, so that
 * a completion never overtakes its data; any other placement is refused.
 *
 * -EPERM: see above; found out before anything is made.  -EOPNOTSUPP: this GPU
 * does not promise that a kernel sees what was written to its memory in the
 * order it was written (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING),
 * or its memory cannot become a dma-buf.
 */
int nvmepeer_cuda_queues_open(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
			      struct nvmepeer_cuda *cuda, uint32_t entries, uint32_t count,
			      struct nvmepeer_cuda_queues **queues);
void nvmepeer_cuda_queues_close(struct nvmepeer_cuda_queues *queues);

/**
 * nvmepeer_cuda_queues_host() - the handles, here
 *
 * For a kernel that takes one by value.  nvmepeer_queue_reset() has been done.
 */
const struct nvmepeer_queue *nvmepeer_cuda_queues_host(const struct nvmepeer_cuda_queues *queues);

/** nvmepeer_cuda_queues_device() - the same in GPU memory, for a kernel that takes the array. */
const struct nvmepeer_queue *
nvmepeer_cuda_queues_device(const struct nvmepeer_cuda_queues *queues);

/** nvmepeer_cuda_queues_count() - how many. */
uint32_t nvmepeer_cuda_queues_count(const struct nvmepeer_cuda_queues *queues);

/**
 * nvmepeer_cuda_queues_rearm() - go on after queue pairs were lost
 * @queues: no kernel uses them before this returns, and all that did have returned
 * @timeout_ms: how long to wait for the controller
 *
 * Waits until the controller is ready, and re-arms each queue pair that was lost, with
 * its completion ring and book-keeping in GPU memory; others are left as they are.  All
 * copies of the handles stay good; tokens from before name nothing.
 *
 * Returns 0 if all are LIVE; -ETIMEDOUT; -ESHUTDOWN: one cannot come back; -EIO: the
 * GPU's memory cannot be reached; or what nvmepeer_qp_rearm() says.  May be called
 * again after a failure.
 */
int nvmepeer_cuda_queues_rearm(struct nvmepeer_cuda_queues *queues, int timeout_ms);

/** struct nvmepeer_cuda_buffer - GPU memory as the data of one controller. */
struct nvmepeer_cuda_buffer;

/**
 * nvmepeer_cuda_buffer_open() - let a controller reach memory that the caller has
 * @ctrl: controller
 * @cuda: the GPU whose memory it is
 * @pointer: GPU address: from cudaMalloc(), of CUDA's virtual memory management
 *	(allocated with gpuDirectRDMACapable), or of a framework's tensor; a
 *	multiple of 4 bytes, and of the controller page if the memory is not one
 *	range of DMA addresses
 * @bytes: how many
 * @buffer: receives it; undo with nvmepeer_cuda_buffer_close() before the
 *	memory is freed and before @ctrl and @cuda close
 *
 * The controller can then reach all of the pages (of the host's page size) that
 * the memory touches, whoever owns the rest of them.
 *
 * -EINVAL: not memory of this GPU, or misaligned.  -EOPNOTSUPP: it cannot become
 * a dma-buf.
 */
int nvmepeer_cuda_buffer_open(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, void *pointer,
			      size_t bytes, struct nvmepeer_cuda_buffer **buffer);
void nvmepeer_cuda_buffer_close(struct nvmepeer_cuda_buffer *buffer);

/** nvmepeer_cuda_buffer_host() - for device code; its first byte is the caller's first. */
const struct nvmepeer_buffer *nvmepeer_cuda_buffer_host(const struct nvmepeer_cuda_buffer *buffer);

/** nvmepeer_cuda_buffer_device() - the same in GPU memory. */
const struct nvmepeer_buffer *
nvmepeer_cuda_buffer_device(const struct nvmepeer_cuda_buffer *buffer);

/** struct nvmepeer_cuda_set - queue pairs of several controllers as one. */
struct nvmepeer_cuda_set;

/**
 * nvmepeer_cuda_set_open() - put controllers behind one handle
 * @cuda: GPU of all of them
 * @queues: of each controller; all of one count
 * @buffers: the same memory, opened for each controller
 * @controllers: how many
 * @stripe_shift: log2 of the logical blocks of a stripe
 * @flags: NVMEPEER_SET_HASH or 0
 * @set: receives it; undo with nvmepeer_cuda_set_close() before @queues close
 *
 * -EINVAL: the controllers do not fit together.
 */
int nvmepeer_cuda_set_open(struct nvmepeer_cuda *cuda,
			   struct nvmepeer_cuda_queues *const *queues,
			   struct nvmepeer_cuda_buffer *const *buffers, uint32_t controllers,
			   uint32_t stripe_shift, uint32_t flags, struct nvmepeer_cuda_set **set);
void nvmepeer_cuda_set_close(struct nvmepeer_cuda_set *set);

/** nvmepeer_cuda_set_host() - for device code, by value. */
const struct nvmepeer_set *nvmepeer_cuda_set_host(const struct nvmepeer_cuda_set *set);

#ifdef __cplusplus
}
#endif

#endif /* NVMEPEER_CUDA_H */
