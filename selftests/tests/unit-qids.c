// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmod/core/qids.c, compiled for user space: the pool of queue identifiers and the quarantine of
 * doorbells. A model that is told of each allocation, export, mapping and exit says which identifier
 * may be handed out next; 300,000 random steps of a pool are compared with it.
 */
#include "kernel/qids.h"
#include "../../kmod/core/qids.c"

#include "kselftest_harness.h"

#define CAPACITY	12
#define PROCESSES	4
#define BAR		0x40000000ULL

bool kernel_warned;
unsigned int unit_errors, unit_warned_of;
struct task_struct *current;
kuid_t unit_euid;

static unsigned int allocations, allocated, fail_at;

void *unit_alloc(size_t size)
{
	if (++allocations == fail_at)
		return NULL;
	allocated++;
	return calloc(1, size);
}

void unit_free(void *memory)
{
	allocated -= memory ? 1 : 0;
	free(memory);
}

/* All of them: the module may refer to one that has exited. */
static struct task_struct *newest_process;

static struct task_struct *new_process(void)
{
	static int number = 100;
	struct task_struct *process = calloc(1, sizeof(*process));

	process->number = number++;
	process->older = newest_process;
	newest_process = process;
	return process;
}

static void free_processes(void)
{
	while (newest_process) {
		struct task_struct *process = newest_process;

		newest_process = process->older;
		free(process);
	}
}

/* What is known of an identifier. */
struct known {
	bool used, peer, shared;
	unsigned int exports;
	struct task_struct *mappers[CAPACITY * PROCESSES * 4];
	unsigned int mapper_count;
	u64 freed;
};

static bool runs(const struct task_struct *process)
{
	return !process->reaped && (!process->exit_state || process->other_threads);
}

/* May a process store to its doorbells, with or without @except? */
static bool reachable(const struct known *known, const struct task_struct *except)
{
	unsigned int i;

	for (i = 0; i < known->mapper_count; i++)
		if (known->mappers[i] != except && runs(known->mappers[i]))
			return true;
	return known->exports;
}

static bool mapped_by(const struct known *known, const struct task_struct *process)
{
	unsigned int i;

	for (i = 0; i < known->mapper_count; i++)
		if (known->mappers[i] == process)
			return true;
	return false;
}

FIXTURE(qids)
{
	struct nvmep_ctrl ctrl;
	phys_addr_t bar;
	struct task_struct *processes[PROCESSES];
	struct known known[CAPACITY];
	unsigned int total, peer_max, peers, shared;
	u64 clock;
	bool blocked, shared_blocked;
};

FIXTURE_SETUP(qids)
{
	unsigned int i;

	for (i = 0; i < PROCESSES; i++)
		self->processes[i] = new_process();
	current = self->processes[0];
	self->bar = BAR;
	self->ctrl = (struct nvmep_ctrl){ .pdev = &self->bar, .bar_len = 0x4000, .doorbell_stride = 4 };
	self->total = CAPACITY - 1;
	self->peer_max = 6;
	self->known[0].used = true;
	ASSERT_EQ(0, nvmep_qids_init(&self->ctrl, CAPACITY));
	nvmep_qids_grant(&self->ctrl, self->total, self->peer_max);
}

FIXTURE_TEARDOWN(qids)
{
	if (self->ctrl.qids.quarantine)
		nvmep_qids_exit(&self->ctrl);
	nvmep_quarantines_exit();
	free_processes();
	EXPECT_EQ(0, allocated);
	EXPECT_FALSE(kernel_warned);
}

/* May the identifier be handed out? The CPU's was no peer's; a shared one is out of each process's reach. */
static bool allowed(const struct known *known, enum nvmep_qid_owner owner)
{
	if (known->used || reachable(known, owner == NVMEP_QID_SHARED ? NULL : current))
		return false;
	return owner != NVMEP_QID_CPU || !known->freed;
}

/* Is it a better choice than one that is lower? */
static bool preferred(const struct known *known, const struct known *lower, enum nvmep_qid_owner owner)
{
	bool own = mapped_by(known, current), own_lower = mapped_by(lower, current);

	if (owner == NVMEP_QID_PEER && own != own_lower)
		return own;
	return owner != NVMEP_QID_CPU && known->freed < lower->freed;
}

