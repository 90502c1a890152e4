/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interface between tests and badctrl, the fault-injecting controller.
 *
 * Two vendor registers in PCI config space, which is accessible while a driver is
 * bound, are a window to 32-bit words: write the address of a word to the first
 * register, then access the word by the second.
 */
#ifndef BADCTRL_H
#define BADCTRL_H

#define BADCTRL_VENDOR	0x1234
#define BADCTRL_DEVICE	0xbadc

#define BADCTRL_BAR_BYTES	0x4000

/*
 * With --share DIRECTORY, BAR0 is the file BADCTRL_SHARED_BAR in that directory. A
 * process that maps its second page rings doorbells without a vfio-user message.
 * BADCTRL_TOKEN, behind the doorbells in the same page, has 8 random bytes, which are
 * also readable on the bus, to identify the page by a bus address. The file
 * BADCTRL_SHARED_MEMORY, if it exists at the start, is the memory BAR of another function. The
 * disk is the file BADCTRL_SHARED_DISK, and BADCTRL_SHARED_MOVER, if it exists at the start, takes
 * moves of data, see mover_ring.h. The guest's memory is BADCTRL_SHARED_GUEST, and the program
 * SOFTGPU_MANIFEST of softgpu writes BADCTRL_SHARED_MANIFEST.
 */
#define BADCTRL_SHARED_BAR	"controller"
#define BADCTRL_SHARED_MEMORY	"memory"
#define BADCTRL_SHARED_DISK	"disk"
#define BADCTRL_SHARED_MOVER	"mover"
#define BADCTRL_SHARED_GUEST	"guest"
#define BADCTRL_SHARED_MANIFEST	"manifest.json"
#define BADCTRL_DOORBELLS	0x1000
#define BADCTRL_TOKEN		0x1ff8

/* The window: offsets in config space. */
#define BADCTRL_CONFIG_ADDRESS	0xc0
#define BADCTRL_CONFIG_DATA	0xc4

/* Words 0 to 0xff: enum badctrl_word. */
#define BADCTRL_WORDS		0x100
/* Identify data, by CNS: 0, 1, 3, 5 and 6. */
#define BADCTRL_IDENTIFY(cns)	(0x10000 + ((cns) << 12))
/* Read-only NVMe registers: CAP, VS, CMBSZ, CRTO. */
#define BADCTRL_REGISTERS	0x20000
/* Read-only counters of an I/O queue pair since its creation; enum badctrl_queue_count. */
#define BADCTRL_QUEUE_COUNT(sqid, count)	(0x30000 + 8 * (sqid) + 4 * (count))
/* The entry of an I/O command in the log Commands Supported and Effects. */
#define BADCTRL_EFFECTS(opcode)	(0x40000 + 4 * (opcode))
#define BADCTRL_OPCODES		0x100
/* The entry of an admin command. */
#define BADCTRL_ADMIN_EFFECTS(opcode)	(0x41000 + 4 * (opcode))

/* Bytes of the log SMART / Health Information; commands are counted in addition. */
#define BADCTRL_HEALTH(offset)	(0x50000 + (offset))
#define BADCTRL_HEALTH_BYTES	512U
/* Temperature thresholds by bits 21:16 of dword 11: sensor, and bit 4 for the lower one. */
#define BADCTRL_THRESHOLD(which)	(0x51000 + 4 * (which))
#define BADCTRL_THRESHOLDS	0x20
/* Words of enum badctrl_mover_word. */
#define BADCTRL_MOVER(word)	(0x52000 + (word))
/* Words of enum badctrl_power_word. */
#define BADCTRL_POWER(word)	(0x53000 + (word))

/* Which blocks the I/O commands of a rule begin in: the first, and how many, 0 for any. */
#define BADCTRL_PLACE(rule)	(0x54000 + 8 * (rule))

#define BADCTRL_RULES		8
#define BADCTRL_NAMESPACE_MAX	4
#define BADCTRL_NAMESPACE_BYTES	(16U << 20)	/* without --disk-mb */
#define BADCTRL_QUEUES		130	/* half of them suffice for 64 queue pairs of a GPU */

