// SPDX-License-Identifier: GPL-2.0-only
/*
 * Helpers of all tests for files, functions, the module, its controllers and their disks;
 * see nptest.h.
 */
#include "nptest.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/userfaultfd.h>
#include <linux/blkpg.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PCI_DEVICES	"/sys/bus/pci/devices"
#define KMEMLEAK	"/sys/kernel/debug/kmemleak"
#define NODES		16

int np_drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

int np_block_faults(void *pages, size_t length)
{
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)pages, .len = length },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (faults < 0)
		return -errno;
	if (ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &range))
		return -errno;
	return faults;
}

int64_t np_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int np_poll(int fd, short events, int timeout_ms)
{
	struct pollfd file = { .fd = fd, .events = events };
	int64_t start = np_now_ms();

	if (poll(&file, 1, timeout_ms) < 0)
		return -errno;
	return timeout_ms && np_now_ms() - start >= timeout_ms ? 0 : file.revents;
}

void np_sleep_ms(int ms)
{
	struct timespec time = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

int np_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

int np_clear_trace(void)
{
	int fd = open(NP_TRACE "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);

	return fd < 0 || close(fd) ? -errno : 0;
}

static bool matches(const char *line, const char *const *texts)
{
	bool without;

	for (; *texts; texts++) {
		without = **texts == '!';
		if (!strstr(line, *texts + without) != without)
			return false;
	}
	return true;
}

int np_count_trace(const char *path, const char *const *texts)
{
	FILE *trace = fopen(path, "re");
	char line[512];
	int found = 0;

	if (!trace)
		return -errno;
	while (fgets(line, sizeof(line), trace))
		found += matches(line, texts);
	fclose(trace);
	return found;
}

int np_read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t done = 0;
	ssize_t got = 0;

	if (fd < 0)
		return -errno;
	while (done + 1 < size) {
		got = read(fd, text + done, size - 1 - done);
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	text[done] = '\0';
	if (got < 0)
		got = -errno;
	close(fd);
	return got < 0 ? (int)got : 0;
}

bool np_mapping_has(const void *address, const char *flags)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	unsigned long first, end;
	char line[256], flag[4];
	bool found = false, all = false;
	int next;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
			found = first == (uintptr_t)address;
		if (!found || strncmp(line, "VmFlags:", 8))
			continue;
		for (all = true; sscanf(flags, "%3s%n", flag, &next) == 1; flags += next)
			all = all && strstr(line + 8, flag);
		break;
	}
	if (maps)
		fclose(maps);
	return all;
}

int np_function_address(const char *name, char address[16])
{
	char path[64];
	int ret;

	if (np_spare()) {
		snprintf(address, 16, "%s", np_spare_address(name));
		return 0;
	}
	snprintf(path, sizeof(path), "/run/np/%s", name);
	ret = np_read_file(path, address, 16);
	address[strcspn(address, "\n")] = '\0';
	return ret;
}

struct nvme_peer_pci_address np_parse_address(const char *address)
{
	unsigned int domain = 0, bus = 0, device = 0, function = 0;

	sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device, &function);
	return (struct nvme_peer_pci_address){
		.domain = domain,
		.function = (uint16_t)(bus << 8 | device << 3 | function),
		.valid = 1,
	};
}

bool np_same_address(struct nvme_peer_pci_address a, struct nvme_peer_pci_address b)
{
	return a.domain == b.domain && a.function == b.function && a.valid == b.valid;
}

bool np_bound(const char *address)
{
	char path[128], target[256];
	ssize_t length;

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/driver", address);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	return !!strstr(target, "/nvme-peer");
}

int np_unbind(const char *address)
{
	return np_pci_write(address, "driver/unbind", address);
}

int np_pci_write(const char *address, const char *attribute, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/%s", address, attribute);
	return np_write_file(path, text);
}

int np_reset_method(const char *address, const char *method)
{
	int ret = np_pci_write(address, "reset_method", method);
	char needs[64];

	snprintf(needs, sizeof(needs), "a function with the reset method %s", method);
	np_spare_needs(ret != -EINVAL && ret != -ENOENT, needs);
	return ret;
}

