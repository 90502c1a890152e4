/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_cuda.h: a CUDA GPU as the peer: queue pairs for its kernels, and
 * access of a controller to memory that a program already has.
 *
 * The library loads libcuda at run time: it is built without the CUDA toolkit
 * and linked without a GPU. It can be used together with the CUDA runtime,
 * since it uses the device's primary context.  It requires NVIDIA's open kernel
 * module and a driver of CUDA 11.7 or newer; kernels must be compiled by CUDA
 * 12.8 or newer.
 *
 * Functions return 0 or a negative errno; nvmepeer_explain() then returns the
 * request, the limit and the fix, for errors of libcuda as for those of the
 * kernel.  Several threads may use an object.
 *
 * Privileges, except for a process that only exports memory
 * (nvmepeer_cuda_dmabuf()): CAP_SYS_RAWIO, because doorbells and DMA addresses
 * give control over the whole controller; and CAP_SYS_ADMIN, because NVIDIA's
 * driver maps registers of other devices for it only, unless the nvidia module
 * was loaded with NVreg_RegistryDwords="PeerMappingOverride=1".
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
 * nvmepeer_cuda_open() - load libcuda and open a GPU
 * @device: CUDA's device number
 * @cuda: receives the GPU; released by nvmepeer_cuda_close()
 *
 * The environment variable NVMEPEER_LIBCUDA selects another library.
 *
 * -ENOENT: no libcuda.  -ENODEV: no such GPU.  -ENOSYS: the library is too old.
 */
int nvmepeer_cuda_open(int device, struct nvmepeer_cuda **cuda);
void nvmepeer_cuda_close(struct nvmepeer_cuda *cuda);

/**
 * nvmepeer_cuda_alloc() - allocate GPU memory, for programs without the CUDA
 * runtime
 * @cuda: GPU
 * @bytes: length, rounded up to 2 MiB
 * @pointer: receives the GPU address; released by nvmepeer_cuda_free()
 *
 * The memory is zeroed.  -ENOMEM: the GPU has not enough free memory.
 */
int nvmepeer_cuda_alloc(struct nvmepeer_cuda *cuda, size_t bytes, void **pointer);
void nvmepeer_cuda_free(struct nvmepeer_cuda *cuda, void *pointer);

/**
 * nvmepeer_cuda_dmabuf() - export GPU memory as a dma-buf, for
 * nvmepeer_buf_import()
 * @cuda: the GPU that the memory belongs to
 * @pointer: as for nvmepeer_cuda_buffer_open(), a multiple of the host's page
 *	size
 * @bytes: a multiple of the host's page size
 * @fd: receives the dma-buf; the caller closes it after the import
 *
 * For I/O that the CPU submits (nvmepeer_prep_buf_rw()): that needs the buffer
 * handle of the import, but no queue pair and none of the privileges above.  After the
 * completion of a read the data may still be on its way to the memory, unless
 * CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING is OWNER or more: otherwise call
 * cuFlushGPUDirectRDMAWrites() before a kernel uses it.
 *
 * -EINVAL: not memory of this GPU, or not whole pages.  -EOPNOTSUPP: the memory
 * cannot be exported.
 */
int nvmepeer_cuda_dmabuf(struct nvmepeer_cuda *cuda, void *pointer, size_t bytes, int *fd);

/** struct nvmepeer_cuda_queues - queue pairs of one controller for one GPU. */
struct nvmepeer_cuda_queues;

/**
 * struct nvmepeer_cuda_queues_options - for nvmepeer_cuda_queues_open_with()
 * @size: sizeof(struct nvmepeer_cuda_queues_options)
 * @layout: NVMEPEER_LAYOUT of the header that the kernels are compiled with
 * @count: number of queue pairs
 * @entries: entries of the submission ring, a power of two
 * @cq_entries: entries of the completion ring; 0: @entries
 * @cids: see struct nvmepeer_geometry; 0: four times @entries
 * @list_bytes: bytes of the PRP list of a CID; 0: enough for a command of maximum
 *	size; NVMEPEER_CUDA_NO_LISTS: no lists, see below
 * @reserve: slots that commands in the background leave free
 *	(NVMEPEER_CONTROL_BACKGROUND); 0: a quarter of the slots
 * @timeout_ns: default timeout of every wait; 0: 10 s
 *
 * PRP lists take @count * @cids * @list_bytes of GPU memory: 256 MiB for 16 queue
 * pairs of 1,024 entries and a controller with transfers of 1 MiB.  Without lists
 * a command transfers at most two controller pages, or any length if the
 * controller supports SGLs and the buffer is one segment of DMA addresses.  A
 * shorter list limits the transfer of a command to (@list_bytes / 8) controller
 * pages.  Calls of a warp or block split their transfers accordingly.
 *
 * Fields that a program does not know are 0.
 */
