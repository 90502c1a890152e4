// SPDX-License-Identifier: MIT OR GPL-2.0
/* Keys of the reference index: SHA-256 (FIPS 180-4) of what determines a value. */
#include <endian.h>
#include <string.h>

#include "store.h"

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/**
 * struct digest - SHA-256 in progress
 * @state: eight words
 * @block: bytes that are not yet in @state
 * @bytes: length so far
 */
struct digest {
	uint32_t state[8];
	uint8_t block[64];
	uint64_t bytes;
};

static uint32_t rotate(uint32_t word, int bits)
{
	return word >> bits | word << (32 - bits);
}

static void compress(struct digest *digest)
{
	uint32_t words[64], s[8];

	memcpy(words, digest->block, 64);
	memcpy(s, digest->state, sizeof(s));
	for (int i = 0; i < 16; i++)
		words[i] = be32toh(words[i]);
	for (int i = 16; i < 64; i++) {
		uint32_t low = words[i - 15], high = words[i - 2];

		words[i] = words[i - 16] + words[i - 7] +
			   (rotate(low, 7) ^ rotate(low, 18) ^ low >> 3) +
			   (rotate(high, 17) ^ rotate(high, 19) ^ high >> 10);
	}
	for (int i = 0; i < 64; i++) {
		uint32_t one = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
			       ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + words[i];
		uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
			       ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(s[0]));
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		digest->state[i] += s[i];
}

static void add(struct digest *digest, const void *data, size_t bytes)
{
	const uint8_t *byte = data;

	while (bytes--) {
		digest->block[digest->bytes++ % 64] = *byte++;
		if (digest->bytes % 64 == 0)
			compress(digest);
	}
}

static void finish(struct digest *digest, uint8_t result[32])
{
	static const uint8_t padding[64] = { 0x80 };
	uint64_t bits = htobe64(digest->bytes * 8);

	add(digest, padding, 1 + (119 - digest->bytes % 64) % 64);
	add(digest, &bits, sizeof(bits));
	for (int i = 0; i < 8; i++) {
		uint32_t word = htobe32(digest->state[i]);

		memcpy(result + 4 * i, &word, sizeof(word));
	}
}

/* With its length, so that no two lists of parts have the same bytes. */
static void add_part(struct digest *digest, const void *data, size_t bytes)
{
	uint64_t length = htole64(bytes);

	add(digest, &length, sizeof(length));
	add(digest, data, bytes);
}

int nvmepeer_index_key(const struct nvmepeer_index_scope *scope, const void *block, size_t bytes,
		       uint8_t key[NVMEPEER_STORE_TAG])
{
	static const char call[] = "nvmepeer_index_key";
	struct digest digest = { .state = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	} };
	int error = store_check_size(call, scope->size,
				     SIZE_THROUGH(struct nvmepeer_index_scope, layers));

	if (!error)
		error = store_check_newer(call, scope, scope->size, sizeof(*scope));
	if (error)
		return error;
	if (!scope->model || !scope->layout)
		return store_fail(call, -EINVAL, "the scope is invalid", "set model and layout",
				  "%s is NULL", scope->model ? "layout" : "model");
	const uint32_t numbers[] = {
		htole32(scope->data_type), htole32(scope->tensor_rank), htole32(scope->tensor_size),
		htole32(scope->pipeline_rank), htole32(scope->pipeline_size),
		htole32(scope->first_layer), htole32(scope->layers), htole32(!!scope->salt),
	};
	add_part(&digest, numbers, sizeof(numbers));
	add_part(&digest, scope->model, strlen(scope->model));
	add_part(&digest, scope->layout, strlen(scope->layout));
	add_part(&digest, scope->salt, scope->salt ? strlen(scope->salt) : 0);
	add_part(&digest, block, bytes);
	memset(key, 0, NVMEPEER_STORE_TAG);
	finish(&digest, key);
	return 0;
}
