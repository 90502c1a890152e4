/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* internal.h: what the rooms of the CUDA glue share: libcuda, and failures. */
#ifndef NVMEPEER_CUDA_INTERNAL_H
#define NVMEPEER_CUDA_INTERNAL_H

#include <nvmepeer_cuda.h>

/**
 * struct nvmepeer_cuda_queues - queue pairs of one controller for one GPU
 * @queues: @count handles, here
 * @device: the same handles in GPU memory
 * @count: how many
 * @ctrl: controller, the caller's
 * @cuda: GPU, the caller's
 * @parts: what each queue pair holds
 * @memory: GPU address of rings, lists, book-keeping and handles
 * @handle: of that memory
 *
 * Stays as it was opened, but for what re-arming changes in @parts.
 */
struct nvmepeer_cuda_queues {
	struct nvmepeer_queue *queues;
	const struct nvmepeer_queue *device;
	uint32_t count;
	struct nvmepeer *ctrl;
	struct nvmepeer_cuda *cuda;
	struct nvmepeer_cuda_part *parts;
	uint64_t memory;
	uint32_t handle;
};

/**
 * struct nvmepeer_cuda_buffer - GPU memory as the data of one controller
 * @buffer: for device code
 * @device: the same in GPU memory
 * @ctrl: controller, the caller's
 * @cuda: GPU, the caller's
 * @memory: GPU address of the glue's own part: the table of addresses and @device
 * @handle: of the caller's memory
 */
struct nvmepeer_cuda_buffer {
	struct nvmepeer_buffer buffer;
	const struct nvmepeer_buffer *device;
	struct nvmepeer *ctrl;
	struct nvmepeer_cuda *cuda;
	uint64_t memory;
	uint32_t handle;
};

/**
 * cuda_fail() - note a failure for nvmepeer_explain()
 * @call: the public function
 * @error: negative errno
 * @what: what was refused
 * @help: what would help, or ""
 * @limit: what refused it, as printf() takes it
 *
 * Returns @error.
 */
int cuda_fail(const char *call, int error, const char *what, const char *help,
	      const char *limit, ...) __attribute__((format(printf, 5, 6)));

/** enum cuda_memory - what cuda_register() is given */
enum cuda_memory {
	CUDA_MEMORY_READ_ONLY,	/* ordinary pages mapped for reading: the status page */
	CUDA_MEMORY_READ_WRITE,	/* and for writing, too: the request page */
	CUDA_MEMORY_REGISTERS,	/* doorbell pages of a BAR, mapped for reading and writing */
};

/* Memory of the GPU in a unit that may become a dma-buf by itself. */
enum { CUDA_ALLOCATION_UNIT = 2 << 20 };

/** cuda_alloc() - zeroed GPU memory. -ENOMEM, -EIO. */
int cuda_alloc(struct nvmepeer_cuda *cuda, size_t bytes, uint64_t *address);
void cuda_free(struct nvmepeer_cuda *cuda, uint64_t address);

/**
 * cuda_export() - GPU memory as a dma-buf
 * @address: multiple of the host's page size
 * @bytes: likewise
 * @fd: receives the dma-buf, to be closed by the caller
 *
 * -EOPNOTSUPP: no dma-bufs of such memory.  -EINVAL: not memory of this GPU.
 */
int cuda_export(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes, int *fd);

/**
 * cuda_import() - GPU memory as a buffer of a controller
 * @handle: receives the controller's handle
 *
 * As cuda_export(), and what nvmepeer_buf_import() returns.
 */
int cuda_import(struct nvmepeer_cuda *cuda, struct nvmepeer *ctrl, uint64_t address,
		size_t bytes, uint32_t *handle);

/** cuda_register() - let the GPU reach mapped pages. -EPERM, -EFAULT, -EOPNOTSUPP. */
int cuda_register(struct nvmepeer_cuda *cuda, enum cuda_memory memory, void *start, size_t bytes,
		  uint64_t *address);
void cuda_unregister(struct nvmepeer_cuda *cuda, void *start);

/** cuda_upload() - copy @bytes to GPU memory and wait. -EIO. */
int cuda_upload(struct nvmepeer_cuda *cuda, uint64_t address, const void *from, size_t bytes);

/** cuda_download() - copy @bytes from GPU memory and wait. -EIO. */
int cuda_download(struct nvmepeer_cuda *cuda, void *to, uint64_t address, size_t bytes);

/** cuda_clear() - zero GPU memory, before any copy that is asked for later. -EIO. */
int cuda_clear(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes);

/** cuda_keeps_order() - 0 if kernels see the controller's writes in order; -EOPNOTSUPP. */
int cuda_keeps_order(struct nvmepeer_cuda *cuda);

/** cuda_may_register() - 0 if the driver can be asked for registers; -EPERM. */
int cuda_may_register(void);

/**
 * cuda_describe() - imported memory as commands name it
 * @offset: multiple of the controller page
 * @bytes: how many
 * @table: GPU memory for cuda_table_bytes() bytes, used if the memory is not one
 *	range of DMA addresses
 * @buffer: receives it
 *
 * -ENOMEM, -ERANGE, -EIO, and what nvmepeer_buf_table() returns.
 */
int cuda_describe(struct nvmepeer_cuda *cuda, struct nvmepeer *ctrl, uint32_t handle,
		  uint64_t offset, uint64_t bytes, uint64_t table, struct nvmepeer_buffer *buffer);

/* Bytes of a table of the DMA addresses of memory, controller page by page. */
static inline uint64_t cuda_table_bytes(uint64_t bytes, uint32_t page_size)
{
	return 8 * ((bytes + page_size - 1) / page_size);
}

static inline uint64_t cuda_round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

#endif /* NVMEPEER_CUDA_INTERNAL_H */
