/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A kernel made of one structure: the linker sends the library's open, ioctl,
 * close and mmap here.
 */
#ifndef NVMEPEER_TESTS_FAKE_H
#define NVMEPEER_TESTS_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nvmepeer.h>

/**
 * struct fake - what the kernel is to answer and what it was asked
 * @open_error: errno of open(), 0 to succeed
 * @fail_command: ioctl number that fails
 * @fail_error: with this errno
 * @fail_status: or, if not 0, with this NVMe status
 * @info: answer of NVME_PEER_INFO
 * @route: answer of NVME_PEER_ROUTE
 * @identify: answer of Identify
 * @table_break: page of the buffer whose address does not follow the one before
 * @qp_info: answer of NVME_PEER_QP_INFO
 * @losses: of the last NVME_PEER_QP_REARM
 * @calls: ioctls so far
 * @open_files: files open now
 * @buffers: buffers imported now
 * @path: path of the last open()
 * @request: copy of the last ioctl's argument, as the library passed it
 * @map_length: of the last mmap()
 * @map_protection: of the last mmap()
 */
struct fake {
	int open_error;
	unsigned long fail_command;
	int fail_error;
	int fail_status;
	struct nvme_peer_info info;
	struct nvme_peer_route route;
	unsigned char identify[4096];
	unsigned int table_break;
	struct nvme_peer_qp_info qp_info;

	unsigned int losses;
	unsigned int calls;
	int open_files;
	int buffers;
	char path[128];
	_Alignas(8) unsigned char request[256];
	size_t map_length;
	int map_protection;
};

extern struct fake fake;

/** fake_reset() - a live controller that grants everything. */
void fake_reset(void);

/* For tests, which have the kernel's harness. */
#define MENTIONS(text, part) ASSERT_NE(strstr(text, part), NULL) \
	TH_LOG("\"%s\" does not mention \"%s\"", text, part)

/* As compiled with a header of the future: what is known, and one field more. */
#define NEWER(type) struct { type known; uint64_t more; }

#endif /* NVMEPEER_TESTS_FAKE_H */
