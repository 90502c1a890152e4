/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What QEMU is to a vfio-user device, and no more: a client that maps memory for it,
 * reads and writes its regions, and answers its reads of the bus meanwhile.
 */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#define CLIENT_CONFIG	7U	/* region: config space */

/**
 * struct client - of one device; by one thread
 * @socket: connected
 * @id: of the last message
 * @bus_read: what the device reads by message, where no memory was mapped: 0 or an errno
 */
struct client {
	int socket;
	uint16_t id;
	int (*bus_read)(uint64_t address, void *data, size_t length);
};

/* All return 0 or a negative errno. */
int client_open(struct client *client, const char *path);
int client_map(struct client *client, uint64_t address, uint64_t size, int fd);
int client_read(struct client *client, uint32_t region, uint64_t offset, void *data,
		uint32_t count);
int client_write(struct client *client, uint32_t region, uint64_t offset, const void *data,
		 uint32_t count);
/* The device may use the bus. */
int client_enable(struct client *client);

#endif /* BENCH_CLIENT_H */
