/* SPDX-License-Identifier: GPL-2.0-only */
/* planted: no kernel-doc comment for struct nvme_peer_planted */
struct nvme_peer_planted {
	int value;
};

/**
 * struct nvme_peer_described - a structure with a comment
 * @value: a value, permitted: comment for struct nvme_peer_described
 */
struct nvme_peer_described {
	int value;
};
