/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A namespace, with a block device /dev/nvmepXnY and a
 * generic character device /dev/ngpXnY.
 */
#ifndef _NVMEP_NAMESPACE_H
#define _NVMEP_NAMESPACE_H

#include <linux/blkdev.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/list.h>

#include "compat.h"
#include "core/failure.h"
#include "identifiers.h"

struct nvme_id_ns;
struct nvmep_ctrl;

/**
 * enum nvmep_protection - protection information that the controller handles
 * @NVMEP_PROTECTION_NONE: none
 * @NVMEP_PROTECTION_TYPE1: reference tag is the block address
 * @NVMEP_PROTECTION_TYPE2: likewise
 * @NVMEP_PROTECTION_TYPE3: no reference tag
 */
enum nvmep_protection {
	NVMEP_PROTECTION_NONE,
	NVMEP_PROTECTION_TYPE1,
	NVMEP_PROTECTION_TYPE2,
	NVMEP_PROTECTION_TYPE3,
};

/**
 * enum nvmep_ns_format - what a namespace's blocks are good for
 * @NVMEP_NS_FORMAT_UNKNOWN: they changed and could not be looked at: nothing
 * @NVMEP_NS_FORMAT_PASSTHROUGH: commands of user space
 * @NVMEP_NS_FORMAT_BLOCKS: those, and the block layer
 */
enum nvmep_ns_format {
	NVMEP_NS_FORMAT_UNKNOWN,
	NVMEP_NS_FORMAT_PASSTHROUGH,
	NVMEP_NS_FORMAT_BLOCKS,
};

/**
 * struct nvmep_ns - one namespace
 * @ctrl: const, referenced
 * @nsid: const: namespace identifier, also the Y of its nodes
 * @disk: const: the block device; its last reference frees this structure
 * @queue: const: @disk's
 * @entry: in cpu->namespaces
 * @scan: number of the scan that saw it last; scan work only
 * @limits: what @queue was told, all 0 before; changes under scan_lock
 * @format: changes while @queue is frozen or quiesced
 * @block_shift: log2 of bytes in a block; likewise
 * @metadata_size: bytes of metadata with each block; likewise
 * @extended: metadata lies behind each block's data; likewise
 * @protection: likewise
 * @zeroes_deallocate: Write Zeroes may deallocate and blocks still read as
 *	zero; likewise
 * @ids: const: who it is
 * @failures: of its commands
 * @device: class device ngpXnY; has a reference to @disk
 * @cdev: of @device
 * @has_node: @cdev and @device were added; changes under scan_lock
 */
struct nvmep_ns {
	struct nvmep_ctrl *ctrl;
	u32 nsid;
	struct gendisk *disk;
	struct request_queue *queue;
	struct list_head entry;
	u64 scan;
	struct nvmep_limits limits;

	enum nvmep_ns_format format;
	u8 block_shift;
	u16 metadata_size;
	bool extended;
	enum nvmep_protection protection;
	bool zeroes_deallocate;

	struct nvmep_identifiers ids;
	struct nvmep_failures failures;

	struct device device;
	struct cdev cdev;
	bool has_node;
};

/**
 * struct nvmep_ns_ops - what a namespace needs of those who give it to users
 * @fops: of its disk; their free_disk is nvmep_ns_free_disk()
 * @add_node: its disk was added: make its character device.  Returns 0 or a
 *	negative error code
 * @remove_node: take the character device away, if there is one
 */
struct nvmep_ns_ops {
	const struct block_device_operations *fops;
	int (*add_node)(struct nvmep_ns *ns);
	void (*remove_node)(struct nvmep_ns *ns);
};

void nvmep_ns_add(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan,
		  const struct nvme_id_ns *id,
		  const struct nvmep_identifiers *ids);
int nvmep_ns_update(struct nvmep_ns *ns, const struct nvme_id_ns *id);
void nvmep_ns_remove(struct nvmep_ns *ns);
void nvmep_ns_mark_dead(struct nvmep_ns *ns);
void nvmep_ns_lose(struct nvmep_ns *ns);
void nvmep_ns_free_disk(struct gendisk *disk);
struct nvmep_ns *nvmep_ns_get_only(struct nvmep_ctrl *ctrl);
void nvmep_ns_put(struct nvmep_ns *ns);
struct nvmep_ns *nvmep_ns_find(struct nvmep_ctrl *ctrl, u32 nsid);

#endif /* _NVMEP_NAMESPACE_H */
