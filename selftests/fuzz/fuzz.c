// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run the fuzzer with and without rights, in one thread and in several while the
 * controller is reset and unbound. Requirements: no kernel splat (checked by the runner),
 * permissions as permit.h says, no kernel-internal errno, nothing left behind, and a
 * device that works.
 *
 * usage: fuzz [--calls N] [--seed N] [--corpus FILE] [--save FILE] [--program WORDS]
 *
 * A call with a wrong result is reported with the program that ends with it. --program
 * repeats that program and runs nothing else.
 *
 * kernels: debug kcsan
 * iommu: on
 * timeout: 300
 * long-timeout: 8000
 * arguments: --calls 10000
 * long-arguments: --calls 1000000
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caller.h"
#include "chaos.h"
#include "cover.h"
#include "judge.h"
#include "pool.h"
#include "program.h"
#include "trace_check.h"
#include "nptest.h"
#include "kselftest.h"

#define SETTLE_MS	60000

static struct {
	unsigned long calls;
	uint64_t seed;
	const char *corpus;
	const char *save;
	struct fuzz_program program;
} options = { .calls = 100000, .seed = 1, .corpus = "/selftests/fuzz/corpus" };

/**
 * struct round - one configuration of the fuzzer
 * @name: in reports
 * @share: of all calls, in percent
 * @threads: that make calls
 * @root: all threads have all rights; otherwise each has its own, on nodes that a
 *	privileged process opened
 * @chaos: reset, unbind and bind concurrently
 */
struct round {
	const char *name;
	unsigned int share;
	unsigned int threads;
	bool root;
	bool chaos;
};

static const struct round rounds[] = {
	{ "alone", 38, 1, true, false },
	{ "four threads", 23, 4, true, false },
	{ "four threads, resets and unbinds", 23, 4, true, true },
	{ "four threads without rights or with one", 16, 4, false, false },
};

/* np0's effects log for I/O commands. */
static uint32_t effects[NP_OPCODES];

static const struct np_caller root = { .admin = true, .rawio = true, .root = true };
static const struct np_caller callers[] = { { 0 }, { .admin = true }, { 0 }, { .rawio = true } };

#define ROUNDS	(sizeof(rounds) / sizeof(rounds[0]))

/**
 * struct worker - one thread that makes calls
 * @calls: how many it has to make
 */
struct worker {
	pthread_t id;
	struct fuzz_thread thread;
	unsigned long calls;
};

static void *work(void *argument)
{
	struct fuzz_cover *cover = fuzz_cover_open();
	struct worker *worker = argument;
	struct fuzz_program program;

	if (!worker->thread.caller.root && fuzz_caller_become(&worker->thread.caller))
		fuzz_violation(&worker->thread, "capset", "has other rights than expected", 0);
	while (worker->thread.calls < worker->calls) {
		if (options.program.length)
			program = options.program;
		else
			fuzz_program_choose(&worker->thread, &program);
		fuzz_cover_begin(cover);
		fuzz_program_run(&worker->thread, &program);
		if (fuzz_cover_end(cover))
			fuzz_corpus_add(&program);
	}
	fuzz_cover_close(cover);
	return NULL;
}

/* A page that is followed by unmapped memory. */
static uint8_t *last_page(void)
{
	uint8_t *pages = mmap(NULL, 2 * NP_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || mprotect(pages + NP_PAGE, NP_PAGE, PROT_NONE))
		exit(KSFT_FAIL);
	return pages;
}

/*
 * Nodes that a privileged process opened and passed on, some of them read-only. A
 * partition is for callers that may not send commands through it. Returns np0's instance.
 */
