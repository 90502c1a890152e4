/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The files by which a machine tells of itself: sysfs, procfs, /boot, /etc and
 * the nodes in /dev.  NVME_PEER_SYSROOT names a folder to find them in instead,
 * so that a test can make a machine up.
 *
 * A path is what printf() makes of a format and what follows it.
 */
#ifndef SYSFS_H
#define SYSFS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	SYSFS_PATH = 1024,	/* bytes of the longest path */
	SYSFS_TEXT = 256,	/* bytes of an attribute's text that anybody asks for */
};

/* sysfs_path() - the path itself, with the root. */
void sysfs_path(char path[SYSFS_PATH], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_real() - where a path leads, below the root; false if nowhere. */
bool sysfs_real(char real[SYSFS_PATH], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_exists() - is there such a file? */
bool sysfs_exists(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* sysfs_open() - for reading; NULL if it cannot be read. */
FILE *sysfs_open(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* sysfs_read() - the first line without what ends it; "" and false without a file. */
bool sysfs_read(char text[SYSFS_TEXT], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_bytes() - the first bytes of a file; how many there were. */
size_t sysfs_bytes(void *bytes, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* sysfs_number() - a number, decimal or 0x; @otherwise without one. */
uint64_t sysfs_number(uint64_t otherwise, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_link() - the last name of where a link leads; "" and false if it is none. */
bool sysfs_link(char name[SYSFS_TEXT], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_list() - the names in a folder, in the order of their numbers; free with
 * sysfs_list_free(); 0 if there is none.
 */
int sysfs_list(struct dirent ***names, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void sysfs_list_free(struct dirent **names, int count);

/* sysfs_busy() - a node is opened by somebody who wants it alone. */
bool sysfs_busy(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* sysfs_write() - to an attribute, or to a file that it makes; 0 or -errno. */
int sysfs_write(const char *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sysfs_remove() - a file; 0 or -errno. */
int sysfs_remove(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* SYSFS_H */
