// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer bench: reads or writes of the CPU at random offsets, several in flight, with
 * the data in memory of this process or, with --into, in an imported buffer such as GPU
 * memory.
 *
 * Both variants use io_uring, the same queues, and memory that was registered before.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nvmepeer_cuda.h>
#include <nvmepeer_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "bench.h"
#include "clock.h"
#include "nvme-peer.h"
#include "units.h"

enum {
	DEFAULT_ENTRIES = 32,
	DEFAULT_SIZE = 4096,
	DEFAULT_SECONDS = 5,
	MOST_ENTRIES = 4096,
	GPU_PAGE = 65536,
};

/**
 * struct bench - one run
 * @ctrl: controller
 * @ns: namespace
 * @disk: the disk of the namespace, opened exclusively for writes, or -1
 * @ring: ring of all commands
 * @opcode: read or write
 * @into: data is in an imported buffer
 * @imported: that buffer
 * @host: its memory, if the program has allocated it
 * @cuda: the GPU that has its memory, or NULL
 * @gpu: its memory on the GPU
 * @memory: memory of the process, one slot per transfer as in a buffer
 * @entries: most commands in flight
 * @ranges: transfers per command; more than one make a list
 * @lists: the lists, one per entry
 * @size: bytes of a transfer
 * @blocks: blocks of a transfer
 * @seconds: duration
 * @random: state of the generator of addresses
 * @begun: time when each command was prepared, nanoseconds
 * @in_flight: commands that have not completed
 * @failed: first status or errno of a failed command
 * @run: the current measurement
 * @result: all measurements
 */
struct bench {
	struct nvmepeer *ctrl;
	struct nvmepeer_ns *ns;
	int disk;
	struct io_uring ring;
	enum nvmepeer_opcode opcode;
	bool into;
	struct nvme_peer_buf_import imported;
	struct nvmepeer_hostmem *host;
	struct nvmepeer_cuda *cuda;
	void *gpu;
	void *memory;
	uint32_t entries;
	uint32_t ranges;
	struct nvme_peer_io_range *lists;
	uint32_t size;
	uint32_t blocks;
	uint64_t seconds;
	uint64_t random;
	uint64_t begun[MOST_ENTRIES];
	unsigned int in_flight;
	int failed;
	struct bench_run *run;
	struct bench_result result;
};

/* ---- Memory ------------------------------------------------------------- */

static size_t data_bytes(const struct bench *bench)
{
	return (size_t)bench->entries * bench->ranges * bench->size;
}

