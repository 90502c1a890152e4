// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer bench: reads or writes of the CPU at random places, many at once, with the data
 * in this process's memory or with --into in an imported buffer, a GPU's say.
 *
 * Both go to the same queues by io_uring, and both have their memory registered before:
 * what differs is where the data lies, and by which of the calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nvmepeer_cuda.h>
#include <nvmepeer_uring.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "latency.h"
#include "nvme-peer.h"
#include "units.h"

enum {
	DEFAULT_ENTRIES = 32,
	DEFAULT_SIZE = 4096,
	DEFAULT_SECONDS = 5,
	MOST_ENTRIES = 4096,
	GPU_PAGE = 65536,
	RATE_TEXT = UNITS_TEXT + 4,
};

/**
 * struct bench - one run
 * @ctrl: controller
 * @ns: namespace
 * @disk: the namespace's disk while it is written to, nobody else's; or -1
 * @ring: with all commands
 * @opcode: what they do
 * @into: data lies in an imported buffer
 * @imported: that buffer
 * @host: its memory, if it is ours
 * @cuda: the GPU whose memory it is, or NULL
 * @gpu: its memory there
 * @memory: of the process; room for each transfer, as in a buffer
 * @entries: commands at the same time
 * @ranges: transfers of each; more than one make a list
 * @lists: those, one for each entry
 * @size: bytes of a transfer
 * @blocks: the same in blocks
 * @seconds: how long it goes on
 * @random: state of the generator of addresses
 * @begun: when each command was prepared, nanoseconds
 * @in_flight: commands whose end was not seen
 * @failed: first status or errno of a command that was not carried out
 * @took: nanoseconds that all took
 * @latency: of those commands that were
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
	uint64_t took;
	struct latency latency;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Memory ------------------------------------------------------------- */

static size_t room(const struct bench *bench)
{
	return (size_t)bench->entries * bench->ranges * bench->size;
}

