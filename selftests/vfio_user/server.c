// SPDX-License-Identifier: GPL-2.0-only
/*
 * A vfio-user server: creation, connection, requests of the client, interrupts.
 *
 * One thread receives all messages. It replies to the client's requests at once, even while
 * other threads wait for replies of the client: the client's virtual CPU holds a lock during its
 * request, which the client needs to serve requests of the server. Otherwise they deadlock.
 * libvfio-user does not do that without a second socket ("twin_socket"), which QEMU has not.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vfu.h"

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "messages are not swapped");

/* Capabilities of the server; the reply must not be longer than QEMU's request. */
static const char capabilities[] =
	"{\"capabilities\":{\"max_msg_fds\":8,"
	"\"max_data_xfer_size\":65536,\"pgsizes\":4096}}";

/* Requests have the first version of this structure. */
#define INFO_BYTES	offsetof(struct vfio_device_info, cap_offset)

/* The device stops using located memory before the client gets the reply. */
static void notify_unmapped(struct vfu *vfu, uint64_t address, uint64_t size)
{
	if (vfu->device->unmapped)
		vfu->device->unmapped(vfu->context, address, size);
}

static void enable_dma(struct vfu *vfu, bool enable)
{
	vfu_dma_enable(vfu, enable);
	if (!enable)
		notify_unmapped(vfu, 0, UINT64_MAX);
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
	(void)vfu;
	if (message->version.major != 0)
		return ENOTSUP;
	message->version.minor = 0;
	memcpy(message->payload + sizeof(message->version), capabilities, sizeof(capabilities));
	return 0;
}

static int handle_dma_map(struct vfu *vfu, struct vfu_message *message)
{
	return vfu_map_add(vfu, &message->map, message->fd_count ? message->fds[0] : -1);
}

/* Remove the range before the reply, after which the client may reuse the memory. */
static int handle_dma_unmap(struct vfu *vfu, struct vfu_message *message)
{
	const struct vfu_unmap *unmap = &message->unmap;
	uint64_t address = unmap->flags ? 0 : unmap->address;
	uint64_t size = unmap->flags ? UINT64_MAX : unmap->size;
	int error;

	if (unmap->flags & ~VFIO_DMA_UNMAP_FLAG_ALL)
		return EINVAL;
	error = vfu_map_remove(vfu, address, size);
	if (!error)
		notify_unmapped(vfu, address, size);
	return error;
}

static int handle_get_info(struct vfu *vfu, struct vfu_message *message)
{
	(void)vfu;
	message->info = (struct vfio_device_info){
		.argsz = INFO_BYTES,
		.flags = VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI,
		.num_regions = VFIO_PCI_NUM_REGIONS,
		.num_irqs = VFIO_PCI_NUM_IRQS,
	};
	return 0;
}

/* Size of an accessible region; 0 if there is none of this number. */
static uint64_t region_size(const struct vfu *vfu, uint32_t region)
{
	if (region == VFIO_PCI_CONFIG_REGION_INDEX)
		return sizeof(vfu->config);
	return region < VFU_BARS ? vfu->device->bars[region].size : 0;
}

static int handle_get_region_info(struct vfu *vfu, struct vfu_message *message)
{
	uint32_t index = message->region.index;
	uint64_t size = region_size(vfu, index);

	if (index >= VFIO_PCI_NUM_REGIONS)
		return EINVAL;
	message->region = (struct vfio_region_info){
		.argsz = sizeof(message->region),
		.flags = size ? VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE : 0,
		.index = index,
		.size = size,
	};
	if (size && index < VFU_BARS && vfu->device->bars[index].fd >= 0) {
		message->region.flags |= VFIO_REGION_INFO_FLAG_MMAP;
		message->reply_fd = vfu->device->bars[index].fd;
	}
	return 0;
}

