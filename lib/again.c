// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The CPU peer's calls that outlast a loss: reads are made again, writes are not.
 */
#include "peer.h"

/* After a call that was lost, begun when there had been @losses.  Is it back? */
static bool back_after(struct nvmepeer_cpu_peer *peer, unsigned int losses, int timeout_ms)
{
	return gathering_recover(peer->gathering, losses, nvmepeer_cpu_peer_recover, peer,
				 timeout_ms);
}

int nvmepeer_cpu_peer_read(struct nvmepeer_cpu_peer *peer, uint64_t offset, uint64_t lba,
			   uint32_t blocks, int timeout_ms)
{
	unsigned int losses;
	int status;

	do {
		losses = gathering_go_in(peer->gathering);
		status = nvmepeer_read(&peer->queue, &peer->data, offset, lba, blocks);
		gathering_come_out(peer->gathering);
	} while (status == NVMEPEER_E_LOST && back_after(peer, losses, timeout_ms));
	return status;
}

int nvmepeer_cpu_peer_write(struct nvmepeer_cpu_peer *peer, uint64_t offset, uint64_t lba,
			    uint32_t blocks, int timeout_ms)
{
	unsigned int losses = gathering_go_in(peer->gathering);
	int status = nvmepeer_write(&peer->queue, &peer->data, offset, lba, blocks);

	gathering_come_out(peer->gathering);
	if (status == NVMEPEER_E_LOST)
		back_after(peer, losses, timeout_ms);
	return status;
}
