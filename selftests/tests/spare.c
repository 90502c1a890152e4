// SPDX-License-Identifier: GPL-2.0-only
/* Tests on a spare controller of any machine; see spare.h. */
#include "spare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of kselftest.h, which has the exit status of a skipped test. */
#define SKIPPED	4

static bool keeps_disk;

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

void np_keep_disk(void)
{
	keeps_disk = true;
}

bool np_spare(void)
{
	return environment("TEST_BDF");
}

/* lib/run-target puts this line into the result. */
void np_spare_lacks(const char *what)
{
	if (!np_spare())
		return;
	fflush(stdout);
	fprintf(stderr, "#      SKIP      needs %s\n", what);
	_exit(SKIPPED);
}

void np_spare_needs(bool has, const char *what)
{
	if (!has)
		np_spare_lacks(what);
}

const char *np_spare_or(const char *name)
{
	return np_spare() ? "np0" : name;
}

const char *np_spare_address(const char *name)
{
	static const struct {
		const char *name;
		const char *variable;
		const char *what;
	} functions[] = {
		{ "np0", "TEST_BDF", "TEST_BDF=ADDRESS" },
		{ "np1", "TEST_BDF2", "TEST_BDF2=ADDRESS, a second controller" },
		{ "bad", NULL, "badctrl, the emulated controller that injects faults" },
		{ "badctrl", NULL, "badctrl, the emulated controller that injects faults" },
		{ "softgpu", NULL, "softgpu, the emulated GPU" },
	};
	const char *address;
	size_t i;

	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, name))
			continue;
		address = functions[i].variable ? environment(functions[i].variable) : NULL;
		if (!address)
			np_spare_lacks(functions[i].what);
		return address;
	}
	np_spare_lacks(name);
	return NULL;
}

void np_spare_writes(void)
{
	const char *wipe = environment("TEST_WIPE");

	if (!wipe || strcmp(wipe, "1"))
		np_spare_lacks("TEST_WIPE=1, as it writes to the disk");
}

/* Lists of commands that keep data: what is not listed may be a vendor's. */
void np_spare_command(bool admin, uint8_t opcode)
{
	static const uint8_t harmless[2][8] = {
		{ 0x00, 0x02, 0x05, 0x0c },			/* flush, read, compare, verify */
		{ 0x00, 0x02, 0x06, 0x08, 0x09, 0x0a, 0x18 },	/* queues, Identify, logs, features */
	};
	size_t i;

	for (i = 0; i < sizeof(harmless[0]); i++)
		if (harmless[admin][i] == opcode)
			return;
	np_spare_writes();
}

void np_spare_opens(void)
{
	if (!keeps_disk)
		np_spare_writes();
}
