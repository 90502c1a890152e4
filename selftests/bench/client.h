/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A minimal vfio-user client instead of QEMU: it maps memory for a device, accesses its regions,
 * and serves its bus reads meanwhile.
 */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#define CLIENT_CONFIG	7U	/* region: config space */

/**
 * struct client - client of one device; used by one thread
 * @socket: connected socket
 * @id: ID of the last message
 * @bus_read: serves reads by message of unmapped addresses; returns 0 or an errno
 */
struct client {
	int socket;
	uint16_t id;
	int (*bus_read)(uint64_t address, void *data, size_t length);
};

/* All functions return 0 or a negative errno. */
int client_open(struct client *client, const char *path);
int client_map(struct client *client, uint64_t address, uint64_t size, int fd);
int client_read(struct client *client, uint32_t region, uint64_t offset, void *data,
		uint32_t count);
int client_write(struct client *client, uint32_t region, uint64_t offset, const void *data,
		 uint32_t count);
/* Enable bus mastering. */
int client_enable(struct client *client);

#endif /* BENCH_CLIENT_H */
