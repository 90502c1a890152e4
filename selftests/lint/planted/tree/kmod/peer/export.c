// SPDX-License-Identifier: GPL-2.0-only
static int mmap(struct vm_area_struct *vma)
{
	return vm_iomap_memory(vma, 0, 4096); /* planted: registers are mapped by nvmep_doorbell_mmap() only */
}
