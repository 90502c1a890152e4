// SPDX-License-Identifier: GPL-2.0-only
/*
 * The software GPU and the controller process without a guest and without the module: this
 * program creates the queue pairs and runs the same programs on them. Its results are the
 * reference for queue pairs of the module (selftests/cuda/card.sh):
 *
 *	bare GPU_SOCKET CONTROLLER_SOCKET SHARED_DIRECTORY ROUNDS SECONDS THREADS...
 *
 * Prints "# bare: {...}" for each number of pairs and threads, "# bare latency: {...}" for single
 * commands of a GPU thread (shared API, exclusive API, without the library), and "# turn: {...}"
 * for the latency of the controller alone: the same command by a CPU thread that stores doorbells
 * and polls the completion ring. All measurements are repeated ROUNDS times.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <badctrl.h>
#include <client.h>
#include <softgpu_programs.h>

#include "nvme.h"

#define PAGE		4096U
#define PAIRS		16U
#define ENTRIES		1024U
#define RANGE		(8U << 20)
#define SAMPLES		1000U
#define JOB_STRIDE	1024U
#define LIST_BYTES	4096U
#define MAX_TRANSFER	(1U << 20)

/* Bus addresses. */
#define RAM_BUS		0x10000000ULL
#define RAM_BYTES	(4U << 20)
#define HBM_BUS		0x1000000000ULL
#define BAR_BUS		0x2000000000ULL

/* Offsets in RAM: admin queue, then the CPU's own queue pair and its data. */
#define ADMIN_SQ	0x0000U
#define ADMIN_CQ	0x1000U
#define OWN_SQ		0x2000U
#define OWN_CQ		0x3000U
#define OWN_DATA	0x4000U
#define OWN_ENTRIES	32U

/* Offsets in HBM: page table, jobs, parameters of further pairs, then a part for each pair. */
#define TABLE		0x0000U
#define JOBS		0x10000U
#define MORE		0x20000U
#define PARTS		0x100000U
#define PART_BYTES	(24U << 20)
#define PART_SQ		0x00000U
#define PART_CQ		0x10000U
#define PART_STATUS	0x14000U
#define PART_REQUEST	0x15000U
#define PART_STATE	0x20000U
#define PART_LISTS	0x100000U
#define PART_DATA	0x1100000U
#define DATA_BYTES	(4U << 20)

/* NVMe registers and commands. */
#define REG_CC		0x14
#define REG_CSTS	0x1c
#define REG_AQA		0x24
#define REG_ASQ		0x28
#define REG_ACQ		0x30
#define CC_ON		0x00460001U	/* entries of 64 and 16 bytes, enable */
#define CONTIGUOUS	1U

struct entry {
	uint32_t dword[16];
};

/**
 * struct ring - the CPU's end of a queue pair
 * @sq: submission ring, in RAM
 * @cq: completion ring, in RAM
 * @entries: entries of each ring
 * @qid: identifier
 * @index: index of the next command
 */
struct ring {
	struct entry *sq;
	volatile uint32_t *cq;
	uint32_t entries;
	uint32_t qid;
	uint32_t index;
};

static struct client gpu, ctrl;
static uint8_t *ram, *hbm;
static volatile uint32_t *registers;
static uint64_t hbm_bytes, hbm_va, mmu_va;
static struct softgpu_io ios[PAIRS];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- The controller ------------------------------------------------------------ */

