// SPDX-License-Identifier: GPL-2.0-only
/*
 * BAR0 and the words behind config space. The worker acts on changes of registers.
 */
#include <string.h>
#include <sys/mman.h>

#include "cache.h"
#include "identify.h"
#include "mover.h"
#include "registers.h"

#define CAP_ENTRIES	1023ULL		/* MQES, 0-based */
#define CAP_CONTIGUOUS	(1ULL << 16)	/* CQR */
#define CAP_TIMEOUT	(2ULL << 24)	/* TO, units of 500 ms: a loaded host is slow */
#define CAP_SUBSYSTEM	(1ULL << 36)	/* NSSRS */
#define CAP_NVM		(1ULL << 37)	/* CSS */
#define CAP_MPSMIN_64K	4U		/* in the upper half */
#define CMBMSC_CAPABLE	1U		/* CRE: without it CMBSZ reads 0 */

#define DEFAULT_QUEUES	8

uint32_t bad_load32(const struct bad *ctrl, uint32_t offset)
{
	uint32_t value;

	memcpy(&value, ctrl->registers + offset, sizeof(value));
	return value;
}

uint64_t bad_load64(const struct bad *ctrl, uint32_t offset)
{
	return bad_load32(ctrl, offset) | (uint64_t)bad_load32(ctrl, offset + 4) << 32;
}

void bad_store32(struct bad *ctrl, uint32_t offset, uint32_t value)
{
	memcpy(ctrl->registers + offset, &value, sizeof(value));
}

uint32_t bad_word(struct bad *ctrl, enum badctrl_word word)
{
	uint32_t value;

	pthread_mutex_lock(&ctrl->lock);
	value = ctrl->words[word / 4];
	pthread_mutex_unlock(&ctrl->lock);
	return value;
}

void bad_count(struct bad *ctrl, enum badctrl_word word, uint32_t by)
{
	pthread_mutex_lock(&ctrl->lock);
	ctrl->words[word / 4] += by;
	pthread_mutex_unlock(&ctrl->lock);
}

static bool any_rule(const struct bad *ctrl)
{
	const uint32_t *rule = &ctrl->words[BADCTRL_RULE / 4];
	unsigned int i;

	for (i = 0; i < BADCTRL_RULES; i++)
		if (rule[4 * i + BADCTRL_RULE_TIMES])
			return true;
	return false;
}

/* Do the registers read all ones? Called with the lock held. */
static bool bad_gone(const struct bad *ctrl)
{
	uint32_t mode = ctrl->words[BADCTRL_MODE / 4];

	return mode == BADCTRL_GONE || mode == BADCTRL_ABSENT;
}

void bad_settle(struct bad *ctrl)
{
	const uint32_t *words = ctrl->words;
	bool goes = ctrl->serving && !ctrl->restart && bad_load32(ctrl, REG_CC) & CC_ENABLE &&
		    !bad_gone(ctrl) && !words[BADCTRL_PAUSED / 4];

	atomic_store(&ctrl->goes, goes);
	goes = goes && words[BADCTRL_MODE / 4] == BADCTRL_WORKS && !words[BADCTRL_HELD / 4] &&
	       !words[BADCTRL_POWER_CUT / 4] && !any_rule(ctrl);
	atomic_store(&ctrl->plain, goes);
}

static void bad_wake(struct bad *ctrl)
{
	ctrl->work = true;
	pthread_cond_signal(&ctrl->wake);
}

/* --- BAR0 ----------------------------------------------------------------- */

static void bar_read(void *context, unsigned int bar, uint64_t offset, void *data, uint32_t count)
{
	struct bad *ctrl = context;

	(void)bar;
	pthread_mutex_lock(&ctrl->lock);
	ctrl->words[BADCTRL_LOOKS / 4] += offset == REG_CSTS;
	if (bad_gone(ctrl))
		memset(data, 0xff, count);
	else if (offset == REG_CMBSZ && !(bad_load32(ctrl, REG_CMBMSC) & CMBMSC_CAPABLE))
		memset(data, 0, count);
	else
		memcpy(data, ctrl->registers + offset, count);
	pthread_mutex_unlock(&ctrl->lock);
}

/*
 * Read the doorbell of a queue without the lock: processes that map the page store doorbells
 * without it as well.
 */
uint32_t bad_doorbell(const struct bad *ctrl, uint16_t qid, bool cq)
{
	const uint32_t *doorbells = (const void *)(ctrl->registers + DOORBELLS);

	return __atomic_load_n(&doorbells[2 * qid + cq], __ATOMIC_ACQUIRE);
}

