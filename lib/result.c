// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Explanations of results that no call of the host library returned: completions of
 * io_uring, and results of the device library.  They need no record: kind and number
 * determine the text.
 */
#include <stdio.h>

#include "internal.h"

static const struct {
	const char *call;
	const char *what;
} kinds[] = {
	[NVMEPEER_RESULT_COMMAND] = { "nvmepeer_prep_command", "the command failed" },
	[NVMEPEER_RESULT_BUFFER] = { "nvmepeer_prep_buf_rw", "the I/O on an imported buffer failed" },
	[NVMEPEER_RESULT_DEVICE] = { "nvmepeer_device", "the command of a peer failed" },
};

static void explain_negative(enum nvmepeer_result kind, int result,
			     struct nvmepeer_explanation *explanation)
{
	explanation->error = -result;
	if (kind == NVMEPEER_RESULT_COMMAND)
		explain_error(CALL_COMMAND, -result, explanation);
	else if (kind == NVMEPEER_RESULT_BUFFER)
		explain_error(CALL_URING_IO, -result, explanation);
	else if (!meaning_of_device_result(result, explanation))
		explain_error(CALL_NONE, -result, explanation);
}

int nvmepeer_explain_result(enum nvmepeer_result kind, int result,
			    struct nvmepeer_explanation *explanation, size_t size)
{
	struct nvmepeer_explanation made = { 0 };

	if (size < EXPLANATION_LEAST || (size_t)kind >= ARRAY_SIZE(kinds))
		return -EINVAL;
	made.call = kinds[kind].call;
	snprintf(made.what, sizeof(made.what), "%s", result ? kinds[kind].what : "no call has failed");
	made.status = result > 0 ? result : 0;
	if (result > 0)
		explain_status(result, &made);
	else if (result)
		explain_negative(kind, result, &made);
	struct_copy(explanation, size, &made, sizeof(made));
	return made.error ? -made.error : made.status;
}
