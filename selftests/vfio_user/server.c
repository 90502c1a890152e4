// SPDX-License-Identifier: GPL-2.0-only
/*
 * A vfio-user server: creation, connection, requests of the client, interrupts.
 *
 * One thread receives all messages. It replies to the client's requests at once, even while
 * other threads wait for replies of the client: the client's virtual CPU holds a lock during its
 * request, which the client needs to serve requests of the server. Otherwise they deadlock.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "config.h"
#include "dma.h"
#include "map.h"
#include "request.h"
#include "socket.h"

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "messages are not swapped");

#define REGION_CONFIG	7U
#define REGIONS		9U
#define IRQ_MSI		1U
#define IRQS		5U

/* Capabilities of the server; the reply must not be longer than QEMU's request. */
static const char capabilities[] =
	"{\"capabilities\":{\"max_msg_fds\":8,"
	"\"max_data_xfer_size\":1048576,\"pgsizes\":4096}}";

struct version {
	uint16_t major;
	uint16_t minor;
};

struct dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset;
	uint64_t address;
	uint64_t size;
};

struct dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t address;
	uint64_t size;
};

#define UNMAP_ALL	0x2U

struct device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t regions;
	uint32_t irqs;
};

#define DEVICE_RESET	0x1U
#define DEVICE_PCI	0x2U

struct region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t capability;
	uint64_t size;
	uint64_t offset;
};

#define REGION_READABLE	0x1U
#define REGION_WRITABLE	0x2U
#define REGION_MMAP	0x4U

struct irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};

#define IRQ_EVENTFD	0x1U
#define IRQ_NORESIZE	0x8U

struct irq_set {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
};

#define IRQ_DATA_EVENTFD	0x4U

struct region_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};

/* The device stops using located memory before the client gets the reply. */
static void notify_unmapped(struct vfu *vfu, uint64_t address, uint64_t size)
{
	if (vfu->device->unmapped)
		vfu->device->unmapped(vfu->context, address, size);
}

/* Disable DMA, fail waiters, and reset config space and the device. */
static void reset(struct vfu *vfu, enum vfu_reset why)
{
	vfu_dma_enable(vfu, false);
	vfu_pending_cancel(vfu, -ECANCELED);
	notify_unmapped(vfu, 0, UINT64_MAX);
	vfu_config_reset(vfu);
	vfu->device->reset(vfu->context, why);
}

/* --- Requests of the client: 0 or a positive errno ------------------------ */

static int handle_version(struct vfu *vfu, struct vfu_message *message)
{
	struct version version;

	(void)vfu;
	memcpy(&version, message->payload, sizeof(version));
	if (version.major != 0)
		return ENOTSUP;
	version.minor = 0;
	memcpy(message->payload, &version, sizeof(version));
	memcpy(message->payload + sizeof(version), capabilities,
	       sizeof(capabilities));
	message->reply_length = sizeof(version) + sizeof(capabilities);
	return 0;
}

static int handle_dma_map(struct vfu *vfu, struct vfu_message *message)
{
	struct vfu_range range = { 0 };
	struct dma_map map;
	int fd = -1;

	memcpy(&map, message->payload, sizeof(map));
	if (map.flags & ~(VFU_MAP_READ | VFU_MAP_WRITE))
		return EINVAL;
	range.address = map.address;
	range.size = map.size;
	range.flags = map.flags;
	if (message->fd_count) {
		fd = message->fds[0];
		message->fds[0] = -1;
	}
	return vfu_map_add(vfu, &range, fd, map.offset);
}

/* Remove the range before the reply, after which the client may reuse the memory. */
static int handle_dma_unmap(struct vfu *vfu, struct vfu_message *message)
{
	struct dma_unmap unmap;
	int error;

	memcpy(&unmap, message->payload, sizeof(unmap));
	message->reply_length = sizeof(unmap);
	if (unmap.flags & ~UNMAP_ALL)
		return EINVAL;
	if (unmap.flags) {
		unmap.address = 0;
		unmap.size = UINT64_MAX;
	}
	error = vfu_map_remove(vfu, unmap.address, unmap.size);
	if (!error)
		notify_unmapped(vfu, unmap.address, unmap.size);
	return error;
}