void bad_doorbell_clear(struct bad *ctrl, uint16_t qid, bool cq)
{
	uint32_t *doorbells = (void *)(ctrl->registers + DOORBELLS);

	__atomic_store_n(&doorbells[2 * qid + cq], 0, __ATOMIC_RELEASE);
}

/* CC, AQA, ASQ, ACQ, CMBMSC and doorbells; other registers are read-only. */
static bool writable(uint64_t offset)
{
	return (offset >= REG_CC && offset < REG_CSTS) || (offset >= REG_AQA && offset < 0x38) ||
	       (offset >= REG_CMBMSC && offset < 0x58) ||
	       (offset >= DOORBELLS && offset != BADCTRL_TOKEN && offset != BADCTRL_TOKEN + 4);
}

/* Tail and head doorbells alternate. Called with the lock held. */
static void count_doorbell(struct bad *ctrl, uint64_t offset)
{
	uint64_t qid = (offset - DOORBELLS) / 8;

	if (qid <= BADCTRL_QUEUES)
		atomic_fetch_add(&ctrl->counts[qid].of[BADCTRL_MESSAGES], 1);
	if (!(bad_load32(ctrl, REG_CSTS) & CSTS_READY))
		ctrl->words[BADCTRL_EARLY / 4]++;
	if (ctrl->words[BADCTRL_PAUSED / 4] && !(offset & 4))
		ctrl->words[BADCTRL_RUNG / 4]++;
}

/* Reset the writable registers and CSTS. Called with the lock held. */
static void bad_reset_registers(struct bad *ctrl)
{
	memset(ctrl->registers + REG_CC, 0, REG_CSTS + 4 - REG_CC);
	memset(ctrl->registers + REG_AQA, 0, 0x38 - REG_AQA);
	memset(ctrl->registers + REG_CMBMSC, 0, 8);
	memset(ctrl->registers + DOORBELLS, 0, BADCTRL_TOKEN - DOORBELLS);
	ctrl->event_count = 0;
	ctrl->words[BADCTRL_PAUSED / 4] = 0;
	ctrl->serving = false;
	ctrl->restart = true;
}

/* CSTS.NSSRO stays set until the driver clears it. Called with the lock held. */
static void bad_reset_subsystem(struct bad *ctrl)
{
	bad_reset_registers(ctrl);
	ctrl->words[BADCTRL_SUBSYSTEM_RESETS / 4]++;
	bad_store32(ctrl, REG_CSTS, CSTS_SUBSYSTEM_RESET);
}

/* A doorbell that a poller reads, whether stored by a message or not. */
static bool bad_polled(struct bad *ctrl, uint64_t offset)
{
	return ctrl->poller_count && offset >= DOORBELLS + 8 && atomic_load(&ctrl->plain);
}

static void bar_write(void *context, unsigned int bar, uint64_t offset, const void *data,
		      uint32_t count)
{
	static const uint32_t reset = NSSR_RESET;
	struct bad *ctrl = context;
	uint32_t status;

	(void)bar;
	pthread_mutex_lock(&ctrl->lock);
	if (bad_gone(ctrl))
		goto out;
	if (offset >= DOORBELLS)
		count_doorbell(ctrl, offset);
	if (writable(offset))
		memcpy(ctrl->registers + offset, data, count);
	ctrl->fell |= offset == REG_CC && !(bad_load32(ctrl, REG_CC) & CC_ENABLE);
	if (offset == REG_NSSR && count == 4 && !memcmp(data, &reset, 4))
		bad_reset_subsystem(ctrl);
	if (offset == REG_CSTS && count == 4) {
		memcpy(&status, data, 4);
		bad_store32(ctrl, REG_CSTS,
			    bad_load32(ctrl, REG_CSTS) & ~(status & CSTS_SUBSYSTEM_RESET));
	}
	if (offset < DOORBELLS)
		bad_settle(ctrl);
	if (!bad_polled(ctrl, offset))
		bad_wake(ctrl);
out:
	pthread_mutex_unlock(&ctrl->lock);
}

/* Called with the lock held. */
static void bad_reset_function(struct bad *ctrl)
{
	ctrl->words[BADCTRL_RESETS / 4]++;
	if (ctrl->words[BADCTRL_CURED / 4])
		ctrl->words[BADCTRL_MODE / 4] = BADCTRL_WORKS;
}

/* Words survive a function reset, as the driver may use one for recovery. */
static void bad_reset(void *context, enum vfu_reset why)
{
	struct bad *ctrl = context;

	pthread_mutex_lock(&ctrl->lock);
	bad_reset_registers(ctrl);
	if (why == VFU_RESET_FUNCTION)
		bad_reset_function(ctrl);
	else
		bad_defaults(ctrl);
	bad_settle(ctrl);
	bad_wake(ctrl);
	pthread_mutex_unlock(&ctrl->lock);
}