/* A GPU's memory comes in whole pages, as all memory that is imported. */
static int open_gpu(struct bench *bench, int number, int *fd)
{
	size_t length = (room(bench) + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE;
	int result = nvmepeer_cuda_open(number, &bench->cuda);

	if (!result)
		result = nvmepeer_cuda_alloc(bench->cuda, length, &bench->gpu);
	return result ? result : nvmepeer_cuda_dmabuf(bench->cuda, bench->gpu, length, fd);
}

static int open_host(struct bench *bench, int *fd)
{
	int result = nvmepeer_hostmem_alloc(room(bench), &bench->host);

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

/* Pages, so that no data shares one with what the program uses. */
static int open_memory(struct bench *bench)
{
	struct iovec all = { .iov_len = room(bench) };

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
		munmap(bench->memory, room(bench));
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

/* Command number @number of those that are at the same time, somewhere else. */
static void prepare(struct bench *bench, uint64_t number)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&bench->ring);

	/* The ring has an entry for each. */
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

/* Counts what has ended, and until @end prepares as many again. */
static void reap(struct bench *bench, uint64_t end)
{
	uint64_t now = now_ns(), ended[MOST_ENTRIES];
	unsigned int head, count = 0, i;
	struct io_uring_cqe *cqe;

	io_uring_for_each_cqe(&bench->ring, head, cqe) {
		if (cqe->res)
			bench->failed = bench->failed ? bench->failed : cqe->res;
		else
			latency_add(&bench->latency, now - bench->begun[cqe->user_data]);
		ended[count++] = cqe->user_data;
	}
	io_uring_cq_advance(&bench->ring, count);
	bench->in_flight -= count;
	for (i = 0; i < count && now < end && !bench->failed; i++)
		prepare(bench, ended[i]);
}

static void go_on_for_a_time(struct bench *bench)
{
	uint64_t begin = now_ns(), end = begin + bench->seconds * 1000000000u;
	unsigned int i;
	int result;

	for (i = 0; i < bench->entries; i++)
		prepare(bench, i);
	while (bench->in_flight) {
		result = io_uring_submit_and_wait(&bench->ring, 1);
		if (result < 0 && result != -EINTR) {
			bench->failed = result;
			break;
		}
		reap(bench, end);
	}
	bench->took = now_ns() - begin;
}

/* ---- What came of it ---------------------------------------------------- */

static const char *rate(uint64_t bytes, char text[RATE_TEXT])
{
	char amount[UNITS_TEXT];

	snprintf(text, RATE_TEXT, "(%s/s)", units_disk(bytes, amount));
	return text;
}

static uint64_t by_second(const struct bench *bench, uint64_t amount)
{
	return (uint64_t)((double)amount * 1e9 / (double)bench->took);
}

static void report_latency(struct report *report, const struct latency *latency)
{
	static const struct {
		const char *name;
		uint32_t millionths;
	} parts[] = {
		{ "p50", 500000 }, { "p90", 900000 }, { "p99", 990000 }, { "p999", 999000 },
		{ "max", 1000000 },
	};
	size_t i;

	report_object(report, "latency");
	report_number(report, "mean", latency_mean(latency), "ns");
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		report_number(report, parts[i].name,
			      latency_percentile(latency, parts[i].millionths), "ns");
	report_object_end(report);
}

static void report_run(struct report *report, const struct bench *bench)
{
	uint64_t count = bench->latency.total * bench->ranges;
	uint64_t bytes = by_second(bench, count * bench->size);
	bool writes = bench->opcode == NVMEPEER_OPCODE_WRITE;
	char text[RATE_TEXT];

	report_text(report, "memory", bench->into ? "imported" : "own");
	if (bench->into)
		report_text(report, "verdict", nvmepeer_verdict_name(bench->imported.verdict));
	report_number(report, "size", bench->size, "bytes");
	report_number(report, "entries", bench->entries, "at the same time");
	if (bench->ranges > 1)
		report_number(report, "ranges", bench->ranges, "in each");
	report_number(report, "nanoseconds", bench->took, NULL);
	report_number(report, writes ? "writes" : "reads", count, NULL);
	report_number(report, writes ? "writes_per_second" : "reads_per_second",
		      by_second(bench, count), NULL);
	report_number(report, "bytes_per_second", bytes, rate(bytes, text));
	report_latency(report, &bench->latency);
}

static int refused(struct report *report)
{
	report_failure(report);
	return EXIT_REFUSED;
}

static int run(struct report *report, struct bench *bench)
{
	go_on_for_a_time(bench);
	if (!bench->failed) {
		report_run(report, bench);
		return 0;
	}
	fprintf(stderr, "nvme-peer: a %s: %s\n",
		bench->opcode == NVMEPEER_OPCODE_WRITE ? "write" : "read",
		bench->failed > 0 ? nvmepeer_status_text(bench->failed) :
				    strerror(-bench->failed));
	return EXIT_REFUSED;
}

/* ---- Is it to be done? -------------------------------------------------- */

static int check_size(struct report *report, struct bench *bench)
{
	const struct nvmepeer_ns_info *ns = nvmepeer_ns_info(bench->ns);
	struct nvme_peer_info info;

	if (nvmepeer_info(bench->ctrl, &info, sizeof(info)))
		return refused(report);
	if (!bench->size || bench->size % ns->block_size || bench->size > info.max_transfer ||
	    bench->size / ns->block_size > ns->blocks) {
		fprintf(stderr, "nvme-peer: --size: a multiple of %u bytes, at most %u\n",
			ns->block_size, info.max_transfer);
		return EXIT_USAGE;
	}
	bench->blocks = bench->size / ns->block_size;
	return 0;
}

/* The kernel would refuse the first that does not fit. */
static int check_room(const struct bench *bench)
{
	uint64_t wanted = room(bench);

	if (!bench->into || bench->imported.length >= wanted)
		return 0;
	fprintf(stderr, "nvme-peer: the dma-buf has %llu bytes; so many at once want %llu\n",
		(unsigned long long)bench->imported.length, (unsigned long long)wanted);
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
		status = check_room(bench);
		if (!status)
			status = run(report, bench);
	}
	close_memory(bench);
	return status;
}

/* One that polls finds what ends on a queue without interrupts, where there is one. */
static int open_ring(struct report *report, const struct options *options, struct bench *bench)
{
	int result;

	if (!(options->given & OPTION_POLLED))
		return nvmepeer_uring_init(&bench->ring, bench->entries) ? refused(report) : 0;
	result = io_uring_queue_init(bench->entries, &bench->ring, IORING_SETUP_SQE128 |
				     IORING_SETUP_CQE32 | IORING_SETUP_IOPOLL);
	if (!result)
		return 0;
	fprintf(stderr, "nvme-peer: a ring that polls: %s\n", strerror(-result));
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

/* The name of the namespace's disk: as its own node's, nvmepXnY for ngpXnY. */
static int disk_of(const struct nvmepeer_ns *ns, char path[PATH_MAX])
{
	unsigned int controller, namespace;
	char link[64], folder[PATH_MAX];
	struct stat node;

	if (fstat(nvmepeer_ns_fd(ns), &node))
		return -errno;
	snprintf(link, sizeof(link), "/sys/dev/char/%u:%u", major(node.st_rdev), minor(node.st_rdev));
	if (!realpath(link, folder) ||
	    sscanf(strrchr(folder, '/'), "/ngp%un%u", &controller, &namespace) != 2)
		return -ENOENT;
	snprintf(path, PATH_MAX, "/dev/nvmep%un%u", controller, namespace);
	return 0;
}

/* What is written destroys what was there: nobody else may use the disk meanwhile. */
static int take_disk(struct bench *bench)
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
		result == -EBUSY ? "somebody uses it" : strerror(-result));
	return EXIT_REFUSED;
}

