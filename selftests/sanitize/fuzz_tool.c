// SPDX-License-Identifier: GPL-2.0-only
/* libFuzzer: the nvme-peer command with any arguments, on the fake kernel of the unit test. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int nvme_peer_main(int argc, char **argv);

/* Arguments are separated by line feeds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const words[] = {
		"list", "info", "route", "import-check", "qp", "help", "bind", "unbind", "topo", "doctor",
		"smart", "reset", "stat", "metrics",
	};
	char *arguments[16] = { (char *)"nvme-peer" };
	char text[512] = "", *rest = text;
	int count = 1;

	memcpy(text, data, size < sizeof(text) ? size : sizeof(text) - 1);
	while (count < 15 && rest)
		arguments[count++] = strsep(&rest, "\n");
	/* Insert known words, which random input would not contain. */
	if (size && data[0] < sizeof(words) / sizeof(words[0]))
		arguments[1] = (char *)words[data[0]];
	/* Do not access the disks of the host. */
	setenv("NVME_PEER_SYSROOT", "/nonexistent", 1);
	fake_reset();
	nvme_peer_main(count, arguments);
	return 0;
}