/* GPU memory is allocated and imported in whole pages. */
static int open_gpu(struct bench *bench, int number, int *fd)
{
	size_t length = (data_bytes(bench) + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE;
	int result = nvmepeer_cuda_open(number, &bench->cuda);

	if (!result)
		result = nvmepeer_cuda_alloc(bench->cuda, length, &bench->gpu);
	return result ? result : nvmepeer_cuda_dmabuf(bench->cuda, bench->gpu, length, fd);
}

static int open_host(struct bench *bench, int *fd)
{
	int result = nvmepeer_buf_alloc(bench->ctrl, data_bytes(bench), &bench->host);

	if (!result)
		*fd = nvmepeer_hostmem_fd(bench->host);
	return result;
}

static int open_buffer(struct bench *bench, const struct options *options)
{
	int fd = options->fd, result = 0;

	if (options->given & OPTION_CUDA)
		result = open_gpu(bench, options->cuda, &fd);
	else if (!(options->given & OPTION_FD))
		result = open_host(bench, &fd);
	if (result)
		return result;
	result = nvmepeer_buf_import(bench->ctrl, fd, 0, &bench->imported, sizeof(bench->imported));
	if (options->given & OPTION_CUDA)
		close(fd);
	return result;
}

/* Whole pages, so that no data shares a page with other memory of the program. */
static int open_memory(struct bench *bench)
{
	struct iovec all = { .iov_len = data_bytes(bench) };

	all.iov_base = mmap(NULL, all.iov_len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (all.iov_base == MAP_FAILED)
		return -errno;
	bench->memory = all.iov_base;
	return io_uring_register_buffers(&bench->ring, &all, 1);
}

static void close_memory(struct bench *bench)
{
	if (bench->imported.handle)
		nvmepeer_buf_release(bench->ctrl, bench->imported.handle);
	nvmepeer_hostmem_free(bench->host);
	if (bench->cuda)
		nvmepeer_cuda_free(bench->cuda, bench->gpu);
	nvmepeer_cuda_close(bench->cuda);
	if (bench->memory)
		munmap(bench->memory, data_bytes(bench));
}

/* ---- Reading and writing ------------------------------------------------ */

static uint64_t next_lba(struct bench *bench)
{
	uint64_t places = nvmepeer_ns_info(bench->ns)->blocks / bench->blocks;

	bench->random = bench->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (bench->random >> 20) % places * bench->blocks;
}

static void prepare_list(struct bench *bench, struct io_uring_sqe *sqe, uint64_t number)
{
	struct nvme_peer_io_range *list = bench->lists + number * bench->ranges;
	uint32_t i;

	for (i = 0; i < bench->ranges; i++)
		list[i] = (struct nvme_peer_io_range){
			.offset = (number * bench->ranges + i) * bench->size,
			.lba = next_lba(bench),
			.blocks = bench->blocks,
			.handle = bench->imported.handle,
		};
	nvmepeer_prep_buf_vec(sqe, bench->ctrl, nvmepeer_ns_info(bench->ns)->nsid, bench->opcode,
			      list, bench->ranges);
}

static void prepare_one(struct bench *bench, struct io_uring_sqe *sqe, uint64_t number)
{
	if (bench->into) {
		nvmepeer_prep_buf_rw(sqe, bench->ctrl, nvmepeer_ns_info(bench->ns)->nsid,
				     bench->opcode, next_lba(bench), bench->blocks,
				     bench->imported.handle, number * bench->size);
	} else {
		nvmepeer_prep_rw(sqe, bench->ns, bench->opcode, next_lba(bench), bench->blocks,
				 (char *)bench->memory + number * bench->size);
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
	}
}

/* Prepare command @number of those in flight, at another random offset. */
static void prepare(struct bench *bench, uint64_t number)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&bench->ring);

	/* The ring has an entry for each command in flight. */
	if (!sqe)
		abort();
	if (bench->ranges > 1)
		prepare_list(bench, sqe, number);
	else
		prepare_one(bench, sqe, number);
	sqe->user_data = number;
	bench->begun[number] = now_ns();
	bench->in_flight++;
}

/* Reap completions, and until @end prepare as many commands again. */
static void reap(struct bench *bench, uint64_t end)
{
	uint64_t now = now_ns(), ended[MOST_ENTRIES];
	unsigned int head, count = 0, i;
	struct io_uring_cqe *cqe;

	io_uring_for_each_cqe(&bench->ring, head, cqe) {
		if (cqe->res)
			bench->failed = bench->failed ? bench->failed : cqe->res;
		else
			latency_add(&bench->run->latency, now - bench->begun[cqe->user_data]);
		ended[count++] = cqe->user_data;
	}
	io_uring_cq_advance(&bench->ring, count);
	bench->in_flight -= count;
	for (i = 0; i < count && now < end && !bench->failed; i++)
		prepare(bench, ended[i]);
}

static uint64_t nanoseconds_of(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000;
}

static void add_processor_time(struct bench_run *run, int sign)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	run->user += (uint64_t)sign * nanoseconds_of(usage.ru_utime);
	run->system += (uint64_t)sign * nanoseconds_of(usage.ru_stime);
}

/* Once a second, if the user sees it. The line is removed at the end. */
static void show_progress(const struct bench *bench, uint64_t took)
{
	char count[UNITS_TEXT], time[UNITS_TEXT];

	fprintf(stderr, "\rdepth %u: %llu of %llu s, %s %s, p99 %s\033[K", bench->run->depth,
		(unsigned long long)(took / 1000000000u), (unsigned long long)bench->seconds,
		units_count(bench->run->latency.total * bench->ranges, count),
		bench->opcode == NVMEPEER_OP_WRITE ? "writes" : "reads",
		units_time(latency_percentile(&bench->run->latency, 990000), time));
}

static void run_for_seconds(struct bench *bench)
{
	uint64_t begin = now_ns(), end = begin + bench->seconds * 1000000000u;
	uint64_t shown = begin;
	bool shows = isatty(STDERR_FILENO);
	unsigned int i;
	int result;

	for (i = 0; i < bench->run->depth; i++)
		prepare(bench, i);
	while (bench->in_flight) {
		result = io_uring_submit_and_wait(&bench->ring, 1);
		if (result < 0 && result != -EINTR) {
			bench->failed = result;
			break;
		}
		reap(bench, end);
		if (shows && now_ns() - shown >= 1000000000u) {
			shown += 1000000000u;
			show_progress(bench, shown - begin);
		}
	}
	bench->run->took = now_ns() - begin;
	if (shows)
		fputs("\r\033[K", stderr);
}

