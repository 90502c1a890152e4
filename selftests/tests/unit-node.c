// SPDX-License-Identifier: GPL-2.0-only
/*
 * The number of queue pairs of peers that `nvme-peer list` shows and for which `unbind` refuses: it
 * is right for each state of the module's pool of queue IDs (nvmep_qid_usage() of core/qids.c).
 */
#include "../../tools/node.c"
#include "../../tools/sysfs.c"

#include "kselftest_harness.h"

/* The module's statistics: @cpu and @peers IDs in use, @quarantined free ones in quarantine. */
static struct nvme_peer_info usage(uint32_t total, uint32_t limit, uint32_t cpu, uint32_t peers,
				   uint32_t quarantined)
{
	uint32_t free = total - quarantined - cpu - peers, share = limit - peers;

	return (struct nvme_peer_info){
		.qids_total = total,
		.qids_cpu = cpu,
		.qids_peer_max = limit,
		.qids_peer_free = free < share ? free : share,
		.qids_quarantined = quarantined,
	};
}

TEST(pairs_are_counted_in_each_state)
{
	enum { TOTAL = 12 };
	uint32_t limit, cpu, peers, held;
	struct nvme_peer_info info;

	for (limit = 0; limit <= TOTAL; limit++)
		for (cpu = 0; cpu <= TOTAL; cpu++)
			for (peers = 0; peers <= limit && cpu + peers <= TOTAL; peers++)
				for (held = 0; cpu + peers + held <= TOTAL; held++) {
					info = usage(TOTAL, limit, cpu, peers, held);
					ASSERT_EQ(peers, count_pairs(&info))
						TH_LOG("limit %u, cpu %u, quarantined %u", limit, cpu, held);
				}
}

/* After a reset the controller may grant fewer IDs than are in use. */
TEST(pairs_above_the_grant_are_not_negative)
{
	struct nvme_peer_info info = { .qids_total = 2, .qids_cpu = 4, .qids_peer_max = 2 };

	EXPECT_GE(info.qids_peer_max, count_pairs(&info));
}

TEST_HARNESS_MAIN