/* --- words ---------------------------------------------------------------- */

/* Called with the lock held, or before other threads exist. */
void bad_defaults(struct bad *ctrl)
{
	uint64_t cap = CAP_ENTRIES | CAP_CONTIGUOUS | CAP_TIMEOUT | CAP_SUBSYSTEM |
		       CAP_NVM;

	memset(ctrl->words, 0, sizeof(ctrl->words));
	memset(ctrl->effects, 0, sizeof(ctrl->effects));
	memset(ctrl->admin_effects, 0, sizeof(ctrl->admin_effects));
	memset(ctrl->created, 0, sizeof(ctrl->created));
	memset(ctrl->health, 0, sizeof(ctrl->health));
	memset(ctrl->thresholds, 0, sizeof(ctrl->thresholds));
	memset((void *)ctrl->mover_words, 0, sizeof(ctrl->mover_words));
	memset(ctrl->places, 0, sizeof(ctrl->places));
	memset((void *)ctrl->power_words, 0, sizeof(ctrl->power_words));
	ctrl->own = (struct bad_reservation){ 0 };
	ctrl->words[BADCTRL_GRANT / 4] = DEFAULT_QUEUES;
	ctrl->words[BADCTRL_ACTIVE / 4] = 1;
	memset(ctrl->registers + 0x38, 0, REG_CMBMSC - 0x38);
	bad_store32(ctrl, REG_CAP, (uint32_t)cap);
	bad_store32(ctrl, REG_CAP + 4, (uint32_t)(cap >> 32));
	bad_store32(ctrl, REG_VS, 0x00010400);
	bad_store32(ctrl, REG_CRTO, 0);
	memcpy(ctrl->registers + BADCTRL_TOKEN, &ctrl->token, sizeof(ctrl->token));
	bad_identify_defaults(ctrl);
	atomic_fetch_add(&ctrl->changes, 1);
}

/* The address of a word, or NULL. */
static void *bad_word_at(struct bad *ctrl, uint32_t address)
{
	if (address % 4)
		return NULL;
	if (address < BADCTRL_WORDS)
		return &ctrl->words[address / 4];
	if (address >= BADCTRL_IDENTIFY(0) && address < BADCTRL_IDENTIFY(7))
		return (uint8_t *)ctrl->identify + (address - BADCTRL_IDENTIFY(0));
	if (address >= BADCTRL_REGISTERS && address < BADCTRL_REGISTERS + DOORBELLS)
		return ctrl->registers + (address - BADCTRL_REGISTERS);
	if (address >= BADCTRL_EFFECTS(0) && address < BADCTRL_EFFECTS(BADCTRL_OPCODES))
		return &ctrl->effects[(address - BADCTRL_EFFECTS(0)) / 4];
	if (address >= BADCTRL_ADMIN_EFFECTS(0) && address < BADCTRL_ADMIN_EFFECTS(BADCTRL_OPCODES))
		return &ctrl->admin_effects[(address - BADCTRL_ADMIN_EFFECTS(0)) / 4];
	if (address >= BADCTRL_HEALTH(0) && address < BADCTRL_HEALTH(BADCTRL_HEALTH_BYTES))
		return ctrl->health + (address - BADCTRL_HEALTH(0));
	if (address >= BADCTRL_THRESHOLD(0) && address < BADCTRL_THRESHOLD(BADCTRL_THRESHOLDS))
		return &ctrl->thresholds[(address - BADCTRL_THRESHOLD(0)) / 4];
	if (address >= BADCTRL_MOVER(0) && address < BADCTRL_MOVER(BADCTRL_MOVER_WORDS)) {
		ctrl->mover_words[BADCTRL_MOVER_SMS / 4] = bad_mover_sms(ctrl);
		return (void *)&ctrl->mover_words[(address - BADCTRL_MOVER(0)) / 4];
	}
	if (address >= BADCTRL_PLACE(0) && address < BADCTRL_PLACE(BADCTRL_RULES))
		return &ctrl->places[(address - BADCTRL_PLACE(0)) / 4];
	if (address >= BADCTRL_POWER(0) && address < BADCTRL_POWER(BADCTRL_POWER_WORDS))
		return (void *)&ctrl->power_words[(address - BADCTRL_POWER(0)) / 4];
	if (address >= BADCTRL_QUEUE_COUNT(0, 0) &&
	    address < BADCTRL_QUEUE_COUNT(BADCTRL_QUEUES + 1, 0)) {
		address -= BADCTRL_QUEUE_COUNT(0, 0);
		return &ctrl->counts[address / 8].of[address % 8 / 4];
	}
	return NULL;
}

