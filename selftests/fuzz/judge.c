// SPDX-License-Identifier: GPL-2.0-only
/* Compare results with the expected ones: see judge.h. */
#include "judge.h"
#include "program.h"

#include <stdio.h>
#include <string.h>

/* The first few violations suffice. */
#define MAX_REPORTED	10

/* The calls up to this one, in the format of a corpus. */
static void format_program(const struct fuzz_thread *thread, char *text, size_t size)
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

	if (atomic_fetch_add(&thread->judge->violations, 1) >= MAX_REPORTED)
		return;
	format_program(thread, text, sizeof(text));
	printf("# violation: %s: call %lu of a thread %s CAP_SYS_ADMIN, %s CAP_SYS_RAWIO: %s: %s (%d)\n"
	       "# repeat: --program '%s'\n",
	       thread->judge->round, thread->calls, caller->admin ? "with" : "without",
	       caller->rawio ? "with" : "without", call, wrong, answer, text);
}

/*
 * From 512 on errnos are internal to the kernel: ERESTARTSYS, ENOIOCTLCMD, ENOTSUPP and
 * so on.
 */
void fuzz_result(struct fuzz_thread *thread, const char *call, int answer)
{
	if (answer <= -512)
		fuzz_violation(thread, call, "a kernel-internal errno", answer);
}

void fuzz_judge(struct fuzz_thread *thread, const char *call, struct np_permit permit, bool exact,
		int answer)
{
	const char *wrong = np_permit_violation(&permit, exact, answer);

	atomic_fetch_add(permit.allowed ? &thread->judge->allowed : &thread->judge->refused, 1);
	if (wrong)
		fuzz_violation(thread, call, wrong, answer);
	else
		fuzz_result(thread, call, answer);
}
