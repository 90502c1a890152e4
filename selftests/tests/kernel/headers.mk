# SPDX-License-Identifier: GPL-2.0-only
# The kernel's headers that files of kmod/ include, empty, in the directory $(no_headers): the headers
# beside this file have what of them is needed. Included by ../Makefile and ../../sanitize/Makefile.

of_module_headers := $(addprefix linux/,bitmap blk_types cache cred dmapool iommu ioport list math64 minmax mm \
	module mutex nospec nvme pci pci-p2pdma pid rcupdate scatterlist sched/signal seq_file sizes slab spinlock \
	time64 uidgid) \
	asm/processor
of_module_headers := $(of_module_headers:%=$(no_headers)/%.h)
$(of_module_headers):
	@mkdir -p $(@D)
	@: >$@