static int handle_get_info(struct vfu *vfu, struct vfu_message *message)
{
	struct device_info info = {
		.argsz = sizeof(info),
		.flags = DEVICE_RESET | DEVICE_PCI,
		.regions = REGIONS,
		.irqs = IRQS,
	};

	(void)vfu;
	memcpy(message->payload, &info, sizeof(info));
	message->reply_length = sizeof(info);
	return 0;
}

static void describe_bar(const struct vfu_bar *bar, struct region_info *info,
			 struct vfu_message *message)
{
	info->size = bar->size;
	if (!bar->size)
		return;
	info->flags = REGION_READABLE | REGION_WRITABLE;
	if (bar->fd < 0)
		return;
	info->flags |= REGION_MMAP;
	message->reply_fd = bar->fd;
}

static int handle_get_region_info(struct vfu *vfu, struct vfu_message *message)
{
	struct region_info info;
	uint32_t index;

	memcpy(&info, message->payload, sizeof(info));
	index = info.index;
	if (index >= REGIONS)
		return EINVAL;
	info = (struct region_info){ .argsz = sizeof(info), .index = index };
	if (index < VFU_BARS) {
		describe_bar(&vfu->device->bars[index], &info, message);
	} else if (index == REGION_CONFIG) {
		info.size = sizeof(vfu->config);
		info.flags = REGION_READABLE | REGION_WRITABLE;
	}
	memcpy(message->payload, &info, sizeof(info));
	message->reply_length = sizeof(info);
	return 0;
}

static int handle_get_irq_info(struct vfu *vfu, struct vfu_message *message)
{
	struct irq_info info;

	memcpy(&info, message->payload, sizeof(info));
	if (info.index >= IRQS)
		return EINVAL;
	info.argsz = sizeof(info);
	info.flags = 0;
	info.count = 0;
	if (info.index == IRQ_MSI) {
		info.flags = IRQ_EVENTFD | IRQ_NORESIZE;
		info.count = vfu->device->vectors;
	}
	memcpy(message->payload, &info, sizeof(info));
	message->reply_length = sizeof(info);
	return 0;
}

static void set_vector(struct vfu *vfu, unsigned int vector, int fd)
{
	pthread_mutex_lock(&vfu->vector_lock);
	if (vfu->vector_fds[vector] >= 0)
		close(vfu->vector_fds[vector]);
	vfu->vector_fds[vector] = fd;
	pthread_mutex_unlock(&vfu->vector_lock);
}

static void clear_vectors(struct vfu *vfu)
{
	unsigned int i;

	for (i = 0; i < VFU_MAX_VECTORS; i++)
		set_vector(vfu, i, -1);
}

/* An eventfd arms a vector; without an eventfd, or without vectors, they are disarmed. */
static int handle_set_irqs(struct vfu *vfu, struct vfu_message *message)
{
	struct irq_set set;
	uint32_t i;

	memcpy(&set, message->payload, sizeof(set));
	if (!set.count) {
		if (set.index == IRQ_MSI)
			clear_vectors(vfu);
		return 0;
	}
	if (set.index != IRQ_MSI || !(set.flags & IRQ_DATA_EVENTFD) ||
	    set.start >= vfu->device->vectors ||
	    set.count > vfu->device->vectors - set.start)
		return EINVAL;
	for (i = 0; i < set.count; i++) {
		set_vector(vfu, set.start + i,
			   i < message->fd_count ? message->fds[i] : -1);
		if (i < message->fd_count)
			message->fds[i] = -1;
	}
	return 0;
}

/* Size of an accessible region; 0 if there is none of this number. */
static uint64_t region_size(const struct vfu *vfu, uint32_t region)
{
	if (region == REGION_CONFIG)
		return sizeof(vfu->config);
	return region < VFU_BARS ? vfu->device->bars[region].size : 0;
}