/* Execute a command by polling. Returns the status field or -ETIMEDOUT. */
static int command(struct ring *ring, const struct entry *entry)
{
	uint32_t slot = ring->index % ring->entries, phase = ring->index / ring->entries % 2 ^ 1;
	uint64_t limit = now_ns() + 5000000000ULL;
	uint32_t word;

	ring->sq[slot] = *entry;
	ring->index++;
	__atomic_store_n(&registers[BADCTRL_DOORBELLS / 4 + 2 * ring->qid],
			 ring->index % ring->entries, __ATOMIC_RELEASE);
	do {
		word = __atomic_load_n(&ring->cq[4 * slot + 3], __ATOMIC_ACQUIRE);
		if ((word >> 16 & 1) == phase) {
			__atomic_store_n(&registers[BADCTRL_DOORBELLS / 4 + 2 * ring->qid + 1],
					 ring->index % ring->entries, __ATOMIC_RELEASE);
			return (int)(word >> 17);
		}
	} while (now_ns() < limit);
	return -ETIMEDOUT;
}

static struct ring admin;

static int create(uint32_t qid, uint32_t entries, uint64_t sq, uint64_t cq)
{
	struct entry make = { { NVME_ADMIN_CREATE_CQ } };
	int ret;

	make.dword[6] = (uint32_t)cq;
	make.dword[7] = (uint32_t)(cq >> 32);
	make.dword[10] = (entries - 1) << 16 | qid;
	make.dword[11] = CONTIGUOUS;
	ret = command(&admin, &make);
	make.dword[0] = NVME_ADMIN_CREATE_SQ;
	make.dword[6] = (uint32_t)sq;
	make.dword[7] = (uint32_t)(sq >> 32);
	make.dword[11] = CONTIGUOUS | qid << 16;
	return ret ? ret : command(&admin, &make);
}

static int set_word(uint32_t word, uint32_t value)
{
	return client_write(&ctrl, CLIENT_CONFIG, BADCTRL_CONFIG_ADDRESS, &word, 4) ?:
	       client_write(&ctrl, CLIENT_CONFIG, BADCTRL_CONFIG_DATA, &value, 4);
}

static int wait_ready(void)
{
	uint32_t status = 0;
	int ret = 0, looks;

	for (looks = 0; looks < 5000 && !ret && !(status & 1); looks++) {
		usleep(1000);
		ret = client_read(&ctrl, 0, REG_CSTS, &status, sizeof(status));
	}
	return ret ? ret : status & 1 ? 0 : -ETIMEDOUT;
}

static int start_controller(void)
{
	const uint32_t attributes = 31 << 16 | 31, on = CC_ON;
	const uint64_t sq = RAM_BUS + ADMIN_SQ, cq = RAM_BUS + ADMIN_CQ;

	admin = (struct ring){ (struct entry *)(ram + ADMIN_SQ),
			       (volatile uint32_t *)(ram + ADMIN_CQ), 32, 0, 0 };
	return set_word(BADCTRL_MODE, BADCTRL_WORKS) ?:
	       set_word(BADCTRL_GRANT, PAIRS + 1) ?:
	       client_write(&ctrl, 0, REG_AQA, &attributes, sizeof(attributes)) ?:
	       client_write(&ctrl, 0, REG_ASQ, &sq, sizeof(sq)) ?:
	       client_write(&ctrl, 0, REG_ACQ, &cq, sizeof(cq)) ?:
	       client_write(&ctrl, 0, REG_CC, &on, sizeof(on)) ?: wait_ready();
}

/* --- The GPU --------------------------------------------------------------------- */

/* Reads of the GPU by message, to identify the doorbell page of the controller. */
static int read_bar(struct client *client, struct vfu_message *asked)
{
	uint64_t offset = asked->dma.address - BAR_BUS;

	(void)client;
	if (asked->header.command != VFU_DMA_READ || offset > BADCTRL_BAR_BYTES ||
	    asked->dma.count > BADCTRL_BAR_BYTES - offset)
		return EFAULT;
	memcpy(asked->payload + sizeof(asked->dma),
	       (const uint8_t *)(uintptr_t)registers + offset, asked->dma.count);
	return 0;
}