struct nvmepeer_cuda_queues_options {
	uint32_t size;
	uint32_t layout;
	uint32_t count;
	uint32_t entries;
	uint32_t cq_entries;
	uint32_t cids;
	uint32_t list_bytes;
	uint32_t reserve;
	uint64_t timeout_ns;
};

#define NVMEPEER_CUDA_NO_LISTS 0xffffffffu

/**
 * nvmepeer_cuda_queues_open() - create queue pairs for the kernels of a GPU
 * @ctrl: controller
 * @ns: namespace
 * @cuda: GPU
 * @entries: entries of each ring, a power of two
 * @count: number of queue pairs
 * @queues: receives them; released by nvmepeer_cuda_queues_close() after the
 *	last kernel that uses them and before @ctrl and @cuda
 *
 * Rings, PRP lists and shared state are in GPU memory, like the data, so that a
 * completion never overtakes its data; any other placement is refused.
 *
 * -EPROTO: the library has another layout of the device queue than this header.
 * -EINVAL: @count is 0, or @entries is no power of two from 2 to 32768.
 * -EPERM: missing privileges, see above; those of NVIDIA's driver are checked
 * before anything is created.  -EOPNOTSUPP: the GPU does not guarantee that a
 * kernel sees writes to GPU memory in order
 * (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING), its memory cannot be
 * exported as a dma-buf, it cannot map registers of other devices, or @ns has
 * metadata.  -EFAULT, -EIO: the driver cannot map the doorbells, the status or
 * the control page, or cannot copy to the GPU's memory.  -ENOMEM: not enough
 * memory, of the host or of the GPU.  Or an error of nvmepeer_info(),
 * nvmepeer_buf_import(), nvmepeer_qp_create() or nvmepeer_qp_map().
 */
int nvmepeer_cuda_queues_open(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
			      struct nvmepeer_cuda *cuda, uint32_t entries, uint32_t count,
			      struct nvmepeer_cuda_queues **queues);

/**
 * nvmepeer_cuda_queues_open_with() - nvmepeer_cuda_queues_open() with options
 * @ctrl: controller
 * @ns: namespace
 * @cuda: GPU
 * @options: options
 * @queues: receives the queue pairs
 *
 * -EPROTO: the library has another layout of the device queue than the kernels:
 * install one version of header and library.  -E2BIG: @options uses a field that
 * the library does not support.  -EINVAL: a number is invalid.  Otherwise as
 * nvmepeer_cuda_queues_open().
 */
int nvmepeer_cuda_queues_open_with(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
				   struct nvmepeer_cuda *cuda,
				   const struct nvmepeer_cuda_queues_options *options,
				   struct nvmepeer_cuda_queues **queues);

/*
 * nvmepeer_cuda_queues_open() of programs that are compiled with this header
 * passes its layout; the function of that name is for programs that find it by
 * name only, whose kernels call nvmepeer_check().
 */
static inline int nvmepeer_cuda_queues_open_checked(struct nvmepeer *ctrl,
						    const struct nvmepeer_ns_info *ns,
						    struct nvmepeer_cuda *cuda, uint32_t entries,
						    uint32_t count,
						    struct nvmepeer_cuda_queues **queues)
{
	struct nvmepeer_cuda_queues_options options;
	int error;

	options.size = sizeof(options);
	options.layout = NVMEPEER_LAYOUT;
	options.count = count;
	options.entries = entries;
	options.cq_entries = 0;
	options.cids = 0;
	options.list_bytes = 0;
	options.reserve = 0;
	options.timeout_ns = 0;
	error = nvmepeer_cuda_queues_open_with(ctrl, ns, cuda, &options, queues);
	return error;
}

#define nvmepeer_cuda_queues_open nvmepeer_cuda_queues_open_checked

/**
 * nvmepeer_cuda_layout() - NVMEPEER_LAYOUT of the library
 *
 * For programs that are compiled without the header, such as those of Python: their
 * kernels call nvmepeer_check(), or compare it with the NVMEPEER_LAYOUT of theirs.
 */
uint32_t nvmepeer_cuda_layout(void);

