// SPDX-License-Identifier: GPL-2.0-only
/* libFuzzer: the nvme-peer command with any arguments, on the fake kernel of the unit test. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
ssize_t __wrap_recv(int file, void *buffer, size_t length, int flags);
int nvme_peer_main(int argc, char **argv);

static struct {
	const uint8_t *data;
	size_t size;
	int left;
} events;

/* An event of the kernel: the input. A host without events would let the command wait. */
ssize_t __wrap_recv(int file, void *buffer, size_t length, int flags)
{
	(void)file;
	(void)flags;
	if (!events.left) {
		errno = EBADF;
		return -1;
	}
	events.left--;
	length = length < events.size ? length : events.size;
	memcpy(buffer, events.data, length);
	return (ssize_t)length;
}

/* Arguments are separated by line feeds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const words[] = {
		"list", "info", "route", "import-check", "qp", "help", "bind", "unbind", "topo", "doctor",
		"smart", "reset", "stat", "metrics", "events", "top",
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
	events.data = data;
	events.size = size;
	events.left = 2;
	nvme_peer_main(count, arguments);
	return 0;
}
