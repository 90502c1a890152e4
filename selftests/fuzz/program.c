// SPDX-License-Identifier: GPL-2.0-only
/* Sequences of calls, and the corpus of those worth keeping: see program.h. */
#include "operations.h"
#include "program.h"
#include "random.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MOST_OPERATIONS	64
#define CORPUS		512
#define SAVED		64
#define SEPARATORS	"\n "

static const struct fuzz_operation *operations[MOST_OPERATIONS];
static unsigned int operation_count;
static unsigned int total_weight;

/* Guarded by lock. */
static struct fuzz_program corpus[CORPUS];
static unsigned int corpus_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add_operations(const struct fuzz_operation *table)
{
	for (; table->name && operation_count < MOST_OPERATIONS; table++) {
		operations[operation_count++] = table;
		total_weight += table->weight;
	}
}

void fuzz_operations_init(void)
{
	add_operations(fuzz_peer_operations);
	add_operations(fuzz_memory_operations);
	add_operations(fuzz_nvme_operations);
	add_operations(fuzz_process_operations);
	add_operations(fuzz_rights_operations);
	/* A corpus names operations by number, so new tables are added at the end. */
	add_operations(fuzz_transfer_operations);
}

static struct fuzz_call choose_call(struct fuzz_thread *thread)
{
	uint32_t left = fuzz_below(thread, total_weight);
	struct fuzz_call call = { .seed = fuzz_random(thread) };

	while (left >= operations[call.operation]->weight)
		left -= operations[call.operation++]->weight;
	return call;
}

/* Replace some calls of a kept program. */
static void vary(struct fuzz_thread *thread, struct fuzz_program *program)
{
	unsigned int changes = 1 + fuzz_below(thread, 3), at;

	while (changes--) {
		at = fuzz_below(thread, program->length);
		if (fuzz_one_in(thread, 2))
			program->calls[at].seed = fuzz_random(thread);
		else
			program->calls[at] = choose_call(thread);
	}
}

void fuzz_program_choose(struct fuzz_thread *thread, struct fuzz_program *program)
{
	bool from_corpus = fuzz_one_in(thread, 2);
	uint64_t choice = fuzz_random(thread);
	unsigned int i;

	pthread_mutex_lock(&lock);
	from_corpus &= corpus_count > 0;
	if (from_corpus)
		*program = corpus[choice % corpus_count];
	pthread_mutex_unlock(&lock);
	if (from_corpus) {
		vary(thread, program);
		return;
	}
	program->length = 1 + fuzz_below(thread, FUZZ_PROGRAM);
	for (i = 0; i < program->length; i++)
		program->calls[i] = choose_call(thread);
}

void fuzz_program_run(struct fuzz_thread *thread, const struct fuzz_program *program)
{
	const struct fuzz_operation *operation;
	uint64_t random = thread->random;
	unsigned int i;

	thread->program = program;
	for (i = 0; i < program->length; i++, thread->calls++) {
		operation = operations[program->calls[i].operation % operation_count];
		if (operation->root && !thread->caller.root)
			continue;
		thread->at = i;
		thread->random = program->calls[i].seed;
		operation->run(thread);
	}
	thread->random = random;
}

void fuzz_corpus_add(const struct fuzz_program *program)
{
	pthread_mutex_lock(&lock);
	/*
	 * A full corpus keeps the oldest half of its entries and replaces the others in
	 * turn.
	 */
	if (corpus_count < CORPUS)
		corpus[corpus_count++] = *program;
	else
		corpus[CORPUS / 2 + program->calls[0].seed % (CORPUS / 2)] = *program;
	pthread_mutex_unlock(&lock);
}

unsigned int fuzz_corpus_size(void)
{
	return corpus_count;
}

bool fuzz_program_parse(char *text, struct fuzz_program *program)
{
	struct fuzz_call *call;
	char *word, *rest;

	program->length = 0;
	for (word = strtok_r(text, SEPARATORS, &rest); word && program->length < FUZZ_PROGRAM;
	     word = strtok_r(NULL, SEPARATORS, &rest)) {
		call = &program->calls[program->length];
		if (sscanf(word, "%" SCNu8 ":%" SCNx64, &call->operation, &call->seed) == 2)
			program->length++;
	}
	return program->length;
}

int fuzz_corpus_load(const char *path)
{
	FILE *file = fopen(path, "re");
	struct fuzz_program program;
	char line[512];

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file))
		if (line[0] != '#' && fuzz_program_parse(line, &program))
			fuzz_corpus_add(&program);
	fclose(file);
	return 0;
}

/* A readable number of programs, the oldest and the newest ones. */
int fuzz_corpus_save(const char *path)
{
	unsigned int step = 1 + corpus_count / SAVED, i, j;
	FILE *file = fopen(path, "we");

	if (!file)
		return -errno;
	fprintf(file, "# Programs for the fuzzer: OPERATION:SEED ...\n");
	for (i = 0; i < corpus_count; i += step) {
		for (j = 0; j < corpus[i].length; j++)
			fprintf(file, FUZZ_CALL_FORMAT, j ? " " : "", corpus[i].calls[j].operation,
				corpus[i].calls[j].seed);
		fputc('\n', file);
	}
	return fclose(file) ? -errno : 0;
}
