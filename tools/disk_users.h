/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The users of the disks of a controller: mounts, swap, block devices on top of them.
 */
#ifndef DISK_USERS_H
#define DISK_USERS_H

#include <stddef.h>

#include "pci.h"

/**
 * struct disk_users - users of the disks of a controller
 * @texts: one per user, "nvme0n1p1 is mounted on /home"; owned
 * @count: number of users
 */
struct disk_users {
	char **texts;
	size_t count;
};

/**
 * disk_users_find() - find the users of all disks and partitions of a controller
 * @controller: controller, of any driver
 * @users: receives the users, to be freed with disk_users_free()
 *
 * A program that has opened a disk without O_EXCL is not found, as with mkfs(8).
 */
void disk_users_find(const struct pci_function *controller, struct disk_users *users);
void disk_users_free(struct disk_users *users);

#endif /* DISK_USERS_H */
