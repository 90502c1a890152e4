/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * internal.h: shared by the source files of the CUDA glue: libcuda, and
 * failures.
 */
#ifndef NVMEPEER_CUDA_INTERNAL_H
#define NVMEPEER_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include <nvmepeer_cuda.h>

/**
 * struct nvmepeer_cuda_queues - queue pairs of one controller for one GPU
 * @queues: @count device queues, in host memory
 * @device: the same in GPU memory
 * @count: number of queue pairs
 * @ctrl: controller, owned by the caller; NULL if they came as descriptors
 * @cuda: GPU, owned by the caller
 * @parts: resources of each queue pair
 * @memory: GPU address of rings, PRP lists, shared state and device queues; of the
 *	latter two only if the queue pairs came as descriptors
 * @bytes: of that memory
 * @handle: its buffer handle
 * @closed: a close ended the queue pairs, but could not free @memory
 * @lock: held by a re-arm; guards what it changes in @parts
 *
 * Constant after open, except for what a re-arm changes in @parts.
 */
struct nvmepeer_cuda_queues {
	struct nvmepeer_queue *queues;
	const struct nvmepeer_queue *device;
	uint32_t count;
	struct nvmepeer *ctrl;
	struct nvmepeer_cuda *cuda;
	struct nvmepeer_cuda_part *parts;
	uint64_t memory;
	uint64_t bytes;
	uint32_t handle;
	bool closed;
	pthread_mutex_t lock;
};

/**
 * struct nvmepeer_cuda_buffer - GPU memory as the data of one controller
 * @buffer: for device code
 * @device: the same in GPU memory
 * @ctrl: controller, owned by the caller; NULL if another process has imported the memory
 * @cuda: GPU, owned by the caller
 * @memory: GPU address of the glue's own memory: the table of DMA addresses and
 *	@device
 * @bytes: of that memory
 * @address: GPU address of the caller's memory
 * @handle: buffer handle of the caller's memory
 * @page: bytes of memory for each DMA address that another process has sent; 0: it
 *	sent one, or none
 */
struct nvmepeer_cuda_buffer {
	struct nvmepeer_buffer buffer;
	const struct nvmepeer_buffer *device;
	struct nvmepeer *ctrl;
	struct nvmepeer_cuda *cuda;
	uint64_t memory;
	uint64_t bytes;
	uint64_t address;
	uint32_t handle;
	uint32_t page;
};

/**
 * struct nvmepeer_cuda_lists - what lists on streams have in common
 * @cuda: the GPU, owned by the caller
 * @queues: queue pairs, owned by the caller; closed before the lists are
 * @count: number of data memories
 * @module: CUmodule of the kernel
 * @kernel: CUfunction
 * @memories: GPU address of the data memories and, behind them, @scratch_buffer, as
 *	struct nvmepeer_memory
 * @scratch: GPU address of the scratch memory; 0: it is the caller's
 * @scratch_bytes: of that memory
 * @scratch_buffer: the same as data memory
 *
 * Constant after open.
 */
struct nvmepeer_cuda_lists {
	struct nvmepeer_cuda *cuda;
	struct nvmepeer_cuda_queues *queues;
	uint32_t count;
	void *module;
	void *kernel;
	uint64_t memories;
	uint64_t scratch;
	uint64_t scratch_bytes;
	struct nvmepeer_cuda_buffer *scratch_buffer;
};

/**
 * cuda_fail() - record a failure for nvmepeer_explain()
 * @call: the public function
 * @error: negative errno
 * @what: what was refused
 * @help: the fix, or ""
 * @limit: the limit, a format as for printf()
 *
 * Returns @error.
 */
int cuda_fail(const char *call, int error, const char *what, const char *help,
	      const char *limit, ...) __attribute__((format(printf, 5, 6)));

/**
 * cuda_check_buffers() - 0, or -EINVAL: none, or of another controller or GPU than the queue pairs
 * @call: the public function
 */
