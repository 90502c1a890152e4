// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A store whose members are files that count as namespaces, for tests in which a program
 * transfers the blocks of the file in place of a controller: python/tests/unit_store_pages.py
 * and selftests/cuda/disk.py.  The linker redirects calls of io_open() here.
 */
#include "io.h"

enum { NSID = 1, BLOCK = 512 };

int __real_io_open(const char *path, bool read_only, struct io_disk *disk);
int __wrap_io_open(const char *path, bool read_only, struct io_disk *disk);

int __wrap_io_open(const char *path, bool read_only, struct io_disk *disk)
{
	int error = __real_io_open(path, read_only, disk);

	if (!error) {
		disk->nsid = NSID;
		disk->block = BLOCK;
	}
	return error;
}