static int check_access(const struct vfu *vfu,
			const struct region_access *access)
{
	uint64_t size = region_size(vfu, access->region);

	if (access->count > VFU_PAYLOAD_MAX - sizeof(*access) ||
	    access->offset > size || access->count > size - access->offset)
		return EINVAL;
	return 0;
}

static int handle_region_read(struct vfu *vfu, struct vfu_message *message)
{
	struct region_access access;
	char *data = message->payload + sizeof(access);

	memcpy(&access, message->payload, sizeof(access));
	if (check_access(vfu, &access))
		return EINVAL;
	if (access.region == REGION_CONFIG)
		vfu_config_read(vfu, access.offset, data, access.count);
	else
		vfu->device->bar_read(vfu->context, access.region,
				      access.offset, data, access.count);
	message->reply_length = sizeof(access) + access.count;
	return 0;
}

static void enable_dma(struct vfu *vfu, bool enable)
{
	vfu_dma_enable(vfu, enable);
	if (!enable)
		notify_unmapped(vfu, 0, UINT64_MAX);
}

/* Bits with an effect: Function Level Reset, Bus Master Enable, the power state. */
static void write_config(struct vfu *vfu, uint64_t offset, const void *data,
			 uint32_t count)
{
	if (vfu_config_write(vfu, offset, data, count))
		reset(vfu, VFU_RESET_FUNCTION);
	else if (vfu->dma_enabled != vfu_config_allows_dma(vfu))
		enable_dma(vfu, !vfu->dma_enabled);
}

static int handle_region_write(struct vfu *vfu, struct vfu_message *message)
{
	struct region_access access;
	const char *data = message->payload + sizeof(access);

	memcpy(&access, message->payload, sizeof(access));
	if (check_access(vfu, &access) ||
	    message->length < sizeof(access) + access.count)
		return EINVAL;
	if (access.region == REGION_CONFIG)
		write_config(vfu, access.offset, data, access.count);
	else
		vfu->device->bar_write(vfu->context, access.region,
				       access.offset, data, access.count);
	message->reply_length = sizeof(access);
	return 0;
}

static int handle_reset(struct vfu *vfu, struct vfu_message *message)
{
	(void)message;
	reset(vfu, VFU_RESET_BUS);
	return 0;
}

static const struct {
	int (*handle)(struct vfu *vfu, struct vfu_message *message);
	size_t length;		/* minimum length of the payload */
} handlers[] = {
	[VFU_VERSION] = { handle_version, sizeof(struct version) },
	[VFU_DMA_MAP] = { handle_dma_map, sizeof(struct dma_map) },
	[VFU_DMA_UNMAP] = { handle_dma_unmap, sizeof(struct dma_unmap) },
	[VFU_GET_INFO] = { handle_get_info, sizeof(uint32_t) },
	[VFU_GET_REGION_INFO] = { handle_get_region_info,
				  sizeof(struct region_info) },
	[VFU_GET_IRQ_INFO] = { handle_get_irq_info, sizeof(struct irq_info) },
	[VFU_SET_IRQS] = { handle_set_irqs, sizeof(struct irq_set) },
	[VFU_REGION_READ] = { handle_region_read,
			      sizeof(struct region_access) },
	[VFU_REGION_WRITE] = { handle_region_write,
			       sizeof(struct region_access) },
	[VFU_RESET] = { handle_reset, 0 },
};

static int handle(struct vfu *vfu, struct vfu_message *message)
{
	uint16_t command = message->header.command;

	if (command >= sizeof(handlers) / sizeof(handlers[0]) ||
	    !handlers[command].handle)
		return ENOTSUP;
	if (message->length < handlers[command].length)
		return EINVAL;
	return handlers[command].handle(vfu, message);
}

/* --- Serving ------------------------------------------------------------- */

static int dispatch(struct vfu *vfu, struct vfu_message *message)
{
	int error;

	if ((message->header.flags & VFU_FLAG_TYPE) == VFU_FLAG_REPLY) {
		vfu_pending_answer(vfu, &message->header, message->payload,
				   message->length);
		return 0;
	}
	error = handle(vfu, message);
	if (message->header.flags & VFU_FLAG_NO_REPLY)
		return 0;
	return vfu_reply(vfu, message, error);
}