static int open_nodes(const struct round *round)
{
	static const struct {
		const char *format;
		enum fuzz_kind kind;
		int flags;
	} nodes[] = {
		{ "/dev/nvmep%d", FUZZ_CONTROLLER, O_RDONLY },
		{ "/dev/ngp%dn1", FUZZ_GENERIC, O_RDWR },
		{ "/dev/ngp%dn1", FUZZ_GENERIC, O_RDONLY },
		{ "/dev/nvmep%dn1", FUZZ_DISK, O_RDWR },
		{ "/dev/nvmep%dn1", FUZZ_DISK, O_RDONLY },
		{ "/dev/nvmep%dn1p1", FUZZ_PARTITION, O_RDWR },
	};
	struct fuzz_thread thread = { .random = options.seed };
	struct np_ctrl ctrl;
	unsigned int i;
	int ret;

	ret = np_ctrl_open(&ctrl, "np0");
	if (ret)
		return ret;
	fuzz_add_fd(&thread, FUZZ_CONTROLLER, ctrl.fd);
	for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		if (nodes[i].kind == FUZZ_PARTITION && round->root)
			continue;
		fuzz_add_fd(&thread, nodes[i].kind,
			    np_open_node(&ctrl, nodes[i].format, nodes[i].flags));
	}
	for (i = 0; i < 4; i++)
		fuzz_add_fd(&thread, FUZZ_BUFFER, np_test_export(8, 0));
	return ctrl.instance;
}

static void set_up(struct worker *worker, const struct round *round, unsigned int number,
		   int instance, struct fuzz_judge *judge)
{
	worker->thread.random = options.seed + number * 0x51ed2701ULL;
	worker->thread.page = last_page();
	worker->thread.caller = round->root ? root : callers[number];
	worker->thread.instance = (uint32_t)instance;
	worker->thread.judge = judge;
	worker->calls = options.calls * round->share / 100 / round->threads;
}

/* Join all threads: how many calls they made. */
static unsigned long run_threads(struct worker *workers, unsigned int count)
{
	unsigned long made = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		pthread_create(&workers[i].id, NULL, work, &workers[i]);
	for (i = 0; i < count; i++) {
		pthread_join(workers[i].id, NULL);
		made += workers[i].thread.calls;
	}
	return made;
}

/* A model of permissions that was never applied has proved nothing. */
static int count_violations(struct fuzz_judge *judge)
{
	if (!options.program.length && (!judge->allowed || !judge->refused)) {
		ksft_print_msg("%s: no result was checked\n", judge->round);
		return 255;
	}
	return judge->violations > 254 ? 254 : (int)judge->violations;
}

/*
 * In a process of its own, whose exit closes what is left. Returns the number of
 * violations.
 */
static int run_round(const struct round *round)
{
	struct fuzz_judge judge = { .round = round->name, .effects = effects };
	struct worker workers[8] = { 0 };
	atomic_bool stop = false;
	struct fuzz_chaos chaos = { .stop = &stop, .seed = options.seed };
	int64_t began = np_now_ms();
	pthread_t chaos_id;
	unsigned long made;
	unsigned int i;
	int instance;

	instance = open_nodes(round);
	if (instance < 0 || (!round->root && fuzz_caller_leave_root()))
		return 255;
	for (i = 0; i < round->threads; i++)
		set_up(&workers[i], round, i, instance, &judge);
	if (round->chaos)
		pthread_create(&chaos_id, NULL, fuzz_chaos_thread, &chaos);
	made = run_threads(workers, round->threads);
	atomic_store(&stop, true);
	if (round->chaos)
		pthread_join(chaos_id, NULL);
	if (options.save && round->root && !round->chaos)
		fuzz_corpus_save(options.save);
	ksft_print_msg("%s: %lu calls in %lld s, %u of them to be refused, %u not, %u program counters reached, %u programs kept, %u events\n",
		       round->name, made, (long long)(np_now_ms() - began) / 1000, judge.refused,
		       judge.allowed, fuzz_cover_total(), fuzz_corpus_size(), chaos.events);
	/* Half of the rounds close their resources one by one, the others by exiting. */
	if (options.seed & 1)
		fuzz_drop_all();
	return count_violations(&judge);
}

/* Exit status of the round; a signal makes it 128 or more. */
static int run_round_apart(const struct round *round)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		return 255;
	if (!child)
		_exit(run_round(round) + fflush(stdout));
	if (waitpid(child, &status, 0) < 0)
		return 255;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Add or remove the partition of np0's disk. */
static int change_partition(int (*change)(int disk))
{
	struct np_ctrl ctrl;
	int ret, disk;

	ret = np_ctrl_open(&ctrl, "np0");
	if (ret)
		return ret;
	disk = np_open_node(&ctrl, "/dev/nvmep%dn1", O_RDWR);
	ret = disk < 0 ? disk : change(disk);
	close(disk);
	np_ctrl_close(&ctrl);
	return ret;
}

