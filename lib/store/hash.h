/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Checksums of the store: parts of its format. */
#ifndef NVMEPEER_STORE_HASH_H
#define NVMEPEER_STORE_HASH_H

#include <stddef.h>
#include <stdint.h>

/** hash_crc32c() - CRC-32C (Castagnoli) of bytes; @seed is 0 or the CRC of earlier ones. */
uint32_t hash_crc32c(uint32_t seed, const void *data, size_t bytes);

/** hash64() - checksum of a value or a tag; no cryptographic one.  @bytes: a multiple of 4. */
uint64_t hash64(const void *data, size_t bytes);

#endif /* NVMEPEER_STORE_HASH_H */