static int handle_get_irq_info(struct vfu *vfu, struct vfu_message *message)
{
	uint32_t index = message->irq.index;
	bool msi = index == VFIO_PCI_MSI_IRQ_INDEX;

	if (index >= VFIO_PCI_NUM_IRQS)
		return EINVAL;
	message->irq = (struct vfio_irq_info){
		.argsz = sizeof(message->irq),
		.flags = msi ? VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE : 0,
		.index = index,
		.count = msi ? vfu->device->vectors : 0,
	};
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
	const struct vfu_irq_set *set = &message->irqs;
	uint32_t i;

	if (!set->count) {
		if (set->index == VFIO_PCI_MSI_IRQ_INDEX)
			clear_vectors(vfu);
		return 0;
	}
	if (set->index != VFIO_PCI_MSI_IRQ_INDEX || !(set->flags & VFIO_IRQ_SET_DATA_EVENTFD) ||
	    set->start >= vfu->device->vectors ||
	    set->count > vfu->device->vectors - set->start)
		return EINVAL;
	for (i = 0; i < set->count; i++) {
		set_vector(vfu, set->start + i, i < message->fd_count ? message->fds[i] : -1);
		if (i < message->fd_count)
			message->fds[i] = -1;
	}
	return 0;
}

static bool access_is_valid(const struct vfu *vfu, const struct vfu_region_access *access)
{
	uint64_t size = region_size(vfu, access->region);

	return access->count <= VFU_DATA_MAX && access->offset <= size &&
	       access->count <= size - access->offset;
}

static int handle_region_read(struct vfu *vfu, struct vfu_message *message)
{
	const struct vfu_region_access *access = &message->access;
	char *data = message->payload + sizeof(*access);

	if (!access_is_valid(vfu, access))
		return EINVAL;
	if (access->region == VFIO_PCI_CONFIG_REGION_INDEX)
		vfu_config_read(vfu, access->offset, data, access->count);
	else
		vfu->device->bar_read(vfu->context, access->region, access->offset, data,
				      access->count);
	message->reply_length += access->count;
	return 0;
}

/* Bits with an effect: Function Level Reset, Bus Master Enable, the power state. */
static void write_config(struct vfu *vfu, uint64_t offset, const void *data, uint32_t count)
{
	if (vfu_config_write(vfu, offset, data, count))
		reset(vfu, VFU_RESET_FUNCTION);
	else if (vfu->dma_enabled != vfu_config_allows_dma(vfu))
		enable_dma(vfu, !vfu->dma_enabled);
}

static int handle_region_write(struct vfu *vfu, struct vfu_message *message)
{
	const struct vfu_region_access *access = &message->access;
	const char *data = message->payload + sizeof(*access);

	if (!access_is_valid(vfu, access) ||
	    message->header.size < sizeof(message->header) + sizeof(*access) + access->count)
		return EINVAL;
	if (access->region == VFIO_PCI_CONFIG_REGION_INDEX)
		write_config(vfu, access->offset, data, access->count);
	else
		vfu->device->bar_write(vfu->context, access->region, access->offset, data,
				       access->count);
	return 0;
}

static int handle_reset(struct vfu *vfu, struct vfu_message *message)
{
	(void)message;
	reset(vfu, VFU_RESET_BUS);
	return 0;
}

#define SIZE(payload)	sizeof(((struct vfu_message *)NULL)->payload)

/* Minimum length of the payload, and length of that of the reply without data. */
static const struct {
	int (*handle)(struct vfu *vfu, struct vfu_message *message);
	size_t length;
	size_t reply_length;
} commands[] = {
	[VFU_VERSION] = { handle_version, SIZE(version), SIZE(version) + sizeof(capabilities) },
	[VFU_DMA_MAP] = { handle_dma_map, SIZE(map), 0 },
	[VFU_DMA_UNMAP] = { handle_dma_unmap, SIZE(unmap), SIZE(unmap) },
	[VFU_GET_INFO] = { handle_get_info, SIZE(info.argsz), INFO_BYTES },
	[VFU_GET_REGION_INFO] = { handle_get_region_info, SIZE(region), SIZE(region) },
	[VFU_GET_IRQ_INFO] = { handle_get_irq_info, SIZE(irq), SIZE(irq) },
	[VFU_SET_IRQS] = { handle_set_irqs, SIZE(irqs), 0 },
	[VFU_REGION_READ] = { handle_region_read, SIZE(access), SIZE(access) },
	[VFU_REGION_WRITE] = { handle_region_write, SIZE(access), SIZE(access) },
	[VFU_RESET] = { handle_reset, 0, 0 },
};

