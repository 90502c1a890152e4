// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A fake kernel; see fake.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake.h"

struct fake fake;

/* Descriptors that real files do not have, so that a mix-up is detected. */
enum { FIRST_FD = 1000 };
static int next_fd = FIRST_FD;
/* Of the last status page. */
static int status_fd;

int __wrap_open(const char *path, int flags, ...);
int __wrap_close(int fd);
int __wrap_ioctl(int fd, unsigned long command, ...);
void *__wrap_mmap(void *address, size_t length, int protection, int flags,
		  int fd, off_t offset);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fstat(int fd, struct stat *status);
int __real_close(int fd);
void *__real_mmap(void *address, size_t length, int protection, int flags,
		  int fd, off_t offset);

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.info.size = sizeof(fake.info);
	fake.info.state = NVME_PEER_CTRL_LIVE;
	fake.info.max_entries = 1024;
	fake.info.page_size = 4096;
	fake.info.max_transfer = 131072;
	fake.info.qids_total = 8;
	fake.info.qids_cpu = 4;
	fake.info.qids_peer_max = 4;
	fake.info.doorbell_stride = 4;
	fake.qp_info.size = sizeof(fake.qp_info);
	fake.qp_info.qid = 5;
	fake.qp_info.sq_entries = 64;
	fake.qp_info.cq_entries = 128;
	fake.qp_info.generation = 9;
	fake.qp_info.doorbell_stride = 4;
	fake.qp_info.doorbell_offset = 0x28;
}

static int new_file(void)
{
	fake.open_files++;
	return next_fd++;
}

int __wrap_open(const char *path, int flags, ...)
{
	(void)flags;
	snprintf(fake.path, sizeof(fake.path), "%s", path);
	if (fake.open_error) {
		errno = fake.open_error;
		return -1;
	}
	return new_file();
}

int __wrap_close(int fd)
{
	if (fd < FIRST_FD)
		return __real_close(fd);
	fake.open_files--;
	return 0;
}

int __wrap_fcntl(int fd, int command, ...)
{
	unsigned long argument;
	va_list arguments;

	va_start(arguments, command);
	argument = va_arg(arguments, unsigned long);
	va_end(arguments);
	if (fd < FIRST_FD || command != F_DUPFD_CLOEXEC)
		return (int)syscall(SYS_fcntl, fd, command, argument);
	return new_file();
}

int __wrap_fstat(int fd, struct stat *status)
{
	if (fd < FIRST_FD)
		return fstatat(fd, "", status, AT_EMPTY_PATH);
	memset(status, 0, sizeof(*status));
	return 0;
}

/* The buffer has 1 GiB; its addresses continue elsewhere from page @table_break on. */
static void answer_table(struct nvme_peer_buf_table *table)
{
	struct nvme_peer_buf_range *ranges = (void *)(uintptr_t)table->ranges;
	__u64 gap = 4096ull * fake.table_break, at = table->offset;
	__u64 base = fake.address ? fake.address : 0x10000000;
	__u32 count = 0;

	if (at < gap && table->count) {
		ranges[count].address = base + at;
		ranges[count++].length = gap - at;
		at = gap;
	}
	if (count < table->count) {
		ranges[count].address = base + at + (gap ? 0x100000 : 0);
		ranges[count++].length = (1ull << 30) - at;
	}
	table->count = count;
}

/* As the kernel does: what the caller has room for, and 0 behind what is known. */
static void answer_sized(void *argument, const void *known, size_t known_size)
{
	__u32 size = *(__u32 *)argument;

	memset(argument, 0, size);
	memcpy(argument, known, size < known_size ? size : known_size);
	*(__u32 *)argument = size;
}

/* Returns whether the request uses an unknown field. */
static bool asks_more(const void *argument, size_t known_size)
{
	const unsigned char *bytes = argument;
	size_t size = *(const __u32 *)argument;

	while (size > known_size)
		if (bytes[--size])
			return true;
	return false;
}

static size_t known_size(unsigned long command)
{
	switch (command) {
	case NVME_PEER_INFO:
		return sizeof(struct nvme_peer_info);
	case NVME_PEER_ROUTE:
		return sizeof(struct nvme_peer_route);
	case NVME_PEER_BUF_IMPORT:
		return sizeof(struct nvme_peer_buf_import);
	case NVME_PEER_BUF_ALLOC:
		return sizeof(struct nvme_peer_buf_alloc);
	case NVME_PEER_QP_CREATE:
		return sizeof(struct nvme_peer_qp_create);
	case NVME_PEER_QP_INFO:
		return sizeof(struct nvme_peer_qp_info);
	default:
		return 0;
	}
}

