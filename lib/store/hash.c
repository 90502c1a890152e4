// SPDX-License-Identifier: MIT OR GPL-2.0
/* Checksums of the store. */
#include <endian.h>
#include <pthread.h>
#include <string.h>

#include "hash.h"

static uint32_t table[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
		table[i] = crc;
	}
}

uint32_t hash_crc32c(uint32_t seed, const void *data, size_t bytes)
{
	const uint8_t *byte = data;
	uint32_t crc = ~seed;

	pthread_once(&once, fill_table);
	while (bytes--)
		crc = crc >> 8 ^ table[(crc ^ *byte++) & 0xff];
	return ~crc;
}

#define PRIME_1 0x9e3779b97f4a7c15u
#define PRIME_2 0xc2b2ae3d27d4eb4fu

static uint64_t mix(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * PRIME_1;
	return lane << 29 | lane >> 35;
}

static uint64_t word_at(const uint8_t *data)
{
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	return le64toh(word);
}

/* Four lanes, which a processor computes in parallel: memory limits the rate. */
uint64_t hash64(const void *data, size_t bytes)
{
	uint64_t lane[4] = { PRIME_1, PRIME_2, ~PRIME_1, ~PRIME_2 };
	const uint8_t *at = data;
	uint64_t hash = bytes;
	size_t rest = bytes;

	for (; rest >= 32; rest -= 32, at += 32)
		for (int i = 0; i < 4; i++)
			lane[i] = mix(lane[i], word_at(at + 8 * i));
	for (; rest >= 8; rest -= 8, at += 8)
		lane[0] = mix(lane[0], word_at(at));
	if (rest) {
		uint8_t last[8] = { 0 };

		memcpy(last, at, rest);
		lane[1] = mix(lane[1], word_at(last));
	}
	for (int i = 0; i < 4; i++)
		hash = mix(hash ^ hash >> 31, lane[i] ^ lane[i] >> 32);
	hash = (hash ^ hash >> 33) * PRIME_2;
	return hash ^ hash >> 29;
}
