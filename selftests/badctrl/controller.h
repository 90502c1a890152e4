/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The controller behind badctrl's registers.  Its rooms, each with a header of
 * its own and using only those below it:
 *
 *	main.c		the command line, the socket
 *	worker.c	follows CC, goes round the queues
 *	poller.c	goes round some I/O queues, while all is as it should be
 *	rule.c		what becomes of a command
 *	admin.c		admin commands, asynchronous events
 *	namespaces.c	which there are; making and attaching them
 *	held.c		commands that are not completed yet
 *	io.c		I/O commands
 *	queue.c		rings
 *	memory.c	the guest's memory
 *	registers.c	BAR0, and the words that tests write
 *	identify.c	what an ordinary controller says
 *
 * Two threads: the one that serves QEMU stores registers and words and never
 * waits; the worker does everything else, as only it may reach memory of the
 * guest.  @lock lies between the two and is never held over an access to
 * memory, which the serving thread may have to answer.
 *
 * With --pollers there are more: while nothing is to be got wrong (@plain) they do the
 * I/O commands, each of its own queues, and the worker what is left.  A poller holds its
 * turn while it does something; the worker holds all of them when it does.
 *
 * It runs on little-endian hosts, as the guest is one.
 */
#ifndef BADCTRL_CONTROLLER_H
#define BADCTRL_CONTROLLER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "badctrl.h"
#include "vfio_user.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "entries are copied as they are");

#define BAD_PAGE	4096U
#define BAD_VECTORS	4U
#define BAD_HELD_MAX	256U
#define BAD_POLLERS_MAX	12U	/* no more threads than the map of memory has shards */
#define BAD_EVENTS_MAX	8U
#define BAD_REQUESTS_MAX	4U	/* Async Event Requests, AERL + 1 */

/* Registers, NVMe base specification 3.1.4. */
#define REG_CAP		0x00
#define REG_VS		0x08
#define REG_CC		0x14
#define REG_CSTS	0x1c
#define REG_NSSR	0x20
#define REG_AQA		0x24
#define REG_ASQ		0x28
#define REG_ACQ		0x30
#define REG_CMBMSC	0x50
#define REG_CRTO	0x68
#define DOORBELLS	BADCTRL_DOORBELLS

#define CC_ENABLE	(1U << 0)
#define CC_SHUTDOWN	(3U << 14)
#define CSTS_READY	(1U << 0)
#define CSTS_FATAL	(1U << 1)
#define CSTS_SHUTDOWN_DONE	(2U << 2)
#define CSTS_SUBSYSTEM_RESET	(1U << 4)
#define CSTS_PAUSED	(1U << 5)
#define NSSR_RESET	0x4e564d65U

/* Status codes, base 4.2.3, those that are final with Do Not Retry. */
#define STATUS_DNR		0x4000
#define STATUS_OPCODE		(STATUS_DNR | 0x001)
#define STATUS_FIELD		(STATUS_DNR | 0x002)
#define STATUS_TRANSFER		(STATUS_DNR | 0x004)
#define STATUS_ABORTED		0x007
#define STATUS_SQ_DELETED	0x008
#define STATUS_NAMESPACE	(STATUS_DNR | 0x00b)
#define STATUS_SGL_LENGTH	(STATUS_DNR | 0x00f)
#define STATUS_SGL_TYPE		(STATUS_DNR | 0x011)
#define STATUS_PRP_OFFSET	(STATUS_DNR | 0x013)
#define STATUS_RANGE		(STATUS_DNR | 0x080)
#define STATUS_NO_CQ		(STATUS_DNR | 0x100)
#define STATUS_QID		(STATUS_DNR | 0x101)
#define STATUS_QUEUE_SIZE	(STATUS_DNR | 0x102)
#define STATUS_TOO_MANY_EVENTS	(STATUS_DNR | 0x105)
#define STATUS_VECTOR		(STATUS_DNR | 0x108)
#define STATUS_QUEUE_IN_USE	(STATUS_DNR | 0x10c)
#define STATUS_REFTAG		(STATUS_DNR | 0x284)
#define STATUS_COMPARE		(STATUS_DNR | 0x285)
/* Not a status: the command goes on. */
#define BAD_PENDING		0xffff

enum {
	ADMIN_DELETE_SQ = 0x00,
	ADMIN_CREATE_SQ = 0x01,
	ADMIN_GET_LOG_PAGE = 0x02,
	ADMIN_DELETE_CQ = 0x04,
	ADMIN_CREATE_CQ = 0x05,
	ADMIN_IDENTIFY = 0x06,
	ADMIN_ABORT = 0x08,
	ADMIN_SET_FEATURES = 0x09,
	ADMIN_GET_FEATURES = 0x0a,
	ADMIN_ASYNC_EVENT = 0x0c,
	ADMIN_NAMESPACE_MANAGE = 0x0d,
	ADMIN_NAMESPACE_ATTACH = 0x15,
	ADMIN_FORMAT = 0x80,
	ADMIN_SANITIZE = 0x84,
};

/* Of the flags of a command: its data is described by an SGL. */
#define COMMAND_SGL		0x40

