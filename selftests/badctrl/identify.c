// SPDX-License-Identifier: GPL-2.0-only
/* Default Identify data, which tests may overwrite. */
#include <string.h>

#include "identify.h"

static void put(uint8_t *page, unsigned int offset, uint64_t value, unsigned int size)
{
	memcpy(page + offset, &value, size);
}

static void put_text(uint8_t *page, unsigned int offset, const char *text, unsigned int size)
{
	memset(page + offset, ' ', size);
	memcpy(page + offset, text, strlen(text));
}

/* Identify Controller, base 5.1.13.2.1. */
static void identify_ctrl(uint8_t *page)
{
	put(page, 0, BADCTRL_VENDOR, 2);
	put_text(page, 4, "bad", 20);
	put_text(page, 24, "badctrl", 40);
	put_text(page, 64, "1", 8);
	put(page, 77, 8, 1);		/* MDTS: 1 MiB */
	put(page, 80, 0x00010400, 4);	/* VER */
	put(page, 92, 0x300, 4);	/* OAES: namespaces, firmware */
	put(page, 111, 1, 1);		/* an I/O controller */
	put(page, 258, 3, 1);		/* ACL */
	put(page, 259, BAD_REQUESTS_MAX - 1, 1);
	put(page, 512, 0x66, 1);	/* SQES */
	put(page, 513, 0x44, 1);	/* CQES */
	put(page, 516, BADCTRL_NAMESPACE_MAX, 4);
	put(page, 520, 0x000d, 2);	/* ONCS: compare, DSM, write zeroes */
	put(page, 525, 1, 1);		/* VWC */
	strcpy((char *)page + 768, "nqn.2014-08.org.nvmexpress:uuid:badc0000-0000-0000-0000-000000000000");
}

/* Identify Namespace, NVM command set 4.1.5.1: the same for every namespace. */
static void identify_namespace(uint8_t *page, size_t bytes)
{
	uint64_t blocks = bytes / 512;

	put(page, 0, blocks, 8);
	put(page, 8, blocks, 8);
	put(page, 16, blocks, 8);
	put(page, 128, 9U << 16, 4);	/* LBA format 0 */
}

/* Namespace Identification Descriptor list: a UUID. */
static void identify_descriptors(uint8_t *page)
{
	page[0] = 3;
	page[1] = 16;
	memset(page + 4, 0xba, 16);
}

void bad_identify_defaults(struct bad *ctrl)
{
	memset(ctrl->identify, 0, sizeof(ctrl->identify));
	identify_namespace(ctrl->identify[0], ctrl->namespace_bytes);
	identify_ctrl(ctrl->identify[1]);
	identify_descriptors(ctrl->identify[3]);
}