/**
 * enum badctrl_queue_count - counters of a queue pair
 * @BADCTRL_FETCHED: fetched commands
 * @BADCTRL_MESSAGES: doorbell writes by vfio-user message: from a CPU, or from a device by
 *	way of QEMU
 */
enum badctrl_queue_count {
	BADCTRL_FETCHED = 0,
	BADCTRL_MESSAGES = 1,
	BADCTRL_QUEUE_COUNTS = 2,
};

/**
 * enum badctrl_mover_word - how pollers complete commands, and moves of a GPU
 * @BADCTRL_MOVER_DELAY: minimum nanoseconds between fetch and completion of an I/O command
 * @BADCTRL_MOVER_RATE: maximum rate of data, MB/s; 0: no limit
 * @BADCTRL_MOVER_MOVES: read: moves so far, modulo 2^32
 * @BADCTRL_MOVER_SMS: read: number of SMs that perform moves; 1 for a fake GPU
 */
enum badctrl_mover_word {
	BADCTRL_MOVER_DELAY = 0,
	BADCTRL_MOVER_RATE = 4,
	BADCTRL_MOVER_MOVES = 8,
	BADCTRL_MOVER_SMS = 12,
	BADCTRL_MOVER_WORDS = 16,
};

/**
 * enum badctrl_power_word - power of namespaces
 * @BADCTRL_POWER_OFF: namespaces without power, by bit: their commands fail.  Writing it loses
 *	nothing
 * @BADCTRL_POWER_RANDOM: state of the random numbers of power cuts
 */
enum badctrl_power_word {
	BADCTRL_POWER_OFF = 0,
	BADCTRL_POWER_RANDOM = 4,
	BADCTRL_POWER_WORDS = 8,
};

/*
 * A bus address that is never mapped: IOVAs below 4 GiB are allocated first, and then
 * others from the top. lib/results.sh contains it as well.
 */
#define BADCTRL_NOWHERE		0x40dead0000ULL

/* In word BADCTRL_ACTIVE: the namespace list repeats the first namespace without end. */
#define BADCTRL_ACTIVE_ENDLESS	(1U << 31)

/**
 * enum badctrl_word - addresses of words
 * @BADCTRL_DEFAULTS: a write resets all words and the namespaces
 * @BADCTRL_MODE: enum badctrl_mode
 * @BADCTRL_EARLY: read: doorbells that were rung while the controller was not ready
 * @BADCTRL_GRANT: number of submission queues that Set Features grants; that of completion
 *	queues in the upper 16 bits, 0 for the same number
 * @BADCTRL_ACTIVE: bit n: namespace n + 1 is active
 * @BADCTRL_EVENT: a write sends an asynchronous event with this dword 0
 * @BADCTRL_RELEASE: a write completes all held commands
 * @BADCTRL_HELD: read: number of held commands
 * @BADCTRL_FAULTS: read: failed memory accesses while bus mastering was enabled
 * @BADCTRL_RANGES: read: the largest number of ranges of a Dataset Management command
 * @BADCTRL_LATE: 1: commands that are held when the controller stops are completed and not
 *	only executed
 * @BADCTRL_LISTS: read: pages of PRP lists that described queues
 * @BADCTRL_REFUSED: bit n: Identify fails for CNS n
 * @BADCTRL_PAUSED: 1: CSTS.PP is set and no command is fetched, until 0 is written or the
 *	controller stops
 * @BADCTRL_RUNG: read: tail doorbells that were rung while it was paused
 * @BADCTRL_STORM: dword 0 of an event that completes every request without another event,
 *	0 for none
 * @BADCTRL_ERROR_QUEUE: submission queue in the error log
 * @BADCTRL_LOOKS: read: number of reads of CSTS
 * @BADCTRL_POWER_CUT: writing 1 reverts all writes since the last flush or shutdown, except
 *	those with FUA; reads 0 when that is done.  A set of namespaces, shifted by
 *	BADCTRL_CUT_SHIFT: those lose none, some or all of these blocks, and are off
 * @BADCTRL_CURED: 1: a function reset sets the mode to BADCTRL_WORKS
 * @BADCTRL_RESETS: read: function resets
 * @BADCTRL_SUBSYSTEM_RESETS: read: NVM subsystem resets
 * @BADCTRL_STRAYS: read: refused writes to BADCTRL_NOWHERE
 * @BADCTRL_SAME_UUID: 1: all namespaces have the same UUID
 * @BADCTRL_BEHAVIOR: read: the first bytes of the last Host Behavior Support
 * @BADCTRL_EFFECTS_SET: command set of the effects log; the log of others is empty
 * @BADCTRL_OTHER_KEY: reservation key of another host, 0 for none
 * @BADCTRL_OTHER_TYPE: type of its reservation, 0 for none
 * @BADCTRL_PREEMPTED: read: how the other host was preempted, 2 with Abort
 * @BADCTRL_SHORT_HOST: 1: Host Identifiers of 64 bits, so reports are not extended
 * @BADCTRL_MORE_HOSTS: number of further registrants, with the keys 0x1000 and up
 * @BADCTRL_KEY_VALUE: 1: I/O commands are those of the Key Value command set
 * @BADCTRL_RULE: the first word of the first rule, see BADCTRL_RULE_WORD()
 *
 * A function reset or controller reset changes no other word; power-on resets all.
 */