/**
 * enum nvmepeer_cuda_role - what a descriptor of a queue pair is
 * @NVMEPEER_CUDA_SQ: submission ring
 * @NVMEPEER_CUDA_CQ: completion ring
 * @NVMEPEER_CUDA_DOORBELL: doorbell registers: NVME_PEER_EXPORT_DOORBELL from the
 *	start of the file
 * @NVMEPEER_CUDA_STATUS: status page
 * @NVMEPEER_CUDA_CONTROL: control page
 * @NVMEPEER_CUDA_LISTS: PRP lists, if the geometry has any
 * @NVMEPEER_CUDA_READBACK: the readback word, if the geometry has the flag
 *	NVMEPEER_CQ_APART_FROM_DATA
 * @NVMEPEER_CUDA_QUEUE_PAIR: queue pair file, for nvmepeer_cuda_queues_rearm() and
 *	nvmepeer_cuda_queues_quiesce(); optional, its offset and bytes are not used
 * @NVMEPEER_CUDA_DOORBELL_MEMORY: in place of NVMEPEER_CUDA_DOORBELL, if the doorbells
 *	are words in memory: in relay mode (NVME_PEER_KIND_MEMORY), or those of an
 *	emulated controller
 */
enum nvmepeer_cuda_role {
	NVMEPEER_CUDA_SQ = 1,
	NVMEPEER_CUDA_CQ = 2,
	NVMEPEER_CUDA_DOORBELL = 3,
	NVMEPEER_CUDA_STATUS = 4,
	NVMEPEER_CUDA_CONTROL = 5,
	NVMEPEER_CUDA_LISTS = 6,
	NVMEPEER_CUDA_READBACK = 7,
	NVMEPEER_CUDA_QUEUE_PAIR = 8,
	NVMEPEER_CUDA_DOORBELL_MEMORY = 9,
};

/* nvmepeer_cuda_file.fd: the part is in GPU memory of this process. */
#define NVMEPEER_CUDA_GPU_MEMORY (-1)

/**
 * struct nvmepeer_cuda_file - a part of a queue pair
 * @fd: a file that mmap() maps: a dma-buf of nvmepeer_qp_export(), memory of a guest.
 *	For rings and PRP lists also NVMEPEER_CUDA_GPU_MEMORY
 * @role: enum nvmepeer_cuda_role
 * @offset: first byte of the part in the file, or its GPU address
 * @bytes: length of the part
 */
struct nvmepeer_cuda_file {
	int32_t fd;
	uint32_t role;
	uint64_t offset;
	uint64_t bytes;
};

/**
 * nvmepeer_cuda_queues_from_fds() - use a queue pair of another process
 * @cuda: GPU
 * @layout: NVMEPEER_LAYOUT of the header that the kernels are compiled with
 * @files: parts of the queue pair, one for each role that the geometry needs; the
 *	caller closes the descriptors, also after success
 * @count: number of @files
 * @geometry: of nvmepeer_geometry_build() with NVMEPEER_VIEW_DESCRIPTORS: it has no
 *	addresses; the doorbells are offsets in their part.  If the PRP lists have
 *	several segments, the caller sets @list_memory.pages to a table in GPU
 *	memory of this process, with an entry for each page, and @list_memory.dma to 0
 * @size: of @geometry
 * @queues: receives one queue pair; released by nvmepeer_cuda_queues_close()
 *
 * For a process that may not open the controller: a broker creates the queue pair
 * and passes what is needed, for example over a UNIX socket.  No node is opened.
 * The doorbells give control over the whole controller, so a broker passes them to
 * processes that it trusts with all of its data; a sealed queue pair in mediated mode gives
 * its windows only.
 *
 * The rings have been zeroed before the queue pair was created and no command was
 * submitted since.  The shared state is in GPU memory of this process.
 *
 * The queue pair ends when the last of its files is closed, here, in the broker or
 * elsewhere: nvmepeer_cuda_queues_close() ends only the use by this process.  Until
 * then the controller may access rings, PRP lists and the data of commands that have
 * not completed: reuse none of that memory before.
 *
 * All checks come before anything is mapped; a failure changes nothing, and keeps GPU
 * memory until nvmepeer_cuda_close() at most.
 * -EPROTO: @layout, or the version of the geometry, is another one.  -E2BIG: the
 * geometry has a field or a flag that the library does not support.  -EINVAL: an unknown
 * or unused role, a misaligned part, an invalid geometry or GPU memory, one with
 * addresses, or the file of another queue pair of the controller: that it is one of
 * this controller cannot be checked.  -EEXIST: a role was passed twice.  -ENODATA: a role is missing.
 * -ENOSPC: a part is too small for the geometry, or ends behind its file.  -EBADF: no
 * open descriptor.  -ENOMEM; -EPERM, -EOPNOTSUPP, -EFAULT and -EIO as
 * nvmepeer_cuda_queues_open(); or an error of mmap() or nvmepeer_qp_from_fd().
 */