static int start_gpu(void)
{
	const uint64_t table = TABLE, pages = 1;
	uint64_t entry = BAR_BUS + BADCTRL_DOORBELLS;

	entry |= SOFTGPU_PTE_VALID | SOFTGPU_PTE_WRITE;
	memcpy(hbm + TABLE, &entry, sizeof(entry));
	gpu.dma = read_bar;
	return client_read(&gpu, 0, SOFTGPU_REG_HBM_VA, &hbm_va, 8) ?:
	       client_read(&gpu, 0, SOFTGPU_REG_MMU_VA, &mmu_va, 8) ?:
	       client_write(&gpu, 0, SOFTGPU_REG_TABLE, &table, 8) ?:
	       client_write(&gpu, 0, SOFTGPU_REG_TABLE_PAGES, &pages, 8);
}

static struct softgpu_job *job_at(unsigned int slot)
{
	return (struct softgpu_job *)(hbm + JOBS + slot * JOB_STRIDE);
}

static int start_job(unsigned int slot, uint32_t program, uint32_t threads,
		     const struct softgpu_io *io)
{
	const uint64_t offset = JOBS + slot * JOB_STRIDE;
	const uint32_t start = SOFTGPU_CONTROL_START;
	struct softgpu_job *job = job_at(slot);

	*job = (struct softgpu_job){ .program = program, .threads = threads };
	memcpy(job->parameters, io, sizeof(*io));
	return client_write(&gpu, 0, SOFTGPU_REG_SLOT(slot) + SOFTGPU_SLOT_JOB, &offset, 8) ?:
	       client_write(&gpu, 0, SOFTGPU_REG_SLOT(slot) + SOFTGPU_SLOT_CONTROL, &start, 4);
}

/* Serve bus reads of the device until its job ends. */
static int end_job(unsigned int slot)
{
	uint32_t busy = 1;
	int ret = 0, looks;

	for (looks = 0; looks < 60000 && !ret && busy; looks++) {
		ret = client_read(&gpu, 0, SOFTGPU_REG_SLOT(slot) + SOFTGPU_SLOT_STATUS, &busy, 4);
		if (busy)
			usleep(500);
	}
	if (ret || busy)
		return ret ? ret : -ETIMEDOUT;
	if (job_at(slot)->result.status == SOFTGPU_OK)
		return 0;
	fprintf(stderr, "bare: job: status %u, error %d at %llx\n", job_at(slot)->result.status,
		job_at(slot)->result.error, (unsigned long long)job_at(slot)->result.where);
	return -EIO;
}

static int run_job(uint32_t program, uint32_t threads, const struct softgpu_io *io)
{
	int ret = start_job(0, program, threads, io);

	return ret ? ret : end_job(0);
}

/* --- Queue pairs ------------------------------------------------------------------ */

/* Everything is in GPU memory, like with the module when rings are there. */
static void describe(unsigned int pair)
{
	uint64_t part = PARTS + (uint64_t)pair * PART_BYTES, va = hbm_va + part;
	uint64_t doorbell = mmu_va + 8ULL * (pair + 1);
	const uint32_t live = NVP_STATE_LIVE, generation = 1;
	struct softgpu_io *io = &ios[pair];

	memcpy(hbm + part + PART_STATUS + NVP_STATUS_STATE, &live, 4);
	memcpy(hbm + part + PART_STATUS + NVP_STATUS_LOSSES, &generation, 4);
	io->queue = (struct nvmepeer_geometry){
		.version = NVMEPEER_GEOMETRY_VERSION,
		.sq = va + PART_SQ, .cq = va + PART_CQ,
		.sq_doorbell = doorbell, .cq_doorbell = doorbell + 4,
		.status = va + PART_STATUS, .control = va + PART_REQUEST,
		.state = va + PART_STATE, .list_area = va + PART_LISTS,
		.list_memory = { .length = PART_DATA - PART_LISTS,
				 .dma = HBM_BUS + part + PART_LISTS },
		.timeout_ns = 5000000000ULL,
		.sq_entries = ENTRIES, .cq_entries = ENTRIES, .list_bytes = LIST_BYTES,
		.generation = generation, .qid = pair + 1, .nsid = 1, .lba_shift = 9,
		.page_shift = 12, .max_transfer = MAX_TRANSFER,
	};
	io->data = (struct nvmepeer_buffer){ .length = DATA_BYTES,
					     .dma = HBM_BUS + part + PART_DATA };
	io->data_address = va + PART_DATA;
	io->lba_count = RANGE / 512;
	io->blocks = PAGE / 512;
	io->depth = 1;
	io->seed = 1;
}