static int answer_peer(unsigned long command, void *argument)
{
	union {
		struct nvme_peer_buf_import *import;
		struct nvme_peer_buf_alloc *alloc;
		struct nvme_peer_qp_create *create;
		struct nvme_peer_qp_export *export;
		const struct nvme_peer_qp_rearm *rearm;
	} out = { argument };

	if (known_size(command) && asks_more(argument, known_size(command))) {
		errno = E2BIG;
		return -1;
	}
	switch (command) {
	case NVME_PEER_INFO:
		answer_sized(argument, &fake.info, sizeof(fake.info));
		return 0;
	case NVME_PEER_ROUTE:
		answer_sized(argument, &fake.route, sizeof(fake.route));
		return 0;
	case NVME_PEER_BUF_IMPORT:
		out.import->handle = 7;
		out.import->length = 65536;
		out.import->segments = fake.table_break ? 2 : 1;
		fake.buffers++;
		return 0;
	case NVME_PEER_BUF_ALLOC:
		out.alloc->length = (out.alloc->length + 4095) / 4096 * 4096;
		out.alloc->fd = new_file();
		return 0;
	case NVME_PEER_BUF_RELEASE:
		if (fake.release_refusals) {
			fake.release_refusals--;
			errno = EBUSY;
			return -1;
		}
		fake.buffers--;
		return 0;
	case NVME_PEER_QP_CREATE:
		fake.qp_info.mode = out.create->mode;
		out.create->qid = 5;
		out.create->qp_fd = new_file();
		return 0;
	case NVME_PEER_QP_INFO:
		if (fake.on_qp_info)
			fake.on_qp_info();
		answer_sized(argument, &fake.qp_info, sizeof(fake.qp_info));
		return 0;
	case NVME_PEER_QP_REARM:
		if (fake.rearm_refusals) {
			fake.rearm_refusals--;
			errno = ESHUTDOWN;
			return -1;
		}
		fake.qp_info.generation++;
		fake.losses = out.rearm->losses;
		return 0;
	case NVME_PEER_QP_KICK:
		if (fake.qp_info.mode != NVME_PEER_MODE_RELAY) {
			errno = EOPNOTSUPP;
			return -1;
		}
		return 0;
	case NVME_PEER_WINDOW_ADD:
	case NVME_PEER_WINDOW_REMOVE:
	case NVME_PEER_WINDOW_INFO:
	case NVME_PEER_BUF_ADD:
	case NVME_PEER_BUF_REMOVE:
	case NVME_PEER_QP_LIMITS:
	case NVME_PEER_QP_STATS:
	case NVME_PEER_QP_SEAL:
		if (fake.qp_info.mode != NVME_PEER_MODE_MEDIATED) {
			errno = EOPNOTSUPP;
			return -1;
		}
		return 0;
	case NVME_PEER_BUF_TABLE:
		fake.tables++;
		answer_table(argument);
		return 0;
	case NVME_PEER_QP_EXPORT:
		out.export->fd = new_file();
		if (out.export->what == NVME_PEER_EXPORT_STATUS)
			status_fd = out.export->fd;
		out.export->offset = out.export->what == NVME_PEER_EXPORT_DOORBELL ? 0x28 : 0;
		out.export->length = out.export->what == NVME_PEER_EXPORT_DOORBELL ? 8 : 4096;
		return 0;
	default:
		return 0;
	}
}

static int answer(unsigned long command, void *argument)
{
	const struct nvme_passthru_cmd *passthru = argument;

	switch (command) {
	case NVME_IOCTL_ID:
		return 3;
	case NVME_IOCTL_ADMIN_CMD:
		memcpy((void *)(uintptr_t)passthru->addr, fake.identify,
		       passthru->data_len);
		return 0;
	case UDMABUF_CREATE:
		return new_file();
	default:
		return answer_peer(command, argument);
	}
}

/* Bytes that the library passes; the peer structures carry their size. */
static size_t argument_size(unsigned long command, const void *argument)
{
	if (!argument)
		return 0;
	if (_IOC_SIZE(command))
		return _IOC_SIZE(command);
	return *(const __u32 *)argument;
}

int __wrap_ioctl(int fd, unsigned long command, ...)
{
	void *argument;
	va_list arguments;
	size_t size;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (fd < FIRST_FD) {
		errno = EBADF;
		return -1;
	}
	fake.calls++;
	size = argument_size(command, argument);
	if (size && size <= sizeof(fake.request))
		memcpy(fake.request, argument, size);
	if (command != fake.fail_command && !(fake.no_info && command == NVME_PEER_INFO))
		return answer(command, argument);
	if (fake.fail_status)
		return fake.fail_status;
	errno = fake.fail_error;
	return -1;
}

void *__wrap_mmap(void *address, size_t length, int protection, int flags,
		  int fd, off_t offset)
{
	void *page;

	if (fd < FIRST_FD)
		return __real_mmap(address, length, protection, flags, fd, offset);
	if (fake.map_error) {
		errno = fake.map_error;
		return MAP_FAILED;
	}
	fake.map_length = length;
	fake.map_protection = protection;
	page = __real_mmap(address, length, protection | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd == status_fd && page != MAP_FAILED)
		((struct nvme_peer_status *)page)->state = NVME_PEER_QP_LIVE;
	return page;
}