int nvmepeer_cuda_queues_from_fds(struct nvmepeer_cuda *cuda, uint32_t layout,
				  const struct nvmepeer_cuda_file *files, uint32_t count,
				  const struct nvmepeer_geometry *geometry, size_t size,
				  struct nvmepeer_cuda_queues **queues);

/**
 * nvmepeer_cuda_queues_close() - destroy queue pairs and free their memory
 * @queues: queue pairs that no kernel uses any more, or NULL
 *
 * The queue pairs end in any case, except one of nvmepeer_cuda_queues_from_fds(), see
 * there, and those whose files a child process has inherited by fork() without exec:
 * they end with the child.  Their memory is freed once the controller cannot access it,
 * by cuMemFree(), which waits for all kernels of the context.
 *
 * -EBUSY: other queue pairs that were created through the same struct nvmepeer, or
 * these in a child process, are active and could access the memory.  @queues then stays open, without queue
 * pairs: call again after the others have ended.
 */
int nvmepeer_cuda_queues_close(struct nvmepeer_cuda_queues *queues);

/**
 * nvmepeer_cuda_queues_host() - the device queues, in host memory
 *
 * For a kernel that takes a device queue by value.  The shared state has been
 * initialised.
 */
const struct nvmepeer_queue *nvmepeer_cuda_queues_host(const struct nvmepeer_cuda_queues *queues);

/**
 * nvmepeer_cuda_queues_device() - the same in GPU memory, for a kernel that
 * takes the array.
 */
const struct nvmepeer_queue *
nvmepeer_cuda_queues_device(const struct nvmepeer_cuda_queues *queues);

/** nvmepeer_cuda_queues_count() - number of queue pairs. */
uint32_t nvmepeer_cuda_queues_count(const struct nvmepeer_cuda_queues *queues);

/**
 * nvmepeer_cuda_queues_rearm() - re-arm queue pairs that were lost
 * @queues: all kernels that used them have returned, and none uses them until
 *	this returns
 * @timeout_ms: how long to wait for the controller
 *
 * Waits until the controller is ready and re-arms each queue pair that is not
 * LIVE, or that kernels cannot use although it is: a timeout on an exclusive
 * queue pair, an exclusive queue pair that was not closed, a request of a kernel
 * or of nvmepeer_cuda_queues_quiesce(), also one that the driver has begun to
 * execute.  Such a queue pair is quiesced first.  Clears both rings and initialises the shared
 * state in GPU memory; other queue pairs are not changed.  All copies of the
 * device queues stay valid; tokens and every struct nvmepeer_exclusive from before
 * become invalid, and the CIDs of the tokens are free.
 *
 * One that cannot come back does not keep the others from it: all are tried,
 * and nvmepeer_cuda_queues_result() returns the result of each.
 *
 * Returns 0 if all are LIVE, else the error of the last one that is not:
 * -ETIMEDOUT; -ESHUTDOWN: it cannot come back; -EIO: the GPU's memory is not
 * accessible; -EOPNOTSUPP: it came as descriptors without that of its file; or an
 * error of nvmepeer_qp_rearm().  May be called again after a
 * failure.  Calls of several threads take turns.
 */
int nvmepeer_cuda_queues_rearm(struct nvmepeer_cuda_queues *queues, int timeout_ms);

/**
 * nvmepeer_cuda_queues_quiesce() - give a queue pair up, from the host
 * @queues: queue pairs; kernels may be using them
 * @index: number of the queue pair
 *
 * For a queue pair whose commands do not complete, or whose CIDs belong to
 * tokens that a kernel has not waited for.  The kernel begins to delete its
 * queues within 100 ms.  All calls on it then return NVMEPEER_E_LOST, and once
 * they have, nvmepeer_cuda_queues_rearm() makes it LIVE again with all CIDs
 * free.  Commands in flight may or may not have been executed, and the
 * controller may access their memory until the re-arm has succeeded.
 *
 * Returns 0, also if the queue pair is not LIVE, or an error of
 * nvmepeer_qp_info().  -EINVAL: there is no such queue pair.  -EOPNOTSUPP: it came
 * as descriptors without that of its file.
 */
int nvmepeer_cuda_queues_quiesce(struct nvmepeer_cuda_queues *queues, uint32_t index);

/**
 * nvmepeer_cuda_queues_result() - result of the last re-arm of one queue pair
 * @queues: queue pairs
 * @index: number of the queue pair
 *
 * Kernels must not use a queue pair whose result is not 0.
 *
 * Returns 0 or an error of nvmepeer_cuda_queues_rearm(); 0 before the first
 * re-arm.  -EINVAL: there is no such queue pair.
 */
