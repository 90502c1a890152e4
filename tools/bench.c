// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer bench: reads of the CPU at random places, many at once, into this process's
 * memory or with --into into an imported buffer, a GPU's say.
 *
 * Both go to the same queues by io_uring, and both have their memory registered before:
 * what differs is where the data goes, and by which of the two calls.
 */
#include <errno.h>
#include <nvmepeer_uring.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "latency.h"
#include "nvme-peer.h"
#include "units.h"

enum {
	DEFAULT_ENTRIES = 32,
	DEFAULT_SIZE = 4096,
	DEFAULT_SECONDS = 5,
	MOST_ENTRIES = 4096,
	RATE_TEXT = UNITS_TEXT + 4,
};

/**
 * struct bench - one run
 * @ctrl: controller
 * @ns: namespace
 * @ring: with all reads
 * @into: data goes into an imported buffer
 * @imported: that buffer
 * @host: its memory, if it is ours
 * @memory: of the process; room for each read, as in a buffer
 * @entries: reads at the same time
 * @size: bytes of one
 * @blocks: the same in blocks
 * @seconds: how long it goes on
 * @random: state of the generator of addresses
 * @begun: when each read was prepared, nanoseconds
 * @in_flight: reads whose end was not seen
 * @failed: first status or errno of a read that was not carried out
 * @took: nanoseconds that all took
 * @latency: of those that were
 */
struct bench {
	struct nvmepeer *ctrl;
	struct nvmepeer_ns *ns;
	struct io_uring ring;
	bool into;
	struct nvme_peer_buf_import imported;
	struct nvmepeer_hostmem *host;
	void *memory;
	uint32_t entries;
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

static int open_buffer(struct bench *bench, const struct options *options)
{
	size_t length = (size_t)bench->entries * bench->size;
	int fd = options->fd, result = 0;

	if (!(options->given & OPTION_FD)) {
		result = nvmepeer_hostmem_alloc(length, &bench->host);
		if (result)
			return result;
		fd = nvmepeer_hostmem_fd(bench->host);
	}
	return nvmepeer_buf_import(bench->ctrl, fd, 0, &bench->imported, sizeof(bench->imported));
}

/* Pages, so that no data shares one with what the program uses. */
static int open_memory(struct bench *bench)
{
	struct iovec all = { .iov_len = (size_t)bench->entries * bench->size };

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
	if (bench->memory)
		munmap(bench->memory, (size_t)bench->entries * bench->size);
}

/* ---- Reading ------------------------------------------------------------ */

static uint64_t next_lba(struct bench *bench)
{
	uint64_t places = nvmepeer_ns_info(bench->ns)->blocks / bench->blocks;

	bench->random = bench->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (bench->random >> 20) % places * bench->blocks;
}

/* Read number @number of those that are at the same time, somewhere else. */
static void prepare(struct bench *bench, uint64_t number)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&bench->ring);

	/* The ring has an entry for each. */
	if (!sqe)
		abort();
	if (bench->into) {
		nvmepeer_prep_buf_rw(sqe, bench->ctrl, nvmepeer_ns_info(bench->ns)->nsid,
				     NVMEPEER_OPCODE_READ, next_lba(bench), bench->blocks,
				     bench->imported.handle, number * bench->size);
	} else {
		nvmepeer_prep_rw(sqe, bench->ns, NVMEPEER_OPCODE_READ, next_lba(bench), bench->blocks,
				 (char *)bench->memory + number * bench->size);
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
	}
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

static void read_for_a_time(struct bench *bench)
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
	uint64_t bytes = by_second(bench, bench->latency.total * bench->size);
	char text[RATE_TEXT];

	report_text(report, "memory", bench->into ? "imported" : "own");
	if (bench->into)
		report_text(report, "verdict", nvmepeer_verdict_name(bench->imported.verdict));
	report_number(report, "size", bench->size, "bytes");
	report_number(report, "entries", bench->entries, "at the same time");
	report_number(report, "nanoseconds", bench->took, NULL);
	report_number(report, "reads", bench->latency.total, NULL);
	report_number(report, "reads_per_second", by_second(bench, bench->latency.total), NULL);
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
	read_for_a_time(bench);
	if (!bench->failed) {
		report_run(report, bench);
		return 0;
	}
	fprintf(stderr, "nvme-peer: a read: %s\n",
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

/* The kernel would refuse the first read that does not fit. */
static int check_room(const struct bench *bench)
{
	uint64_t wanted = (uint64_t)bench->entries * bench->size;

	if (!bench->into || bench->imported.length >= wanted)
		return 0;
	fprintf(stderr, "nvme-peer: the dma-buf has %llu bytes; so many reads at once want %llu\n",
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

static int run_on_ring(struct report *report, const struct options *options, struct bench *bench)
{
	int status = check_size(report, bench);

	if (status)
		return status;
	if (nvmepeer_uring_init(&bench->ring, bench->entries))
		return refused(report);
	status = run_in_memory(report, options, bench);
	io_uring_queue_exit(&bench->ring);
	return status;
}

static int run_on_nodes(struct report *report, const struct options *options, char **nodes,
			struct bench *bench)
{
	int status;

	if (nvmepeer_open(nodes[0], &bench->ctrl))
		return refused(report);
	status = nvmepeer_ns_open(nodes[1], &bench->ns) ? refused(report) :
		 run_on_ring(report, options, bench);
	nvmepeer_ns_close(bench->ns);
	nvmepeer_close(bench->ctrl);
	return status;
}

int command_bench(struct report *report, const struct options *options, int argc, char **argv)
{
	struct bench bench = {
		.into = options->given & OPTION_INTO,
		.entries = options->given & OPTION_ENTRIES ? options->entries : DEFAULT_ENTRIES,
		.size = options->given & OPTION_SIZE ? options->size : DEFAULT_SIZE,
		.seconds = options->given & OPTION_SECONDS ? options->seconds : DEFAULT_SECONDS,
		.random = 1,
	};

	if (argc != 2)
		return usage_error("bench takes a controller and a namespace node", NULL);
	if (options->given & OPTION_FD && !bench.into)
		return usage_error("bench takes --fd with --into", NULL);
	if (!bench.entries || bench.entries > MOST_ENTRIES)
		return usage_error("bench takes 1 to 4096 entries", NULL);
	return run_on_nodes(report, options, argv, &bench);
}