int np_function_reset(const char *address)
{
	int ret = np_pci_write(address, "reset", "1");

	if (ret == -ENOTTY && np_spare()) {
		np_pci_write(address, "reset_method", "default");
		np_spare_lacks("a port that can reset its bus, whose link comes up again");
	}
	return ret;
}

const volatile uint32_t *np_registers_map(const char *address)
{
	char path[128];
	void *map;
	int bar;

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/resource0", address);
	bar = open(path, O_RDONLY | O_CLOEXEC);
	map = mmap(NULL, NP_PAGE, PROT_READ, MAP_SHARED, bar, 0);
	close(bar);
	return map == MAP_FAILED ? NULL : map;
}

void np_registers_unmap(const volatile uint32_t *registers)
{
	if (registers)
		munmap((void *)registers, NP_PAGE);
}

/* driver_override stays set: it is harmless and the next bind needs it. */
int np_bind(const char *address)
{
	int ret;

	if (np_bound(address))
		return 0;
	ret = np_pci_write(address, "driver_override", "nvme-peer");
	if (ret)
		return ret;
	/* From the in-tree driver, which may have taken it while there was no override. */
	np_unbind(address);
	/* Not drivers_probe, which hides the error of the probe. */
	return np_write_file("/sys/bus/pci/drivers/nvme-peer/bind", address);
}

int np_clear_driver_override(const char *address)
{
	return np_pci_write(address, "driver_override", "\n");
}

/*
 * Turning automatic scans off changes nothing, and fails like every write if kmemleak is
 * disabled.
 */
bool np_kmemleak_on(void)
{
	return !np_write_file(KMEMLEAK, "scan=off");
}

FILE *np_kmemleak_scan(void)
{
	int ret;

	np_sleep_ms(6000);
	np_write_file(KMEMLEAK, "scan");
	ret = np_write_file(KMEMLEAK, "scan");
	if (ret) {
		errno = -ret;
		return NULL;
	}
	return fopen(KMEMLEAK, "re");
}

/* Control data for one descriptor beside the bytes. */
#define FILE_MESSAGE(bytes, control)				\
	{							\
		.msg_iov = (bytes),				\
		.msg_iovlen = 1,				\
		.msg_control = (control),			\
		.msg_controllen = CMSG_SPACE(sizeof(int)),	\
	}

int np_send_file(int socket, const void *bytes, size_t length, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { (void *)bytes, length };
	struct msghdr message = FILE_MESSAGE(&part, control);
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int np_receive_file(int socket, void *bytes, size_t length)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { bytes, length };
	struct msghdr message = FILE_MESSAGE(&part, control);
	struct cmsghdr *header;
	int fd;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return -EBADMSG;
	memcpy(&fd, CMSG_DATA(header), sizeof(int));
	return fd;
}

/*
 * Saves the module's coverage so far when first called in a test. What runs in the rest
 * of this test is saved with the next one, and by the runner at the end.
 */
