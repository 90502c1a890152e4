/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_cuda.h: a CUDA GPU as the peer of a queue pair.
 *
 * Loads libcuda at run time, so that nothing here needs the CUDA toolkit to be
 * built or a GPU to be linked.  Works beside the CUDA runtime: it uses the
 * device's primary context.
 *
 * Functions return 0 or a negative errno; nvmepeer_cuda_why() then says in one
 * or more sentences what was refused and what would help.  A handle may be used
 * from several threads, but a message belongs to the calling thread.
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

/** nvmepeer_cuda_why() - why the last call of this thread failed; never NULL. */
const char *nvmepeer_cuda_why(void);

/**
 * nvmepeer_cuda_alloc() - GPU memory that may be exported
 * @bytes: rounded up to 2 MiB
 * @address: receives the GPU address
 *
 * The memory is zero.  -ENOMEM.
 */
int nvmepeer_cuda_alloc(struct nvmepeer_cuda *cuda, size_t bytes, uint64_t *address);
void nvmepeer_cuda_free(struct nvmepeer_cuda *cuda, uint64_t address);

/**
 * nvmepeer_cuda_export() - GPU memory as a dma-buf
 * @address: multiple of the host's page size
 * @bytes: likewise
 * @fd: receives the dma-buf, to be closed by the caller
 *
 * -EOPNOTSUPP: this GPU or driver has no dma-bufs.
 */
int nvmepeer_cuda_export(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes, int *fd);

/** enum nvmepeer_cuda_memory - what nvmepeer_cuda_register() is given */
enum nvmepeer_cuda_memory {
	NVMEPEER_CUDA_PAGES,		/* ordinary pages: a ring */
	NVMEPEER_CUDA_READ_ONLY,	/* ordinary pages mapped for reading: the status page */
	NVMEPEER_CUDA_REGISTERS,	/* doorbell pages of a BAR */
};

/**
 * nvmepeer_cuda_register() - let the GPU reach memory of this process
 * @memory: what it is
 * @start: first byte, page aligned
 * @bytes: length, whole pages
 * @address: receives the GPU address
 *
 * Registers need CAP_SYS_ADMIN.  -EPERM, -EOPNOTSUPP, -EFAULT.  There is no
 * silent fall-back.
 */
int nvmepeer_cuda_register(struct nvmepeer_cuda *cuda, enum nvmepeer_cuda_memory memory,
			   void *start, size_t bytes, uint64_t *address);
void nvmepeer_cuda_unregister(struct nvmepeer_cuda *cuda, void *start);

/** nvmepeer_cuda_upload() - copy @bytes to GPU memory and wait. */
int nvmepeer_cuda_upload(struct nvmepeer_cuda *cuda, uint64_t address, const void *from,
			 size_t bytes);

/**
 * struct nvmepeer_cuda_peer - a queue pair whose peer is a GPU
 * @queue: handle for device code; nvmepeer_queue_reset() has been done
 * @data: the data memory, for the same calls
 * @data_address: the data memory as the GPU sees it
 * @qp: the queue pair
 *
 * Rings, book-keeping, PRP lists and data lie in GPU memory.  The rest is the
 * library's.
 */
struct nvmepeer_cuda_peer {
	struct nvmepeer_queue queue;
	struct nvmepeer_buffer data;
	uint64_t data_address;
	struct nvmepeer_qp *qp;

	struct nvmepeer *ctrl;
	struct nvmepeer_cuda *cuda;
	uint64_t memory;
	uint64_t pages;
	uint32_t handle;
	struct nvmepeer_mapping doorbell;
	struct nvmepeer_mapping status;
	int registered;
};

/**
 * nvmepeer_cuda_peer_open() - a queue pair for a GPU, ready for its kernels
 * @ctrl: controller
 * @ns: namespace
 * @cuda: GPU
 * @entries: of each ring, a power of two
 * @data_bytes: data memory
 * @peer: receives it; undo with nvmepeer_cuda_peer_close() when no kernel uses
 *	it any more, before @ctrl and @cuda close
 *
 * Needs CAP_SYS_RAWIO and CAP_SYS_ADMIN.
 */
int nvmepeer_cuda_peer_open(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
			    struct nvmepeer_cuda *cuda, uint32_t entries, size_t data_bytes,
			    struct nvmepeer_cuda_peer *peer);
void nvmepeer_cuda_peer_close(struct nvmepeer_cuda_peer *peer);

#ifdef __cplusplus
}
#endif

#endif /* NVMEPEER_CUDA_H */