static int handle(struct vfu *vfu, struct vfu_message *message)
{
	uint16_t command = message->header.command;

	if (command >= sizeof(commands) / sizeof(commands[0]) || !commands[command].handle)
		return ENOTSUP;
	if (message->header.size < sizeof(message->header) + commands[command].length)
		return EINVAL;
	message->reply_length = commands[command].reply_length;
	return commands[command].handle(vfu, message);
}

/* --- Serving ------------------------------------------------------------- */

static int reply(struct vfu *vfu, struct vfu_message *message, int error)
{
	struct vfu_header *header = &message->header;
	int ret;

	header->size = (uint32_t)(sizeof(*header) + (error ? 0 : message->reply_length));
	header->flags = VFU_FLAG_REPLY | (error ? VFU_FLAG_ERROR : 0);
	header->error = (uint32_t)error;
	pthread_mutex_lock(&vfu->send_lock);
	ret = vfu_send(vfu->socket, header, &message->reply_fd, message->reply_fd >= 0);
	pthread_mutex_unlock(&vfu->send_lock);
	return ret;
}

static int dispatch(struct vfu *vfu, struct vfu_message *message)
{
	int error;

	if ((message->header.flags & VFU_FLAG_TYPE) == VFU_FLAG_REPLY) {
		vfu_pending_answer(vfu, message);
		return 0;
	}
	message->reply_fd = -1;
	error = handle(vfu, message);
	return message->header.flags & VFU_FLAG_NO_REPLY ? 0 : reply(vfu, message, error);
}

static void set_socket(struct vfu *vfu, int socket)
{
	pthread_mutex_lock(&vfu->send_lock);
	vfu->socket = socket;
	pthread_mutex_unlock(&vfu->send_lock);
}

int vfu_serve(struct vfu *vfu, int socket)
{
	struct vfu_message *message = &vfu->message;
	int ret, error = 0;

	set_socket(vfu, socket);
	do {
		ret = vfu_receive(socket, message);
		if (ret > 0)
			error = dispatch(vfu, message);
		vfu_message_close(message);
	} while (ret > 0 && !error);
	set_socket(vfu, -1);
	close(socket);
	reset(vfu, VFU_RESET_CLIENT_GONE);
	vfu_map_clear(vfu);
	clear_vectors(vfu);
	return error ? error : ret;
}

int vfu_interrupt(struct vfu *vfu, unsigned int vector)
{
	const uint64_t one = 1;
	bool sent;

	if (vector >= VFU_MAX_VECTORS)
		return -ENXIO;
	pthread_mutex_lock(&vfu->vector_lock);
	sent = vfu->vector_fds[vector] >= 0 &&
	       write(vfu->vector_fds[vector], &one, sizeof(one)) == sizeof(one);
	pthread_mutex_unlock(&vfu->vector_lock);
	return sent ? 0 : -ENXIO;
}

struct vfu *vfu_create(const struct vfu_device *device, void *context, int neighbour)
{
	struct vfu *vfu = aligned_alloc(_Alignof(struct vfu), sizeof(*vfu));
	struct stat status;
	unsigned int i;

	if (!vfu)
		return NULL;
	memset(vfu, 0, sizeof(*vfu));
	vfu->device = device;
	vfu->context = context;
	vfu->socket = -1;
	vfu->neighbour = neighbour;
	vfu->neighbour_bytes = fstat(neighbour, &status) ? 0 : (uint64_t)status.st_size;
	vfu_config_init(vfu);
	pthread_mutex_init(&vfu->send_lock, NULL);
	pthread_mutex_init(&vfu->pending_lock, NULL);
	pthread_mutex_init(&vfu->vector_lock, NULL);
	/* Prefer writers, as programs that read guest memory in a loop must not starve an UNMAP. */
	for (i = 0; i < VFU_SHARDS; i++)
		vfu->shards[i].map_lock =
			(pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
	for (i = 0; i < VFU_MAX_VECTORS; i++)
		vfu->vector_fds[i] = -1;
	return vfu;
}

void vfu_destroy(struct vfu *vfu)
{
	if (vfu)
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
	if (!bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 1))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}
