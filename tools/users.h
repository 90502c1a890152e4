/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Who uses the disks of a controller: mounts, swap, and what is built on them.
 */
#ifndef USERS_H
#define USERS_H

#include <stddef.h>

#include "pci.h"

/**
 * struct users - the users of a controller's disks, each in a few words
 * @texts: "nvme0n1p1 is mounted on /home"; owned
 * @count: of them
 */
struct users {
	char **texts;
	size_t count;
};

/**
 * users_find() - look for all users of a controller's disks and partitions
 * @controller: any driver's
 * @users: receives them; free with users_free()
 *
 * Somebody who has a disk open without wanting it alone is not seen, as for
 * mkfs(8).
 */
void users_find(const struct pci_function *controller, struct users *users);
void users_free(struct users *users);

#endif /* USERS_H */
