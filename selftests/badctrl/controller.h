/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The controller behind badctrl's registers. Its source files, each with a header and
 * using only those below it:
 *
 *	main.c		the command line, the socket
 *	worker.c	follows CC, serves the queues
 *	poller.c	serves I/O queues while no fault is injected
 *	rule.c		executes a command, or injects a fault
 *	admin.c		admin commands, asynchronous events
 *	namespaces.c	Namespace Management and Attachment
 *	reservations.c	reservation commands
 *	key_value.c	commands of the Key Value command set
 *	held.c		commands that are not completed yet
 *	io.c		I/O commands
 *	queue.c		rings
 *	memory.c	the guest's memory
 *	mover.c		moves of data by a GPU
 *	registers.c	BAR0, and the words that tests write
 *	identify.c	default Identify data
 *
 * There are two threads: the thread that serves QEMU stores registers and words and never
 * blocks; the worker does everything else, as only it may access memory of the guest.
 * @lock synchronizes them. It must not be held over an access to memory, which the serving
 * thread may have to complete.
 *
 * --pollers adds threads that execute I/O commands while no fault is injected (@plain), each
 * those of its own queues; the worker does the rest. A poller holds its turn while it serves
 * queues; the worker holds those of all pollers while it does.
 *
 * Hosts and guests are little-endian.
 */
#ifndef BADCTRL_CONTROLLER_H
#define BADCTRL_CONTROLLER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "badctrl.h"
#include "mover_ring.h"
#include "nvme.h"
#include "vfio_user.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "entries are copied as they are");

#define BAD_PAGE	4096U
#define BAD_BLOCK	512U	/* smallest logical block */
#define BAD_VECTORS	4U
#define BAD_HELD_MAX	256U
#define BAD_POLLERS_MAX	12U	/* at most one thread for each shard of the memory map */
#define BAD_FLIGHTS	128U
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
#define REG_CMBSZ	0x3c
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

/* Not a status: the command is not completed yet. */
#define BAD_PENDING		0xffff

/* Command flag: the data is described by an SGL. */
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
 * @address: address of a contiguous ring
 * @pages: pages of a ring that a PRP list describes, otherwise NULL
 * @entries: number of entries
 */
struct bad_ring {
	uint64_t address;
	uint64_t *pages;
	uint32_t entries;
};

/* A separate cache line each, as queues have different pollers. */
struct bad_sq {
	_Alignas(64) bool exists;
	struct bad_ring ring;
	uint32_t head;
	uint16_t cqid;
	uint16_t completed;	/* CID of the last completed command */
};

struct bad_cq {
	_Alignas(64) bool exists;
	struct bad_ring ring;
	uint32_t tail;
	uint16_t phase;
	bool interrupts;
	uint16_t vector;
	uint32_t flying;	/* commands of a poller that will be completed in it */
};

/* In the layout of the window, see enum badctrl_queue_count. */
struct bad_counts {
	_Alignas(64) _Atomic uint32_t of[BADCTRL_QUEUE_COUNTS];
};

/**
 * struct bad_moves - moves of a command
 * @ring: of the thread that executes it
 * @first: number of its first move
 * @last: number after its last move; @first if there is none
 * @pending: @next is not stored yet; then the lock of the ring is held
 * @next: it may become longer
 */
struct bad_moves {
	unsigned int ring;
	uint32_t first;
	uint32_t last;
	bool pending;
	struct mover_move next;
};

/**
 * struct bad_flight - a command that a poller will complete
 * @sqid: its queue
 * @cid: its CID
 * @status: its status after the moves
 * @moves: to be done before
 * @ready_ns: and not before this time
 * @lost_ns: it fails at this time
 */
struct bad_flight {
	uint16_t sqid;
	uint16_t cid;
	uint16_t status;
	struct bad_moves moves;
	uint64_t ready_ns;
	uint64_t lost_ns;
};

/**
 * struct bad_poller - a thread that executes I/O commands
 * @turn: held while it serves queues; taken before @ctrl->lock
 * @ctrl: constant
 * @number: constant; it serves the queues whose CQID modulo the pollers is this
 * @thread: constant
 * @flights: commands to complete; none while another thread holds @turn
 * @flight_count: entries of @flights
 */
