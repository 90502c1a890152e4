// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Namespaces: I/O of the CPU, one command at a time, with the standard passthrough
 * ioctls of the generic node.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "nvme.h"

/* Identify Namespace data structure (NVM command set 4.1.5.1), offsets. */
enum {
	IDENTIFY_LENGTH = 4096,
	ID_NS_NSZE = 0,
	ID_NS_NLBAF = 25,
	ID_NS_FLBAS = 26,
	ID_NS_LBAF0 = 128,
};

static uint64_t little_endian(const uint8_t *bytes, int count)
{
	uint64_t value = 0;

	while (count--)
		value = value << 8 | bytes[count];
	return value;
}

/* With more than 16 formats, FLBAS bits 6:5 extend the format index in bits 3:0. */
static int parse_format(const uint8_t *identify, struct nvmepeer_ns_info *info)
{
	unsigned int flbas = identify[ID_NS_FLBAS];
	unsigned int index = flbas & 0xf;
	const uint8_t *format;

	if (identify[ID_NS_NLBAF] >= 16)
		index |= (flbas >> 1) & 0x30;
	if (index > identify[ID_NS_NLBAF])
		return -EPROTO;
	format = identify + ID_NS_LBAF0 + 4 * (size_t)index;
	/* LBADS: a block has at least 512 bytes; more than 1 MiB is not plausible. */
	if (format[2] < 9 || format[2] > 20)
		return -EPROTO;
	info->block_size = 1u << format[2];
	info->metadata_size = (uint32_t)little_endian(format, 2);
	/*
	 * Metadata would need memory behind each block's data or in a separate buffer, or
	 * PRACT in the command.  None of them is implemented.
	 */
	if (info->metadata_size)
		return -EOPNOTSUPP;
	info->blocks = little_endian(identify + ID_NS_NSZE, 8);
	return 0;
}

static int read_format(int fd, struct nvmepeer_ns_info *info)
{
	_Alignas(4096) uint8_t identify[IDENTIFY_LENGTH] = { 0 };
	struct nvme_passthru_cmd command = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.addr = (uintptr_t)identify,
		.data_len = sizeof(identify),
	};
	int result;

	result = peer_ioctl(fd, NVME_IOCTL_ID, NULL);
	if (result < 0)
		return result;
	info->size = sizeof(*info);
	info->nsid = (uint32_t)result;
	command.nsid = info->nsid;
	result = peer_ioctl(fd, NVME_IOCTL_ADMIN_CMD, &command);
	return result ? result : parse_format(identify, info);
}

int nvmepeer_ns_open(const char *node, struct nvmepeer_ns **ns)
{
	struct nvmepeer_ns *opened;
	int result = -ENOMEM;

	opened = calloc(1, sizeof(*opened));
	if (!opened)
		goto failed;
	result = node_open(node, opened->node);
	if (result < 0)
		goto free;
	opened->fd = result;
	result = read_format(opened->fd, &opened->info);
	if (result)
		goto close;
	*ns = opened;
	return 0;

close:
	close(opened->fd);
free:
	free(opened);
failed:
	return failure_set(CALL_NS_OPEN, result, node);
}

void nvmepeer_ns_close(struct nvmepeer_ns *ns)
{
	if (!ns)
		return;
	close(ns->fd);
	free(ns);
}

int nvmepeer_ns_fd(const struct nvmepeer_ns *ns)
{
	return ns->fd;
}

const struct nvmepeer_ns_info *nvmepeer_ns_info(const struct nvmepeer_ns *ns)
{
	return &ns->info;
}

static int command_failed(struct nvmepeer_ns *ns, enum call call, int result,
			  const struct nvme_passthru_cmd *command)
{
	struct failure failure;

	failure_init(&failure, call, result, ns->node);
	failure.request.command = *command;
	return failure_record(&failure);
}

static int transfer(struct nvmepeer_ns *ns, enum call call, uint8_t opcode,
		    uint64_t lba, uint32_t blocks, void *data)
{
	struct nvme_passthru_cmd command = {
		.opcode = opcode,
		.nsid = ns->info.nsid,
		.addr = (uintptr_t)data,
		.cdw10 = (uint32_t)lba,
		.cdw11 = (uint32_t)(lba >> 32),
		.cdw12 = blocks - 1,	/* NLB is zero-based */
	};
	int result;

	if (!blocks || blocks > 65536)
		return command_failed(ns, call, -EINVAL, &command);
	command.data_len = blocks * ns->info.block_size;
	result = peer_ioctl(ns->fd, NVME_IOCTL_IO_CMD, &command);
	return result ? command_failed(ns, call, result, &command) : 0;
}

int nvmepeer_ns_read(struct nvmepeer_ns *ns, uint64_t lba, uint32_t blocks,
		     void *data)
{
	return transfer(ns, CALL_READ, NVMEPEER_OP_READ, lba, blocks, data);
}

int nvmepeer_ns_write(struct nvmepeer_ns *ns, uint64_t lba, uint32_t blocks,
		      const void *data)
{
	return transfer(ns, CALL_WRITE, NVMEPEER_OP_WRITE, lba, blocks,
			(void *)(uintptr_t)data);
}

int nvmepeer_ns_flush(struct nvmepeer_ns *ns)
{
	struct nvme_passthru_cmd command = {
		.opcode = NVMEPEER_OP_FLUSH,
		.nsid = ns->info.nsid,
	};
	int result = peer_ioctl(ns->fd, NVME_IOCTL_IO_CMD, &command);

	return result ? command_failed(ns, CALL_FLUSH, result, &command) : 0;
}