static int open_pairs(void)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < PAIRS && !ret; i++) {
		uint64_t part = HBM_BUS + PARTS + (uint64_t)i * PART_BYTES;

		describe(i);
		ret = create(i + 1, ENTRIES, part + PART_SQ, part + PART_CQ) ?:
		      run_job(SOFTGPU_QUEUE_INIT, 1, &ios[i]);
	}
	return ret;
}

/* Verify data before measuring: one pair writes, and all of them compare in one job. */
static int verify(void)
{
	struct softgpu_io io = ios[0];
	int ret;

	memcpy(hbm + MORE, &ios[1], (PAIRS - 1) * sizeof(ios[0]));
	io.pairs = PAIRS;
	io.more = hbm_va + MORE;
	ret = run_job(SOFTGPU_WRITE, 64, &ios[0]) ?: run_job(SOFTGPU_VERIFY, 4 * PAIRS, &io) ?:
	      run_job(SOFTGPU_VERIFY, 64 * PAIRS, &io);
	if (!ret && job_at(0)->result.reads != (uint64_t)PAIRS * (RANGE / PAGE))
		ret = -EBADMSG;
	return ret;
}

/* --- Measuring --------------------------------------------------------------------- */

static int rate(unsigned int pairs, uint32_t threads, uint64_t duration_ns)
{
	double sum = 0;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < pairs && !ret; i++) {
		ios[i].duration_ns = duration_ns;
		ret = start_job(i, SOFTGPU_RATE, threads, &ios[i]);
	}
	for (i = 0; i < pairs && !ret; i++) {
		ret = end_job(i);
		sum += (double)job_at(i)->result.reads * 1e9 /
		       (double)job_at(i)->result.elapsed_ns;
	}
	if (!ret)
		printf("# bare: {\"pairs\": %u, \"threads\": %u, \"bytes\": %u, \"per_second\": %.0f}\n",
		       pairs, pairs * threads, PAGE, sum);
	return ret;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void print_latency(const char *what, const char *by, uint64_t *samples)
{
	qsort(samples, SAMPLES, sizeof(*samples), compare);
	printf("# %s: {\"by\": \"%s\", \"median_ns\": %llu, \"p99_ns\": %llu, \"min_ns\": %llu}\n",
	       what, by, (unsigned long long)samples[SAMPLES / 2],
	       (unsigned long long)samples[SAMPLES * 99 / 100], (unsigned long long)samples[0]);
}

static int latency(uint32_t program, const char *what)
{
	struct softgpu_io io = ios[0];
	uint64_t where = PARTS + PART_DATA + DATA_BYTES / 2;
	int ret;

	io.data.length /= 2;
	io.commands = SAMPLES;
	io.duration_ns = 0;
	io.samples = hbm_va + where;
	io.sample_count = SAMPLES;
	ret = run_job(program, 1, &io);
	if (!ret)
		print_latency("bare latency", what, (uint64_t *)(hbm + where));
	return ret;
}

static struct ring own;

static int open_own(void)
{
	own = (struct ring){ (struct entry *)(ram + OWN_SQ), (volatile uint32_t *)(ram + OWN_CQ),
			     OWN_ENTRIES, PAIRS + 1, 0 };
	return create(own.qid, OWN_ENTRIES, RAM_BUS + OWN_SQ, RAM_BUS + OWN_CQ);
}

