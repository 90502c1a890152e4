/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Write zeros to the parts of a file that have no blocks or unwritten ones.
 */
#ifndef FILE_PREPARE_H
#define FILE_PREPARE_H

#include <stdint.h>

/**
 * file_prepare() - make all extents of a file written
 * @fd: file of ext4, open for reading and writing
 * @size: bytes that it has at least then; a longer file keeps its length
 * @zeroed: receives the bytes that were written
 *
 * Data is never overwritten: the file has a write lease meanwhile, so no other process has it
 * open.  What the file reads as is the same at each moment, so an interruption is harmless, and
 * a repeated call continues.  Without room for all of it the length stays.
 *
 * Returns 0, the number of the signal that interrupted it, or -errno: -EAGAIN if another
 * process has the file open.
 */
int file_prepare(int fd, uint64_t size, uint64_t *zeroed);

#endif /* FILE_PREPARE_H */
