/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The peer rooms as the rest of the module sees them.
 */
#ifndef _NVMEP_PEER_H
#define _NVMEP_PEER_H

struct nvmep_peer_ops;

extern const struct nvmep_peer_ops nvmep_peer_ops;

#endif /* _NVMEP_PEER_H */
