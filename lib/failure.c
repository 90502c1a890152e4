// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The record of the last failure, per thread or in a struct nvmepeer_errors, and the
 * system calls that all other source files make.
 *
 * A record is completed first and copied under the lock, so a reader in another thread
 * never sees parts of two failures.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "internal.h"

/**
 * struct nvmepeer_errors - holds the last failure of the threads that use it
 * @lock: protects @last
 * @last: the record
 */
struct nvmepeer_errors {
	pthread_mutex_t lock;
	struct failure last;
};

static _Thread_local struct failure thread_last;
static _Thread_local struct nvmepeer_errors *current;

int nvmepeer_errors_new(struct nvmepeer_errors **errors)
{
	struct nvmepeer_errors *created = calloc(1, sizeof(*created));

	if (!created)
		return failure_set(CALL_ERRORS, -ENOMEM, "");
	pthread_mutex_init(&created->lock, NULL);
	*errors = created;
	return 0;
}

void nvmepeer_errors_free(struct nvmepeer_errors *errors)
{
	if (!errors)
		return;
	if (current == errors)
		current = NULL;
	pthread_mutex_destroy(&errors->lock);
	free(errors);
}

struct nvmepeer_errors *nvmepeer_errors_use(struct nvmepeer_errors *errors)
{
	struct nvmepeer_errors *previous = current;

	current = errors;
	return previous;
}

void failure_init(struct failure *failure, enum call call, int result, const char *subject)
{
	memset(failure, 0, sizeof(*failure));
	failure->call = call;
	if (result < 0)
		failure->error = -result;
	else
		failure->status = result;
	snprintf(failure->subject, sizeof(failure->subject), "%s", subject);
}

int failure_result(const struct failure *failure)
{
	return failure->error ? -failure->error : failure->status;
}

int failure_record(const struct failure *failure)
{
	if (current) {
		pthread_mutex_lock(&current->lock);
		current->last = *failure;
		pthread_mutex_unlock(&current->lock);
	} else {
		thread_last = *failure;
	}
	return failure_result(failure);
}

int failure_set(enum call call, int result, const char *subject)
{
	struct failure failure;

	failure_init(&failure, call, result, subject);
	return failure_record(&failure);
}

void failure_last(struct nvmepeer_errors *errors, struct failure *failure)
{
	if (!errors)
		errors = current;
	if (!errors) {
		*failure = thread_last;
		return;
	}
	pthread_mutex_lock(&errors->lock);
	*failure = errors->last;
	pthread_mutex_unlock(&errors->lock);
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