enum badctrl_word {
	BADCTRL_DEFAULTS = 0x00,
	BADCTRL_MODE = 0x04,
	BADCTRL_EARLY = 0x08,
	BADCTRL_GRANT = 0x0c,
	BADCTRL_ACTIVE = 0x10,
	BADCTRL_EVENT = 0x14,
	BADCTRL_RELEASE = 0x18,
	BADCTRL_HELD = 0x1c,
	BADCTRL_FAULTS = 0x20,
	BADCTRL_RANGES = 0x24,
	BADCTRL_LATE = 0x28,
	BADCTRL_LISTS = 0x2c,
	BADCTRL_REFUSED = 0x30,
	BADCTRL_PAUSED = 0x34,
	BADCTRL_RUNG = 0x38,
	BADCTRL_STORM = 0x3c,
	BADCTRL_ERROR_QUEUE = 0x40,
	BADCTRL_LOOKS = 0x44,
	BADCTRL_POWER_CUT = 0x48,
	BADCTRL_CURED = 0x4c,
	BADCTRL_RESETS = 0x50,
	BADCTRL_SUBSYSTEM_RESETS = 0x54,
	BADCTRL_STRAYS = 0x58,
	BADCTRL_SAME_UUID = 0x5c,
	BADCTRL_BEHAVIOR = 0x60,
	BADCTRL_EFFECTS_SET = 0x64,
	BADCTRL_OTHER_KEY = 0x68,
	BADCTRL_OTHER_TYPE = 0x6c,
	BADCTRL_PREEMPTED = 0x70,
	BADCTRL_SHORT_HOST = 0x74,
	BADCTRL_MORE_HOSTS = 0x78,
	BADCTRL_KEY_VALUE = 0x7c,
	BADCTRL_RULE = 0x80,
};

/**
 * enum badctrl_mode - faults when the controller is enabled or disabled
 * @BADCTRL_NEVER_READY: CSTS.RDY does not follow CC.EN; the mode at power-on
 * @BADCTRL_FATAL: enabling sets CSTS.CFS
 * @BADCTRL_SILENT: becomes ready and completes no command
 * @BADCTRL_NEVER_STOPS: like BADCTRL_SILENT, and stays ready when it is disabled
 * @BADCTRL_GONE: every register reads all ones
 * @BADCTRL_NO_QUEUE: CAP.MQES is 0, which the specification forbids
 * @BADCTRL_HUGE_PAGES: CAP.MPSMIN is larger than a page of the host
 * @BADCTRL_WORKS: no fault, except for those of rules
 * @BADCTRL_ABSENT: like BADCTRL_GONE, and config space reads all ones too, except for the
 *	words
 * @BADCTRL_UNSTOPPABLE: like BADCTRL_WORKS, but when it is disabled it stays ready and
 *	executes the held commands repeatedly
 */