/* The identifier that the pool has to hand out, or the error. */
static int expected(const FIXTURE_DATA(qids) *self, enum nvmep_qid_owner owner)
{
	const struct known *known, *best = NULL;
	unsigned int qid;

	if ((owner == NVMEP_QID_PEER && self->blocked) || (owner == NVMEP_QID_SHARED && self->shared_blocked))
		return -EBUSY;
	if (owner == NVMEP_QID_PEER && self->peers >= self->peer_max)
		return -ENOSPC;
	for (qid = 1; qid <= self->total; qid++) {
		known = &self->known[qid];
		if (allowed(known, owner) && (!best || preferred(known, best, owner)))
			best = known;
	}
	return best ? (int)(best - self->known) : -ENOSPC;
}

static bool allocate(FIXTURE_DATA(qids) *self, enum nvmep_qid_owner owner)
{
	int wanted = expected(self, owner), got = nvmep_qid_alloc(&self->ctrl, owner);

	if (got > 0) {
		struct nvmep_doorbell_count *count = &self->ctrl.qids.doorbells[got];

		if (count->sq || count->cq)
			return false;
		*count = (struct nvmep_doorbell_count){ .sq = 1, .cq = 2 };
		self->known[got].used = true;
		self->known[got].peer = owner == NVMEP_QID_PEER;
		self->peers += owner == NVMEP_QID_PEER;
		self->known[got].shared = owner == NVMEP_QID_SHARED;
		self->shared += owner == NVMEP_QID_SHARED;
	}
	return got == wanted;
}

static void release(FIXTURE_DATA(qids) *self, unsigned int qid, bool exported)
{
	struct known *known = &self->known[qid];

	nvmep_qid_free(&self->ctrl, qid, exported);
	self->peers -= known->peer;
	self->shared -= known->shared;
	known->used = known->peer = known->shared = false;
	if (exported)
		known->freed = ++self->clock;
}

static void unexport(FIXTURE_DATA(qids) *self, unsigned int qid)
{
	nvmep_qid_unexport(&self->ctrl, qid);
	self->known[qid].exports--;
	self->known[qid].freed = ++self->clock;
}

static bool map(FIXTURE_DATA(qids) *self, unsigned int qid)
{
	struct known *known = &self->known[qid];
	bool mapped = mapped_by(known, current);
	unsigned int before = current->references;

	if (nvmep_qid_add_mapper(&self->ctrl, qid))
		return false;
	if (!mapped)
		known->mappers[known->mapper_count++] = current;
	return current->references == before + !mapped;
}

/* A process ends in one of the ways in which its record may be found. */
static void end(struct task_struct **process, int way)
{
	(*process)->exit_state = 1;
	if (way)
		(*process)->reaped = true;
	if (current == *process)
		current = NULL;
	*process = new_process();
	if (!current)
		current = *process;
}

/* Forget those that have ended, so that the model's memory is bounded. */
static void forget(struct known *known)
{
	unsigned int i, kept = 0;

	for (i = 0; i < known->mapper_count; i++)
		if (runs(known->mappers[i]))
			known->mappers[kept++] = known->mappers[i];
	known->mapper_count = kept;
}

/* The controller is unbound and bound again: identifiers without stores are new. */
static bool rebind(FIXTURE_DATA(qids) *self)
{
	unsigned int qid, late = 0;

	for (qid = 1; qid < CAPACITY; qid++)
		if (self->known[qid].used)
			release(self, qid, self->known[qid].peer);
	for (qid = 1; qid < CAPACITY; qid++)
		late += reachable(&self->known[qid], NULL);
	unit_warned_of = 0;
	nvmep_qids_warn_quarantine(&self->ctrl);
	if (unit_warned_of != late)
		return false;
	nvmep_qids_exit(&self->ctrl);
	for (qid = 1; qid < CAPACITY; qid++)
		if (!reachable(&self->known[qid], NULL))
			self->known[qid].freed = 0;
	/* One that was empty is gone, with its count of releases. */
	if (!late)
		self->clock = 0;
	self->blocked = self->shared_blocked = false;
	self->ctrl.qids = (struct nvmep_qids){};
	if (nvmep_qids_init(&self->ctrl, CAPACITY))
		return false;
	nvmep_qids_grant(&self->ctrl, self->total, self->peer_max);
	return true;
}