/* A CPU thread instead of a GPU thread. */
static int turn_round(void)
{
	static uint64_t samples[SAMPLES];
	struct entry read = { { NVMEPEER_OP_READ, 1 } };
	unsigned int i;
	int ret = 0;

	read.dword[6] = RAM_BUS + OWN_DATA;
	read.dword[12] = PAGE / 512 - 1;
	for (i = 0; i < SAMPLES && !ret; i++) {
		read.dword[10] = i % (RANGE / PAGE) * (PAGE / 512);
		samples[i] = now_ns();
		ret = command(&own, &read);
		samples[i] = now_ns() - samples[i];
	}
	if (!ret)
		print_latency("turn", "cpu", samples);
	return ret;
}

/* --- Start ---------------------------------------------------------------------------- */

static void *map_file(int fd, uint64_t *bytes)
{
	struct stat status;
	void *memory;

	if (fd < 0 || fstat(fd, &status))
		return NULL;
	*bytes = (uint64_t)status.st_size;
	memory = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

/* Both devices map the same memory at the same addresses. */
static int share(const char *folder)
{
	int directory = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int bar = openat(directory, BADCTRL_SHARED_BAR, O_RDWR | O_CLOEXEC);
	int memory = openat(directory, BADCTRL_SHARED_MEMORY, O_RDWR | O_CLOEXEC);
	int ram_fd = memfd_create("ram", MFD_CLOEXEC);
	uint64_t bytes;

	if (ram_fd < 0 || ftruncate(ram_fd, RAM_BYTES))
		return -errno;
	ram = map_file(ram_fd, &bytes);
	hbm = map_file(memory, &hbm_bytes);
	registers = map_file(bar, &bytes);
	if (!ram || !hbm || !registers || hbm_bytes < PARTS + (uint64_t)PAIRS * PART_BYTES)
		return -ENOMEM;
	return client_map(&gpu, RAM_BUS, RAM_BYTES, CLIENT_RW, ram_fd, 0) ?:
	       client_map(&gpu, HBM_BUS, hbm_bytes, CLIENT_RW, memory, 0) ?:
	       client_map(&ctrl, RAM_BUS, RAM_BYTES, CLIENT_RW, ram_fd, 0) ?:
	       client_map(&ctrl, HBM_BUS, hbm_bytes, CLIENT_RW, memory, 0);
}

static int start(char **argv)
{
	return client_open(&gpu, argv[1]) ?: client_open(&ctrl, argv[2]) ?: share(argv[3]) ?:
	       client_enable(&gpu, true) ?: client_enable(&ctrl, true) ?: start_controller() ?:
	       start_gpu() ?: open_pairs() ?: open_own();
}

static int measure(int count, char **threads, uint64_t duration_ns)
{
	unsigned int pairs;
	int ret = 0, i;

	for (i = 0; i < count; i++)
		for (pairs = 1; pairs <= PAIRS && !ret; pairs *= 4)
			ret = rate(pairs, (uint32_t)strtoul(threads[i], NULL, 10), duration_ns);
	return ret ?: latency(SOFTGPU_LATENCY, "call") ?: latency(SOFTGPU_EXCLUSIVE, "exclusive") ?:
	       latency(SOFTGPU_EXCHANGE, "hand") ?: turn_round();
}

int main(int argc, char **argv)
{
	int ret, rounds;

	if (argc < 7) {
		fputs("usage: bare GPU_SOCKET CONTROLLER_SOCKET SHARED_DIRECTORY ROUNDS SECONDS THREADS...\n",
		      stderr);
		return 2;
	}
	ret = start(argv) ?: verify();
	for (rounds = atoi(argv[4]); rounds > 0 && !ret; rounds--)
		ret = measure(argc - 6, argv + 6, (uint64_t)(strtod(argv[5], NULL) * 1e9));
	if (ret)
		fprintf(stderr, "bare: %s (%d)\n", strerror(ret < 0 ? -ret : EIO), ret);
	return ret ? 1 : 0;
}