static void measure(struct bench *bench, uint32_t depth)
{
	bench->run = &bench->result.runs[bench->result.count++];
	bench->run->depth = depth;
	add_processor_time(bench->run, -1);
	run_for_seconds(bench);
	add_processor_time(bench->run, 1);
}

/* ---- Results ------------------------------------------------------------ */

static int refused(struct report *report)
{
	report_failure(report);
	return EXIT_REFUSED;
}

/* With --sweep depths 1, 2, 4, ... and at last @entries. */
static int run(struct report *report, const struct options *options, struct bench *bench)
{
	uint32_t depth = options->given & OPTION_SWEEP ? 1 : bench->entries;

	bench->result.size = bench->size;
	bench->result.ranges = bench->ranges;
	if (bench->into)
		bench->result.verdict = nvmepeer_verdict_name(bench->imported.verdict);
	for (; depth < bench->entries && !bench->failed; depth *= 2)
		measure(bench, depth);
	if (!bench->failed)
		measure(bench, bench->entries);
	if (!bench->failed) {
		bench_report(report, options, &bench->result);
		return 0;
	}
	fprintf(stderr, "nvme-peer: a %s: %s\n",
		bench->opcode == NVMEPEER_OP_WRITE ? "write" : "read",
		bench->failed > 0 ? nvmepeer_status_text(bench->failed) :
				    strerror(-bench->failed));
	return EXIT_REFUSED;
}

/* ---- Checks ------------------------------------------------------------- */

static int check_size(struct report *report, struct bench *bench)
{
	const struct nvmepeer_ns_info *ns = nvmepeer_ns_info(bench->ns);
	struct nvme_peer_info info;

	if (nvmepeer_info(bench->ctrl, &info, sizeof(info)))
		return refused(report);
	if (!bench->size || bench->size % ns->block_size || bench->size > info.max_transfer ||
	    bench->size / ns->block_size > ns->blocks) {
		fprintf(stderr, "nvme-peer: --size must be a multiple of %u bytes, at most %u\n",
			ns->block_size, info.max_transfer);
		return EXIT_USAGE;
	}
	bench->blocks = bench->size / ns->block_size;
	return 0;
}

/* The kernel would refuse the first command beyond the buffer. */
static int check_length(const struct bench *bench)
{
	uint64_t needed = data_bytes(bench);

	if (!bench->into || bench->imported.length >= needed)
		return 0;
	fprintf(stderr, "nvme-peer: the dma-buf has %llu bytes, but the commands in flight need %llu\n",
		(unsigned long long)bench->imported.length, (unsigned long long)needed);
	return EXIT_REFUSED;
}

static int run_in_memory(struct report *report, const struct options *options,
			 struct bench *bench)
{
	int result = bench->into ? open_buffer(bench, options) : open_memory(bench), status;

	if (result && bench->into) {
		status = refused(report);
	} else if (result) {
		fprintf(stderr, "nvme-peer: memory: %s\n", strerror(-result));
		status = EXIT_REFUSED;
	} else {
		status = check_length(bench);
		if (!status)
			status = run(report, options, bench);
	}
	close_memory(bench);
	return status;
}

/* A polled ring uses a queue without interrupts, if the module has one. */
static int open_ring(struct report *report, const struct options *options, struct bench *bench)
{
	int result;

	if (!(options->given & OPTION_POLLED))
		return nvmepeer_uring_init(&bench->ring, bench->entries) ? refused(report) : 0;
	result = io_uring_queue_init(bench->entries, &bench->ring, IORING_SETUP_SQE128 |
				     IORING_SETUP_CQE32 | IORING_SETUP_IOPOLL);
	if (!result)
		return 0;
	fprintf(stderr, "nvme-peer: polled ring: %s\n", strerror(-result));
	return EXIT_REFUSED;
}

static int run_on_ring(struct report *report, const struct options *options, struct bench *bench)
{
	int status = check_size(report, bench);

	if (!status)
		status = open_ring(report, options, bench);
	if (status)
		return status;
	status = run_in_memory(report, options, bench);
	io_uring_queue_exit(&bench->ring);
	return status;
}

