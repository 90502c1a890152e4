// SPDX-License-Identifier: MIT OR GPL-2.0
// read_file.cu: the CPU reads a file from the disk directly into cudaMalloc() memory, with no
// bounce buffer in host memory, and a kernel computes a sum of it.  The CPU computes the same sum
// of what read() returns.  The purpose of GPUDirect Storage, without nvidia-fs.
// nvcc -arch=sm_90 $(pkg-config --cflags --libs libnvmepeer_cuda liburing) read_file.cu
// FIEMAP returns the blocks of the file (file_blocks.h lists what must not change meanwhile), and
// one NVME_PEER_URING_CMD_IO_VEC reads up to 32 ranges of them.
#include <nvmepeer_cuda.h>
#include <nvmepeer_uring.h>

#include "file_blocks.h"

enum {
	PAGE = 65536,		// of the GPU; a multiple of the host's and the controller's page
	BATCH = 16,		// commands in flight
	THREADS = 256,
	MAX_BLOCKS = 1024,	// blocks of a kernel
};

// Destination of the data, and the ranges that have not been submitted.
struct reader {
	nvmepeer *ctrl;
	nvmepeer_ns *ns;
	io_uring ring;
	uint32_t handle;
	uint32_t block, most;	// bytes of a block, maximum blocks of a range
	nvme_peer_io_range lists[BATCH][NVME_PEER_IO_RANGES];
	uint32_t count;		// ranges in the list that is being filled
	uint32_t filled;	// lists submitted so far; index of the current one
	unsigned int commands;
};

static void explain(void)
{
	nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	refuse("%s: %s. %s. %s.", why.call, why.what, why.limit, why.help);
}

static void check(cudaError_t error, const char *what)
{
	if (error != cudaSuccess)
		refuse("%s: %s", what, cudaGetErrorString(error));
}

// ---- Reading

// Waits for all submitted commands.
static void finish(reader *reader)
{
	io_uring_cqe *cqe;
	int result;

	for (; reader->filled; reader->filled--) {
		result = io_uring_submit_and_wait(&reader->ring, 1);
		if (result >= 0)
			result = io_uring_wait_cqe(&reader->ring, &cqe);
		if (result >= 0) {
			result = cqe->res;
			io_uring_cqe_seen(&reader->ring, cqe);
		}
		if (result > 0)
			refuse("a read: NVMe status %#x, %s", result, nvmepeer_status_text(result));
		if (result < 0)
			refuse("a read: %s", strerror(-result));
	}
}

static void send_list(reader *reader)
{
	io_uring_sqe *entry = io_uring_get_sqe(&reader->ring);

	if (!entry)
		refuse("io_uring: the ring is full");
	nvmepeer_prep_buf_vec(entry, reader->ctrl, nvmepeer_ns_info(reader->ns)->nsid,
			      NVMEPEER_OP_READ, reader->lists[reader->filled], reader->count);
	reader->commands++;
	reader->count = 0;
	if (++reader->filled == BATCH)
		finish(reader);
}

// Byte n of the file goes to byte n of the buffer.
static void read_data(void *context, uint64_t at, uint64_t byte, uint64_t length)
{
	struct reader *reader = (struct reader *)context;
	uint64_t stop = at + length;

	while (at < stop) {
		uint64_t blocks = smaller((stop - at) / reader->block, reader->most);
		nvme_peer_io_range *range = &reader->lists[reader->filled][reader->count];

		range->offset = at;
		range->lba = byte / reader->block;
		range->blocks = (uint32_t)blocks;
		range->handle = reader->handle;
		at += blocks * reader->block;
		byte += blocks * reader->block;
		if (++reader->count == NVME_PEER_IO_RANGES)
			send_list(reader);
	}
}

static void reader_open(reader *reader, const file *file)
{
	nvme_peer_info info;

	memset(reader, 0, sizeof(*reader));
	if (nvmepeer_open(file->controller, &reader->ctrl) ||
	    nvmepeer_info(reader->ctrl, &info, sizeof(info)) ||
	    nvmepeer_ns_open(file->node, &reader->ns) || nvmepeer_uring_init(&reader->ring, BATCH))
		explain();
	reader->block = nvmepeer_ns_info(reader->ns)->block_size;
	reader->most = info.max_transfer / reader->block;
}