static void save_coverage(void)
{
	static const char done[] = "/run/np/unloaded";
	int file;

	if (access("/sys/kernel/debug/gcov", F_OK) || !access(done, F_OK))
		return;
	file = open(done, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (file < 0 || system("/build/user/collect /host/out/gcov"))
		printf("# coverage was not saved\n");
	close(file);
}

int np_module_unload(int timeout_ms)
{
	int64_t end = np_now_ms() + timeout_ms;

	np_spare_lacks("a guest, as it unloads the module");
	while (syscall(SYS_delete_module, "nvme_peer", O_NONBLOCK)) {
		if (errno != EAGAIN || np_now_ms() > end)
			return -errno;
		np_sleep_ms(20);
	}
	save_coverage();
	return 0;
}

int np_module_load(const char *parameters)
{
	struct utsname system;
	char path[256];
	int file, ret = 0;

	uname(&system);
	snprintf(path, sizeof(path), "/usr/lib/modules/%s/updates/nvme_peer.ko", system.release);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -errno;
	if (syscall(SYS_finit_module, file, parameters, 0))
		ret = -errno;
	close(file);
	return ret;
}

unsigned int np_module_registrations(void)
{
	static const char * const traces[] = {
		"/sys/module/nvme_peer", "/sys/bus/pci/drivers/nvme-peer",
		"/sys/class/nvme-peer", "/sys/class/nvme-peer-generic",
		"/sys/kernel/debug/nvme-peer",
	};
	unsigned int found = 0;
	char text[8192];
	size_t i;

	for (i = 0; i < sizeof(traces) / sizeof(traces[0]); i++)
		found += !access(traces[i], F_OK);
	if (!np_read_file("/proc/devices", text, sizeof(text)))
		found += !!strstr(text, " nvme-peer\n") + !!strstr(text, " nvme-peer-generic\n");
	if (!np_read_file("/sys/devices/system/cpu/hotplug/states", text, sizeof(text)))
		found += !!strstr(text, "nvme-peer:online");
	return found;
}

bool np_topology_is(const char *name)
{
	char line[2048], word[64];

	snprintf(word, sizeof(word), "np_topology=%s ", name);
	if (np_read_file("/proc/cmdline", line, sizeof(line) - 1))
		return false;
	line[strcspn(line, "\n")] = ' ';
	return !!strstr(line, word);
}

int np_monitor(const char *command)
{
	char line[128];

	np_spare_lacks("QEMU's monitor");
	snprintf(line, sizeof(line), "@np monitor %s\n", command);
	return np_write_file("/dev/ttyS1", line);
}

int np_surprise_remove(const char *address)
{
	char path[128];

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/remove", address);
	return np_write_file(path, "1");
}

int np_rescan(const char *address)
{
	char path[128];
	int ret = np_write_file("/sys/bus/pci/rescan", "1");

	snprintf(path, sizeof(path), PCI_DEVICES "/%s", address);
	return ret ?: access(path, F_OK) ? -errno : 0;
}

int np_log_open(void)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (log < 0)
		return -errno;
	lseek(log, 0, SEEK_END);
	return log;
}

int np_log_wait(int log, const char *text, int timeout_ms)
{
	int64_t end = np_now_ms() + timeout_ms;
	char record[8192];
	bool over = false;
	ssize_t length;

	/* All that was written in time is read, however late. */
	do {
		length = read(log, record, sizeof(record) - 1);
		if (length >= 0) {
			record[length] = '\0';
			if (strstr(record, text))
				return 0;
		} else if (errno != EPIPE) {
			over = np_now_ms() > end;
			np_sleep_ms(5);
		}
	} while (!over);
	return -ETIMEDOUT;
}

void np_expected_splat(const char *what, const char *name)
{
	char line[64];

	snprintf(line, sizeof(line), "np-test: planted %s %s\n", what, name);
	np_write_file("/dev/kmsg", line);
}

int np_bind_all(void)
{
	static const char * const names[] = { "np0", "np1" };
	char address[16];
	size_t i;
	int ret;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ret = np_function_address(names[i], address) ?: np_bind(address);
		if (ret)
			return ret;
	}
	return 0;
}

/* The opcode is the first byte of each structure of the passthrough ABI. */
static void before_passthrough(unsigned long cmd, const uint8_t *opcode)
{
	switch (cmd) {
	case NVME_IOCTL_ADMIN_CMD:
	case NVME_IOCTL_ADMIN64_CMD:
		np_spare_command(true, *opcode);
		break;
	case NVME_IOCTL_IO_CMD:
	case NVME_IOCTL_IO64_CMD:
	case NVME_IOCTL_SUBMIT_IO:
		np_spare_command(false, *opcode);
	}
}

int np_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret;

	if (np_spare() && arg)
		before_passthrough(cmd, arg);
	ret = ioctl(fd, cmd, arg);
	return ret < 0 ? -errno : ret;
}

int np_info(int fd, struct nvme_peer_info *info)
{
	*info = (struct nvme_peer_info){ .size = sizeof(*info) };
	return np_ioctl(fd, NVME_PEER_INFO, info);
}

int np_admin(int fd, struct nvme_admin_cmd *cmd)
{
	return np_ioctl(fd, NVME_IOCTL_ADMIN_CMD, cmd);
}

