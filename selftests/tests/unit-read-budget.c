// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmod/peer/read_budget.c, compiled for user space: limits of slow reads of device memory.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel/read_budget.h"
#include "../../kmod/peer/read_budget.c"

#include "kselftest_harness.h"

#define MS		1000000ULL
#define SECOND		(1000 * MS)
#define ALLOWED_MS	100U
#define SLOW		(50 * MS)
#define START		(100 * SECOND)
#define PAIRS		64U
#define USERS		16U

bool kernel_warned;

/**
 * struct pair - a queue pair
 */
struct pair {
	u64 slow_until;
};

FIXTURE(reads)
{
	struct nvmep_user_reads user[USERS];
	struct pair pair[USERS][PAIRS];
	u64 all_until;
	u64 now;
};

FIXTURE_SETUP(reads)
{
	memset(self, 0, sizeof(*self));
	self->now = START;
}

FIXTURE_TEARDOWN(reads)
{
}

static bool may_read(FIXTURE_DATA(reads) *self, unsigned int user, unsigned int pair)
{
	return nvmep_reads_allowed(&self->user[user], self->all_until, self->pair[user][pair].slow_until,
				   ALLOWED_MS, self->now);
}

/* Reads if that is allowed; returns the time that it took. */
static u64 read_slowly(FIXTURE_DATA(reads) *self, unsigned int user, unsigned int pair)
{
	struct pair *at = &self->pair[user][pair];

	if (!may_read(self, user, pair))
		return 0;
	at->slow_until = nvmep_reads_add(&self->user[user], &self->all_until, at->slow_until, ALLOWED_MS,
					 self->now, SLOW);
	self->now += SLOW;
	return SLOW;
}

/* Milliseconds of a second that reads take of @users with @pairs each which do nothing else. */
static u64 share_of(FIXTURE_DATA(reads) *self, unsigned int users, unsigned int pairs)
{
	const u64 seconds = 600;
	u64 end, took = 0, before;
	unsigned int user, pair;

	self->now += seconds * SECOND;
	end = self->now + seconds * SECOND;
	while (self->now < end) {
		before = took;
		for (user = 0; user < users; user++)
			for (pair = 0; pair < pairs; pair++)
				took += read_slowly(self, user, pair);
		if (took == before)
			self->now += MS;
	}
	return took / MS / seconds;
}

TEST_F(reads, one_slow_read_is_spared)
{
	EXPECT_TRUE(may_read(self, 0, 0));
	EXPECT_EQ(SLOW, read_slowly(self, 0, 0));
	EXPECT_EQ(0, self->user[0].until);
	EXPECT_EQ(0, self->pair[0][0].slow_until);
	/* The next one counts, for the user and for all. */
	EXPECT_EQ(SLOW, read_slowly(self, 0, 0));
	EXPECT_EQ(self->now - SLOW + 10 * SLOW, self->user[0].until);
	EXPECT_EQ(self->now - SLOW + 10 * SLOW / 3, self->all_until);
	EXPECT_LE(self->now + 10 * SECOND, self->pair[0][0].slow_until);
	/* Ten seconds after the first another one is spared. */
	self->now = START + 20 * SECOND;
	self->user[0].until = 0;
	EXPECT_EQ(SLOW, read_slowly(self, 0, 0));
	EXPECT_EQ(0, self->user[0].until);
}

TEST_F(reads, another_is_spared_when_ten_seconds_have_passed)
{
	read_slowly(self, 0, 0);
	self->now = self->user[0].spared_until;
	EXPECT_EQ(SLOW, read_slowly(self, 0, 0));
	EXPECT_EQ(0, self->user[0].until);
}

/* Milliseconds of a second for the reads of so many users that are not counted: one of each in 10 s. */
#define SPARED_MS(users)	((users) * SLOW / MS / 10)

TEST_F(reads, user_is_limited)
{
	unsigned int i;

	EXPECT_GE(ALLOWED_MS + SPARED_MS(1) + 2, share_of(self, 1, 1));
	EXPECT_LE(ALLOWED_MS / 2, share_of(self, 1, 1));
	/* The limit is one for all its queue pairs. */
	EXPECT_GE(ALLOWED_MS + 15, share_of(self, 1, PAIRS));
	for (i = 0; i < PAIRS; i++)
		EXPECT_FALSE(may_read(self, 0, i));
}

