// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * minimal.c: the CPU as the peer: a thread reads a block through its own queue
 * pair, with the same calls as a GPU.  Use it to test device code without a GPU.
 * Controller and namespace are optional arguments.
 *
 *	cc minimal.c $(pkg-config --cflags --libs libnvmepeer)
 */
#include <stdio.h>

#include <nvmepeer_peer.h>

static int fail(void)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	fprintf(stderr, "%s: %s. %s. %s.\n", why.call, why.what, why.limit, why.help);
	return 1;
}

int main(int argc, char **argv)
{
	struct nvmepeer_cpu_peer *peer;
	struct nvmepeer *ctrl;
	struct nvmepeer_ns *ns;
	int status;

	if (nvmepeer_open(argc > 2 ? argv[1] : "nvmep0", &ctrl) ||
	    nvmepeer_ns_open(argc > 2 ? argv[2] : "ngp0n1", &ns) ||
	    nvmepeer_cpu_peer_open(ctrl, nvmepeer_ns_info(ns), 64, 1 << 20, &peer))
		return fail();
	status = nvmepeer_read(nvmepeer_cpu_peer_queue(peer), nvmepeer_cpu_peer_data(peer), 0, 0, 1);
	printf("status %d, first byte %#x\n", status,
	       *(unsigned char *)nvmepeer_cpu_peer_address(peer));
	nvmepeer_cpu_peer_close(peer);
	nvmepeer_ns_close(ns);
	nvmepeer_close(ctrl);
	return status != 0;
}
