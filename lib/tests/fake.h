/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A fake kernel: the linker redirects open, ioctl, close and mmap of the library here.
 */
#ifndef NVMEPEER_TESTS_FAKE_H
#define NVMEPEER_TESTS_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nvmepeer.h>

/**
 * struct fake - configured answers and recorded requests
 * @open_error: errno of open(), 0 to succeed
 * @fail_command: ioctl number that fails
 * @fail_error: with this errno
 * @fail_status: or, if not 0, with this NVMe status
 * @info: answer of NVME_PEER_INFO
 * @route: answer of NVME_PEER_ROUTE
 * @identify: answer of Identify
 * @table_break: page of the buffer whose address is not contiguous with the previous one
 * @qp_info: answer of NVME_PEER_QP_INFO
 * @losses: of the last NVME_PEER_QP_REARM
 * @on_qp_info: called before NVME_PEER_QP_INFO is answered, if not NULL
 * @tables: calls of NVME_PEER_BUF_TABLE
 * @release_refusals: so many calls of NVME_PEER_BUF_RELEASE fail with EBUSY
 * @rearm_refusals: so many calls of NVME_PEER_QP_REARM fail with ESHUTDOWN
 * @calls: ioctls so far
 * @open_files: open files
 * @buffers: imported buffers
 * @path: path of the last open()
 * @request: copy of the last ioctl's argument, as the library passed it
 * @map_length: of the last mmap()
 * @map_protection: of the last mmap()
 * @no_info: NVME_PEER_INFO fails, too
 * @map_error: errno of mmap(), 0 to succeed
 * @address: DMA address of the buffer, 0 for 0x10000000
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
	bool no_info;
	int map_error;
	/* Behind the fields that the tests in Rust and Python know. */
	unsigned int rearm_refusals;
	void (*on_qp_info)(void);
	unsigned int tables;
	unsigned int release_refusals;
	uint64_t address;
};

extern struct fake fake;

/** fake_reset() - a live controller that grants everything. */
void fake_reset(void);

/* For tests with kselftest_harness.h. */
#define MENTIONS(text, part) ASSERT_NE(strstr(text, part), NULL) \
	TH_LOG("\"%s\" does not mention \"%s\"", text, part)

/* A structure of a newer header: the known fields, and one more. */
#define NEWER(type) struct { type known; uint64_t more; }

#endif /* NVMEPEER_TESTS_FAKE_H */
