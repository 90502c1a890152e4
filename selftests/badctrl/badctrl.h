/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How badctrl misbehaves: written by tests, obeyed by the device.
 *
 * Two vendor registers in PCI config space, which a test reaches while a driver
 * is bound, are a window on 32-bit words: write a word's address to the first,
 * then the word is the second.
 */
#ifndef BADCTRL_H
#define BADCTRL_H

#define BADCTRL_VENDOR	0x1234
#define BADCTRL_DEVICE	0xbadc

#define BADCTRL_BAR_BYTES	0x4000

/*
 * With --share DIRECTORY, BAR0 is the file BADCTRL_SHARED_BAR in there: who maps its
 * second page rings doorbells without a message.  At BADCTRL_TOKEN, in the same page
 * and behind the doorbells, lie 8 random bytes, the same for a reader of the bus: so a
 * bus address is known to be that page.  The file BADCTRL_SHARED_MEMORY, if there is
 * one at the start, is the memory BAR of another function.
 */
#define BADCTRL_SHARED_BAR	"controller"
#define BADCTRL_SHARED_MEMORY	"memory"
#define BADCTRL_DOORBELLS	0x1000
#define BADCTRL_TOKEN		0x1ff8

/* The window, offsets in config space. */
#define BADCTRL_CONFIG_ADDRESS	0xc0
#define BADCTRL_CONFIG_DATA	0xc4

/* Words 0 to 0xff: see enum badctrl_word. */
#define BADCTRL_WORDS		0x100
/* The data of Identify, by CNS: 0, 1, 3, 5 and 6. */
#define BADCTRL_IDENTIFY(cns)	(0x10000 + ((cns) << 12))
/* Registers of NVMe that are constant to a driver: CAP, VS, CMBSZ, CRTO. */
#define BADCTRL_REGISTERS	0x20000
/* Read: of an I/O queue pair, since it was created; enum badctrl_queue_count. */
#define BADCTRL_QUEUE_COUNT(sqid, count)	(0x30000 + 8 * (sqid) + 4 * (count))
/* What the log of commands and effects says of an I/O command. */
#define BADCTRL_EFFECTS(opcode)	(0x40000 + 4 * (opcode))
#define BADCTRL_OPCODES		0x100

#define BADCTRL_RULES		8
#define BADCTRL_NAMESPACE_MAX	4
#define BADCTRL_NAMESPACE_BYTES	(16U << 20)	/* without --disk-mb */
#define BADCTRL_QUEUES		130	/* so many that half are 64 pairs of a GPU */

/**
 * enum badctrl_queue_count - what is counted of a queue pair
 * @BADCTRL_FETCHED: commands
 * @BADCTRL_MESSAGES: doorbell writes that came by message: from a CPU, or from a device
 *	that rings through QEMU
 */
enum badctrl_queue_count {
	BADCTRL_FETCHED = 0,
	BADCTRL_MESSAGES = 1,
	BADCTRL_QUEUE_COUNTS = 2,
};

/*
 * A bus address that no driver is given: far above those below 4 GiB, which come first,
 * and below all others, which are handed out from the top.  lib/results.sh knows it too.
 */
#define BADCTRL_NOWHERE		0x40dead0000ULL

/* Of word BADCTRL_ACTIVE: the list of namespaces names the first, over and over. */
#define BADCTRL_ACTIVE_ENDLESS	(1U << 31)