int np_ctrl_wait_live(int fd, struct nvme_peer_info *info, int timeout_ms)
{
	int64_t end = np_now_ms() + timeout_ms;
	int ret;

	do {
		ret = np_info(fd, info);
		if (ret || info->state == NVME_PEER_CTRL_LIVE)
			return ret;
		if (info->state >= NVME_PEER_CTRL_DELETING)
			return -ENODEV;
		np_sleep_ms(10);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

/* Identify Controller: bytes 4 to 23 are the serial number, and then the model follows. */
static const uint8_t *identify(int fd)
{
	static uint8_t data[4096];
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.addr = (uintptr_t)data,
		.data_len = sizeof(data),
		.cdw10 = NVME_CNS_CONTROLLER,
	};

	return np_admin(fd, &cmd) ? NULL : data;
}

static bool has_serial(int fd, const char *serial)
{
	const uint8_t *data = identify(fd);
	size_t length = strlen(serial);

	return data && !memcmp(data + 4, serial, length) && data[4 + length] == ' ';
}

bool np_identifies(int fd, unsigned int byte, unsigned int bit)
{
	const uint8_t *data = identify(fd);

	return data && data[byte] >> bit & 1;
}

void np_needs_qemu(const struct np_ctrl *ctrl, const char *what)
{
	static const char model[] = "QEMU NVMe Ctrl";
	const uint8_t *data = np_spare() ? identify(ctrl->fd) : NULL;
	char needs[128];

	snprintf(needs, sizeof(needs), "QEMU's controller, with %s", what);
	np_spare_needs(data && !memcmp(data + 24, model, strlen(model)), needs);
}

static void name_address(struct np_ctrl *ctrl)
{
	struct nvme_peer_pci_address address = ctrl->info.pci_address;

	snprintf(ctrl->address, sizeof(ctrl->address), "%04x:%02x:%02x.%x",
		 address.domain & 0xffff, address.function >> 8, address.function >> 3 & 0x1f,
		 address.function & 7);
}

static int find_serial(struct np_ctrl *ctrl, const char *serial)
{
	char path[32];

	for (ctrl->instance = 0; ctrl->instance < NODES; ctrl->instance++) {
		snprintf(path, sizeof(path), "/dev/nvmep%d", ctrl->instance);
		ctrl->fd = open(path, O_RDWR | O_CLOEXEC);
		if (ctrl->fd < 0)
			continue;
		if (has_serial(ctrl->fd, serial) && !np_info(ctrl->fd, &ctrl->info)) {
			name_address(ctrl);
			return 0;
		}
		close(ctrl->fd);
	}
	ctrl->fd = -1;
	return -ENODEV;
}

static int open_spare_once(struct np_ctrl *ctrl)
{
	char path[32];
	int ret;

	ctrl->instance = np_instance(ctrl->address);
	if (ctrl->instance < 0)
		return ctrl->instance;
	snprintf(path, sizeof(path), "/dev/nvmep%d", ctrl->instance);
	ctrl->fd = open(path, O_RDWR | O_CLOEXEC);
	if (ctrl->fd < 0)
		return -errno;
	ret = np_info(ctrl->fd, &ctrl->info);
	if (ret)
		np_ctrl_close(ctrl);
	return ret;
}

/* As np_ctrl_open(), on a spare controller. */
static int open_spare(struct np_ctrl *ctrl, const char *name)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	*ctrl = (struct np_ctrl){ .fd = -1 };
	snprintf(ctrl->address, sizeof(ctrl->address), "%s", np_spare_address(name));
	np_spare_opens();
	ret = np_bind(ctrl->address);
	if (ret)
		return ret;
	do {
		ret = open_spare_once(ctrl);
		if (!ret)
			return 0;
		np_sleep_ms(20);
	} while (np_now_ms() < end);
	return ret;
}

int np_ctrl_open(struct np_ctrl *ctrl, const char *serial)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	if (np_spare())
		return open_spare(ctrl, serial);
	np_bind_all();
	do {
		ret = find_serial(ctrl, serial);
		if (ret != -ENODEV)
			return ret;
		np_sleep_ms(20);
	} while (np_now_ms() < end);
	return ret;
}

