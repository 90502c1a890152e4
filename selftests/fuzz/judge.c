// SPDX-License-Identifier: GPL-2.0-only
/* Compare answers with what they have to be: see judge.h. */
#include "judge.h"
#include "program.h"

#include <stdio.h>
#include <string.h>

/* The first few say enough. */
#define MOST_TOLD	10

/* The calls up to this one, in the words that a corpus has them in. */
static void tell_program(const struct fuzz_thread *thread, char *text, size_t size)
{
	size_t length = 0;
	unsigned int i;

	text[0] = '\0';
	for (i = 0; thread->program && i <= thread->at && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, FUZZ_CALL_FORMAT,
					   i ? " " : "", thread->program->calls[i].operation,
					   thread->program->calls[i].seed);
}

void fuzz_violation(struct fuzz_thread *thread, const char *call, const char *wrong, int answer)
{
	const struct np_caller *caller = &thread->caller;
	char text[FUZZ_PROGRAM_TEXT];

	if (atomic_fetch_add(&thread->judge->violations, 1) >= MOST_TOLD)
		return;
	tell_program(thread, text, sizeof(text));
	printf("# violation: %s: call %lu of a thread %s CAP_SYS_ADMIN, %s CAP_SYS_RAWIO: %s: %s (%d)\n"
	       "# again: --program '%s'\n",
	       thread->judge->round, thread->calls, caller->admin ? "with" : "without",
	       caller->rawio ? "with" : "without", call, wrong, answer, text);
}

/* Errors from 512 on are the kernel's own: ERESTARTSYS, ENOIOCTLCMD, ENOTSUPP and so on. */
void fuzz_result(struct fuzz_thread *thread, const char *call, int answer)
{
	if (answer <= -512)
		fuzz_violation(thread, call, "an error of the kernel's own", answer);
}

void fuzz_judge(struct fuzz_thread *thread, const char *call, struct np_permit permit, bool exact,
		int answer)
{
	const char *wrong = np_permit_broken(&permit, exact, answer);

	atomic_fetch_add(permit.allowed ? &thread->judge->allowed : &thread->judge->refused, 1);
	if (wrong)
		fuzz_violation(thread, call, wrong, answer);
	else
		fuzz_result(thread, call, answer);
}