int cuda_check_buffers(const char *call, const struct nvmepeer_cuda_queues *queues,
		       struct nvmepeer_cuda_buffer *const *buffers, uint32_t count);

/** queues_check_open() - 0, or -ESHUTDOWN after a close that was refused */
int queues_check_open(const struct nvmepeer_cuda_queues *queues, const char *call);

/** enum cuda_memory - kind of the pages for cuda_register() */
enum cuda_memory {
	CUDA_MEMORY_READ_ONLY,	/* RAM mapped read-only: the status page */
	CUDA_MEMORY_READ_WRITE,	/* RAM mapped for reading and writing: the control page */
	CUDA_MEMORY_REGISTERS,	/* doorbell pages of a BAR, mapped for reading and writing */
};

/* Granularity of GPU memory that can be exported as a dma-buf by itself. */
enum { CUDA_ALLOCATION_UNIT = 2 << 20 };

/* Roles of descriptors; NVMEPEER_CUDA_DOORBELL_MEMORY has the place of the doorbells. */
enum { CUDA_ROLES = NVMEPEER_CUDA_QUEUE_PAIR + 1 };

/**
 * struct cuda_mapping - a part of a queue pair, mapped into this process
 * @base: start of the mapping, or NULL
 * @bytes: of the mapping
 * @address: the part
 * @registered: with the GPU
 */
struct cuda_mapping {
	void *base;
	size_t bytes;
	void *address;
	bool registered;
};

/**
 * cuda_take_geometry() - copy the geometry of another process after checking its version
 * @layout: NVMEPEER_LAYOUT of the kernels
 * @size: of @geometry
 */
int cuda_take_geometry(uint32_t layout, const struct nvmepeer_geometry *geometry, size_t size,
		       struct nvmepeer_geometry *taken);

/**
 * cuda_check_files() - check the parts of a queue pair against its geometry
 * @files: the parts
 * @count: number of @files
 * @geometry: doorbells as offsets, no other addresses but @state
 *
 * Changes nothing.
 */
int cuda_check_files(struct nvmepeer_cuda *cuda, const struct nvmepeer_cuda_file *files,
		     uint32_t count, const struct nvmepeer_geometry *geometry);

/**
 * cuda_map_files() - map the parts of a queue pair and register them
 * @files: the parts, checked
 * @count: number of @files
 * @mappings: zeroed; released by cuda_unmap_files() also after an error
 * @geometry: in: as it was checked; out: complete
 */
int cuda_map_files(struct nvmepeer_cuda *cuda, const struct nvmepeer_cuda_file *files,
		   uint32_t count, struct cuda_mapping mappings[CUDA_ROLES],
		   struct nvmepeer_geometry *geometry);
void cuda_unmap_files(struct nvmepeer_cuda *cuda, struct cuda_mapping mappings[CUDA_ROLES]);

/** cuda_check_memory() - 0 if the range is memory of this GPU, else -EINVAL. */
int cuda_check_memory(struct nvmepeer_cuda *cuda, uint64_t address, uint64_t bytes);

/** cuda_number() - CUDA's device number of the GPU. */
int cuda_number(const struct nvmepeer_cuda *cuda);

/** cuda_alloc() - zeroed GPU memory. -ENOMEM, -EIO. */
int cuda_alloc(struct nvmepeer_cuda *cuda, size_t bytes, uint64_t *address);
void cuda_free(struct nvmepeer_cuda *cuda, uint64_t address);

/**
 * cuda_keep() - give up memory without waiting for kernels, as cuda_free() does
 *
 * It serves a later cuda_alloc() of half its size or more, and is freed with the
 * GPU.
 */
void cuda_keep(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes);

/**
 * cuda_export() - GPU memory as a dma-buf
 * @address: multiple of the host's page size
 * @bytes: multiple of the host's page size
 * @fd: receives the dma-buf, which the caller closes
 *
 * -EOPNOTSUPP: such memory cannot be exported.  -EINVAL: not memory of this
 * GPU.
 */
int cuda_export(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes, int *fd);

