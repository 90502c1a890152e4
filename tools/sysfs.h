/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Files that describe the machine: sysfs, procfs, /boot, /etc and the nodes in /dev.
 * NVME_PEER_SYSROOT names a directory that replaces the root, so that a test can provide
 * another machine.
 *
 * Paths are given by a format and arguments as for printf().
 */
#ifndef SYSFS_H
#define SYSFS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	SYSFS_PATH = 1024,	/* size of the longest path */
	SYSFS_TEXT = 256,	/* size of the longest attribute */
};

/* sysfs_path() - the path with the root. */
void sysfs_path(char path[SYSFS_PATH], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_real() - realpath() below the root; false if the path does not exist. */
bool sysfs_real(char real[SYSFS_PATH], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_exists() - true if the file exists. */
bool sysfs_exists(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* sysfs_open() - open for reading. Returns NULL on failure. */
FILE *sysfs_open(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* sysfs_read() - the first line without its end; "" and false without a file. */
bool sysfs_read(char text[SYSFS_TEXT], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_bytes() - the first bytes of a file. Returns their number. */
size_t sysfs_bytes(void *bytes, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* sysfs_number() - a decimal or 0x number, or @otherwise. */
uint64_t sysfs_number(uint64_t otherwise, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_link() - the last component of the target of a link; "" and false if there is none. */
bool sysfs_link(char name[SYSFS_TEXT], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_list() - the names in a directory in version order, to be freed with
 * sysfs_list_free(). Returns 0 if the directory does not exist.
 */
int sysfs_list(struct dirent ***names, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void sysfs_list_free(struct dirent **names, int count);

/* sysfs_busy() - true if a node is opened exclusively by another process or a mount. */
bool sysfs_busy(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* sysfs_write() - write an attribute, or create a file. Returns 0 or -errno. */
int sysfs_write(const char *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_remove() - remove a file. Returns 0 or -errno. */
int sysfs_remove(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* SYSFS_H */
