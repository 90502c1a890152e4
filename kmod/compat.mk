# SPDX-License-Identifier: GPL-2.0-only
#
# Features of the kernel that the module is built against, probed in its headers.
# Distributions backport changes, so a version number is no proof.  Only compat.h
# uses the results.
#
# Test modules that include compat.h also include this file and add
# $(NVMEP_COMPAT_CFLAGS) to their ccflags-y.

# $(call nvmep-probe,HEADER,PATTERN,NAME): -DNVMEP_HAVE_NAME if a line of HEADER, a
# file below include/linux, matches PATTERN.  A pattern cannot contain a comma or a
# parenthesis; use a dot for them.
nvmep-probe = $(shell grep -qsE '$(2)' '$(srctree)/include/linux/$(1)' && \
	echo -DNVMEP_HAVE_$(3))

NVMEP_COMPAT_CFLAGS := \
	$(call nvmep-probe,aer.h,pci_enable_pcie_error_reporting,AER_ENABLE) \
	$(call nvmep-probe,blk-mq.h,BLK_MQ_F_SHOULD_MERGE,SHOULD_MERGE) \
	$(call nvmep-probe,blk-mq.h,blk_freeze_queue_start_non_owner,FREEZE_NON_OWNER) \
	$(call nvmep-probe,blk-mq.h,blk_mq_unfreeze_queue_nomemrestore,FREEZE_NOMEM) \
	$(call nvmep-probe,blk-mq.h,blk_rq_map_kern.struct request .rq,MAP_KERN_RQ) \
	$(call nvmep-probe,blk-mq.h,blk_mq_wait_quiesce_done.struct blk_mq_tag_set,WAIT_QUIESCE_SET) \
	$(call nvmep-probe,blk-mq.h,rq_end_io_fn..struct request .*blk_status_t.$$,END_IO_BATCH) \
	$(call nvmep-probe,blk_types.h,BLK_STS_RESV_CONFLICT,RESV_CONFLICT) \
	$(call nvmep-probe,blk_plug.h,struct rq_list .$$,RQ_LIST) \
	$(call nvmep-probe,blkdev.h,atomic_write_hw_unit_max;,ATOMIC_WRITES) \
	$(call nvmep-probe,blkdev.h,getgeo..struct gendisk,GETGEO_DISK) \
	$(call nvmep-probe,blkdev.h,struct rq_list .$$,RQ_LIST) \
	$(call nvmep-probe,blkdev.h,struct kobject kobj;,QUEUE_KOBJ) \
	$(call nvmep-probe,blkdev.h,void.*poll_ctx;,POLL_CTX) \
	$(call nvmep-probe,blkdev.h,max_hw_wzeroes_unmap_sectors;,WZEROES_UNMAP) \
	$(call nvmep-probe,blkdev.h,queue_limits_start_update,QUEUE_LIMITS) \
	$(call nvmep-probe,blkdev.h,define BLK_OPEN_READ,BLK_MODE_T) \
	$(call nvmep-probe,device/class.h,class_create.const char,CLASS_CREATE_NAME) \
	$(call nvmep-probe,device/class.h,dev_uevent..const struct device,UEVENT_CONST) \
	$(call nvmep-probe,dma-buf-mapping.h,dma_buf_phys_vec_to_sgt,DMABUF_PHYS_VEC) \
	$(call nvmep-probe,dma-buf.h,dma_buf_attach_revocable,DMABUF_REVOCABLE) \
	$(call nvmep-probe,dma-buf.h,enum dma_data_direction dir;,DMABUF_ATTACH_DIR) \
	$(call nvmep-probe,dma-buf.h,dma_buf_invalidate_mappings,DMABUF_INVALIDATE) \
	$(call nvmep-probe,dma-mapping.h,bool dma_iova_try_alloc,DMA_IOVA) \
	$(call nvmep-probe,dma-mapping.h,bool dma_need_unmap,DMA_NEED_UNMAP) \
	$(call nvmep-probe,fileattr.h,struct file_kattr .$$,FILE_KATTR) \
	$(call nvmep-probe,io_uring/cmd.h,do_in_task_lazy,URING_LAZY) \
	$(call nvmep-probe,io_uring/cmd.h,io_uring_cmd_done32,URING_DONE32) \
	$(call nvmep-probe,io_uring/cmd.h,io_uring_cmd_from_tw,URING_TW) \
	$(call nvmep-probe,io_uring/cmd.h,io_uring_cmd_import_fixed_vec,URING_FIXED_VEC) \
	$(call nvmep-probe,io_uring/cmd.h,struct io_uring_cmd,URING_CMD_H) \
	$(call nvmep-probe,iomap.h,bool iomap_dirty_folio,IOMAP_DIRTY_FOLIO) \
	$(call nvmep-probe,iommu-dma.h,bool use_dma_iommu,USE_DMA_IOMMU) \
	$(call nvmep-probe,mm.h,vm_flags_set.struct,VM_FLAGS_SET) \
	$(call nvmep-probe,mm.h,zap_special_vma_range.struct,ZAP_SPECIAL) \
	$(call nvmep-probe,module.h,define MODULE_IMPORT_NS.*__stringify,IMPORT_NS_TOKEN) \
	$(call nvmep-probe,msi.h,bool msi_device_has_isolated_msi,ISOLATED_MSI) \
	$(call nvmep-probe,nvme.h,NVME_CMD_EFFECTS_SCOPE_MASK,NVME_EFFECTS_SCOPE) \
	$(call nvmep-probe,nvme.h,NVME_CTRL_SGLS_BYTE_ALIGNED,NVME_SGLS_ALIGNED) \
	$(call nvmep-probe,nvme.h,NVME_NS_FEAT_OPTPERF_SHIFT,NVME_OPTPERF) \
	$(call nvmep-probe,nvme.h,NVME_SCT_SC_MASK,NVME_SCT) \
	$(call nvmep-probe,nvme.h,NVME_STATUS_DNR,NVME_STATUS_DNR) \
	$(call nvmep-probe,nvme.h,NVME_WZ_DEAC,NVME_WZ_DEAC) \
	$(call nvmep-probe,pci-p2pdma.h,pcim_p2pdma_provider,P2PDMA_PROVIDER) \
	$(call nvmep-probe,pr.h,pr_read_keys,PR_READ) \
	$(call nvmep-probe,workqueue.h,WQ_PERCPU,WQ_PERCPU)
