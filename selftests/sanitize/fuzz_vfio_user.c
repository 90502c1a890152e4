// SPDX-License-Identifier: GPL-2.0-only
/* libFuzzer: arbitrary messages of a client to the vfio-user server. */
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vfio_user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void bar_read(void *context, unsigned int bar, uint64_t offset, void *data, uint32_t count)
{
	(void)context;
	(void)bar;
	(void)offset;
	memset(data, 0, count);
}

static void bar_write(void *context, unsigned int bar, uint64_t offset, const void *data,
		      uint32_t count)
{
	(void)context;
	(void)bar;
	(void)offset;
	(void)data;
	(void)count;
}

static void reset(void *context, enum vfu_reset why)
{
	(void)context;
	(void)why;
}

static const struct vfu_device device = {
	.vendor_id = 0x1234,
	.device_id = 1,
	.class_code = 0x120000,
	.vectors = 4,
	.bars = { { .size = 4096, .fd = -1 } },
	.bar_read = bar_read,
	.bar_write = bar_write,
	.reset = reset,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vfu *vfu = vfu_create(&device, NULL, -1);
	int pair[2];

	if (!vfu || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
		vfu_destroy(vfu);
		return 0;
	}
	/* Fits into the socket buffer, so that no thread has to read the replies. */
	if (size > 65536)
		size = 65536;
	if (write(pair[0], data, size) != (ssize_t)size)
		size = 0;
	shutdown(pair[0], SHUT_WR);
	vfu_serve(vfu, pair[1]);
	close(pair[0]);
	vfu_destroy(vfu);
	return 0;
}