static int run_on_namespace(struct report *report, const struct options *options,
			    struct bench *bench)
{
	int status = bench->opcode == NVMEPEER_OPCODE_WRITE ? take_disk(bench) : 0;

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

/* Options that do not go together. */
static int check_options(const struct options *options)
{
	unsigned int given = options->given;

	if (given & (OPTION_FD | OPTION_CUDA | OPTION_RANGES) && !(given & OPTION_INTO))
		return usage_error("bench takes --fd, --cuda and --ranges with --into", NULL);
	if (given & OPTION_FD && given & OPTION_CUDA)
		return usage_error("bench takes --fd or --cuda", NULL);
	if (given & OPTION_WRITE && !(given & OPTION_FORCE))
		return usage_error("bench --write destroys what is on the disk, and takes --force for that",
				   NULL);
	return 0;
}

/* How many commands, of how much, and for how long. */
static int check_numbers(struct bench *bench)
{
	if (!bench->entries || bench->entries > MOST_ENTRIES)
		return usage_error("bench takes 1 to 4096 entries", NULL);
	if (!bench->ranges || bench->ranges > NVME_PEER_IO_RANGES)
		return usage_error("bench takes 1 to 32 ranges", NULL);
	bench->lists = calloc((size_t)bench->entries * bench->ranges, sizeof(*bench->lists));
	if (bench->lists)
		return 0;
	fprintf(stderr, "nvme-peer: no memory is left\n");
	return EXIT_REFUSED;
}

int command_bench(struct report *report, const struct options *options, int argc, char **argv)
{
	struct bench bench = {
		.disk = -1,
		.opcode = options->given & OPTION_WRITE ? NVMEPEER_OPCODE_WRITE :
							  NVMEPEER_OPCODE_READ,
		.into = options->given & OPTION_INTO,
		.entries = options->given & OPTION_ENTRIES ? options->entries : DEFAULT_ENTRIES,
		.ranges = options->given & OPTION_RANGES ? options->ranges : 1,
		.size = options->given & OPTION_SIZE ? options->size : DEFAULT_SIZE,
		.seconds = options->given & OPTION_SECONDS ? options->seconds : DEFAULT_SECONDS,
		.random = 1,
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