int nvmepeer_cuda_queues_result(struct nvmepeer_cuda_queues *queues, uint32_t index);

/**
 * nvmepeer_cuda_queues_qp() - the queue pair of one device queue
 * @queues: queue pairs
 * @index: number of the queue pair
 *
 * For its events: nvmepeer_qp_fd() can be polled, and nvmepeer_qp_events() reports
 * losses and readiness.  It belongs to @queues.  NULL if there is none, or
 * it came as descriptors without that of its file.
 */
struct nvmepeer_qp *nvmepeer_cuda_queues_qp(const struct nvmepeer_cuda_queues *queues, uint32_t index);

/** struct nvmepeer_cuda_buffer - GPU memory as the data of one controller. */
struct nvmepeer_cuda_buffer;

/**
 * nvmepeer_cuda_buffer_open() - give a controller access to memory of the
 * caller
 * @ctrl: controller
 * @cuda: the GPU that the memory belongs to
 * @pointer: GPU address: from cudaMalloc(), of CUDA's virtual memory management
 *	(allocated with gpuDirectRDMACapable), or of a framework's tensor; a
 *	multiple of 4 bytes, and of the controller page if the memory has more
 *	than one segment of DMA addresses
 * @bytes: length
 * @buffer: receives the buffer; released by nvmepeer_cuda_buffer_close() after
 *	the queue pairs of @ctrl, before the memory is freed and before @ctrl and
 *	@cuda
 *
 * The buffer is the physical memory that the address has now.  To unmap it or to map
 * other memory there, as allocators with a sleep mode do, counts as freeing it: the
 * controller would access the former memory, without an error.
 *
 * The controller can then access all pages (of the host's page size) that the
 * memory touches, including parts of them that belong to other allocations.
 *
 * Data must be in the memory of the GPU whose queue pairs transfer it: a completion
 * in one GPU may overtake data in another.
 *
 * -EINVAL: not memory of this GPU, or misaligned.  -EOPNOTSUPP: the memory
 * cannot be exported as a dma-buf.
 */
int nvmepeer_cuda_buffer_open(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, void *pointer,
			      size_t bytes, struct nvmepeer_cuda_buffer **buffer);

/**
 * nvmepeer_cuda_buffer_from_addresses() - memory that another process gives a controller access to
 * @cuda: the GPU that the memory belongs to
 * @pointer: its GPU address, a multiple of 4
 * @bytes: length
 * @page_size: page of the controller, nvmepeer_geometry: 1 << page_shift
 * @addresses: DMA addresses, from nvmepeer_buf_table(): of each page from @pointer on, which
 *	then starts a page; or one, if the memory is contiguous
 * @count: number of @addresses
 * @buffer: receives the buffer; released by nvmepeer_cuda_buffer_close()
 *
 * For a process without a node, as nvmepeer_cuda_queues_from_fds(): it sends
 * nvmepeer_cuda_dmabuf() of the memory to a broker, which imports it and sends the addresses
 * back.  They are not verified: the controller transfers to wherever they are.  The memory
 * is not freed before the broker has released its import.
 *
 * -EINVAL: a range, a page or a number of addresses that is invalid.  -ENOMEM, -EIO.
 */
int nvmepeer_cuda_buffer_from_addresses(struct nvmepeer_cuda *cuda, void *pointer, size_t bytes,
					uint32_t page_size, const uint64_t *addresses, uint32_t count,
					struct nvmepeer_cuda_buffer **buffer);

/**
 * nvmepeer_cuda_buffer_close() - end a controller's access to memory
 * @buffer: buffer that no command uses any more, or NULL
 *
 * -EBUSY: a queue pair that was created through the same struct nvmepeer is
 * active and could access the memory.  @buffer then stays open and the memory
 * must not be freed: close the queue pairs first, then call again.  Frees GPU memory
 * by cuMemFree(), which waits for all kernels of the context.
 */
int nvmepeer_cuda_buffer_close(struct nvmepeer_cuda_buffer *buffer);

/**
 * nvmepeer_cuda_buffer_host() - for device code; its first byte is the caller's
 * first.
 */
const struct nvmepeer_buffer *nvmepeer_cuda_buffer_host(const struct nvmepeer_cuda_buffer *buffer);

/** nvmepeer_cuda_buffer_device() - the same in GPU memory. */
const struct nvmepeer_buffer *
nvmepeer_cuda_buffer_device(const struct nvmepeer_cuda_buffer *buffer);