void np_ctrl_close(struct np_ctrl *ctrl)
{
	if (ctrl->fd >= 0)
		close(ctrl->fd);
	ctrl->fd = -1;
}

int np_instance(const char *address)
{
	int instance = -ENODEV;
	char pattern[128];
	glob_t nodes;

	snprintf(pattern, sizeof(pattern), PCI_DEVICES "/%s/*/nvmep*", address);
	if (!glob(pattern, 0, NULL, &nodes) &&
	    sscanf(strrchr(nodes.gl_pathv[0], '/'), "/nvmep%d", &instance) != 1)
		instance = -ENODEV;
	globfree(&nodes);
	return instance;
}

/* udev reads a disk that is new or that a writer has closed, which tests would count. */
static void settle_udev(void)
{
	if (np_spare() && system("udevadm settle --timeout=20 >/dev/null 2>&1"))
		np_sleep_ms(100);
}

int np_open_node(const struct np_ctrl *ctrl, const char *format, int flags)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	char path[64];
	int fd;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(path, sizeof(path), format, ctrl->instance);
#pragma GCC diagnostic pop
	do {
		fd = open(path, flags | O_CLOEXEC);
		if (fd >= 0) {
			settle_udev();
			return fd;
		}
		np_sleep_ms(20);
	} while (np_now_ms() < end);
	return -errno;
}

int np_open_namespace(int ctrl_fd)
{
	struct np_ctrl ctrl = { .fd = ctrl_fd };
	int ret = np_info(ctrl_fd, &ctrl.info);

	if (ret)
		return ret;
	name_address(&ctrl);
	ctrl.instance = np_instance(ctrl.address);
	return ctrl.instance < 0 ? ctrl.instance : np_open_node(&ctrl, "/dev/nvmep%dn1", O_RDWR);
}

static int change_partition(int disk, int operation)
{
	struct blkpg_partition partition = { .start = 1 << 20, .length = 1 << 20, .pno = 1 };
	struct blkpg_ioctl_arg argument = {
		.op = operation,
		.datalen = sizeof(partition),
		.data = &partition,
	};

	return np_ioctl(disk, BLKPG, &argument);
}

int np_partition_add(int disk)
{
	return change_partition(disk, BLKPG_ADD_PARTITION);
}

int np_partition_remove(int disk)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	while ((ret = change_partition(disk, BLKPG_DEL_PARTITION)) == -EBUSY && np_now_ms() < end)
		np_sleep_ms(10);
	return ret;
}

#define DEBUGFS		"/sys/kernel/debug/nvme-peer"

