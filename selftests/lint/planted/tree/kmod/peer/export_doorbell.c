// SPDX-License-Identifier: GPL-2.0-only
static int nvmep_doorbell_insert(const void *doorbells, struct vm_area_struct *vma)
{
	return vmf_insert_pfn(vma, vma->vm_start, 0) != VM_FAULT_NOPAGE;
}

static int nvmep_doorbell_mmap(const void *doorbells, struct vm_area_struct *vma)
{
	return nvmep_doorbell_insert(doorbells, vma); /* planted: PTEs of registers before their protection */
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	return vmf_insert_pfn(vmf->vma, vmf->address, 0); /* planted: a second way into the page table */
}