/** struct nvmepeer_cuda_set - queue pairs of several controllers as one. */
struct nvmepeer_cuda_set;

/**
 * nvmepeer_cuda_set_open() - combine several controllers into one set
 * @cuda: GPU of all of them
 * @queues: queue pairs of each controller; the same number on each
 * @buffers: the same memory, opened for each controller; closed after the set
 * @controllers: number of controllers
 * @stripe_shift: log2 of the logical blocks of a stripe
 * @flags: NVMEPEER_SET_HASH or 0
 * @set: receives it; released by nvmepeer_cuda_set_close() before @queues
 *
 * Its members are NULL: all blocks of each namespace belong to the set.
 * nvmepeer_cuda_set_close() frees GPU memory by cuMemFree(), which waits for all
 * kernels of the context.
 *
 * -EINVAL: the controllers cannot form a set, @stripe_shift is above 63, or a flag
 * is unknown.
 */
int nvmepeer_cuda_set_open(struct nvmepeer_cuda *cuda,
			   struct nvmepeer_cuda_queues *const *queues,
			   struct nvmepeer_cuda_buffer *const *buffers, uint32_t controllers,
			   uint32_t stripe_shift, uint32_t flags, struct nvmepeer_cuda_set **set);
void nvmepeer_cuda_set_close(struct nvmepeer_cuda_set *set);

/** nvmepeer_cuda_set_host() - for device code, by value. */
const struct nvmepeer_set *nvmepeer_cuda_set_host(const struct nvmepeer_cuda_set *set);

/** struct nvmepeer_cuda_lists - queue pairs and data memories of lists on streams. */
struct nvmepeer_cuda_lists;

/* Scratch memories: as many lists with padding can run at the same time. */
#define NVMEPEER_CUDA_LIST_SCRATCHES 4u

/**
 * nvmepeer_cuda_lists_open() - prepare lists on streams
 * @queues: queue pairs
 * @buffers: data memories of the same controller and GPU; items name them by number
 * @count: number of data memories
 * @lists: receives the object; released by nvmepeer_cuda_lists_close() after
 *	@queues and before @buffers
 *
 * Loads the kernel nvmepeer/nvmepeer_list.fatbin beside the library, or the file
 * that the environment variable NVMEPEER_LIST_KERNEL names, and allocates scratch
 * memory in the GPU: 2,050 controller pages.  A loss and a re-arm of @queues change
 * nothing of it.
 *
 * Loading a kernel waits for all kernels of the GPU: call before a persistent kernel
 * starts.
 *
 * -EINVAL: no buffer, or one of another controller or GPU.  -ENOENT: no kernel.
 * -EIO: the GPU cannot execute it.  Or an error of nvmepeer_cuda_buffer_open().
 */
int nvmepeer_cuda_lists_open(struct nvmepeer_cuda_queues *queues,
			     struct nvmepeer_cuda_buffer *const *buffers, uint32_t count,
			     struct nvmepeer_cuda_lists **lists);

/** nvmepeer_cuda_lists_scratch_bytes() - scratch memory that lists of these queue pairs need. */
uint64_t nvmepeer_cuda_lists_scratch_bytes(const struct nvmepeer_cuda_queues *queues);

/**
 * nvmepeer_cuda_lists_open_with() - nvmepeer_cuda_lists_open() with scratch memory of the caller
 * @queues: queue pairs
 * @buffers: data memories
 * @count: number of data memories
 * @scratch: at least nvmepeer_cuda_lists_scratch_bytes() bytes from the start of a
 *	controller page on; stays the caller's.  NULL: allocated
 * @lists: receives the object
 *
 * For a queue pair of nvmepeer_cuda_queues_from_fds(), whose process has no node of the
 * controller: the buffers and the scratch memory are those of
 * nvmepeer_cuda_buffer_from_addresses().
 *
 * -EINVAL: also a scratch memory that is too short or of another controller.  -EOPNOTSUPP:
 * the queue pair came as descriptors, and @scratch is NULL.
 */
int nvmepeer_cuda_lists_open_with(struct nvmepeer_cuda_queues *queues,
				  struct nvmepeer_cuda_buffer *const *buffers, uint32_t count,
				  struct nvmepeer_cuda_buffer *scratch,
				  struct nvmepeer_cuda_lists **lists);

/**
 * nvmepeer_cuda_lists_close() - release what nvmepeer_cuda_lists_open() has made
 * @lists: lists of which none is on a stream or in a graph any more, or NULL
 *
 * -EBUSY: as nvmepeer_cuda_buffer_close(): close the queue pairs first, then call
 * again.
 */
int nvmepeer_cuda_lists_close(struct nvmepeer_cuda_lists *lists);