static int settle(const char *path, const char before[NP_OBJECTS], int timeout_ms)
{
	int64_t end = np_now_ms() + timeout_ms;
	char now[NP_OBJECTS];
	int ret;

	do {
		ret = np_read_file(path, now, sizeof(now));
		if (ret)
			return ret;
		if (!strcmp(now, before))
			return 0;
		np_sleep_ms(20);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

int np_objects(const struct np_ctrl *ctrl, char text[NP_OBJECTS])
{
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "/nvmep%d/objects", ctrl->instance);
	return np_read_file(path, text, NP_OBJECTS);
}

int np_objects_alone(const struct np_ctrl *ctrl, char text[NP_OBJECTS], int timeout_ms)
{
	int64_t end = np_now_ms() + timeout_ms;
	int ret;

	do {
		ret = np_objects(ctrl, text);
		if (ret || strstr(text, "open_files 1\n"))
			return ret;
		np_sleep_ms(5);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

int np_objects_wait(const struct np_ctrl *ctrl, const char before[NP_OBJECTS], int timeout_ms)
{
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "/nvmep%d/objects", ctrl->instance);
	return settle(path, before, timeout_ms);
}

int np_module_objects(char text[NP_OBJECTS])
{
	return np_read_file(DEBUGFS "/objects", text, NP_OBJECTS);
}

int np_module_objects_wait(const char before[NP_OBJECTS], int timeout_ms)
{
	return settle(DEBUGFS "/objects", before, timeout_ms);
}

int np_pollers_read(struct np_pollers *pollers)
{
	unsigned long long passes, active, busy;
	char text[4096], *line;
	unsigned int qps;
	int ret = np_read_file("/sys/kernel/debug/nvme-peer/pollers", text, sizeof(text));

	*pollers = (struct np_pollers){};
	for (line = ret ? NULL : strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
		if (sscanf(line, "%*d %u %llu %llu %llu", &qps, &passes, &active, &busy) != 4)
			return -EIO;
		pollers->threads++;
		pollers->qps += qps;
		pollers->passes += passes;
		pollers->active += active;
		pollers->busy_ns += busy;
	}
	return ret;
}

void np_pattern(void *bytes, uint32_t length, uint64_t disk, uint32_t seed)
{
	uint64_t *word = bytes;
	uint32_t i;

	for (i = 0; i < length / sizeof(*word); i++)
		word[i] = (disk + i * sizeof(*word)) * 0x9e3779b97f4a7c15ULL + seed;
}

int np_disk_read(int fd, void *bytes, size_t length, uint64_t disk)
{
	ssize_t ret = pread(fd, bytes, length, (off_t)disk);

	if (ret < 0)
		return -errno;
	return (size_t)ret == length ? 0 : -EIO;
}

int np_disk_write(int fd, const void *bytes, size_t length, uint64_t disk)
{
	ssize_t ret;

	np_spare_writes();
	ret = pwrite(fd, bytes, length, (off_t)disk);
	if (ret < 0)
		return -errno;
	return (size_t)ret == length ? 0 : -EIO;
}

static void *read_disk(void *argument)
{
	struct np_reader *reader = argument;
	void *bytes;

	if (posix_memalign(&bytes, NP_PAGE, NP_PAGE)) {
		reader->error = -ENOMEM;
		return NULL;
	}
	while (!atomic_load(&reader->stop) && !reader->error) {
		reader->error = np_disk_read(reader->disk, bytes, NP_PAGE, NP_AREA(9));
		reader->reads++;
	}
	free(bytes);
	return NULL;
}

int np_reader_start(struct np_reader *reader, const struct np_ctrl *ctrl)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	*reader = (struct np_reader){};
	reader->disk = np_open_node(ctrl, "/dev/nvmep%dn1", O_RDONLY | O_DIRECT);
	if (reader->disk < 0)
		return reader->disk;
	ret = -pthread_create(&reader->thread, NULL, read_disk, reader);
	if (ret)
		close(reader->disk);
	while (!ret && !atomic_load(&reader->reads) && np_now_ms() < end)
		np_sleep_ms(1);
	return ret;
}

int np_reader_wait_read(struct np_reader *reader)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	/* One read may have started before this call. */
	unsigned int enough = atomic_load(&reader->reads) + 2;

	while (atomic_load(&reader->reads) < enough) {
		if (reader->error)
			return reader->error;
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(1);
	}
	return 0;
}

int np_reader_stop(struct np_reader *reader)
{
	atomic_store(&reader->stop, true);
	pthread_join(reader->thread, NULL);
	close(reader->disk);
	return reader->error;
}

/* --- suspend ---------------------------------------------------------------------- */

#define POWER		"/sys/power/"
#define TEST_DELAY	"/sys/module/suspend/parameters/pm_test_delay"

int np_test_open(void)
{
	int test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);

	if (test >= 0)
		return test;
	np_spare_lacks("nvmep_test_pin, the module of the tests (make -C selftests helper)");
	return -errno;
}

int np_sleep_begin(const char *address)
{
	struct nvme_peer_pci_address sleeper = np_parse_address(address);
	int ret, test = np_test_open();

	if (test < 0)
		return test;
	/* Up to the devices' noirq phase, and back at once. */
	ret = np_ioctl(test, NVMEP_TEST_SLEEP, &sleeper) ?:
	      np_write_file(POWER "pm_test", "platform") ?: np_write_file(TEST_DELAY, "0");
	if (!ret)
		return test;
	close(test);
	return ret;
}

int np_sleep_take_cpus(void)
{
	return np_write_file(POWER "pm_test", "processors");
}