enum badctrl_mode {
	BADCTRL_NEVER_READY = 0,
	BADCTRL_FATAL = 1,
	BADCTRL_SILENT = 2,
	BADCTRL_NEVER_STOPS = 3,
	BADCTRL_GONE = 4,
	BADCTRL_NO_QUEUE = 5,
	BADCTRL_HUGE_PAGES = 6,
	BADCTRL_WORKS = 7,
	BADCTRL_UNSTOPPABLE = 8,
	BADCTRL_ABSENT = 9,
};

/* In word BADCTRL_POWER_CUT. */
#define BADCTRL_CUT_SHIFT	8

/* In the argument of BADCTRL_CUT: nothing is lost, as if the process had ended. */
#define BADCTRL_CUT_KEEPS	0x8000U

/*
 * A rule injects a fault into commands that match.
 *
 * MATCH	opcode, with BADCTRL_ON_IO for I/O queues, with BADCTRL_ON_QUEUE() for one
 *		of them, or for it and those above with BADCTRL_AND_ABOVE; BADCTRL_ANY for all
 * ACTION	enum badctrl_action, its argument in the upper 16 bits
 * TIMES	remaining number of commands; 0: the rule is off
 * HITS		number of commands so far; writing TIMES does not clear it
 *
 * The first matching rule applies.
 */
#define BADCTRL_RULE_WORD(rule, word)	(BADCTRL_RULE + 16 * (rule) + 4 * (word))
#define BADCTRL_RULE_MATCH	0
#define BADCTRL_RULE_ACTION	1
#define BADCTRL_RULE_TIMES	2
#define BADCTRL_RULE_HITS	3

#define BADCTRL_ON_IO		0x100U
#define BADCTRL_ANY		0x200U
#define BADCTRL_AND_ABOVE	0x400U
#define BADCTRL_ON_QUEUE(sqid)	(BADCTRL_ON_IO | (uint32_t)(sqid) << 16)
#define BADCTRL_EVERY		0xffffffffU

/**
 * enum badctrl_action - the fault of a matching command
 * @BADCTRL_COUNT: none, the command is counted
 * @BADCTRL_HOLD: no completion until BADCTRL_RELEASE, Abort or Delete SQ
 * @BADCTRL_STATUS: not executed, completed with the argument as status
 * @BADCTRL_WRONG_ID: a completion whose CID differs in the argument's bits; the command
 *	itself is held
 * @BADCTRL_TWICE: completed twice
 * @BADCTRL_QUIET: completed without an interrupt
 * @BADCTRL_CRASH: CSTS.CFS is set, and no command is executed any more
 * @BADCTRL_VANISH: the mode becomes BADCTRL_GONE
 * @BADCTRL_LIE: success without execution
 * @BADCTRL_TEAR: success, but only the first half is written
 * @BADCTRL_STALE: the last completed command of the queue is completed again, with the
 *	argument as status; the command itself is held
 * @BADCTRL_PIECES: an I/O command is executed; its completion is written in delayed pieces,
 *	the phase tag last
 * @BADCTRL_TORN: like BADCTRL_PIECES, but the phase tag is first, which no controller may
 *	do; until the rest follows, the CID differs in the argument's bits
 * @BADCTRL_STRAY: writes to BADCTRL_NOWHERE instead, and ends with Data Transfer Error if
 *	the write was refused, otherwise with success
 * @BADCTRL_CUT: the power of the namespaces in the argument, by bit, is cut during the command:
 *	if it is one of theirs, some of its blocks are written, and it fails
 * @BADCTRL_DROP: no completion at all: Abort does not find it, and Delete SQ does not complete it
 */
enum badctrl_action {
	BADCTRL_COUNT = 0,
	BADCTRL_HOLD = 1,
	BADCTRL_STATUS = 2,
	BADCTRL_WRONG_ID = 3,
	BADCTRL_TWICE = 4,
	BADCTRL_QUIET = 5,
	BADCTRL_CRASH = 6,
	BADCTRL_VANISH = 7,
	BADCTRL_LIE = 8,
	BADCTRL_TEAR = 9,
	BADCTRL_STALE = 10,
	BADCTRL_PIECES = 11,
	BADCTRL_TORN = 12,
	BADCTRL_STRAY = 13,
	BADCTRL_CUT = 14,
	BADCTRL_DROP = 15,
};

#endif /* BADCTRL_H */
