/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the rooms of libnvmepeer share: the objects behind the public handles,
 * structures whose size is the caller's, and the record of the last failure from
 * which explain.c makes sentences.
 */
#ifndef NVMEPEER_INTERNAL_H
#define NVMEPEER_INTERNAL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nvmepeer.h>

/* Everything not named in libnvmepeer.map is local to the library. */
#define NODE_NAME_MAX 64

struct nvmepeer {
	int fd;
	char node[NODE_NAME_MAX];
};

/*
 * A queue pair may outlive the handle that made it, so it keeps what an
 * explanation needs from there.
 */
struct nvmepeer_qp {
	int fd;
	char name[NODE_NAME_MAX];
};

struct nvmepeer_ns {
	int fd;
	char node[NODE_NAME_MAX];
	struct nvmepeer_ns_info info;
};

/** enum call - the calls whose failures are told apart */
enum call {
	CALL_NONE,
	CALL_OPEN,
	CALL_INFO,
	CALL_ROUTE,
	CALL_ADMIN,
	CALL_BUF_IMPORT,
	CALL_BUF_RELEASE,
	CALL_BUF_TABLE,
	CALL_HOSTMEM,
	CALL_QP_CREATE,
	CALL_QP_FROM_FD,
	CALL_QP_INFO,
	CALL_QP_REARM,
	CALL_QP_EXPORT,
	CALL_QP_MAP,
	CALL_GEOMETRY,
	CALL_CPU_PEER,
	CALL_NS_OPEN,
	CALL_READ,
	CALL_WRITE,
	CALL_FLUSH,
	CALL_URING,
	CALL_ERRORS,
	CALL_QP_EVENTS,
	CALL_OTHER,		/* of a library that stands on this one */
	CALL_COUNT,
};

/**
 * struct failure - what is remembered of the last failed call of a thread
 * @call: which
 * @error: positive errno, 0 if @status tells
 * @status: NVMe status, 0 if @error tells
 * @subject: node or file it was called on
 * @request: the arguments, as @call says
 * @info: limits of the controller at that moment; size is 0 if not known
 * @route: way to the dma-buf in question; size is 0 if not asked
 * @size: bytes of a caller's structure that is too short
 * @least: bytes that it must have, 0 if that is not what failed
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
		struct nvmepeer_explanation told;	/* by the other library */
	} request;
	struct nvme_peer_info info;
	struct nvme_peer_route route;
	size_t size;
	size_t least;
};

/**
 * failure_init() - begin a record of a failure
 * @failure: all of it is set, to be added to and then noted
 * @call: which call
 * @result: negative errno or positive NVMe status
 * @subject: node or file
 */
void failure_init(struct failure *failure, enum call call, int result, const char *subject);

/** failure_note() - make it what nvmepeer_explain() gives here. Returns its result. */
int failure_note(const struct failure *failure);

/** failure_tell() - failure_init() and failure_note() for one without more to say. */
int failure_tell(enum call call, int result, const char *subject);

/** failure_result() - the negative errno or positive status that the call returned. */
int failure_result(const struct failure *failure);

/**
 * failure_last() - a copy of the last record
 * @errors: of those noted there, NULL: of this thread's
 * @failure: receives it; its call is CALL_NONE if there is none
 */
void failure_last(struct nvmepeer_errors *errors, struct failure *failure);

/* Bytes of a structure up to a field and with it: what its first version had. */
#define BYTES_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* Of a structure with explanations, in its first version. */
enum { EXPLANATION_LEAST = BYTES_TO(struct nvmepeer_explanation, help) };

/**
 * sized_check() - is a caller's structure as long as its first version was?
 * @call: which call it is an argument of
 * @subject: node or file
 * @size: its bytes
 * @least: of the first version
 *
 * Returns 0, or -EINVAL with a failure record.
 */
int sized_check(enum call call, const char *subject, size_t size, size_t least);

/**
 * sized_request() - a caller's structure, made ready for the kernel
 * @request: begins with a size word, which is set; the rest stays
 *
 * As sized_check().
 */
int sized_request(enum call call, const char *subject, void *request, size_t size,
		  size_t least);

/** sized_answer() - sized_request() for one that the kernel only answers in: zeroed. */
int sized_answer(enum call call, const char *subject, void *answer, size_t size, size_t least);

/**
 * sized_copy() - what two versions of a structure have in common
 * @to: the rest of it is zeroed
 * @to_size: bytes of @to
 * @from: the rest of it is not looked at
 * @from_size: bytes of @from
 */
void sized_copy(void *to, size_t to_size, const void *from, size_t from_size);

/** sized_is_known() - is all of @from beyond the @known bytes of ours zero? */
bool sized_is_known(const void *from, size_t size, size_t known);

/** peer_ioctl() - ioctl() that returns its result or a negative errno. */
int peer_ioctl(int fd, unsigned long command, void *argument);

/** peer_info() - NVME_PEER_INFO without a failure record. */
int peer_info(int fd, struct nvme_peer_info *info);

/** node_open() - open "name" or "/dev/name", path to @node. Negative errno. */
int node_open(const char *name, char node[NODE_NAME_MAX]);

struct nvmepeer_cpu_peer;
struct nvmepeer_gathering;

/** gathering_new() - the threads that will use a queue pair. 0 or -ENOMEM. */
int gathering_new(struct nvmepeer_gathering **gathering);
void gathering_free(struct nvmepeer_gathering *gathering);

/**
 * gathering_go_in() - before a call of the device library on the queue pair
 *
 * Returns how many losses there were, for gathering_recover().
 */
unsigned int gathering_go_in(struct nvmepeer_gathering *gathering);

/** gathering_come_out() - after it. */
void gathering_come_out(struct nvmepeer_gathering *gathering);

/**
 * gathering_recover() - after a call that ended with NVMEPEER_E_LOST
 * @losses: as gathering_go_in() returned it before that call
 * @recover: called with @peer and @timeout_ms by one thread for each loss, when none is
 *	in a call; returns 0 if the queue pair is back
 *
 * Returns whether it is back.
 */
bool gathering_recover(struct nvmepeer_gathering *gathering, unsigned int losses,
		       int (*recover)(struct nvmepeer_cpu_peer *peer, int timeout_ms),
		       struct nvmepeer_cpu_peer *peer, int timeout_ms);

#endif /* NVMEPEER_INTERNAL_H */