/* The disk of a namespace node: nvmepXnY for ngpXnY. */
static int disk_of(const struct nvmepeer_ns *ns, char path[PATH_MAX])
{
	unsigned int controller, namespace;
	char link[64], directory[PATH_MAX];
	struct stat node;

	if (fstat(nvmepeer_ns_fd(ns), &node))
		return -errno;
	snprintf(link, sizeof(link), "/sys/dev/char/%u:%u", major(node.st_rdev), minor(node.st_rdev));
	if (!realpath(link, directory) ||
	    sscanf(strrchr(directory, '/'), "/ngp%un%u", &controller, &namespace) != 2)
		return -ENOENT;
	snprintf(path, PATH_MAX, "/dev/nvmep%un%u", controller, namespace);
	return 0;
}

/* Writes destroy the contents: open the disk exclusively. */
static int open_disk(struct bench *bench)
{
	char path[PATH_MAX] = "the disk";
	int result = disk_of(bench->ns, path);

	if (!result) {
		bench->disk = open(path, O_RDWR | O_EXCL | O_CLOEXEC);
		result = bench->disk < 0 ? -errno : 0;
	}
	if (!result)
		return 0;
	fprintf(stderr, "nvme-peer: %s: %s; nothing was written\n", path,
		result == -EBUSY ? "in use" : strerror(-result));
	return EXIT_REFUSED;
}

static int run_on_namespace(struct report *report, const struct options *options,
			    struct bench *bench)
{
	int status = bench->opcode == NVMEPEER_OP_WRITE ? open_disk(bench) : 0;

	if (!status)
		status = run_on_ring(report, options, bench);
	if (bench->disk >= 0)
		close(bench->disk);
	return status;
}

static int run_on_nodes(struct report *report, const struct options *options, char **nodes,
			struct bench *bench)
{
	int status;

	if (nvmepeer_open(nodes[0], &bench->ctrl))
		return refused(report);
	status = nvmepeer_ns_open(nodes[1], &bench->ns) ? refused(report) :
		 run_on_namespace(report, options, bench);
	nvmepeer_ns_close(bench->ns);
	nvmepeer_close(bench->ctrl);
	return status;
}

/* Options that exclude each other. */
static int check_options(const struct options *options)
{
	unsigned int given = options->given;

	if (given & (OPTION_FD | OPTION_CUDA | OPTION_RANGES) && !(given & OPTION_INTO))
		return usage_error("bench takes --fd, --cuda and --ranges with --into", NULL);
	if (given & OPTION_FD && given & OPTION_CUDA)
		return usage_error("bench takes --fd or --cuda", NULL);
	if (options->format == FORMAT_SVG && !(given & OPTION_SWEEP))
		return usage_error("bench plots (-o svg) the depths of --sweep", NULL);
	if (given & OPTION_WRITE && !(given & OPTION_FORCE))
		return usage_error("bench --write destroys the contents of the disk and requires --force",
				   NULL);
	return 0;
}

/* Number and size of commands, and the duration. */
static int check_numbers(struct bench *bench)
{
	if (!bench->entries || bench->entries > MOST_ENTRIES)
		return usage_error("bench takes 1 to 4096 entries", NULL);
	if (!bench->ranges || bench->ranges > NVME_PEER_IO_RANGES)
		return usage_error("bench takes 1 to 32 ranges", NULL);
	bench->lists = calloc((size_t)bench->entries * bench->ranges, sizeof(*bench->lists));
	if (bench->lists)
		return 0;
	fprintf(stderr, "nvme-peer: out of memory\n");
	return EXIT_REFUSED;
}

int command_bench(struct report *report, const struct options *options, int argc, char **argv)
{
	struct bench bench = {
		.disk = -1,
		.opcode = options->given & OPTION_WRITE ? NVMEPEER_OP_WRITE :
							  NVMEPEER_OP_READ,
		.into = options->given & OPTION_INTO,
		.entries = options->given & OPTION_ENTRIES ? options->entries : DEFAULT_ENTRIES,
		.ranges = options->given & OPTION_RANGES ? options->ranges : 1,
		.size = options->given & OPTION_SIZE ? options->size : DEFAULT_SIZE,
		.seconds = options->given & OPTION_SECONDS ? options->seconds : DEFAULT_SECONDS,
		.random = 1,
		.result = {
			.name = argc == 2 ? argv[1] : "",
			.writes = options->given & OPTION_WRITE,
			.polled = options->given & OPTION_POLLED,
		},
	};
	int status;

	if (argc != 2)
		return usage_error("bench takes a controller and a namespace node", NULL);
	status = check_options(options);
	if (!status)
		status = check_numbers(&bench);
	if (!status)
		status = run_on_nodes(report, options, argv, &bench);
	free(bench.lists);
	return status;
}
