// SPDX-License-Identifier: GPL-2.0-only
/*
 * The latency histogram of `nvme-peer bench`: each value falls into a bucket that is
 * accurate to a sixteenth, and percentiles are right.
 */
#include "../../tools/latency.c"

#include "kselftest_harness.h"

static uint64_t alone(uint64_t value)
{
	struct latency latency = { 0 };

	latency_add(&latency, value);
	return latency_percentile(&latency, 500000);
}

TEST(value_falls_into_its_bucket)
{
	uint64_t value;
	int power;

	for (value = 0; value < 100000; value++) {
		ASSERT_LE(value, alone(value));
		ASSERT_GE(value + value / 16, alone(value));
	}
	for (power = 1; power < 64; power++) {
		value = 1ULL << power;
		ASSERT_LE(value - 1, alone(value - 1));
		ASSERT_GT(value, alone(value - 1));
		ASSERT_LE(value, alone(value));
		ASSERT_GE(value + value / 16, alone(value));
	}
	EXPECT_EQ(UINT64_MAX, alone(UINT64_MAX));
}

TEST(percentiles_of_many)
{
	struct latency latency = { 0 };
	uint64_t value;

	EXPECT_EQ(0, latency_percentile(&latency, 500000));
	EXPECT_EQ(0, latency_mean(&latency));
	for (value = 1; value <= 20; value++)
		latency_add(&latency, value);
	EXPECT_EQ(1, latency_percentile(&latency, 0));
	EXPECT_EQ(1, latency_percentile(&latency, 50000));
	EXPECT_EQ(2, latency_percentile(&latency, 50001));
	EXPECT_EQ(10, latency_percentile(&latency, 500000));
	EXPECT_EQ(18, latency_percentile(&latency, 900000));
	EXPECT_EQ(20, latency_percentile(&latency, 999000));
	EXPECT_EQ(20, latency_percentile(&latency, 1000000));
	EXPECT_EQ(10, latency_mean(&latency));
}

TEST_HARNESS_MAIN
