/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * placeholders.h: shared by the host library and the CUDA glue: a geometry without
 * addresses, as nvmepeer_geometry_check() expects it.
 */
#ifndef NVMEPEER_LIB_PLACEHOLDERS_H
#define NVMEPEER_LIB_PLACEHOLDERS_H

#include <nvmepeer_device.h>

/**
 * with_placeholders() - a geometry with valid addresses, of no memory
 * @geometry: its doorbells are offsets; it uses a part if it has a size for it
 */
static inline struct nvmepeer_geometry with_placeholders(const struct nvmepeer_geometry *geometry)
{
	struct nvmepeer_geometry placed = *geometry;
	const uint64_t place = 4096;

	placed.sq = placed.cq = placed.state = placed.status = placed.control = place;
	placed.sq_doorbell += place;
	placed.cq_doorbell += place;
	placed.list_area = placed.list_bytes ? place : 0;
	placed.readback = place;
	return placed;
}

#endif /* NVMEPEER_LIB_PLACEHOLDERS_H */