/* The statistics of the pool are those of the model. */
static bool usage_is_right(const FIXTURE_DATA(qids) *self)
{
	unsigned int qid, free = 0, cpu = 0, quarantined = 0, reached = 0, for_cpu = 0, share;
	unsigned int next = 0, next_shared = 0;
	struct nvmep_ctrl *ctrl = (struct nvmep_ctrl *)&self->ctrl;
	struct nvmep_qid_usage usage;
	bool next_is_right = true;

	for (qid = 1; qid < CAPACITY; qid++) {
		const struct known *known = &self->known[qid];
		bool late = !known->used && reachable(known, current);
		bool of_cpu = known->used && !known->peer && !known->shared;

		quarantined += late;
		reached += reachable(known, NULL);
		cpu += of_cpu;
		if (known->peer) {
			next = nvmep_qid_next_peer(ctrl, next);
			next_is_right &= next == qid;
		}
		if (known->shared) {
			next_shared = nvmep_qid_next_shared(ctrl, next_shared);
			next_is_right &= next_shared == qid;
		}
		if (qid > self->total)
			continue;
		free += !known->used && !late;
		for_cpu += of_cpu || (!known->used && !known->freed && !late);
	}
	share = self->peer_max > self->peers ? self->peer_max - self->peers : 0;
	nvmep_qid_usage(ctrl, &usage);
	return next_is_right && !nvmep_qid_next_peer(ctrl, next) &&
	       !nvmep_qid_next_shared(ctrl, next_shared) &&
	       nvmep_qids_reachable(ctrl) == reached &&
	       usage.total == self->total && usage.cpu == cpu && usage.quarantined == quarantined &&
	       usage.peer_max == self->peer_max && usage.peer_free == min(free, share) &&
	       nvmep_qids_for_cpu(ctrl) == for_cpu && nvmep_qid_granted(ctrl, self->total) == !!self->total &&
	       !nvmep_qid_granted(ctrl, self->total + 1) && !nvmep_qid_granted(ctrl, 0);
}

/* What a program may do with identifier @qid, as the module calls the pool. */
static bool step_of(FIXTURE_DATA(qids) *self, unsigned int qid, unsigned int what)
{
	struct known *known = &self->known[qid];

	switch (what) {
	case 0:
		if (known->used)
			release(self, qid, known->peer && (known->exports || known->freed || rand() % 2));
		return true;
	case 1:
		if (known->peer) {
			nvmep_qid_export(&self->ctrl, qid);
			known->exports++;
		}
		return true;
	case 2:
		if (known->exports)
			unexport(self, qid);
		return true;
	default:
		return !known->exports || map(self, qid);
	}
}

/* A command that peers must not meet blocks these; other queues of the CPU need shared ones to be gone, too. */
static bool block(FIXTURE_DATA(qids) *self)
{
	if (self->blocked) {
		nvmep_qids_unblock_peers(&self->ctrl);
		self->blocked = self->shared_blocked = false;
		return true;
	}
	if (nvmep_qids_block_peers(&self->ctrl) != (self->peers ? -EBUSY : 0))
		return false;
	self->blocked = !self->peers;
	if (!self->blocked || rand() % 2)
		return true;
	self->shared_blocked = !self->shared;
	return nvmep_qids_block_shared(&self->ctrl) == (self->shared ? -EBUSY : 0);
}

static bool step(FIXTURE_DATA(qids) *self)
{
	unsigned int what = (unsigned int)rand() % 100, qid = 1 + (unsigned int)rand() % (CAPACITY - 1);

	forget(&self->known[qid]);
	if (what < 25)
		return allocate(self, NVMEP_QID_PEER);
	if (what < 33)
		return allocate(self, NVMEP_QID_CPU);
	if (what < 36)
		return allocate(self, NVMEP_QID_SHARED);
	if (what < 85)
		return step_of(self, qid, what % 4);
	if (what < 92) {
		current = self->processes[rand() % PROCESSES];
		return true;
	}
	if (what < 96) {
		end(&self->processes[rand() % PROCESSES], rand() % 2);
		return true;
	}
	if (what < 97) {
		self->total = (unsigned int)rand() % CAPACITY;
		self->peer_max = (unsigned int)rand() % (self->total + 1);
		nvmep_qids_grant(&self->ctrl, self->total, self->peer_max);
		return true;
	}
	if (what < 99)
		return block(self);
	return rand() % 8 || rebind(self);
}

TEST_F(qids, random_steps_agree_with_model)
{
	unsigned int i;

	srand(1);
	for (i = 0; i < 300000; i++) {
		ASSERT_TRUE(step(self))
			TH_LOG("step %u", i);
		ASSERT_TRUE(usage_is_right(self))
			TH_LOG("usage after step %u", i);
	}
}