int np_suspend(void)
{
	return np_write_file(POWER "state", "freeze");
}

int np_hibernate(void)
{
	return np_write_file(POWER "state", "disk");
}

void np_sleep_end(int test)
{
	np_write_file(POWER "pm_test", "none");
	close(test);
}

int np_stall(const struct nvmep_test_stall *stall)
{
	int test = np_test_open(), ret;

	if (test < 0)
		return test;
	ret = np_ioctl(test, NVMEP_TEST_STALL, (void *)stall);
	if (!ret)
		return test;
	close(test);
	return ret;
}

static int wait_for_thread(int test, unsigned long call)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	while ((ret = np_ioctl(test, call, NULL)) == -EAGAIN && np_now_ms() < end)
		np_sleep_ms(1);
	return ret;
}

int np_wait_stalled(int test)
{
	return wait_for_thread(test, NVMEP_TEST_STALLED);
}

int np_wait_held(int test)
{
	return wait_for_thread(test, NVMEP_TEST_HELD);
}

/* Its state follows its name, which is in parentheses. */
static bool sleeps(pid_t thread)
{
	char path[64], line[512], *state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	if (np_read_file(path, line, sizeof(line)))
		return false;
	state = strrchr(line, ')');
	return state && strchr("SD", state[2]);
}

int np_wait_sleeps(const atomic_int *thread)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int looks = 0;

	while (looks < 3 && np_now_ms() < end) {
		looks = sleeps(atomic_load(thread)) ? looks + 1 : 0;
		np_sleep_ms(20);
	}
	return looks < 3 ? -ETIMEDOUT : 0;
}

static void ignore_signal(int number)
{
	(void)number;
}

void np_interrupt(pthread_t thread)
{
	signal(SIGUSR1, ignore_signal);
	pthread_kill(thread, SIGUSR1);
}

int np_join(pthread_t thread, void **result, int timeout_ms)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += timeout_ms / 1000;
	return pthread_timedjoin_np(thread, result, &end);
}

int np_pci_error(const char *address, uint32_t step)
{
	struct nvmep_test_error call = {
		.pci_address = np_parse_address(address), .step = step,
	};
	int test = np_test_open(), ret;

	if (test < 0)
		return test;
	ret = np_ioctl(test, NVMEP_TEST_ERROR, &call);
	close(test);
	return ret;
}

int np_limit_locked(uint64_t pages)
{
	struct rlimit limit = { pages * NP_PAGE, pages * NP_PAGE };

	return setrlimit(RLIMIT_MEMLOCK, &limit) ? -errno : 0;
}

int np_in_child(int (*steps)(int fd), int fd)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(steps(fd));
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

int np_kill_child(void (*steps)(int answer))
{
	int answer[2], status = 0;
	ssize_t got;
	char byte;
	pid_t child;

	if (pipe(answer))
		return -errno;
	child = fork();
	if (!child) {
		steps(answer[1]);
		_exit(1);
	}
	close(answer[1]);
	got = read(answer[0], &byte, 1);
	close(answer[0]);
	if (child < 0 || kill(child, SIGKILL) || waitpid(child, &status, 0) != child)
		return -errno;
	return got == 1 && WIFSIGNALED(status) ? 0 : -ECHILD;
}

int np_run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

#define WORK_PROCESSORS	"/sys/devices/virtual/workqueue/cpumask"

int np_works_on(int cpu)
{
	char mask[16];

	snprintf(mask, sizeof(mask), "%x", 1U << cpu);
	return np_write_file(WORK_PROCESSORS, mask);
}

/* The mask in words of 32 processors, the last ones first. */
int np_works_anywhere(void)
{
	int left = get_nprocs_conf();
	char mask[1024];
	size_t at;

	at = (size_t)snprintf(mask, sizeof(mask), "%x", ~0U >> (31 - (left - 1) % 32));
	for (left -= (left - 1) % 32 + 1; left > 0; left -= 32)
		at += (size_t)snprintf(mask + at, sizeof(mask) - at, ",ffffffff");
	return np_write_file(WORK_PROCESSORS, mask);
}