TEST_F(reads, all_users_are_limited)
{
	EXPECT_GE(3 * ALLOWED_MS + SPARED_MS(USERS) + 10, share_of(self, USERS, 1));
	EXPECT_GE(3 * ALLOWED_MS + SPARED_MS(USERS) + 70, share_of(self, USERS, PAIRS));
	EXPECT_LE(ALLOWED_MS, share_of(self, USERS, 1));
}

/* Those that read fast, and those of which one read was slow, are of no concern to the limits of others. */
TEST_F(reads, fast_queue_pairs_are_not_limited)
{
	EXPECT_EQ(SLOW, read_slowly(self, 1, 0));
	EXPECT_LE(ALLOWED_MS, share_of(self, 1, 1));
	EXPECT_EQ(SLOW, read_slowly(self, 2, 0));
	self->all_until = self->user[0].until = self->now + 100 * SECOND;
	EXPECT_FALSE(may_read(self, 0, 0));
	EXPECT_TRUE(may_read(self, 0, 1));
	EXPECT_TRUE(may_read(self, 1, 0));
	EXPECT_TRUE(may_read(self, 2, 0));
}

/* The limit is that of a second ahead, and a queue pair is slow up to the time that was returned. */
TEST_F(reads, ends_of_the_limits)
{
	const u64 slow_until = self->now + 1;

	self->user[0].until = self->now + SECOND;
	EXPECT_FALSE(nvmep_reads_allowed(&self->user[0], 0, slow_until, ALLOWED_MS, self->now));
	EXPECT_FALSE(nvmep_reads_allowed(&self->user[1], self->now + SECOND, slow_until, ALLOWED_MS,
					 self->now));
	EXPECT_TRUE(nvmep_reads_allowed(&self->user[0], 0, self->now, ALLOWED_MS, self->now));
	self->user[0].until--;
	EXPECT_TRUE(nvmep_reads_allowed(&self->user[0], self->user[0].until, slow_until, ALLOWED_MS,
					self->now));
}

/* Interrupts between: reads whose sum is 2 ms in ten seconds are of no concern to the limits either. */
TEST_F(reads, jitter_is_not_limited)
{
	unsigned int i;

	for (i = 0; i < 21; i++) {
		self->pair[0][0].slow_until = nvmep_reads_add(&self->user[0], &self->all_until, 0, ALLOWED_MS,
							      self->now, MS / 10);
		EXPECT_EQ(0, self->pair[0][0].slow_until);
		self->now += 100 * MS;
	}
	EXPECT_EQ(0, self->user[0].until);
	self->all_until = self->now + 100 * SECOND;
	EXPECT_TRUE(may_read(self, 0, 0));
	/* More than that is. */
	EXPECT_LT(self->now, nvmep_reads_add(&self->user[0], &self->all_until, 0, ALLOWED_MS, self->now,
					     MS / 10));
	EXPECT_LT(self->now, self->user[0].until);
}

/* A new queue pair has the record of its user: it has no slow read that is not limited. */
TEST_F(reads, new_queue_pair_of_a_slow_user)
{
	unsigned int i;

	for (i = 0; i < 10; i++)
		read_slowly(self, 0, 0);
	EXPECT_FALSE(may_read(self, 0, 0));
	self->pair[0][1].slow_until = self->user[0].slow_until;
	EXPECT_FALSE(may_read(self, 0, 1));
}

TEST_F(reads, records_end)
{
	EXPECT_FALSE(nvmep_reads_matter(&self->user[0], self->now));
	read_slowly(self, 0, 0);
	EXPECT_TRUE(nvmep_reads_matter(&self->user[0], self->now));
	EXPECT_FALSE(nvmep_reads_matter(&self->user[0], self->now + 10 * SECOND));
	read_slowly(self, 0, 0);
	EXPECT_TRUE(nvmep_reads_matter(&self->user[0], self->now + 10 * SECOND - 1));
	self->user[0].until = 0;
	/* No reads at all. */
	EXPECT_FALSE(nvmep_reads_allowed(&self->user[0], 0, 0, 0, self->now));
	nvmep_reads_add(&self->user[0], &self->all_until, 0, 0, self->now, SLOW);
	EXPECT_EQ(0, self->user[0].until);
}

TEST_HARNESS_MAIN