TEST_F(qids, process_without_first_thread_keeps_doorbells)
{
	int qid = nvmep_qid_alloc(&self->ctrl, NVMEP_QID_PEER), other;
	struct task_struct *process = current;
	struct nvmep_qid_usage usage;

	nvmep_qid_export(&self->ctrl, qid);
	ASSERT_EQ(0, nvmep_qid_add_mapper(&self->ctrl, qid));
	nvmep_qid_unexport(&self->ctrl, qid);
	nvmep_qid_free(&self->ctrl, qid, true);
	current = self->processes[1];
	process->exit_state = 1;
	process->other_threads = true;
	nvmep_qid_usage(&self->ctrl, &usage);
	EXPECT_EQ(1, usage.quarantined);
	for (other = 1; other > 0;)
		other = nvmep_qid_alloc(&self->ctrl, NVMEP_QID_PEER);
	EXPECT_TRUE(!test_bit(qid, self->ctrl.qids.used));
	process->other_threads = false;
	nvmep_qid_usage(&self->ctrl, &usage);
	EXPECT_EQ(0, usage.quarantined);
	EXPECT_EQ(0, process->references);
}

/* Whatever its owner said of it: the CPU's rings are not behind doorbells that a process has mapped. */
TEST_F(qids, cpu_gets_no_reachable_identifier)
{
	int qid = nvmep_qid_alloc(&self->ctrl, NVMEP_QID_PEER);

	nvmep_qid_export(&self->ctrl, qid);
	nvmep_qid_free(&self->ctrl, qid, false);
	EXPECT_NE(qid, nvmep_qid_alloc(&self->ctrl, NVMEP_QID_CPU));
	EXPECT_EQ(CAPACITY - 2, nvmep_qids_for_cpu(&self->ctrl));
	nvmep_qid_unexport(&self->ctrl, qid);
}

static int create(struct nvmep_ctrl *ctrl)
{
	int qid = nvmep_qid_alloc(ctrl, NVMEP_QID_PEER);

	if (qid > 0) {
		nvmep_qid_export(ctrl, qid);
		nvmep_qid_add_mapper(ctrl, qid);
	}
	return qid;
}

static void delete(struct nvmep_ctrl *ctrl, int qid)
{
	nvmep_qid_unexport(ctrl, qid);
	nvmep_qid_free(ctrl, qid, true);
}

/* The one of its own that was released the longest time ago; the others stay for other processes. */
TEST_F(qids, process_gets_its_own_identifiers_first)
{
	int own[3], other, i;
	struct nvmep_qid_usage usage;

	for (i = 0; i < 3; i++)
		own[i] = create(&self->ctrl);
	for (i = 3; i--;)
		delete(&self->ctrl, own[i]);
	for (i = 3; i--;)
		EXPECT_EQ(own[i], create(&self->ctrl));
	for (i = 0; i < 3; i++)
		delete(&self->ctrl, own[i]);
	for (i = 0; i < 3 * CAPACITY; i++) {
		EXPECT_EQ(own[i % 3], create(&self->ctrl));
		delete(&self->ctrl, own[i % 3]);
	}
	current = self->processes[1];
	nvmep_qid_usage(&self->ctrl, &usage);
	EXPECT_EQ(3, usage.quarantined);
	EXPECT_EQ(self->peer_max, usage.peer_free);
	other = create(&self->ctrl);
	EXPECT_LT(0, other);
	for (i = 0; i < 3; i++)
		EXPECT_NE(own[i], other);
	delete(&self->ctrl, other);
}

/* What it had as another user comes last: that program may still store to its doorbells. */
TEST_F(qids, set_user_id_program_does_not_get_those_of_its_predecessor)
{
	int before, own, again;

	unit_euid = 1000;
	before = create(&self->ctrl);
	delete(&self->ctrl, before);
	unit_euid = 0;
	own = create(&self->ctrl);
	EXPECT_NE(before, own);
	delete(&self->ctrl, own);
	EXPECT_EQ(own, create(&self->ctrl));
	again = create(&self->ctrl);
	EXPECT_NE(before, again);
	delete(&self->ctrl, own);
	delete(&self->ctrl, again);
	unit_euid = 1000;
	EXPECT_EQ(before, create(&self->ctrl));
	delete(&self->ctrl, before);
	/* Both users of the process have mapped it: the last one counts. */
	unit_euid = 0;
	nvmep_qid_export(&self->ctrl, (u16)before);
	EXPECT_EQ(0, nvmep_qid_add_mapper(&self->ctrl, (u16)before));
	nvmep_qid_unexport(&self->ctrl, (u16)before);
	unit_euid = 1000;
	EXPECT_NE(before, nvmep_qid_alloc(&self->ctrl, NVMEP_QID_PEER));
}