static void set_socket(struct vfu *vfu, int socket)
{
	pthread_mutex_lock(&vfu->send_lock);
	vfu->socket = socket;
	pthread_mutex_unlock(&vfu->send_lock);
}

int vfu_serve(struct vfu *vfu, int socket)
{
	struct vfu_message *message = malloc(sizeof(*message));
	int ret = message ? 1 : -ENOMEM;

	set_socket(vfu, socket);
	while (ret > 0) {
		ret = vfu_receive(vfu, message);
		if (ret > 0) {
			int error = dispatch(vfu, message);

			ret = error ? error : 1;
		}
		if (message)
			vfu_message_close(message);
	}
	set_socket(vfu, -1);
	close(socket);
	reset(vfu, VFU_RESET_CLIENT_GONE);
	vfu_map_clear(vfu);
	clear_vectors(vfu);
	free(message);
	return ret;
}

int vfu_interrupt(struct vfu *vfu, unsigned int vector)
{
	const uint64_t one = 1;
	int ret = -ENXIO;

	if (vector >= VFU_MAX_VECTORS)
		return ret;
	pthread_mutex_lock(&vfu->vector_lock);
	if (vfu->vector_fds[vector] >= 0 &&
	    write(vfu->vector_fds[vector], &one, sizeof(one)) == sizeof(one)) {
		vfu_count(vfu, VFU_INTERRUPTS, 1);
		ret = 0;
	}
	pthread_mutex_unlock(&vfu->vector_lock);
	return ret;
}

static uint64_t sum_of(struct vfu *vfu, enum vfu_counter counter)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < VFU_SHARDS; i++)
		sum += atomic_load(&vfu->shards[i].counters[counter]);
	return sum;
}

void vfu_statistics(struct vfu *vfu, struct vfu_statistics *statistics)
{
	uint64_t *values = (uint64_t *)statistics;
	unsigned int i;

	_Static_assert(sizeof(*statistics) ==
		       (VFU_COUNTERS + 1) * sizeof(uint64_t),
		       "enum vfu_counter follows struct vfu_statistics");
	for (i = 0; i < VFU_COUNTERS; i++)
		values[i] = sum_of(vfu, (enum vfu_counter)i);
	vfu_map_read_lock(vfu);
	statistics->ranges = vfu->range_count;
	vfu_map_read_unlock(vfu);
}

struct vfu *vfu_create(const struct vfu_device *device, void *context)
{
	struct vfu *vfu = aligned_alloc(_Alignof(struct vfu), sizeof(*vfu));
	unsigned int i;

	if (!vfu)
		return NULL;
	memset(vfu, 0, sizeof(*vfu));
	vfu->device = device;
	vfu->context = context;
	vfu->socket = -1;
	vfu->neighbour = -1;
	if (vfu_config_init(vfu)) {
		free(vfu);
		return NULL;
	}
	vfu_config_reset(vfu);
	pthread_mutex_init(&vfu->send_lock, NULL);
	vfu_map_init(vfu);
	pthread_mutex_init(&vfu->pending_lock, NULL);
	pthread_mutex_init(&vfu->vector_lock, NULL);
	for (i = 0; i < VFU_MAX_VECTORS; i++)
		vfu->vector_fds[i] = -1;
	return vfu;
}

void vfu_destroy(struct vfu *vfu)
{
	if (!vfu)
		return;
	pthread_mutex_destroy(&vfu->vector_lock);
	pthread_mutex_destroy(&vfu->pending_lock);
	vfu_map_destroy(vfu);
	pthread_mutex_destroy(&vfu->send_lock);
	free(vfu->ranges);
	free(vfu);
}

int vfu_listen(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int ret, fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	unlink(path);
	if (!bind(fd, (struct sockaddr *)&address, sizeof(address)) &&
	    !listen(fd, 1))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}