struct bad_poller {
	_Alignas(64) pthread_mutex_t turn;
	struct bad *ctrl;
	unsigned int number;
	pthread_t thread;
	struct bad_flight flights[BAD_FLIGHTS];
	unsigned int flight_count;
};

/* A command that is not completed yet. */
struct bad_held {
	uint16_t sqid;
	struct bad_command command;
};

/**
 * struct bad_reservation - registration and reservation of the host that sends commands
 * @key: its reservation key, 0 for none
 * @type: type of its reservation, 0 for none
 * @generation: changes of registrations so far
 */
struct bad_reservation {
	uint64_t key;
	uint32_t type;
	uint32_t generation;
};

/**
 * struct bad - the controller
 * @vfu: constant
 * @lock: protects all fields above @sqs; the worker owns the others
 * @wake: signals that @work was set
 * @work: the worker has something to do
 * @leaving: worker and pollers have to end
 * @restart: the function was reset since the worker last checked
 * @fell: CC.EN was cleared since the worker last checked, even if it is set again
 * @serving: enabled and able to execute commands
 * @goes: commands are fetched; set by bad_settle(), read without the lock like the next two
 * @plain: and no fault is injected
 * @changes: counts changes of words and Identify data
 * @polled: doorbells may be rung without a message, so the worker polls; constant
 * @registers: BAR0, BADCTRL_BAR_BYTES; its doorbells may change at any time
 * @token: the bytes at BADCTRL_TOKEN; constant
 * @words: by enum badctrl_word, divided by 4
 * @window: address of the word that config space shows
 * @identify: data by CNS
 * @created: blocks of namespaces that the host has created, 0 for others; written by the
 *	worker
 * @events: asynchronous events that are not sent yet
 * @event_count: number of @events
 * @release: complete the held commands
 * @effects: entries of I/O commands in the effects log
 * @admin_effects: entries of admin commands
 * @health: SMART / Health Information log
 * @thresholds: temperature thresholds, kelvin
 * @own: reservation of this host
 * @counts: counters of queue pairs; atomic
 * @last_sq: the highest existing submission queue
 * @enabled: the state of CC.EN that the worker has handled
 * @held: held commands
 * @held_count: number of @held
 * @requests: CIDs of Asynchronous Event Requests
 * @request_count: number of @requests
 * @event_config: Asynchronous Event Configuration
 * @reads: executed read commands, like @writes; atomic
 * @namespace_bytes: size of each namespace; constant
 * @disk: the data of all namespaces
 * @saved: old data of @disk that a power cut restores, see cache.h
 * @dirty: by BAD_BLOCK bytes of @disk: @saved has its old data
 * @places: of rules, see BADCTRL_PLACE()
 * @power_words: by enum badctrl_power_word, divided by 4
 * @pollers: threads
 * @poller_count: number of @pollers; constant
 * @halting: threads that wait for the turns of the pollers
 * @mover: shared with softgpu, NULL if data is copied by this process only; constant
 * @mover_locks: one for each ring, see mover.c
 * @mover_words: by enum badctrl_mover_word, divided by 4
 * @free_ns: time from which on BADCTRL_MOVER_RATE allows the next command
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
	uint32_t admin_effects[BADCTRL_OPCODES];
	uint8_t health[BADCTRL_HEALTH_BYTES];
	uint32_t thresholds[BADCTRL_THRESHOLDS];
	struct bad_reservation own;
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
	uint32_t event_config;
	_Atomic uint64_t reads;
	_Atomic uint64_t writes;
	size_t namespace_bytes;
	uint8_t *disk;
	uint8_t *saved;
	bool *dirty;
	uint32_t places[2 * BADCTRL_RULES];
	_Atomic uint32_t power_words[BADCTRL_POWER_WORDS / 4];
	struct bad_poller pollers[BAD_POLLERS_MAX];
	unsigned int poller_count;
	_Atomic unsigned int halting;
	struct mover_shared *mover;
	pthread_mutex_t mover_locks[MOVER_RINGS];
	_Atomic uint32_t mover_words[BADCTRL_MOVER_WORDS / 4];
	_Atomic uint64_t free_ns;
};

static inline size_t bad_disk_bytes(const struct bad *ctrl)
{
	return BADCTRL_NAMESPACE_MAX * ctrl->namespace_bytes;
}

#endif /* BADCTRL_CONTROLLER_H */
