// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The record of the last failure, one per thread, and the two system calls
 * that every room makes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "internal.h"

static _Thread_local struct failure last_failure;

struct failure *failure_begin(enum call call, int result, const char *subject)
{
	struct failure *failure = &last_failure;

	memset(failure, 0, sizeof(*failure));
	failure->call = call;
	if (result < 0)
		failure->error = -result;
	else
		failure->status = result;
	snprintf(failure->subject, sizeof(failure->subject), "%s", subject);
	return failure;
}

const struct failure *failure_last(void)
{
	return &last_failure;
}

int peer_ioctl(int fd, unsigned long command, void *argument)
{
	int result = ioctl(fd, command, argument);

	return result < 0 ? -errno : result;
}

int peer_info(int fd, struct nvme_peer_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return peer_ioctl(fd, NVME_PEER_INFO, info);
}

int node_open(const char *name, char node[NODE_NAME_MAX])
{
	const char *prefix = strchr(name, '/') ? "" : "/dev/";
	int length, fd;

	length = snprintf(node, NODE_NAME_MAX, "%s%s", prefix, name);
	if (length >= NODE_NAME_MAX)
		return -ENAMETOOLONG;
	fd = open(node, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

const char *nvmepeer_version(void)
{
	return NVMEPEER_VERSION;
}

uint32_t nvmepeer_version_number(void)
{
	return NVMEPEER_VERSION_NUMBER;
}