/**
 * enum badctrl_word - addresses of words
 * @BADCTRL_DEFAULTS: writing it undoes what was written to all the others, and
 *	to the namespaces
 * @BADCTRL_MODE: enum badctrl_mode
 * @BADCTRL_EARLY: read: doorbells that were rung while it was not ready
 * @BADCTRL_GRANT: submission queues that Set Features grants; completion queues in the
 *	upper 16 bits, 0 for as many
 * @BADCTRL_ACTIVE: bit n: there is a namespace n + 1
 * @BADCTRL_EVENT: writing it sends an asynchronous event, dword 0
 * @BADCTRL_RELEASE: writing it completes the commands that are held
 * @BADCTRL_HELD: read: how many those are
 * @BADCTRL_FAULTS: read: accesses to memory that failed while it was allowed to
 * @BADCTRL_RANGES: read: most ranges that a Dataset Management had
 * @BADCTRL_LATE: 1: commands held when it stops are not only carried out, as
 *	they always are, but completed too
 * @BADCTRL_LISTS: read: pages of PRP lists that described queues
 * @BADCTRL_REFUSED: bit n: Identify refuses CNS n
 * @BADCTRL_PAUSED: 1: CSTS.PP, and no command is fetched, until 0 is written
 *	or it stops
 * @BADCTRL_RUNG: read: tail doorbells that were rung while it was paused
 * @BADCTRL_STORM: dword 0 of an event that is sent for every request that
 *	nothing else is sent for, 0 for none
 * @BADCTRL_ERROR_QUEUE: submission queue that the error log names
 * @BADCTRL_LOOKS: read: how often CSTS was read
 * @BADCTRL_POWER_CUT: writing 1 takes back what was written since the last flush or
 *	shutdown, and without FUA; reads 0 when that is done
 * @BADCTRL_CURED: 1: a reset of the function makes the mode BADCTRL_WORKS
 * @BADCTRL_RESETS: read: resets of the function
 * @BADCTRL_SUBSYSTEM_RESETS: read: NVM subsystem resets
 * @BADCTRL_STRAYS: read: writes to BADCTRL_NOWHERE that were refused
 * @BADCTRL_RULE: the first word of the first rule, see BADCTRL_RULE_WORD()
 *
 * Reset of the function or of NVMe changes no other of them; power-on does.
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
	BADCTRL_RULE = 0x80,
};

/**
 * enum badctrl_mode - what it does wrong before it comes up
 * @BADCTRL_NEVER_READY: CSTS.RDY does not follow CC.EN; so it is at power-on
 * @BADCTRL_FATAL: enabling it ends in CSTS.CFS
 * @BADCTRL_SILENT: becomes ready and answers no command
 * @BADCTRL_NEVER_STOPS: as before, and stays ready when it is disabled
 * @BADCTRL_GONE: every register reads all ones
 * @BADCTRL_NO_QUEUE: CAP.MQES is 0, which the specification does not allow
 * @BADCTRL_HUGE_PAGES: CAP.MPSMIN is larger than a page of the host
 * @BADCTRL_WORKS: comes up and does what it should, but for the rules
 * @BADCTRL_UNSTOPPABLE: as before, but when it is disabled it stays ready and
 *	carries out the commands that are held, again and again
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
};

/*
 * A rule: commands that match do not end as they should.
 *
 * MATCH	opcode, with BADCTRL_ON_IO for I/O queues, with BADCTRL_ON_QUEUE() for one
 *	of them; BADCTRL_ANY for all
 * ACTION	enum badctrl_action, its argument in the upper 16 bits
 * TIMES	how often it still applies; 0: not at all
 * HITS		how often it did; writing TIMES does not clear it
 *
 * The first rule that matches applies.
 */
#define BADCTRL_RULE_WORD(rule, word)	(BADCTRL_RULE + 16 * (rule) + 4 * (word))
#define BADCTRL_RULE_MATCH	0
#define BADCTRL_RULE_ACTION	1
#define BADCTRL_RULE_TIMES	2
#define BADCTRL_RULE_HITS	3

#define BADCTRL_ON_IO		0x100U
#define BADCTRL_ANY		0x200U
#define BADCTRL_ON_QUEUE(sqid)	(BADCTRL_ON_IO | (uint32_t)(sqid) << 16)
#define BADCTRL_EVERY		0xffffffffU

/**
 * enum badctrl_action - what becomes of a command
 * @BADCTRL_COUNT: nothing special
 * @BADCTRL_HOLD: no completion until BADCTRL_RELEASE, an Abort, Delete SQ
 * @BADCTRL_STATUS: not carried out, ends with the argument as its status
 * @BADCTRL_WRONG_ID: a completion whose identifier differs in the argument's
 *	bits; the command itself is held
 * @BADCTRL_TWICE: completed twice
 * @BADCTRL_QUIET: completed without an interrupt
 * @BADCTRL_CRASH: CSTS.CFS, and nothing more is done
 * @BADCTRL_VANISH: BADCTRL_GONE from now on
 * @BADCTRL_LIE: success without doing it
 * @BADCTRL_TEAR: success, though only the first half was written
 * @BADCTRL_STALE: the last command that its queue completed is completed once more, with
 *	the argument as its status; the command itself is held
 * @BADCTRL_PIECES: carried out if it is an I/O command; its completion is written in
 *	pieces, a while apart, the phase tag last
 * @BADCTRL_TORN: likewise, but the phase tag first and the rest a while later, which no
 *	controller may do; until then the identifier differs in the argument's bits
 * @BADCTRL_STRAY: writes to BADCTRL_NOWHERE instead, and ends with Data Transfer Error if
 *	that was refused, else with success
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
};

#endif /* BADCTRL_H */