static int run_round_on_parts(const struct round *round)
{
	int ret, err = 0;

	if (!round->root && change_partition(np_partition_add))
		return 255;
	ret = run_round_apart(round);
	if (!round->root)
		err = change_partition(np_partition_remove);
	return ret ?: err;
}

/* If the kernel traces submissions, refused commands must not have been submitted. */
static int run_round_watched(const struct round *round)
{
	int watched = fuzz_trace_begin();
	int ret = run_round_on_parts(round);
	int sent;

	if (watched == -ENOENT)
		return ret;
	sent = fuzz_trace_end();
	if (sent)
		ksft_print_msg("%s: %d refused commands were submitted\n", round->name,
			       sent);
	return ret ?: watched ?: sent;
}

static int read_block(const struct np_ctrl *ctrl)
{
	static uint8_t block[NP_PAGE];
	struct nvme_passthru_cmd read = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)block,
		.data_len = NP_BLOCK,
	};
	int generic = np_open_node(ctrl, "/dev/ngp%dn1", O_RDONLY);
	int ret = generic < 0 ? generic : np_ioctl(generic, NVME_IOCTL_IO_CMD, &read);

	close(generic);
	return ret;
}

/*
 * A reset during Format NVM ends it, and QEMU's namespace then is "Format in Progress"
 * until the next one: repeat it for the tests that follow.
 */
static int check_namespace(const struct np_ctrl *ctrl)
{
	struct nvme_admin_cmd format = { .opcode = NVME_ADMIN_FORMAT, .nsid = 1 };
	int ret = read_block(ctrl);

	if (ret != NVME_SC_FORMAT_IN_PROGRESS)
		return ret;
	return np_admin(ctrl->fd, &format) ?: read_block(ctrl);
}

static int check_controller(const char *name)
{
	struct np_ctrl ctrl;
	int ret;

	ret = np_ctrl_open(&ctrl, name);
	if (ret)
		return ret;
	ret = np_qp_check(ctrl.fd, SETTLE_MS) ?: check_namespace(&ctrl);
	np_ctrl_close(&ctrl);
	return ret;
}

static int check_device(const char *before)
{
	return check_controller("np0") ?: check_controller("np1") ?:
	       np_module_objects_wait(before, SETTLE_MS);
}

static void parse_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "calls", required_argument, NULL, 'c' },
		{ "seed", required_argument, NULL, 's' },
		{ "corpus", required_argument, NULL, 'i' },
		{ "save", required_argument, NULL, 'o' },
		{ "program", required_argument, NULL, 'p' },
		{ 0 }
	};
	int option;

	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (option) {
		case 'c':
			options.calls = strtoul(optarg, NULL, 0);
			break;
		case 's':
			options.seed = strtoull(optarg, NULL, 0);
			break;
		case 'i':
			options.corpus = optarg;
			break;
		case 'o':
			options.save = optarg;
			break;
		case 'p':
			if (!fuzz_program_parse(optarg, &options.program))
				ksft_exit_fail_msg("no program: %s\n", optarg);
			break;
		default:
			ksft_exit_fail_msg("usage: fuzz [--calls N] [--seed N] [--corpus FILE] [--save FILE] [--program WORDS]\n");
		}
	}
}

int main(int argc, char **argv)
{
	char before[NP_OBJECTS];
	struct np_ctrl ctrl;
	unsigned int i;
	int ret;

	ksft_print_header();
	parse_options(argc, argv);
	fuzz_operations_init();
	if (fuzz_corpus_load(options.corpus))
		ksft_print_msg("no corpus in %s\n", options.corpus);
	ret = np_ctrl_open(&ctrl, "np0") ?: np_read_effects(ctrl.fd, effects);
	np_ctrl_close(&ctrl);
	if (ret || np_module_objects(before))
		ksft_exit_fail_msg("no controller: %s\n", strerror(-ret));
	ksft_set_plan(2 * ROUNDS);
	for (i = 0; i < ROUNDS; i++) {
		ret = run_round_watched(&rounds[i]);
		ksft_test_result(!ret, "%s (%d)\n", rounds[i].name, ret);
		ret = check_device(before);
		ksft_test_result(!ret, "%s: the device works, nothing is left (%s)\n",
				 rounds[i].name, strerror(-ret));
	}
	ksft_finished();
}
