// SPDX-License-Identifier: GPL-2.0-only
/* Access to the guest's memory by addresses, PRPs and an SGL descriptor. */
#include <errno.h>
#include <stdlib.h>

#include "memory.h"
#include "mover.h"
#include "registers.h"

/* Byte of Identify Controller; base 5.1.13.2.1. */
#define IDENTIFY_SGLS	536
#define SGLS_SUPPORTED	3

/* Most commands have fewer pages, which need no allocation. */
#define FEW_PAGES	33U

/* Count a failed access with bus mastering enabled: the memory was unmapped too early. */
static uint16_t bad_accessed(struct bad *ctrl, int ret)
{
	if (ret == -EFAULT)
		bad_count(ctrl, BADCTRL_FAULTS, 1);
	return ret ? NVME_STATUS_DNR | NVME_SC_DATA_TRANSFER : 0;
}

uint16_t bad_read(struct bad *ctrl, uint64_t address, void *data, size_t length)
{
	return bad_accessed(ctrl, vfu_dma_read(ctrl->vfu, address, data, length, 0));
}

uint16_t bad_write(struct bad *ctrl, uint64_t address, const void *data, size_t length)
{
	return bad_accessed(ctrl, vfu_dma_write(ctrl->vfu, address, data, length, 0));
}

/* A transient status, so that the host retries the command and no data is lost. */
uint16_t bad_stray(struct bad *ctrl)
{
	static const uint8_t bytes[64];

	if (!vfu_dma_write(ctrl->vfu, BADCTRL_NOWHERE, bytes, sizeof(bytes), 0))
		return 0;
	bad_count(ctrl, BADCTRL_STRAYS, 1);
	return NVME_SC_DATA_TRANSFER;
}

/* The last entry of a list page is the address of the next page, if more entries follow. */
uint16_t bad_prp_list(struct bad *ctrl, uint64_t list, uint64_t *pages, uint32_t count,
		      uint32_t *lists)
{
	uint16_t status = 0;

	while (!status) {
		uint32_t room = (uint32_t)((BAD_PAGE - list % BAD_PAGE) / sizeof(*pages));
		uint32_t take = count > room ? room - 1 : count;

		++*lists;
		status = bad_read(ctrl, list, pages, take * sizeof(*pages));
		pages += take;
		count -= take;
		if (status || !count)
			break;
		status = bad_read(ctrl, list + take * sizeof(*pages), &list, sizeof(list));
	}
	return status;
}

/* Follows the Identify data, which a test may have changed. */
static bool bad_takes_sgls(struct bad *ctrl)
{
	bool takes;

	pthread_mutex_lock(&ctrl->lock);
	takes = ctrl->identify[1][IDENTIFY_SGLS] & SGLS_SUPPORTED;
	pthread_mutex_unlock(&ctrl->lock);
	return takes;
}

/*
 * Convert one SGL data block descriptor, base 4.1.2.1 (address, length, and the type in the
 * highest byte), to pages, the first of which may have an offset.
 */
static uint16_t bad_block(struct bad *ctrl, const struct bad_command *command, uint64_t *pages,
			  uint32_t count, size_t length)
{
	uint64_t first = command->prp1 - command->prp1 % BAD_PAGE;
	uint32_t i;

	if (!bad_takes_sgls(ctrl))
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	if (command->prp2 >> 56)
		return NVME_STATUS_DNR | NVME_SC_SGL_TYPE;
	if ((uint32_t)command->prp2 < length)
		return NVME_STATUS_DNR | NVME_SC_SGL_LENGTH;
	pages[0] = command->prp1;
	for (i = 1; i < count; i++)
		pages[i] = first + (uint64_t)i * BAD_PAGE;
	return 0;
}

/* Convert PRP 1 and PRP 2 to pages, the first of which may have an offset. */
static uint16_t bad_prps(struct bad *ctrl, const struct bad_command *command, uint64_t *pages,
			 uint32_t count)
{
	uint32_t lists = 0, i;
	uint16_t status = 0;

	pages[0] = command->prp1;
	if (count == 2)
		pages[1] = command->prp2;
	else if (count > 2)
		status = bad_prp_list(ctrl, command->prp2, pages + 1, count - 1, &lists);
	for (i = 1; i < count && !status; i++)
		if (pages[i] % BAD_PAGE)
			status = NVME_STATUS_DNR | NVME_SC_PRP_OFFSET;
	return status;
}

/* At most a page. */
static uint16_t bad_piece(struct bad *ctrl, uint64_t address, uint8_t *data, size_t length,
			  bool to_host, struct bad_moves *moves)
{
	uint16_t status = bad_moves_add(ctrl, moves, address, data, length, to_host);

	if (status)
		return status == BAD_PENDING ? 0 : status;
	return to_host ? bad_write(ctrl, address, data, length) :
			 bad_read(ctrl, address, data, length);
}

uint16_t bad_transfer(struct bad *ctrl, const struct bad_command *command, uint8_t *data,
		      size_t length, bool to_host, struct bad_moves *moves)
{
	size_t offset = command->prp1 % BAD_PAGE, step;
	uint32_t count = (uint32_t)((offset + length + BAD_PAGE - 1) / BAD_PAGE), i;
	uint64_t few[FEW_PAGES] = { 0 };
	uint64_t *pages = count <= FEW_PAGES ? few : calloc(count, sizeof(*pages));
	uint16_t status, ended;

	if (!pages)
		return NVME_STATUS_DNR | NVME_SC_DATA_TRANSFER;
	status = command->flags & COMMAND_SGL ?
		 bad_block(ctrl, command, pages, count, length) :
		 bad_prps(ctrl, command, pages, count);
	for (i = 0; i < count && !status; i++) {
		step = BAD_PAGE - pages[i] % BAD_PAGE;
		step = step < length ? step : length;
		status = bad_piece(ctrl, pages[i], data, step, to_host, moves);
		data += step;
		length -= step;
	}
	ended = bad_moves_end(ctrl, moves);
	if (pages != few)
		free(pages);
	return status ? status : ended;
}

uint16_t bad_from_host(struct bad *ctrl, const struct bad_command *command, void *data,
		       size_t length)
{
	return bad_transfer(ctrl, command, data, length, false, NULL);
}

uint16_t bad_to_host(struct bad *ctrl, const struct bad_command *command, const void *data,
		     size_t length)
{
	return bad_transfer(ctrl, command, (uint8_t *)data, length, true, NULL);
}
