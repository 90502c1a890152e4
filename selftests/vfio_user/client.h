/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A minimal vfio-user client instead of QEMU, for tests and benchmarks: it maps memory for a
 * device, accesses its regions, and serves its DMA meanwhile.
 */
#ifndef VFIO_USER_CLIENT_H
#define VFIO_USER_CLIENT_H

#include <stdbool.h>

#include "protocol.h"

#define CLIENT_CONFIG	VFIO_PCI_CONFIG_REGION_INDEX
#define CLIENT_RW	(VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)

/**
 * struct client - client of one device; used by one thread
 * @socket: connected socket
 * @id: ID of the last message
 * @dma: serves DMA by message: the data are in @payload behind @dma, or belong there. Returns 0
 *	or an errno. NULL: DMA fails
 */
struct client {
	int socket;
	uint16_t id;
	int (*dma)(struct client *client, struct vfu_message *asked);
};

/* All functions return 0 or a negative errno, also that of the device's reply. */
int client_open(struct client *client, const char *path);
/*
 * Send @message with @length bytes of payload and its files, which remain open, serve requests of
 * the device meanwhile, and receive the reply in @message.
 */
int client_ask(struct client *client, struct vfu_message *message, uint16_t command,
	       size_t length);
/* Serve a request of the device. */
int client_answer(struct client *client, struct vfu_message *asked);
/* @fd: -1 for none. */
int client_map(struct client *client, uint64_t address, uint64_t size, uint32_t flags, int fd,
	       uint64_t offset);
int client_unmap(struct client *client, uint64_t address, uint64_t size, uint32_t flags);
int client_read(struct client *client, uint32_t region, uint64_t offset, void *data,
		uint32_t count);
int client_write(struct client *client, uint32_t region, uint64_t offset, const void *data,
		 uint32_t count);
/* Memory space, and bus mastering. */
int client_enable(struct client *client, bool bus_master);

#endif /* VFIO_USER_CLIENT_H */
