// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run the fuzzer: with and without rights, by one thread and by several while
 * the controller is reset and unbound. What must come of it: no splat in the
 * kernel's log (the runner looks), no right that was not there, no error that
 * is none, nothing left behind, a device that works.
 *
 * usage: fuzz [--calls N] [--seed N] [--corpus FILE] [--save FILE]
 *
 * kernels: debug kcsan
 * iommu: on
 * timeout: 300
 * long-timeout: 8000
 * arguments: --calls 100000
 * long-arguments: --calls 1000000
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos.h"
#include "cover.h"
#include "pool.h"
#include "program.h"
#include "nptest.h"
#include "kselftest.h"

#define NOBODY		65534
#define SETTLE_MS	60000

static struct {
	unsigned long calls;
	uint64_t seed;
	const char *corpus;
	const char *save;
} options = { .calls = 100000, .seed = 1, .corpus = "/selftests/fuzz/corpus" };

/**
 * struct round - one way to run it
 * @name: in reports
 * @share: of all calls, in percent
 * @threads: that make calls
 * @privileged: with all rights, or none
 * @chaos: reset, unbind and bind meanwhile
 */
struct round {
	const char *name;
	unsigned int share;
	unsigned int threads;
	bool privileged;
	bool chaos;
};

static const struct round rounds[] = {
	{ "alone", 40, 1, true, false },
	{ "four threads", 25, 4, true, false },
	{ "four threads, resets and unbinds", 25, 4, true, true },
	{ "two threads without rights", 10, 2, false, false },
};

#define ROUNDS	(sizeof(rounds) / sizeof(rounds[0]))

/**
 * struct worker - one thread that makes calls
 * @calls: how many it is to make
 * @made: how many it made
 */
struct worker {
	pthread_t id;
	struct fuzz_thread thread;
	unsigned long calls;
	unsigned long made;
};

static void *work(void *argument)
{
	struct fuzz_cover *cover = fuzz_cover_open();
	struct worker *worker = argument;
	struct fuzz_program program;

	while (worker->made < worker->calls) {
		fuzz_program_choose(&worker->thread, &program);
		fuzz_cover_begin(cover);
		fuzz_program_run(&worker->thread, &program);
		if (fuzz_cover_end(cover))
			fuzz_corpus_add(&program);
		worker->made += program.length;
	}
	fuzz_cover_close(cover);
	return NULL;
}

/* A page with nothing behind it. */
static uint8_t *last_page(void)
{
	uint8_t *pages = mmap(NULL, 2 * NP_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || mprotect(pages + NP_PAGE, NP_PAGE, PROT_NONE))
		exit(KSFT_FAIL);
	return pages;
}

static int give_up_rights(void)
{
	return setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	       setresuid(NOBODY, NOBODY, NOBODY) ? -errno : 0;
}

/* Nodes that somebody with rights opened and passed on. */
static void open_nodes(struct fuzz_thread *thread)
{
	const char *const formats[] = { "/dev/nvmep%d", "/dev/ngp%dn1", "/dev/nvmep%dn1" };
	struct np_ctrl ctrl;
	unsigned int i;

	if (np_ctrl_open(&ctrl, "np0"))
		return;
	fuzz_add_fd(thread, FUZZ_CONTROLLER, ctrl.fd);
	for (i = 1; i < 3; i++)
		fuzz_add_fd(thread, (enum fuzz_kind)i, np_open_node(&ctrl, formats[i], O_RDWR));
	for (i = 0; i < 4; i++)
		fuzz_add_fd(thread, FUZZ_BUFFER, np_test_export(8, 0));
}

/* In a process of its own, so that its end closes what is left. Returns violations. */
static int run_round(const struct round *round)
{
	struct fuzz_rights rights = { .privileged = round->privileged };
	struct worker workers[8] = { 0 };
	atomic_bool stop = false;
	struct fuzz_chaos chaos = { .stop = &stop, .seed = options.seed };
	pthread_t chaos_id;
	unsigned long made = 0;
	int64_t began = np_now_ms();
	unsigned int i;

	for (i = 0; i < round->threads; i++) {
		workers[i].thread.random = options.seed + i * 0x51ed2701ULL;
		workers[i].thread.page = last_page();
		workers[i].thread.rights = &rights;
		workers[i].calls = options.calls * round->share / 100 / round->threads;
	}
	open_nodes(&workers[0].thread);
	if (!round->privileged && give_up_rights())
		return 255;
	if (round->chaos)
		pthread_create(&chaos_id, NULL, fuzz_chaos_thread, &chaos);
	for (i = 0; i < round->threads; i++)
		pthread_create(&workers[i].id, NULL, work, &workers[i]);
	for (i = 0; i < round->threads; i++) {
		pthread_join(workers[i].id, NULL);
		made += workers[i].made;
	}
	atomic_store(&stop, true);
	if (round->chaos)
		pthread_join(chaos_id, NULL);
	if (options.save && round->privileged && !round->chaos)
		fuzz_corpus_save(options.save);
	ksft_print_msg("%s: %lu calls in %lld s, %u places reached, %u programs kept, %u events\n",
		       round->name, made, (long long)(np_now_ms() - began) / 1000,
		       fuzz_cover_total(), fuzz_corpus_size(), chaos.events);
	/* Half of the resources are closed one by one, the rest by the end of the process. */
	if (options.seed & 1)
		fuzz_drop_all();
	return rights.violations > 254 ? 254 : (int)rights.violations;
}

/* 0, or what came of it: a signal makes it 128 and more. */
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

static int check_device(const char *before)
{
	struct np_ctrl ctrl;
	int ret;

	ret = np_ctrl_open(&ctrl, "np0");
	if (ret)
		return ret;
	ret = np_qp_try(ctrl.fd, SETTLE_MS);
	np_ctrl_close(&ctrl);
	return ret ?: np_module_objects_settle(before, SETTLE_MS);
}

static void parse_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "calls", required_argument, NULL, 'c' },
		{ "seed", required_argument, NULL, 's' },
		{ "corpus", required_argument, NULL, 'i' },
		{ "save", required_argument, NULL, 'o' },
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
		default:
			ksft_exit_fail_msg("usage: fuzz [--calls N] [--seed N] [--corpus FILE] [--save FILE]\n");
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
	ret = np_ctrl_open(&ctrl, "np0");
	np_ctrl_close(&ctrl);
	if (ret || np_module_objects(before))
		ksft_exit_fail_msg("no controller: %s\n", strerror(-ret));
	ksft_set_plan(2 * ROUNDS);
	for (i = 0; i < ROUNDS; i++) {
		ret = run_round_apart(&rounds[i]);
		ksft_test_result(!ret, "%s (%d)\n", rounds[i].name, ret);
		ret = check_device(before);
		ksft_test_result(!ret, "%s: the device works, nothing is left (%s)\n",
				 rounds[i].name, strerror(-ret));
	}
	ksft_finished();
}
