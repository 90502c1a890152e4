/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A namespace, with a block device /dev/nvmepXnY and a generic character device
 * /dev/ngpXnY.
 */
#ifndef _NVMEP_NAMESPACE_H
#define _NVMEP_NAMESPACE_H

#include <linux/blkdev.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/list.h>
#include <linux/ratelimit.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "core/request.h"
#include "identify.h"

struct nvme_id_ns;
struct nvmep_blocks;
struct nvmep_ctrl;

/*
 * Type of protection information (PI); types 1 and 2 check the reference tag.
 */
enum nvmep_protection {
	NVMEP_PROTECTION_NONE,
	NVMEP_PROTECTION_TYPE1,
	NVMEP_PROTECTION_TYPE2,
	NVMEP_PROTECTION_TYPE3,
};

/**
 * enum nvmep_ns_format - which I/O the format of a namespace permits
 * @NVMEP_NS_FORMAT_UNKNOWN: none: the format changed and could not be read
 * @NVMEP_NS_FORMAT_PASSTHROUGH: passthrough only
 * @NVMEP_NS_FORMAT_BLOCKS: passthrough and block I/O
 */
enum nvmep_ns_format {
	NVMEP_NS_FORMAT_UNKNOWN,
	NVMEP_NS_FORMAT_PASSTHROUGH,
	NVMEP_NS_FORMAT_BLOCKS,
};

/**
 * struct nvmep_ns - one namespace
 * @ctrl: const; holds a reference
 * @nsid: const: namespace identifier, the Y in the names of its device nodes
 * @disk: const: the block device; its last reference frees this structure
 * @queue: const: request queue of @disk
 * @entry: link in cpu->namespaces, guarded as that list is
 * @scan: guarded by scan_lock: number of the last scan that found it
 * @removed: guarded by scan_lock: the controller no longer has it, and
 *	@remove_work deletes its disk
 * @remove_work: runs nvmep_ns_remove_work()
 * @limits: guarded by scan_lock: limits applied to @queue, all 0 before the
 *	first time
 * @format: written while @queue is frozen or quiesced, read on dispatch
 * @block_shift: log2 of the LBA data size in bytes.  It and the four fields
 *	below are written while @queue is frozen, so they are stable while a
 *	request is held
 * @metadata_size: bytes of metadata for each block
 * @extended: metadata follows the data of each block (extended LBA)
 * @protection: type of PI that the controller can insert and strip (PRACT)
 * @zeroes_deallocate: Write Zeroes may deallocate, and deallocated blocks read
 *	as zero
 * @format_number: as @format: identifies the format, 0 unless it permits block
 *	I/O
 * @ids: const after the disk was added: globally unique identifiers and command
 *	set
 * @reported: const: @ids as the controller reports them.  @ids has none if
 *	they are not unique
 * @identity: link in the list of identities in use, guarded by its lock; not
 *	linked once it is being removed
 * @effects: const: Commands Supported and Effects of a zoned namespace, NULL if
 *	unsupported; of an NVM namespace: that of @ctrl
 * @nuse: blocks in use when they were last read; READ_ONCE(), WRITE_ONCE()
 * @nuse_limit: how often readers may have them read; has a lock of its own
 * @failures: error and retry counters; see struct nvmep_failures for access
 * @device: class device ngpXnY; holds a reference to @disk
 * @cdev: character device of @device
 * @has_node: @cdev and @device were added; used by the scan that adds the
 *	namespace, then by its removal
 */
struct nvmep_ns {
	struct nvmep_ctrl *ctrl;
	u32 nsid;
	struct gendisk *disk;
	struct request_queue *queue;
	struct list_head entry;
	u64 scan;
	bool removed;
	struct work_struct remove_work;
	struct nvmep_limits limits;

	enum nvmep_ns_format format;
	u8 block_shift;
	u16 metadata_size;
	bool extended;
	enum nvmep_protection protection;
	bool zeroes_deallocate;
	u32 format_number;

	struct nvmep_identifiers ids;
	struct nvmep_identifiers reported;
	struct list_head identity;
	struct nvme_effects_log *effects;
	u64 nuse;
	struct ratelimit_state nuse_limit;
	struct nvmep_failures failures;

	struct device device;
	struct cdev cdev;
	bool has_node;
};

int nvmep_ns_add(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan,
		 const struct nvme_id_ns *id,
		 const struct nvmep_identifiers *ids);
int nvmep_ns_update(struct nvmep_ns *ns, const struct nvme_id_ns *id);
void nvmep_ns_remove(struct nvmep_ns *ns);
void nvmep_ns_mark_dead(struct nvmep_ns *ns);
void nvmep_ns_begin_removal(struct nvmep_ns *ns);
void nvmep_scan_settled(struct nvmep_ctrl *ctrl);
void nvmep_ns_wait_removals(struct nvmep_ctrl *ctrl);
void nvmep_ns_free_disk(struct gendisk *disk);
struct nvmep_ns *nvmep_ns_get_only(struct nvmep_ctrl *ctrl);
void nvmep_ns_put(struct nvmep_ns *ns);
struct nvmep_ns *nvmep_ns_find(struct nvmep_ctrl *ctrl, u32 nsid);
int nvmep_ns_blocks(struct nvmep_ctrl *ctrl, struct block_device *bdev,
		    struct nvmep_blocks *blocks);

#endif /* _NVMEP_NAMESPACE_H */
