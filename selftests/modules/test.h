/* SPDX-License-Identifier: GPL-2.0-only */
/* Declarations shared by the source files of nvmep_test_pin.ko. */
#ifndef _NVMEP_TEST_MODULE_H
#define _NVMEP_TEST_MODULE_H

#include <linux/dma-resv.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include "compat.h"
#include "nvmep_test.h"

struct dma_buf;
struct dma_fence;
struct page;
struct pci_dev;
struct test_importer;
struct test_occupied;
struct test_queue_map;
struct test_slow_map;
struct test_stall;
struct test_watchpoint;

/**
 * struct test_file - one open file, acts as one foreign driver
 * @lock: guards the members below; serialises all calls on the file
 * @pages: pinned pages, NULL for none
 * @page_count: how many
 * @importer: the attachment, NULL for none
 * @fakes: struct test_fake, reverted when the file is closed
 * @watchpoint: the word that is watched, NULL for none
 * @stall: the function at which a thread is stalled, NULL for none
 * @slow_map: delays a mapping, NULL if none
 * @queue_map: reads maps of CPUs to queues, NULL if none
 * @occupied: taken from nvme-peer, NULL for nothing
 * @sleeper: the only PCI function that is suspended, referenced; NULL: all are
 */
struct test_file {
	struct mutex lock;	/* guards the rest */
	struct page **pages;
	unsigned long page_count;
	struct test_importer *importer;
	struct list_head fakes;
	struct test_watchpoint *watchpoint;
	struct test_stall *stall;
	struct test_slow_map *slow_map;
	struct test_queue_map *queue_map;
	struct test_occupied *occupied;
	struct pci_dev *sleeper;
};

int test_pin(struct test_file *file, const struct nvmep_test_range *range);
void test_unpin(struct test_file *file);
int test_poke(struct test_file *file, struct nvmep_test_poke *poke);
int test_walk(struct nvmep_test_walk *walk);

int test_attach(struct test_file *file, struct nvmep_test_attach *attach);
int test_map(struct test_file *file, struct nvmep_test_attach *result);
void test_detach(struct test_file *file);
int test_importer_state(struct test_file *file,
			struct nvmep_test_importer *state);

struct dma_fence *test_fence_add(struct dma_buf *dmabuf,
				 enum dma_resv_usage usage);
void test_fence_end(struct dma_fence *fence);

struct pci_dev *test_find_function(const struct nvme_peer_pci_address *pci_address);
int test_distance(struct nvmep_test_distance *distance);
int test_shutdown(const struct nvme_peer_pci_address *pci_address);
int test_error(const struct nvmep_test_error *what);

int test_sleep(struct test_file *file,
	       const struct nvme_peer_pci_address *pci_address);
void test_sleep_end(struct test_file *file);

int test_watchpoint(struct test_file *file, const struct nvmep_test_watchpoint *what);
void test_watchpoint_end(struct test_file *file);
int test_stores(struct test_file *file, struct nvmep_test_stores *stores);

int test_stall(struct test_file *file, const struct nvmep_test_stall *what);
void test_stall_end(struct test_file *file);
int test_stalled(struct test_file *file);

void test_hold_for(u32 ms);
int test_hold(const struct nvmep_test_hold *hold);
int test_held(void);

int test_slow_map(struct test_file *file, u32 ms);
void test_slow_map_end(struct test_file *file);

int test_queue_map(struct test_file *file);
int test_queue_map_read(struct test_file *file, struct nvmep_test_maps *maps);
void test_queue_map_end(struct test_file *file);

int test_occupy(struct test_file *file, const struct nvmep_test_occupy *what);
void test_occupy_end(struct test_file *file);

int test_unique_id(struct nvmep_test_unique_id *id);

int test_domain(struct test_file *file, const struct nvmep_test_fake_pci *what);
int test_rename(struct test_file *file, const struct nvmep_test_fake_pci *what);
int test_acs(struct test_file *file, const struct nvmep_test_fake_pci *what);
int test_msix(struct test_file *file, const struct nvmep_test_fake_pci *what);
void test_fake_end(struct test_file *file);

int test_export(struct nvmep_test_export *export);
int test_move(struct nvmep_test_move *move, bool notify);
int test_let_go(const struct nvmep_test_move *move);

#endif /* _NVMEP_TEST_MODULE_H */