// Imports the GPU memory into the controller, until the buffer handle is released.
static void import_memory(reader *reader, nvmepeer_cuda *cuda, void *memory, size_t bytes)
{
	nvme_peer_buf_import imported;
	int fd;

	if (nvmepeer_cuda_dmabuf(cuda, memory, bytes, &fd) ||
	    nvmepeer_buf_import(reader->ctrl, fd, 0, &imported, sizeof(imported)))
		explain();
	close(fd);
	reader->handle = imported.handle;
	printf("the file goes to %s\n", nvmepeer_verdict_name((nvme_peer_route_verdict)imported.verdict));
}

static void reader_close(reader *reader)
{
	io_uring_queue_exit(&reader->ring);
	if (nvmepeer_buf_release(reader->ctrl, reader->handle))
		explain();
	nvmepeer_ns_close(reader->ns);
	nvmepeer_close(reader->ctrl);
}

// ---- Use of the data

// The sum depends on the position of each byte.
__host__ __device__ static unsigned long long weigh(unsigned char byte, unsigned long long place)
{
	return (byte + 1ull) * (place * 0x9e3779b97f4a7c15ull | 1);
}

__global__ void add_up(const unsigned char *data, unsigned long long length, unsigned long long *sum)
{
	unsigned long long step = (unsigned long long)gridDim.x * blockDim.x, mine = 0;

	for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	     i < length; i += step)
		mine += weigh(data[i], i);
	atomicAdd(sum, mine);
}

static unsigned long long sum_on_gpu(const void *memory, uint64_t length)
{
	unsigned int blocks = (unsigned int)smaller(1 + length / THREADS, MAX_BLOCKS);
	unsigned long long *sum, result;

	check(cudaMallocManaged(&sum, sizeof(*sum)), "cudaMallocManaged");
	*sum = 0;
	add_up<<<blocks, THREADS>>>((const unsigned char *)memory, length, sum);
	check(cudaDeviceSynchronize(), "the kernel");
	result = *sum;
	check(cudaFree(sum), "cudaFree");
	return result;
}

static unsigned long long sum_by_read(const file *file)
{
	static unsigned char part[1 << 20];
	unsigned long long sum = 0;
	uint64_t at = 0;
	ssize_t length;

	while ((length = pread(file->fd, part, sizeof(part), (off_t)at)) > 0)
		for (ssize_t i = 0; i < length; i++)
			sum += weigh(part[i], at++);
	if (length < 0 || at != file->length)
		refuse_errno("read");
	return sum;
}

int main(int argc, char **argv)
{
	static reader reader;
	nvmepeer_cuda *cuda;
	struct file file;
	uint64_t blocks;
	size_t bytes;
	void *memory;

	if (argc != 2)
		return fprintf(stderr, "usage: read_file FILE\n"
			       "FILE must be on ext4 or XFS on a disk of nvme-peer: bind a controller first\n"), 2;
	file_open(&file, argv[1]);
	reader_open(&reader, &file);
	if (nvmepeer_cuda_open(0, &cuda))
		explain();
	bytes = (file.length + PAGE) / PAGE * PAGE;
	check(cudaMalloc(&memory, bytes), "cudaMalloc");
	check(cudaMemset(memory, 0, bytes), "cudaMemset");
	// Holes stay zero: clear the buffer before the first read.
	check(cudaDeviceSynchronize(), "cudaMemset");
	import_memory(&reader, cuda, memory, bytes);

	blocks = (file.length + reader.block - 1) / reader.block;
	file_extents(&file, reader.block, 0, blocks * reader.block, read_data, &reader);
	if (reader.count)
		send_list(&reader);
	finish(&reader);
	if (sum_on_gpu(memory, file.length) != sum_by_read(&file))
		refuse("the data on the disk differs from what read() returns");
	printf("%llu bytes by %u commands, the same as read()\n", (unsigned long long)file.length,
	       reader.commands);

	reader_close(&reader);
	check(cudaFree(memory), "cudaFree");
	nvmepeer_cuda_close(cuda);
	close(file.fd);
	return 0;
}
