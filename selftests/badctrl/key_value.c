// SPDX-License-Identifier: GPL-2.0-only
/*
 * Values by key (Key Value Command Set 1.0): a key is in dwords 2, 3, 14 and 15, and a value that
 * is read into a shorter buffer is cut off. There are few keys, for all namespaces.
 */
#include <string.h>

#include "key_value.h"
#include "memory.h"

enum { STORE = 0x01, RETRIEVE = 0x02, DELETE = 0x10, EXIST = 0x14 };
enum { INVALID_VALUE_SIZE = 0x85, INVALID_KEY_SIZE = 0x86, NO_KEY = 0x87, KEY_EXISTS = 0x89 };
enum { KEYS = 8, KEY_BYTES = 16, VALUE_BYTES = 64 << 10 };

/* Option of Store, in dword 11: not if the key exists. */
#define STORE_NEW	(1U << 9)
#define KEY_LENGTH(command)	((command)->cdw11 & 0xff)

/* The worker's. */
static struct entry {
	bool used;
	uint8_t length;
	uint32_t key[KEY_BYTES / 4];
	uint32_t bytes;
	uint8_t value[VALUE_BYTES];
} entries[KEYS];

static void key_of(const struct bad_command *command, uint32_t key[KEY_BYTES / 4])
{
	memcpy(key, &command->reserved, sizeof(command->reserved));
	key[2] = command->cdw14;
	key[3] = command->cdw15;
}

static struct entry *find(const struct bad_command *command)
{
	uint32_t key[KEY_BYTES / 4];

	key_of(command, key);
	for (unsigned int i = 0; i < KEYS; i++)
		if (entries[i].used && entries[i].length == KEY_LENGTH(command) &&
		    !memcmp(entries[i].key, key, sizeof(key)))
			return &entries[i];
	return NULL;
}

static uint16_t store(struct bad *ctrl, const struct bad_command *command, struct entry *found)
{
	uint32_t bytes = command->cdw10;
	uint16_t status;

	if (found && command->cdw11 & STORE_NEW)
		return NVME_STATUS_DNR | KEY_EXISTS;
	for (unsigned int i = 0; i < KEYS && !found; i++)
		if (!entries[i].used)
			found = &entries[i];
	if (!found || bytes > VALUE_BYTES)
		return NVME_STATUS_DNR | INVALID_VALUE_SIZE;
	status = bad_from_host(ctrl, command, found->value, bytes);
	if (status)
		return status;
	found->used = true;
	found->bytes = bytes;
	found->length = KEY_LENGTH(command);
	key_of(command, found->key);
	return 0;
}

static uint16_t retrieve(struct bad *ctrl, const struct bad_command *command,
			 const struct entry *found, uint32_t *result)
{
	uint32_t bytes = command->cdw10 < found->bytes ? command->cdw10 : found->bytes;

	*result = found->bytes;
	return bad_to_host(ctrl, command, found->value, bytes);
}

uint16_t bad_key_value(struct bad *ctrl, const struct bad_command *command, uint32_t *result)
{
	struct entry *found;

	if (!KEY_LENGTH(command) || KEY_LENGTH(command) > KEY_BYTES)
		return NVME_STATUS_DNR | INVALID_KEY_SIZE;
	found = find(command);
	if (command->opcode == STORE)
		return store(ctrl, command, found);
	if (!found)
		return NVME_STATUS_DNR | NO_KEY;
	switch (command->opcode) {
	case RETRIEVE:
		return retrieve(ctrl, command, found, result);
	case DELETE:
		found->used = false;
		return 0;
	case EXIST:
		return 0;
	default:
		return NVME_STATUS_DNR | NVME_SC_INVALID_OPCODE;
	}
}