/* Those of a process that has ended wait for their turn among the rest. */
TEST_F(qids, identifiers_of_ended_process_come_last)
{
	int old = create(&self->ctrl), qid, i;

	delete(&self->ctrl, old);
	end(&self->processes[0], 0);
	for (i = 1; i < CAPACITY - 1; i++) {
		qid = nvmep_qid_alloc(&self->ctrl, NVMEP_QID_PEER);
		EXPECT_NE(old, qid);
		nvmep_qid_free(&self->ctrl, qid, true);
	}
	EXPECT_EQ(old, nvmep_qid_alloc(&self->ctrl, NVMEP_QID_PEER));
}

/* All but the calling process count, and those that have ended do not. */
TEST_F(qids, mappers_are_limited)
{
	struct task_struct *processes[NVMEP_MAX_MAPPERS + 1];
	int qid = nvmep_qid_alloc(&self->ctrl, NVMEP_QID_PEER);
	unsigned int i;

	nvmep_qid_export(&self->ctrl, qid);
	for (i = 0; i < ARRAY_SIZE(processes); i++) {
		current = processes[i] = new_process();
		EXPECT_EQ(i < NVMEP_MAX_MAPPERS ? 0 : -ENOSPC, nvmep_qid_add_mapper(&self->ctrl, qid));
	}
	current = processes[0];
	EXPECT_EQ(0, nvmep_qid_add_mapper(&self->ctrl, qid));
	processes[1]->reaped = true;
	current = processes[NVMEP_MAX_MAPPERS];
	EXPECT_EQ(0, nvmep_qid_add_mapper(&self->ctrl, qid));
	nvmep_qid_unexport(&self->ctrl, qid);
}

/* Leave an identifier whose doorbells the calling process may store to. */
static void leave_late_stores(struct nvmep_ctrl *ctrl)
{
	int qid = nvmep_qid_alloc(ctrl, NVMEP_QID_PEER);

	nvmep_qid_export(ctrl, qid);
	nvmep_qid_add_mapper(ctrl, qid);
	nvmep_qid_unexport(ctrl, qid);
	nvmep_qid_free(ctrl, qid, true);
}

TEST_F(qids, other_controller_at_an_overlapping_address_is_refused)
{
	static const struct {
		u64 offset, length;
		u32 stride;
		unsigned int capacity;
		int result;
	} others[] = {
		{ 0, 0x4000, 8, CAPACITY, -EBUSY }, { 0, 0x4000, 4, CAPACITY - 1, -EBUSY },
		{ 0, 0x8000, 4, CAPACITY, -EBUSY }, { 0x2000, 0x4000, 4, CAPACITY, -EBUSY },
		{ -0x3000ULL, 0x4000, 4, CAPACITY, -EBUSY }, { 0x4000, 0x4000, 4, CAPACITY, 0 },
		{ -0x4000ULL, 0x4000, 4, CAPACITY, 0 }, { 0, 0x4000, 4, CAPACITY, 0 },
	};
	unsigned int i;

	leave_late_stores(&self->ctrl);
	nvmep_qids_exit(&self->ctrl);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		phys_addr_t bar = BAR + others[i].offset;
		struct nvmep_ctrl other = {
			.pdev = &bar, .bar_len = others[i].length, .doorbell_stride = others[i].stride,
		};

		unit_errors = 0;
		EXPECT_EQ(others[i].result, nvmep_qids_init(&other, others[i].capacity))
			TH_LOG("controller %u", i);
		EXPECT_EQ(others[i].result != 0, unit_errors);
		if (!others[i].result)
			nvmep_qids_exit(&other);
	}
	current->reaped = true;
	for (i = 0; i < 5; i++) {
		phys_addr_t bar = BAR + others[i].offset;
		struct nvmep_ctrl other = {
			.pdev = &bar, .bar_len = others[i].length, .doorbell_stride = others[i].stride,
		};

		EXPECT_EQ(0, nvmep_qids_init(&other, others[i].capacity));
		nvmep_qids_exit(&other);
	}
	/* The one that had become empty was found by the first of these, and freed. */
	EXPECT_EQ(0, allocated);
}