/**
 * cuda_import() - import GPU memory into a controller
 * @handle: receives the buffer handle
 * @segments: receives the number of segments of DMA addresses
 *
 * Errors as of cuda_export() and nvmepeer_buf_import().
 */
int cuda_import(struct nvmepeer_cuda *cuda, struct nvmepeer *ctrl, uint64_t address,
		size_t bytes, uint32_t *handle, uint32_t *segments);

/**
 * cuda_release() - end the import of a buffer
 * @handle: buffer handle, or 0; set to 0 on success
 *
 * After an error, -EBUSY above all, the controller may still access the memory:
 * it must not be freed.
 */
int cuda_release(struct nvmepeer *ctrl, uint32_t *handle);

/**
 * cuda_register() - map host or BAR pages into the GPU. -EPERM, -EFAULT,
 * -EOPNOTSUPP.
 */
int cuda_register(struct nvmepeer_cuda *cuda, enum cuda_memory memory, void *start, size_t bytes,
		  uint64_t *address);
void cuda_unregister(struct nvmepeer_cuda *cuda, void *start);

/** cuda_upload() - copy @bytes to GPU memory and wait. -EIO. */
int cuda_upload(struct nvmepeer_cuda *cuda, uint64_t address, const void *from, size_t bytes);

/** cuda_download() - copy @bytes from GPU memory and wait. -EIO. */
int cuda_download(struct nvmepeer_cuda *cuda, void *to, uint64_t address, size_t bytes);

/** cuda_clear() - zero GPU memory and wait. -EIO. */
int cuda_clear(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes);

/**
 * cuda_load() - load a kernel of the library. -ENOENT, -EIO.
 * @module: receives the module, for cuda_unload()
 * @kernel: receives the kernel
 */
int cuda_load(struct nvmepeer_cuda *cuda, const char *call, const char *name, void **module,
	      void **kernel);
void cuda_unload(struct nvmepeer_cuda *cuda, void *module);

/**
 * cuda_launch() - launch blocks of a kernel on a stream of the caller. -EIO.
 * @call: the public function
 *
 * Takes part in a capture of the stream.
 */
int cuda_launch(struct nvmepeer_cuda *cuda, const char *call, void *kernel, unsigned int blocks,
		unsigned int threads, void *stream, void **arguments);

/**
 * cuda_keeps_order() - 0 if kernels see the controller's writes in order, else
 * -EOPNOTSUPP.
 */
int cuda_keeps_order(struct nvmepeer_cuda *cuda);

/**
 * cuda_may_register() - 0 if the process may register BAR pages, else -EPERM.
 */
int cuda_may_register(void);

/**
 * cuda_describe() - describe imported memory for commands
 * @offset: multiple of the controller page
 * @bytes: length
 * @table: GPU memory of cuda_table_bytes() bytes, used if the memory is more
 *	than one segment
 * @buffer: receives the description
 *
 * -ENOMEM, -ERANGE, -EIO, and the errors of nvmepeer_buf_table().
 */
int cuda_describe(struct nvmepeer_cuda *cuda, struct nvmepeer *ctrl, uint32_t handle,
		  uint64_t offset, uint64_t bytes, uint64_t table, struct nvmepeer_buffer *buffer);

/**
 * cuda_shorten_table() - shorten a table in place
 * @addresses: of @count controller pages of @page bytes
 * @dma: receives nvmepeer_buffer.dma
 *
 * An entry is for as many pages as the segments allow, see struct nvmepeer_buffer.
 * Returns the number of entries.
 */
uint32_t cuda_shorten_table(uint64_t *addresses, uint32_t count, uint32_t page, uint64_t *dma);

/*
 * Bytes of the table of DMA addresses of @bytes bytes, one entry for each
 * controller page.
 */
static inline uint64_t cuda_table_bytes(uint64_t bytes, uint32_t page_size)
{
	return 8 * ((bytes + page_size - 1) / page_size);
}

static inline uint64_t cuda_round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

#endif /* NVMEPEER_CUDA_INTERNAL_H */