static void bad_set_mode(struct bad *ctrl, uint32_t mode)
{
	uint32_t low = bad_load32(ctrl, REG_CAP), high = bad_load32(ctrl, REG_CAP + 4);

	ctrl->words[BADCTRL_MODE / 4] = mode;
	if (mode == BADCTRL_NO_QUEUE)
		bad_store32(ctrl, REG_CAP, low & 0xffff0000);
	if (mode == BADCTRL_HUGE_PAGES)
		bad_store32(ctrl, REG_CAP + 4,
			    high | CAP_MPSMIN_64K << 16 | CAP_MPSMIN_64K << 20);
}

static void bad_set_paused(struct bad *ctrl, uint32_t paused)
{
	uint32_t status = bad_load32(ctrl, REG_CSTS);

	ctrl->words[BADCTRL_PAUSED / 4] = paused;
	bad_store32(ctrl, REG_CSTS, paused ? status | CSTS_PAUSED : status & ~CSTS_PAUSED);
}

static void bad_write_word(struct bad *ctrl, uint32_t value)
{
	void *word = bad_word_at(ctrl, ctrl->window);

	switch (ctrl->window) {
	case BADCTRL_DEFAULTS:
		bad_defaults(ctrl);
		/* A GPU that moves data has the pages of the disk registered: they stay. */
		if (!ctrl->mover)
			madvise(ctrl->disk, bad_disk_bytes(ctrl), MADV_DONTNEED);
		bad_cache_flush(ctrl, ctrl->disk, bad_disk_bytes(ctrl));
		break;
	case BADCTRL_MODE:
		bad_set_mode(ctrl, value);
		break;
	case BADCTRL_PAUSED:
		bad_set_paused(ctrl, value);
		break;
	case BADCTRL_EVENT:
		if (ctrl->event_count < BAD_EVENTS_MAX)
			ctrl->events[ctrl->event_count++] = value;
		break;
	case BADCTRL_RELEASE:
		ctrl->release = true;
		break;
	default:
		if (word)
			memcpy(word, &value, sizeof(value));
	}
}

/* The registers that select a word and access it; accessible while a driver is bound. */
static bool is_word_register(uint64_t offset, uint32_t count)
{
	return count == 4 && (offset == BADCTRL_CONFIG_ADDRESS || offset == BADCTRL_CONFIG_DATA);
}

static bool config_write(void *context, uint64_t offset, const void *data, uint32_t count)
{
	struct bad *ctrl = context;
	uint32_t value;

	if (!is_word_register(offset, count))
		return false;
	memcpy(&value, data, sizeof(value));
	pthread_mutex_lock(&ctrl->lock);
	if (offset == BADCTRL_CONFIG_ADDRESS) {
		ctrl->window = value;
	} else {
		bad_write_word(ctrl, value);
		atomic_fetch_add(&ctrl->changes, 1);
		bad_settle(ctrl);
	}
	bad_wake(ctrl);
	pthread_mutex_unlock(&ctrl->lock);
	return true;
}

static bool config_read(void *context, uint64_t offset, void *data, uint32_t count)
{
	struct bad *ctrl = context;
	const void *word;

	if (!is_word_register(offset, count)) {
		memset(data, 0xff, count);
		return bad_word(ctrl, BADCTRL_MODE) == BADCTRL_ABSENT;
	}
	memset(data, 0, count);
	pthread_mutex_lock(&ctrl->lock);
	word = offset == BADCTRL_CONFIG_ADDRESS ? &ctrl->window : bad_word_at(ctrl, ctrl->window);
	if (word)
		memcpy(data, word, count);
	pthread_mutex_unlock(&ctrl->lock);
	return true;
}

static void unmapped(void *context, uint64_t address, uint64_t size)
{
	(void)address;
	(void)size;
	bad_mover_settle(context);
}

_Static_assert(BAD_VECTORS <= VFU_MAX_VECTORS, "interrupt vectors");

const struct vfu_device bad_device = {
	.vendor_id = BADCTRL_VENDOR,
	.device_id = BADCTRL_DEVICE,
	.class_code = 0x010802,
	.vectors = BAD_VECTORS,
	.bars = { [0] = { .size = BADCTRL_BAR_BYTES, .is_64bit = true, .fd = -1 } },
	.bar_read = bar_read,
	.bar_write = bar_write,
	.reset = bad_reset,
	.config_read = config_read,
	.config_write = config_write,
	.unmapped = unmapped,
};