/**
 * struct nvmepeer_cuda_list - a list on a stream
 * @size: sizeof(struct nvmepeer_cuda_list)
 * @count: number of items or pages
 * @items: the items, with their statuses; or NULL
 * @tensors: otherwise the tensors of @pages
 * @pages: the pages
 * @statuses: a status for each piece of @pages, or NULL; NULL with @items
 * @count_at: if there are fewer than @count, where their number is; or NULL
 * @done: reports the end: incremented behind the data and the statuses; or NULL.
 *	The host may poll it without a call of CUDA, and a stream wait for it by
 *	cuStreamWaitValue32().  Lists with the same @done must follow each other
 * @tensor_count: number of @tensors
 * @control: lower half of NVMEPEER_CONTROL_*
 * @scratch: number of the scratch memory, below NVMEPEER_CUDA_LIST_SCRATCHES: lists
 *	that may run at the same time and have padding have different ones
 * @control_high: upper half of NVMEPEER_CONTROL_*: directive and hints
 *
 * All pointers are addresses that the GPU can access: GPU memory, or host memory
 * from cuMemHostAlloc() or registered with CUDA.  What they point to is read when
 * the stream comes to the list, so that earlier work of the stream may write it, and
 * stays until the list has ended.  The structure itself is read during the call.
 */
struct nvmepeer_cuda_list {
	uint32_t size;
	uint32_t count;
	struct nvmepeer_list_item *items;
	const struct nvmepeer_list_tensor *tensors;
	const struct nvmepeer_list_page *pages;
	int *statuses;
	const uint32_t *count_at;
	struct nvmepeer_list_done *done;
	uint32_t tensor_count;
	uint32_t control;
	uint32_t scratch;
	uint32_t control_high;
};

/**
 * nvmepeer_cuda_read_list() - read a list of blocks into memory, on a stream
 * @lists: queue pairs and data memories
 * @list: the list
 * @stream: CUstream or cudaStream_t of the GPU's primary context
 *
 * Adds one kernel of one block to the stream and returns; of an empty list, which
 * needs no arrays, only @done is written.  Later work of the stream sees the data.
 * Any number of lists may be in flight.  During a capture the list becomes a node of
 * the graph, which may be launched any number of times, also after a loss and
 * nvmepeer_cuda_queues_rearm().
 *
 * The list's statuses are those of nvmepeer_list_transfer().  After a timeout or a loss
 * the controller may still write to the data memory and the scratch memory.  So after a
 * timeout the queue pair refuses items with padding, with NVMEPEER_E_BUSY, until the
 * commands have ended: quiesce it, then re-arm it.
 *
 * -EINVAL: the list is invalid, or an array is not aligned to its type.  -E2BIG: it
 * uses a field that the library does not support.  -ESHUTDOWN: a close of the queue
 * pairs has failed; after one that succeeded only nvmepeer_cuda_lists_close() may be
 * called.  -EIO: CUDA refuses the launch.
 */
int nvmepeer_cuda_read_list(struct nvmepeer_cuda_lists *lists, const struct nvmepeer_cuda_list *list,
			    void *stream);

/**
 * nvmepeer_cuda_write_list() - write a list of blocks from memory, on a stream
 *
 * Otherwise like nvmepeer_cuda_read_list().
 */
int nvmepeer_cuda_write_list(struct nvmepeer_cuda_lists *lists,
			     const struct nvmepeer_cuda_list *list, void *stream);

/* ---- Page tables --------------------------------------------------------- */

/** struct nvmepeer_cuda_pages - page tables of a cache in GPU memory. */
struct nvmepeer_cuda_pages;

/**
 * struct nvmepeer_cuda_pages_options - page tables of <nvmepeer_device/pages.h>
 * @size: sizeof(struct nvmepeer_cuda_pages_options)
 * @tables: number of tables, such as one for each sequence and layer
 * @pages: pages of each table
 * @slots: slots of each table; those of table t are the blocks t * @slots and up of the
 *	cache
 * @blocks: logical blocks of a page, which one command transfers
 * @most: wanted pages of a table in a step, at most
 * @lba: logical block of place 0
 */
struct nvmepeer_cuda_pages_options {
	uint32_t size;
	uint32_t tables;
	uint32_t pages;
	uint32_t slots;
	uint32_t blocks;
	uint32_t most;
	uint64_t lba;
};