TEST_F(qids, second_controller_at_the_address_shares_its_quarantine)
{
	struct nvmep_ctrl next = self->ctrl;
	unsigned int count;

	leave_late_stores(&self->ctrl);
	next.qids = (struct nvmep_qids){};
	ASSERT_EQ(0, nvmep_qids_init(&next, CAPACITY));
	nvmep_qids_grant(&next, CAPACITY - 1, CAPACITY - 1);
	EXPECT_EQ(CAPACITY - 2, nvmep_qids_for_cpu(&next));
	nvmep_qids_exit(&self->ctrl);
	current->reaped = true;
	count = allocated;
	/* It is in use, so that it stays although it has become empty. */
	EXPECT_EQ(0, nvmep_quarantine_count(next.qids.quarantine));
	EXPECT_EQ(count - 1, allocated);
	nvmep_qids_exit(&next);
	EXPECT_EQ(0, allocated);
}

/* A controller whose BAR0 was moved may overlap one without late stores; both keep their pools. */
TEST_F(qids, controllers_without_late_stores_do_not_meet)
{
	u64 bars[] = { BAR + 0x2000, BAR + 0x10000 };
	struct nvmep_ctrl others[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		others[i] = (struct nvmep_ctrl){ .pdev = &bars[i], .bar_len = 0x4000, .doorbell_stride = 4 };
		EXPECT_EQ(0, nvmep_qids_init(&others[i], CAPACITY));
	}
	/* Of a controller that is bound: it was not freed as an empty one. */
	EXPECT_EQ(CAPACITY, self->ctrl.qids.quarantine->capacity);
	for (i = 0; i < 2; i++)
		nvmep_qids_exit(&others[i]);
}

TEST_F(qids, failed_allocations_leave_nothing_behind)
{
	unsigned int n;

	nvmep_qids_exit(&self->ctrl);
	ASSERT_EQ(0, allocated);
	for (n = 1; n <= 5; n++) {
		allocations = 0;
		fail_at = n;
		EXPECT_EQ(-ENOMEM, nvmep_qids_init(&self->ctrl, CAPACITY));
		EXPECT_EQ(0, allocated);
		/* As for a controller that was not initialised. */
		nvmep_qids_exit(&self->ctrl);
	}
	fail_at = 0;
	ASSERT_EQ(0, nvmep_qids_init(&self->ctrl, CAPACITY));
	nvmep_qids_grant(&self->ctrl, CAPACITY + 5, CAPACITY + 5);
	EXPECT_EQ(CAPACITY - 1, self->ctrl.qids.total);
	EXPECT_EQ(CAPACITY - 1, self->ctrl.qids.peer_max);
	allocations = 0;
	fail_at = 1;
	EXPECT_EQ(-ENOMEM, nvmep_qid_add_mapper(&self->ctrl, 1));
	fail_at = 0;
}

/* The lists of a controller and of all controllers name importers and processes. */
TEST_F(qids, quarantine_is_listed)
{
	char one[256] = "", all[256] = "", wanted[128];
	int held, free_one, process = current->number;
	struct seq_file seq;

	held = nvmep_qid_alloc(&self->ctrl, NVMEP_QID_PEER);
	free_one = nvmep_qid_alloc(&self->ctrl, NVMEP_QID_PEER);
	nvmep_qid_export(&self->ctrl, held);
	nvmep_qid_export(&self->ctrl, free_one);
	nvmep_qid_add_mapper(&self->ctrl, free_one);
	nvmep_qid_free(&self->ctrl, free_one, true);
	seq.stream = fmemopen(one, sizeof(one), "w");
	nvmep_qids_show_quarantine(&self->ctrl, &seq);
	fclose(seq.stream);
	snprintf(wanted, sizeof(wanted), "%d 1 %d\n", free_one, process);
	EXPECT_STREQ(wanted, one);
	seq.stream = fmemopen(all, sizeof(all), "w");
	nvmep_quarantines_show(&seq);
	fclose(seq.stream);
	/* Two lines, of which the second is of the identifier that is free. */
	ASSERT_NE(NULL, strstr(all, wanted));
	EXPECT_LT(strchr(all, '\n'), strrchr(all, '\n'));
	nvmep_qid_unexport(&self->ctrl, held);
	nvmep_qid_unexport(&self->ctrl, free_one);
}

TEST_HARNESS_MAIN
