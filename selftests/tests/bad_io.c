// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller that misbehaves on command, while it behaves: data goes
 * through, in transfers whose PRP lists fill more than a page too.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

#define LARGEST		(8U << 20)
#define MDTS		77		/* in Identify Controller */

FIXTURE(bad_io)
{
	struct np_bad bad;
	uint8_t *bytes;
	uint8_t *back;
};

FIXTURE_SETUP(bad_io)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, LARGEST + NP_PAGE));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, LARGEST + NP_PAGE));
	ASSERT_EQ(0, np_bad_identify(&self->bad, 1, MDTS, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
}

FIXTURE_TEARDOWN(bad_io)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
	free(self->back);
}

TEST_F(bad_io, keeps_what_was_written)
{
	static const uint32_t sizes[] = { 512, 4096, 8192, 12288, 128 << 10, 1 << 20 };
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		np_pattern(self->bytes, sizes[i], 0, (uint32_t)i);
		ASSERT_EQ(0, np_disk_write(self->bad.disk, self->bytes, sizes[i], 4096 * i));
		memset(self->back, 0xee, sizes[i]);
		ASSERT_EQ(0, np_disk_read(self->bad.disk, self->back, sizes[i], 4096 * i));
		EXPECT_EQ(0, memcmp(self->bytes, self->back, sizes[i]));
	}
	EXPECT_EQ(0, fsync(self->bad.disk));
}

TEST_HARNESS_MAIN