/* Submission queue entry, base 3.3.3.1. */
struct bad_command {
	uint8_t opcode;
	uint8_t flags;
	uint16_t cid;
	uint32_t nsid;
	uint64_t reserved;
	uint64_t mptr;
	uint64_t prp1;
	uint64_t prp2;
	uint32_t cdw10;
	uint32_t cdw11;
	uint32_t cdw12;
	uint32_t cdw13;
	uint32_t cdw14;
	uint32_t cdw15;
};

/**
 * struct bad_ring - memory of a queue
 * @address: of a contiguous one
 * @pages: of one that a PRP list describes, else NULL
 * @entries: of it
 */
struct bad_ring {
	uint64_t address;
	uint64_t *pages;
	uint32_t entries;
};

/* A line of its own each: queues have different pollers. */
struct bad_sq {
	_Alignas(64) bool exists;
	struct bad_ring ring;
	uint32_t head;
	uint16_t cqid;
	uint16_t completed;	/* the identifier of the last command that was */
};

struct bad_cq {
	_Alignas(64) bool exists;
	struct bad_ring ring;
	uint32_t tail;
	uint16_t phase;
	bool interrupts;
	uint16_t vector;
};

/* enum badctrl_queue_count, as those who read the window of words see it. */
struct bad_counts {
	_Alignas(64) _Atomic uint32_t of[BADCTRL_QUEUE_COUNTS];
};

/**
 * struct bad_poller - a thread that does I/O commands
 * @turn: held while it looks at queues or does something; before @ctrl->lock
 * @ctrl: constant
 * @number: constant; its queues are those whose completion queue is this, modulo pollers
 * @thread: constant
 */
struct bad_poller {
	_Alignas(64) pthread_mutex_t turn;
	struct bad *ctrl;
	unsigned int number;
	pthread_t thread;
};

/* A command without completion. */
struct bad_held {
	uint16_t sqid;
	struct bad_command command;
};

/**
 * struct bad - the controller
 * @vfu: constant
 * @lock: guards what is above @sqs; the worker owns the rest
 * @wake: @work was set
 * @work: there is something for the worker to look at
 * @leaving: worker and pollers are to end
 * @restart: the function was reset since the worker looked
 * @fell: CC.EN was cleared since the worker looked, whatever it is now
 * @serving: enabled and able to do commands
 * @goes: commands are fetched now; bad_settle()'s, read without the lock, as are the two
 *	that follow
 * @plain: and all of them do what they should
 * @changes: of words and of what it identifies itself with
 * @polled: doorbells may be rung without a message: the worker looks for itself; constant
 * @registers: of BAR0, BADCTRL_BAR_BYTES; doorbells in there may change at any time
 * @token: at BADCTRL_TOKEN of them; constant
 * @words: by enum badctrl_word, divided by 4
 * @window: address of the word that config space shows
 * @identify: data by CNS
 * @created: blocks of namespaces that a host has made, 0 for others; the worker's to write
 * @events: asynchronous events not yet sent
 * @event_count: of them
 * @release: complete what is held
 * @effects: of I/O commands
 * @counts: of queue pairs; by whoever counts
 * @last_sq: the highest submission queue that there is
 * @enabled: as far as the worker has followed CC.EN
 * @held: commands
 * @held_count: of them
 * @requests: identifiers of Async Event Requests
 * @request_count: of them
 * @reads: read commands that were carried out, and @writes; by whoever does them
 * @namespace_bytes: of each namespace; constant
 * @disk: the namespaces, one after the other
 * @saved: what a power cut would bring back of it, see cache.h
 * @dirty: by page of @disk: @saved has it
 * @pollers: threads
 * @poller_count: of them; constant
 */
struct bad {
	struct vfu *vfu;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool work;
	atomic_bool leaving;
	bool restart;
	bool fell;
	bool serving;
	atomic_bool goes;
	atomic_bool plain;
	_Atomic uint32_t changes;
	bool polled;
	uint8_t *registers;
	uint64_t token;
	uint32_t words[BADCTRL_WORDS / 4];
	uint32_t window;
	uint8_t identify[7][BAD_PAGE];
	uint64_t created[BADCTRL_NAMESPACE_MAX];
	uint32_t effects[BADCTRL_OPCODES];
	uint32_t events[BAD_EVENTS_MAX];
	unsigned int event_count;
	bool release;
	struct bad_counts counts[BADCTRL_QUEUES + 1];

	uint16_t last_sq;
	bool enabled;
	struct bad_sq sqs[BADCTRL_QUEUES + 1];
	struct bad_cq cqs[BADCTRL_QUEUES + 1];
	struct bad_held held[BAD_HELD_MAX];
	unsigned int held_count;
	uint16_t requests[BAD_REQUESTS_MAX];
	unsigned int request_count;
	_Atomic uint64_t reads;
	_Atomic uint64_t writes;
	size_t namespace_bytes;
	uint8_t *disk;
	uint8_t *saved;
	bool *dirty;
	struct bad_poller pollers[BAD_POLLERS_MAX];
	unsigned int poller_count;
};

static inline size_t bad_disk_bytes(const struct bad *ctrl)
{
	return BADCTRL_NAMESPACE_MAX * ctrl->namespace_bytes;
}

#endif /* BADCTRL_CONTROLLER_H */
