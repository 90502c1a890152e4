// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the doorbells of a queue pair are, and what else lives beside them.
 */
#include <linux/mm.h>
#include <linux/pci.h>

#include "core/ctrl.h"
#include "core/queue.h"
#include "doorbell.h"

static bool nvmep_ranges_meet(u64 start_a, u64 length_a, u64 start_b,
			      u64 length_b)
{
	return start_a < start_b + length_b && start_b < start_a + length_a;
}

/*
 * Some controllers keep the MSI-X structures in BAR0.  Whoever writes those
 * raises any interrupt anywhere.
 */
static bool nvmep_holds_msix(struct pci_dev *pdev, u64 start, u64 length)
{
	u32 table;
	u32 pba;
	u16 flags;
	u32 vectors;

	if (!pdev->msix_cap)
		return false;
	pci_read_config_word(pdev, pdev->msix_cap + PCI_MSIX_FLAGS, &flags);
	pci_read_config_dword(pdev, pdev->msix_cap + PCI_MSIX_TABLE, &table);
	pci_read_config_dword(pdev, pdev->msix_cap + PCI_MSIX_PBA, &pba);
	vectors = (flags & PCI_MSIX_FLAGS_QSIZE) + 1;

	if ((table & PCI_MSIX_TABLE_BIR) == 0 &&
	    nvmep_ranges_meet(start, length, table & PCI_MSIX_TABLE_OFFSET,
			      (u64)vectors * PCI_MSIX_ENTRY_SIZE))
		return true;
	return (pba & PCI_MSIX_PBA_BIR) == 0 &&
	       nvmep_ranges_meet(start, length, pba & PCI_MSIX_PBA_OFFSET,
				 ALIGN(vectors, 64) / 8);
}

/**
 * nvmep_doorbell_init() - find the pages of a queue pair's doorbells
 * @doorbell: out
 * @ctrl: the controller
 * @qid: whose doorbells
 *
 * Whole pages only.  The first page of BAR0 holds the controller registers and
 * is never given away; on a kernel with large pages that leaves no doorbells.
 */
void nvmep_doorbell_init(struct nvmep_doorbell *doorbell,
			 const struct nvmep_ctrl *ctrl, u16 qid)
{
	struct pci_dev *pdev = ctrl->pdev;
	resource_size_t tail = nvmep_doorbell_offset(ctrl, qid, false);
	resource_size_t head = nvmep_doorbell_offset(ctrl, qid, true);

	doorbell->qid = qid;
	doorbell->start = ALIGN_DOWN(tail, PAGE_SIZE);
	doorbell->length = ALIGN(head + sizeof(u32), PAGE_SIZE) - doorbell->start;
	doorbell->offset = tail - doorbell->start;
	doorbell->exportable =
		doorbell->start >= PAGE_SIZE &&
		PAGE_ALIGNED(pci_resource_start(pdev, 0)) &&
		doorbell->start + doorbell->length <= pci_resource_len(pdev, 0) &&
		!nvmep_holds_msix(pdev, doorbell->start, doorbell->length);
}
