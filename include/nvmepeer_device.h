/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device.h: the device library of nvme-peer.  Code that runs on a GPU
 * (CUDA, HIP) or on anything else that C11 compiles for reads and writes the
 * blocks of an NVMe controller through a queue pair of its own.
 *
 * Header-only, no type of any toolkit in the interface.  Include this one;
 * the rooms under nvmepeer_device/ are its parts, ground first:
 *
 *	platform.h	what is asked of the machine, and of the compiler (toolkit.h)
 *	nvme.h		the protocol, and the statuses of the calls
 *	queue.h		geometry, handle, shared state
 *	wait.h		groups of lanes, limits of waits
 *	submit.h	the submission side
 *	complete.h	the completion side
 *	command.h	a command and its submission entry
 *	send.h		a group of lanes on the submission side
 *	calls.h		the calls of a thread
 *	block.h		the calls of a warp or a block together
 *	batch.h		the same in two halves
 *	arrival.h	flags for who waits beside, and the fence for bulk copies
 *	prefetch.h	reading ahead in a window
 *	scatter.h	one command over a list of pages
 *	solo.h		the calls on a queue pair of one's own
 *	set.h		several queue pairs and controllers behind one handle
 *	gather.h	many small reads by a block
 *	set_gather.h	the same from a set
 *	outline.h	calls that are not inlined
 *	again.h		reads that were lost, once more
 */
#ifndef NVMEPEER_DEVICE_H
#define NVMEPEER_DEVICE_H

#include "nvmepeer_device/platform.h"
#include "nvmepeer_device/nvme.h"
#include "nvmepeer_device/queue.h"
#include "nvmepeer_device/wait.h"
#include "nvmepeer_device/submit.h"
#include "nvmepeer_device/complete.h"
#include "nvmepeer_device/command.h"
#include "nvmepeer_device/send.h"
#include "nvmepeer_device/calls.h"
#include "nvmepeer_device/block.h"
#include "nvmepeer_device/batch.h"
#include "nvmepeer_device/arrival.h"
#include "nvmepeer_device/prefetch.h"
#include "nvmepeer_device/scatter.h"
#include "nvmepeer_device/solo.h"
#include "nvmepeer_device/set.h"
#include "nvmepeer_device/gather.h"
#include "nvmepeer_device/set_gather.h"
#include "nvmepeer_device/outline.h"
#include "nvmepeer_device/again.h"

#endif /* NVMEPEER_DEVICE_H */
