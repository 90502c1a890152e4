// SPDX-License-Identifier: GPL-2.0-only
/*
 * How CUDA registers memory that nvme-peer mapped into a process.
 *
 * cuMemHostRegister() first tries to pin the pages long term, which must work
 * for rings. With IOMEMORY it takes page frames from the page table without
 * faulting, and requires one VMA, VM_IO or VM_PFNMAP, and contiguous frames;
 * that must work for doorbells.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "test.h"

#define TEST_MAX_PAGES	65536UL

static int test_range_check(const struct nvmep_test_range *range)
{
	if (!range->length || !PAGE_ALIGNED(range->length | range->address) ||
	    range->length > TEST_MAX_PAGES << PAGE_SHIFT ||
	    range->address + range->length < range->address)
		return -EINVAL;
	return 0;
}

int test_pin(struct test_file *file, const struct nvmep_test_range *range)
{
	unsigned long count = range->length >> PAGE_SHIFT;
	struct page **pages;
	long pinned;
	int ret;

	lockdep_assert_held(&file->lock);
	ret = test_range_check(range);
	if (ret)
		return ret;
	if (file->pages)
		return -EBUSY;
	pages = kvcalloc(count, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	pinned = pin_user_pages_fast(range->address, count,
				     FOLL_WRITE | FOLL_LONGTERM, pages);
	if (pinned == count) {
		file->pages = pages;
		file->page_count = count;
		return 0;
	}
	if (pinned > 0)
		unpin_user_pages(pages, pinned);
	kvfree(pages);
	return pinned < 0 ? pinned : -EFAULT;
}

void test_unpin(struct test_file *file)
{
	lockdep_assert_held(&file->lock);
	if (!file->pages)
		return;
	unpin_user_pages_dirty_lock(file->pages, file->page_count, true);
	kvfree(file->pages);
	file->pages = NULL;
	file->page_count = 0;
}

int test_poke(struct test_file *file, struct nvmep_test_poke *poke)
{
	u64 *word, old;
	void *page;

	lockdep_assert_held(&file->lock);
	if (poke->offset >> PAGE_SHIFT >= file->page_count ||
	    !IS_ALIGNED(poke->offset, sizeof(u64)))
		return -EINVAL;
	page = kmap_local_page(file->pages[poke->offset >> PAGE_SHIFT]);
	word = page + offset_in_page(poke->offset);
	old = READ_ONCE(*word);
	WRITE_ONCE(*word, poke->value);
	kunmap_local(page);
	poke->value = old;
	return 0;
}

/* The page frame of @address if it is in the page table; does not fault. */
static int test_lookup_frame(struct vm_area_struct *vma, unsigned long address,
			     unsigned long *frame)
{
#ifdef NVMEP_HAVE_FOLLOW_PFNMAP
	struct follow_pfnmap_args args = { .vma = vma, .address = address };
	int ret = follow_pfnmap_start(&args);

	if (ret)
		return ret;
	*frame = args.pfn;
	follow_pfnmap_end(&args);
	return 0;
#else
	return follow_pfn(vma, address, frame);
#endif
}

static u32 test_vma_facts(const struct vm_area_struct *vma,
			  const struct nvmep_test_range *range)
{
	pgprot_t prot = vma->vm_page_prot;
	u32 found = 0;

	if (range->address + range->length <= vma->vm_end)
		found |= NVMEP_TEST_ONE_VMA;
	if (vma->vm_flags & VM_IO)
		found |= NVMEP_TEST_VM_IO;
	if (vma->vm_flags & VM_PFNMAP)
		found |= NVMEP_TEST_VM_PFNMAP;
	if (pgprot_val(prot) == pgprot_val(pgprot_noncached(prot)))
		found |= NVMEP_TEST_UNCACHED;
	return found;
}

/* Page frames of @walk's range that are in the page table. */
static void test_walk_frames(struct vm_area_struct *vma,
			     struct nvmep_test_walk *walk)
{
	unsigned long count = walk->range.length >> PAGE_SHIFT;
	unsigned long frame, i;
	bool contiguous = true;

	for (i = 0; i < count; i++) {
		if (test_lookup_frame(vma, walk->range.address + i * PAGE_SIZE,
				      &frame))
			continue;
		if (!walk->present++)
			walk->first_frame = frame - i;
		contiguous &= frame == walk->first_frame + i;
	}
	if (contiguous && walk->present == count)
		walk->found |= NVMEP_TEST_CONTIGUOUS;
}

int test_walk(struct nvmep_test_walk *walk)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	int ret;

	ret = test_range_check(&walk->range);
	if (ret)
		return ret;
	walk->found = 0;
	walk->present = 0;
	walk->first_frame = 0;
	mmap_read_lock(mm);
	vma = vma_lookup(mm, walk->range.address);
	if (vma) {
		walk->found = test_vma_facts(vma, &walk->range);
		if (walk->found & NVMEP_TEST_ONE_VMA &&
		    walk->found & (NVMEP_TEST_VM_IO | NVMEP_TEST_VM_PFNMAP))
			test_walk_frames(vma, walk);
	} else {
		ret = -EFAULT;
	}
	mmap_read_unlock(mm);
	return ret;
}