/**
 * nvmepeer_cuda_pages_open() - page tables, and the kernel that resolves and reads pages
 * @queues: queue pairs, which the tables use by turns
 * @cache: memory for the pages, of the same controller and GPU
 * @options: the tables
 * @places: for each page of each table its place on the disk: it begins at the logical
 *	block @options.lba + place * @options.blocks; read during the call
 * @pages: receives the tables, of which no page is resident; released by
 *	nvmepeer_cuda_pages_close() after @queues and before @cache
 *
 * Loads the kernel as nvmepeer_cuda_lists_open() does, and allocates memory of the GPU.
 * A page of a cache that does not start at a controller page may need one address more
 * than a command has: then its reads end with NVMEPEER_E_NO_LIST or _E_TOO_LARGE.
 *
 * -EINVAL: a number is 0 or too large, a page is longer than a command, the cache is too
 * small or of another controller or GPU, or @options.size is that of another version.
 * -ESHUTDOWN: a close of the queue pairs has failed.  -ENOMEM.  Or an error of
 * nvmepeer_cuda_lists_open().
 */
int nvmepeer_cuda_pages_open(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_buffer *cache,
			     const struct nvmepeer_cuda_pages_options *options, const uint32_t *places,
			     struct nvmepeer_cuda_pages **pages);

/**
 * nvmepeer_cuda_pages_close() - release what nvmepeer_cuda_pages_open() has made
 * @pages: tables of which no step is on a stream or in a graph any more, or NULL
 *
 * Not before the queue pairs are closed: after a timeout or a loss the controller may still
 * write to the cache, which new tables would not know.
 *
 * Call it when no persistent kernel runs that waits for this thread: it frees GPU memory
 * by cuMemFree(), which waits for all kernels of the context.
 */
void nvmepeer_cuda_pages_close(struct nvmepeer_cuda_pages *pages);

/**
 * nvmepeer_cuda_pages_device() - GPU address of the tables, for kernels of the caller
 *
 * nvmepeer_cuda_reclaim_pages() looks at the queue pairs of the open only: where a kernel
 * reads pages by others, call nvmepeer_block_pages_reclaim() in a kernel instead.
 */
struct nvmepeer_pages *nvmepeer_cuda_pages_device(const struct nvmepeer_cuda_pages *pages);

/**
 * struct nvmepeer_cuda_step - pages that are wanted, of all tables
 * @size: sizeof(struct nvmepeer_cuda_step)
 * @count: wanted pages of each table
 * @wanted: for each table @count numbers of pages
 * @blocks: out: for each the block of the cache that has it, or NVMEPEER_PAGE_NONE
 * @statuses: out: for each its status; or NULL
 * @worst: out: for each table the worst status; or NULL
 *
 * All pointers are addresses that the GPU can access, of arrays that do not overlap.
 * @wanted is read when the stream comes to the step, so that earlier work of the stream
 * may write it, and stays unchanged until the step has ended: it is read several times.
 */
struct nvmepeer_cuda_step {
	uint32_t size;
	uint32_t count;
	const uint32_t *wanted;
	uint32_t *blocks;
	int *statuses;
	int *worst;
};

/**
 * nvmepeer_cuda_read_pages() - resolve wanted pages and read the missing ones, on a stream
 * @pages: the tables
 * @step: the wanted pages
 * @stream: CUstream or cudaStream_t of the GPU's primary context
 *
 * Adds one kernel to the stream, with a block for each table, and returns; may be captured
 * into a graph.  Statuses are those of nvmepeer_block_pages_read().  Steps of the same
 * tables follow each other.
 *
 * -EINVAL: the step is invalid, or its arrays overlap.  -ESHUTDOWN: a close of the queue
 * pairs has failed; after one that succeeded only nvmepeer_cuda_pages_close() may be
 * called.  -EIO: CUDA refuses the launch.
 */
int nvmepeer_cuda_read_pages(struct nvmepeer_cuda_pages *pages, const struct nvmepeer_cuda_step *step,
			     void *stream);

/**
 * nvmepeer_cuda_reclaim_pages() - use slots again whose reads did not complete, on a stream
 *
 * After a loss, once the queue pairs have been re-armed; after a timeout quiesce them,
 * then re-arm them: a re-arm of a queue pair that is in order changes nothing.  While one of
 * the queue pairs is lost, or has a command in flight that timed out, the slots stay out of
 * use: call again later.  A reclaim is a step: it and the other steps of the same tables
 * follow each other.  After NVMEPEER_E_TOKEN in a kernel of the caller no token may be in use
 * any more, see nvmepeer_block_pages_reclaim().  Errors as of nvmepeer_cuda_read_pages().
 */
int nvmepeer_cuda_reclaim_pages(struct nvmepeer_cuda_pages *pages, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* NVMEPEER_CUDA_H */
