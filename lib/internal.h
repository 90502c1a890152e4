/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Shared by the source files of libnvmepeer: the objects behind the public
 * pointers, structures that come with their size, and the record of the last
 * failure, which explain.c puts into words.
 */
#ifndef NVMEPEER_INTERNAL_H
#define NVMEPEER_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nvmepeer.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define NODE_NAME_MAX 64

/** struct left_buffer - a buffer of a closed CPU peer whose import has not ended yet */
struct left_buffer {
	struct left_buffer *next;
	uint32_t handle;
};

/* @lock guards @left; the rest is constant after open. */
struct nvmepeer {
	int fd;
	char node[NODE_NAME_MAX];
	pthread_mutex_t lock;
	struct left_buffer *left;
};

/* A queue pair may outlive its controller, so it has a name of its own for errors. */
struct nvmepeer_qp {
	int fd;
	char name[NODE_NAME_MAX];
};

struct nvmepeer_ns {
	int fd;
	char node[NODE_NAME_MAX];
	struct nvmepeer_ns_info info;
};

/**
 * enum call - the calls that have explanations of their own
 *
 * Those that carry a structure of <linux/nvme_peer.h> are named after it: errors.awk
 * derives the name.
 */
enum call {
	CALL_NONE,
	CALL_OPEN,
	CALL_INFO,
	CALL_ROUTE,
	CALL_ADMIN,
	CALL_BUF_IMPORT,
	CALL_BUF_RELEASE,
	CALL_BUF_TABLE,
	CALL_BUF_ALLOC,
	CALL_HOSTMEM,
	CALL_QP_CREATE,
	CALL_QP_FROM_FD,
	CALL_QP_INFO,
	CALL_QP_REARM,
	CALL_QP_KICK,
	CALL_QP_LIMITS,
	CALL_QP_STATS,
	CALL_QP_SEAL,
	CALL_EXTENTS,
	CALL_WINDOW_ADD,
	CALL_WINDOW_REMOVE,
	CALL_WINDOW_INFO,
	CALL_FILE_CHECK,
	CALL_FILE_OPEN,
	CALL_BUF_ADD,
	CALL_BUF_REMOVE,
	CALL_QP_EXPORT,
	CALL_QP_MAP,
	CALL_EVENT,
	CALL_GEOMETRY,
	CALL_CPU_PEER,
	CALL_NS_OPEN,
	CALL_READ,
	CALL_WRITE,
	CALL_FLUSH,
	CALL_URING,
	CALL_COMMAND,		/* completion of nvmepeer_prep_command() */
	CALL_URING_IO,		/* completion of nvmepeer_prep_buf_rw() */
	CALL_URING_IO_VEC,
	CALL_SERVE,
	CALL_SERVE_FD,
	CALL_SERVE_BUFFER,
	CALL_SERVE_RUN,
	CALL_SERVE_EXPORT,
	CALL_ERRORS,
	CALL_OTHER,		/* recorded by nvmepeer_fail() */
	CALL_COUNT,
};

/**
 * struct failure - record of a failed call
 * @call: the call
 * @error: positive errno, or 0 if it failed with @status
 * @status: NVMe status, or 0 if it failed with @error
 * @subject: node or file
 * @request: arguments, by @call
 * @info: limits of the controller at that moment; its size is 0 if unknown
 * @route: route to the dma-buf in question; its size is 0 if unknown
 * @size: size of the caller's structure, if it was too small
 * @least: size that it must have; 0 if the size is not the cause
 */
struct failure {
	enum call call;
	int error;
	int status;
	char subject[NODE_NAME_MAX];
	union {
		struct nvme_peer_route route;
		struct nvme_peer_buf_import import;
		struct nvme_peer_buf_release release;
		struct nvme_peer_buf_table table;
		struct nvme_peer_qp_create create;
		struct nvme_peer_qp_export export;
		struct nvme_passthru_cmd command;
		int device_status;	/* enum nvmepeer_error */
		struct nvmepeer_explanation explanation;	/* CALL_OTHER */
	} request;
	struct nvme_peer_info info;
	struct nvme_peer_route route;
	size_t size;
	size_t least;
};

/**
 * failure_init() - begin a record
 * @failure: all fields are set
 * @call: the call
 * @result: negative errno or positive NVMe status
 * @subject: node or file
 */
void failure_init(struct failure *failure, enum call call, int result, const char *subject);

/** failure_record() - store the record where nvmepeer_explain() finds it. Returns its result. */
int failure_record(const struct failure *failure);

/** failure_set() - failure_init() and failure_record() in one. */
int failure_set(enum call call, int result, const char *subject);

/** failure_result() - the negative errno or positive status of a record. */
int failure_result(const struct failure *failure);

/**
 * failure_last() - copy the last record
 * @errors: where to look, or NULL for the place that this thread uses
 * @failure: receives the copy; its call is CALL_NONE if nothing has failed
 */
void failure_last(struct nvmepeer_errors *errors, struct failure *failure);

/**
 * explain_error() - set limit and help for an errno
 * @call: call that returned it
 * @error: positive errno
 * @explanation: limit and help are set
 */
void explain_error(enum call call, int error, struct nvmepeer_explanation *explanation);

/** meaning_of_error() - the text for an errno in <linux/nvme_peer.h>, or NULL. */
const char *meaning_of_error(enum call call, int error);

/**
 * meaning_of_device_result() - explain a result of the device library
 * @result: enum nvmepeer_error
 * @explanation: error, limit and help are set
 *
 * Returns false if the result is unknown.
 */
bool meaning_of_device_result(int result, struct nvmepeer_explanation *explanation);

/** explain_status() - set the limit to the words for an NVMe status. */
void explain_status(int status, struct nvmepeer_explanation *explanation);

/* Size of a structure in its first version, which ended with @field. */
#define SIZE_THROUGH(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

enum { EXPLANATION_LEAST = SIZE_THROUGH(struct nvmepeer_explanation, help) };

/**
 * struct_size_check() - check the size of a caller's structure
 * @call: call that takes it
 * @subject: node or file
 * @size: its size
 * @least: its size in the first version
 *
 * Returns 0, or -EINVAL with a failure recorded.
 */
int struct_size_check(enum call call, const char *subject, size_t size, size_t least);

/** struct_size_in() - as struct_size_check(), and set the size word of a request. */
int struct_size_in(enum call call, const char *subject, void *request, size_t size, size_t least);

/** struct_size_out() - as struct_size_in(), for a structure of output: zeroes the rest. */
int struct_size_out(enum call call, const char *subject, void *answer, size_t size, size_t least);

/** struct_copy() - copy what two versions of a structure share; zero the rest of @to. */
void struct_copy(void *to, size_t to_size, const void *from, size_t from_size);

/** struct_tail_is_zero() - check that @from is zero beyond the first @known bytes. */
bool struct_tail_is_zero(const void *from, size_t size, size_t known);

/** peer_ioctl() - ioctl() that returns its result or a negative errno. */
int peer_ioctl(int fd, unsigned long command, void *argument);

/** peer_info() - NVME_PEER_INFO that records no failure. */
int peer_info(int fd, struct nvme_peer_info *info);

/** node_open() - open "name" or "/dev/name" and store the path. Returns a descriptor or -errno. */
int node_open(const char *name, char node[NODE_NAME_MAX]);

#endif /* NVMEPEER_INTERNAL_H */
