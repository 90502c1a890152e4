/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device.h: the device library of nvme-peer.  Code that runs on a GPU
 * (CUDA, HIP) or on any processor that C11 compiles for submits NVMe commands
 * to a peer queue pair and waits for their completions.
 *
 * Header-only; no type of a GPU toolkit appears in the interface.  Names that
 * begin with nvmepeer_ or NVMEPEER_ are the interface;
 * selftests/device/api.list has all of them.  Names that begin with nvp_ or
 * NVP_ ("nvme-peer private") are internal and may change.  A header of
 * NVMEPEER_PLATFORM_HEADER implements such names and must be revised with each
 * version.
 *
 * Include this header.  Its parts in nvmepeer_device/, lowest layer first:
 *
 *	compiler.h	standard types, minimum toolkit and architecture
 *	platform.h	memory accesses, atomics, lanes and time of the platform
 *	opcodes.h	opcodes of I/O commands
 *	nvme.h		statuses, fields of queue entries
 *	queue.h		geometry, device queue, shared state
 *	wait.h		groups of lanes, timeouts, abandoned commands
 *	submit.h	submission: credits, CIDs, slots, doorbells
 *	complete.h	completion: reap the CQ, results
 *	command.h	encode a command: PRP entries, PRP lists, SGLs
 *	send.h		submit the commands of a group of lanes
 *	calls.h		calls of one thread
 *	deallocate.h	deallocate ranges of blocks
 *	block.h		synchronous transfers of a warp or a block
 *	batch.h		asynchronous transfers of a warp or a block
 *	completion_flag.h flags in shared memory, fence for bulk copies
 *	counter.h	counters of arrivals for other blocks and kernels
 *	list.h		a list of transfers in any order
 *	prefetch.h	read ahead in a window
 *	scatter.h	one command on a list of pages
 *	pages.h		page table of a cache, whose misses are read
 *	exclusive.h	calls on a queue pair that one group owns
 *	set.h		several queue pairs and controllers as one
 *	set_batch.h	asynchronous transfers of a set
 *	gather.h	many small reads by a block
 *	set_gather.h	many small reads by a block, from a set
 *	noinline.h	calls of one thread, not inlined
 *	retry.h		retry reads after a re-arm
 */
#ifndef NVMEPEER_DEVICE_H
#define NVMEPEER_DEVICE_H

#include "nvmepeer_device/platform.h"
#include "nvmepeer_device/opcodes.h"
#include "nvmepeer_device/nvme.h"
#include "nvmepeer_device/queue.h"
#include "nvmepeer_device/wait.h"
#include "nvmepeer_device/submit.h"
#include "nvmepeer_device/complete.h"
#include "nvmepeer_device/command.h"
#include "nvmepeer_device/send.h"
#include "nvmepeer_device/calls.h"
#include "nvmepeer_device/deallocate.h"
#include "nvmepeer_device/block.h"
#include "nvmepeer_device/batch.h"
#include "nvmepeer_device/completion_flag.h"
#include "nvmepeer_device/counter.h"
#include "nvmepeer_device/list.h"
#include "nvmepeer_device/prefetch.h"
#include "nvmepeer_device/scatter.h"
#include "nvmepeer_device/pages.h"
#include "nvmepeer_device/exclusive.h"
#include "nvmepeer_device/set.h"
#include "nvmepeer_device/set_batch.h"
#include "nvmepeer_device/gather.h"
#include "nvmepeer_device/set_gather.h"
#include "nvmepeer_device/noinline.h"
#include "nvmepeer_device/retry.h"

#endif /* NVMEPEER_DEVICE_H */
