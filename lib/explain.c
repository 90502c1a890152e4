// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Explanations: from the record of a failure to "what, which limit, what would
 * help".
 *
 * One table of rules is searched from the top; the first rule whose call, error
 * and condition fit gives the texts, and its function, if any, replaces those
 * that need numbers.  The more particular rule therefore stands first.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <nvmepeer_device.h>

#include "internal.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

struct rule {
	enum call call;			/* CALL_NONE: any call */
	int error;			/* 0: any error */
	bool (*applies)(const struct failure *failure);
	const char *what;
	const char *limit;
	const char *help;
	void (*detail)(const struct failure *failure,
		       struct nvmepeer_explanation *explanation);
};

static const struct {
	const char *name;
	const char *what;		/* when no rule says it better */
} calls[CALL_COUNT] = {
	[CALL_NONE] = { "none", "nothing has failed" },
	[CALL_OPEN] = { "nvmepeer_open", "the controller was not opened" },
	[CALL_INFO] = { "nvmepeer_info", "the controller's facts were not given" },
	[CALL_ROUTE] = { "nvmepeer_route", "the route was not found out" },
	[CALL_ADMIN] = { "nvmepeer_admin", "the admin command failed" },
	[CALL_BUF_IMPORT] = { "nvmepeer_buf_import", "the dma-buf was not imported" },
	[CALL_BUF_RELEASE] = { "nvmepeer_buf_release", "the buffer was not released" },
	[CALL_BUF_TABLE] = { "nvmepeer_buf_table", "the buffer's addresses were not given" },
	[CALL_HOSTMEM] = { "nvmepeer_hostmem_alloc", "no host memory that is a dma-buf" },
	[CALL_QP_CREATE] = { "nvmepeer_qp_create", "the queue pair was not created" },
	[CALL_QP_FROM_FD] = { "nvmepeer_qp_from_fd", "the file was not taken as a queue pair" },
	[CALL_QP_INFO] = { "nvmepeer_qp_info", "the queue pair's state was not given" },
	[CALL_QP_REARM] = { "nvmepeer_qp_rearm", "the queue pair was not made live again" },
	[CALL_QP_EXPORT] = { "nvmepeer_qp_export", "the export was refused" },
	[CALL_QP_MAP] = { "nvmepeer_qp_map", "the mapping was refused" },
	[CALL_GEOMETRY] = { "nvmepeer_geometry_build", "no geometry for the device library" },
	[CALL_CPU_PEER] = { "nvmepeer_cpu_peer", "the CPU cannot act as the peer" },
	[CALL_NS_OPEN] = { "nvmepeer_ns_open", "the namespace was not opened" },
	[CALL_READ] = { "nvmepeer_ns_read", "the read failed" },
	[CALL_WRITE] = { "nvmepeer_ns_write", "the write failed" },
	[CALL_FLUSH] = { "nvmepeer_ns_flush", "the flush failed" },
	[CALL_URING] = { "nvmepeer_uring_init", "no ring for NVMe commands" },
	[CALL_ERRORS] = { "nvmepeer_errors_new", "nowhere to note failures" },
	[CALL_QP_EVENTS] = { "nvmepeer_qp_events", "the queue pair's events were not read" },
	[CALL_OTHER] = { "other", "another library explains it" },
};

__attribute__((format(printf, 2, 3)))
static void say_limit(struct nvmepeer_explanation *explanation,
		      const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(explanation->limit, sizeof(explanation->limit), format, arguments);
	va_end(arguments);
}

__attribute__((format(printf, 2, 3)))
static void say_help(struct nvmepeer_explanation *explanation,
		     const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(explanation->help, sizeof(explanation->help), format, arguments);
	va_end(arguments);
}

/* ---- Conditions --------------------------------------------------------- */

static bool knows_info(const struct failure *failure)
{
	return failure->info.size;
}

/* With "none [integrity] confidentiality" for one that is. */
static bool kernel_is_locked_down(void)
{
	char line[64] = "[none]";
	FILE *file = fopen("/sys/kernel/security/lockdown", "re");

	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	return strchr(line, '[') && !strstr(line, "[none]");
}

static bool lockdown_forbids(const struct failure *failure)
{
	return knows_info(failure) && failure->info.domain == NVME_PEER_DOMAIN_PHYSICAL &&
	       kernel_is_locked_down();
}

/* Too few are left for the queue pairs that peers may have. */
static bool qids_are_quarantined(const struct failure *failure)
{
	const struct nvme_peer_info *info = &failure->info;

	return knows_info(failure) && info->qids_quarantined &&
	       info->qids_total < info->qids_cpu + info->qids_quarantined + info->qids_peer_max;
}

static bool knows_route(const struct failure *failure)
{
	return failure->route.size;
}

static bool asked_by_address(const struct failure *failure)
{
	return failure->request.route.flags & NVME_PEER_ROUTE_BY_ADDRESS;
}

static bool too_few_entries(const struct failure *failure)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;

	return create->sq_entries < 2 || create->cq_entries < 2;
}

static bool too_many_entries(const struct failure *failure)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;

	return knows_info(failure) &&
	       (create->sq_entries > failure->info.max_entries ||
		create->cq_entries > failure->info.max_entries);
}

static bool cq_smaller(const struct failure *failure)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;

	return create->cq_entries < create->sq_entries;
}

static bool ring_misaligned(const struct failure *failure)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;

	return knows_info(failure) && failure->info.page_size &&
	       (create->sq_offset % failure->info.page_size ||
		create->cq_offset % failure->info.page_size);
}

/* An offset means nothing for a ring in host memory. */
static bool offset_without_buffer(const struct failure *failure)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;

	return (create->sq_offset && !create->sq_handle) ||
	       (create->cq_offset && !create->cq_handle);
}

static bool mode_unknown(const struct failure *failure)
{
	return failure->request.create.mode != NVME_PEER_MODE_DIRECT;
}

static bool reserved_given(const struct failure *failure)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;
	static const __u32 none[ARRAY_SIZE(create->reserved)];

	return create->reserved1 || memcmp(create->reserved, none, sizeof(none)) != 0;
}

static bool table_misaligned(const struct failure *failure)
{
	return knows_info(failure) && failure->info.page_size &&
	       failure->request.table.offset % failure->info.page_size;
}

static bool import_misaligned(const struct failure *failure)
{
	const struct nvme_peer_buf_import *import = &failure->request.import;

	return knows_info(failure) && failure->info.page_size &&
	       (import->offset % failure->info.page_size ||
		import->length % failure->info.page_size);
}

static bool access_unknown(const struct failure *failure)
{
	return failure->request.import.access > NVME_PEER_ACCESS_WRITE;
}

static bool static_export_elsewhere(const struct failure *failure)
{
	const struct nvme_peer_qp_export *export = &failure->request.export;

	return export->flags & NVME_PEER_EXPORT_ALLOW_STATIC &&
	       export->what != NVME_PEER_EXPORT_DOORBELL;
}

static bool status_given(const struct failure *failure)
{
	return failure->status;
}

static bool no_data_length(const struct failure *failure)
{
	return !failure->request.command.data_len;
}

static bool is_too_short(const struct failure *failure)
{
	return failure->least;
}

/* ---- Texts with numbers ------------------------------------------------- */

static void size_detail(const struct failure *failure,
			struct nvmepeer_explanation *explanation)
{
	say_limit(explanation, "a structure of %zu bytes was given; it has %zu at least",
		  failure->size, failure->least);
}

static void route_detail(const struct failure *failure,
			 struct nvmepeer_explanation *explanation)
{
	if (!knows_route(failure))
		return;
	nvmepeer_route_describe(&failure->route, &failure->route.data, explanation->limit,
				sizeof(explanation->limit));
	if (failure->route.data.reason == NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN)
		say_help(explanation,
			 "put both devices behind one PCIe switch, or load the module with allow_host_bridge=1 if the platform forwards requests between root ports");
	else if (failure->route.data.reason == NVME_PEER_REASON_DIFFERENT_DOMAINS)
		say_help(explanation,
			 "move one of the devices so that both hang off the same host bridge");
	else if (failure->route.data.reason == NVME_PEER_REASON_EXPORTER_REFUSED)
		say_help(explanation,
			 "see the kernel log for what the exporting driver says; it may need peer-to-peer support of the kernel (CONFIG_PCI_P2PDMA) or of its own");
	else if (failure->route.data.verdict == NVME_PEER_ROUTE_HOST_BRIDGE_WRITES)
		say_help(explanation,
			 "put both devices behind one PCIe switch: the controller must read the memory, too");
}

static void placement_detail(const struct failure *failure,
			     struct nvmepeer_explanation *explanation)
{
	if (knows_route(failure) &&
	    failure->route.data.verdict != NVME_PEER_ROUTE_SYSTEM)
		say_limit(explanation,
			  "the exporter delivered host RAM to the controller, though the memory could be reached (%s)",
			  nvmepeer_verdict_name(failure->route.data.verdict));
}

static void part_align_detail(const struct failure *failure,
			      struct nvmepeer_explanation *explanation)
{
	say_limit(explanation,
		  "offset %llu and length %llu must be multiples of the controller page, %u bytes",
		  (unsigned long long)failure->request.import.offset,
		  (unsigned long long)failure->request.import.length,
		  failure->info.page_size);
}

static void part_detail(const struct failure *failure,
			struct nvmepeer_explanation *explanation)
{
	say_limit(explanation, "the dma-buf ends before offset %llu, length %llu",
		  (unsigned long long)failure->request.import.offset,
		  (unsigned long long)failure->request.import.length);
}

static void range_detail(const struct failure *failure,
			 struct nvmepeer_explanation *explanation)
{
	say_limit(explanation, "offset %llu lies outside buffer %u",
		  (unsigned long long)failure->request.table.offset,
		  failure->request.table.handle);
}

static void break_detail(const struct failure *failure,
			 struct nvmepeer_explanation *explanation)
{
	say_limit(explanation, "buffer %u goes on elsewhere at offset %llu",
		  failure->request.table.handle,
		  (unsigned long long)failure->request.table.offset);
}

static void table_align_detail(const struct failure *failure,
			       struct nvmepeer_explanation *explanation)
{
	say_limit(explanation, "offset %llu is not a multiple of the controller page, %u bytes",
		  (unsigned long long)failure->request.table.offset,
		  failure->info.page_size);
}

static void entries_detail(const struct failure *failure,
			   struct nvmepeer_explanation *explanation)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;

	if (knows_info(failure))
		say_limit(explanation,
			  "%u submission and %u completion entries asked; the controller takes 2 to %u in each ring (CAP.MQES)",
			  create->sq_entries, create->cq_entries,
			  failure->info.max_entries);
	else
		say_limit(explanation,
			  "%u submission and %u completion entries asked; a ring has 2 at least",
			  create->sq_entries, create->cq_entries);
}

static void cq_detail(const struct failure *failure,
		      struct nvmepeer_explanation *explanation)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;

	say_limit(explanation,
		  "%u completion entries for %u submission entries: completions could overrun",
		  create->cq_entries, create->sq_entries);
	say_help(explanation,
		 "ask for %u completion entries, or 0 for as many as the submission ring has",
		 create->sq_entries);
}

static void align_detail(const struct failure *failure,
			 struct nvmepeer_explanation *explanation)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;

	say_limit(explanation,
		  "ring offsets %llu and %llu must be multiples of the controller page, %u bytes",
		  (unsigned long long)create->sq_offset,
		  (unsigned long long)create->cq_offset,
		  failure->info.page_size);
}

static void fit_detail(const struct failure *failure,
		       struct nvmepeer_explanation *explanation)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;

	say_limit(explanation,
		  "%u submission entries take %llu bytes from offset %llu, %u completion entries %llu bytes from offset %llu",
		  create->sq_entries, create->sq_entries * 64ull,
		  (unsigned long long)create->sq_offset, create->cq_entries,
		  create->cq_entries * 16ull,
		  (unsigned long long)create->cq_offset);
}

static void qids_detail(const struct failure *failure,
			struct nvmepeer_explanation *explanation)
{
	const struct nvme_peer_info *info = &failure->info;

	say_limit(explanation,
		  "the controller granted %u I/O queue pairs; the CPU uses %u; peers may have %u and %u of those are free; %u are kept for late stores to doorbells",
		  info->qids_total, info->qids_cpu, info->qids_peer_max,
		  info->qids_peer_free, info->qids_quarantined);
}

static void export_detail(const struct failure *failure,
			  struct nvmepeer_explanation *explanation)
{
	snprintf(explanation->what, sizeof(explanation->what),
		 "%s: the %s was not given out", failure->subject,
		 nvmepeer_export_name(failure->request.export.what));
}

static void status_detail(const struct failure *failure,
			  struct nvmepeer_explanation *explanation)
{
	const struct nvme_passthru_cmd *command = &failure->request.command;

	say_limit(explanation,
		  "the controller answered: %s (status 0x%x%s) to opcode 0x%02x, namespace %u",
		  nvmepeer_status_text(failure->status),
		  (unsigned int)failure->status & 0x7ff,
		  failure->status & 0x4000 ? ", do not retry" : "",
		  command->opcode, command->nsid);
}

/* What the device library refuses: enum nvmepeer_error, those marked "init". */
static void geometry_detail(const struct failure *failure,
			    struct nvmepeer_explanation *explanation)
{
	switch (failure->request.device_status) {
	case NVMEPEER_E_ENTRIES:
		say_limit(explanation,
			  "the device library takes rings of a power of two, 2 to 32768 entries, the completion ring at least as long");
		say_help(explanation, "create the queue pair with such rings");
		break;
	case NVMEPEER_E_CIDS:
		say_limit(explanation,
			  "cids must be a power of two, 32 to 65536, and not below the submission entries");
		say_help(explanation, "set cids to 0 for a fitting number");
		break;
	case NVMEPEER_E_ADDRESS:
		say_limit(explanation,
			  "an address is 0 or misaligned: rings and doorbells must be set, the book-keeping aligned to 128 bytes; readback must be set where completions do not lie beside the data");
		say_help(explanation, "give every address as the peer sees it");
		break;
	case NVMEPEER_E_PLACEMENT:
		say_limit(explanation,
			  "completions would not lie beside the data, and the peer cannot read back data in its own memory: it would take a completion for data that has not arrived");
		say_help(explanation,
			 "place the completion ring in the same memory as the data");
		break;
	case NVMEPEER_E_METADATA:
		say_limit(explanation,
			  "the namespace's blocks carry metadata, for which the device library's commands name no memory");
		say_help(explanation,
			 "use a namespace whose format has none, or format it so");
		break;
	default:
		say_limit(explanation,
			  "page size, block size, transfer limit or list memory make no sense to the device library");
		say_help(explanation,
			 "list memory needs list_bytes for every cid; blocks have 512 bytes to 64 KiB");
	}
}

/* ---- The rules ---------------------------------------------------------- */

static const char gone_limit[] = "the controller is being removed, or gave up after a failed reset";
static const char gone_help[] = "see the kernel log; bind the controller to nvme-peer again";
static const char dead_qp_help[] = "close it and create a new one";
static const char bounce_limit[] =
	"the controller's DMA goes through bounce buffers (swiotlb): a peer and it would see other memory";
static const char bounce_help[] =
	"boot without swiotlb=force, or with an IOMMU; a guest with encrypted memory cannot have peers";
static const char rawio_help[] =
	"run as root or with CAP_SYS_RAWIO: it is power over the whole controller";

static const char metadata_limit[] =
	"the blocks of this namespace carry metadata, for which there is no room in a transfer yet";
static const char metadata_help[] =
	"use a namespace without, or format this one: nvme format --lbaf with a format of ms 0";

static const struct rule rules[] = {
	{
		CALL_NONE, EINVAL, is_too_short,
		.help = "give sizeof() of the structure, of the headers that belong to the library",
		.detail = size_detail,
	},
	{
		CALL_NS_OPEN, ENOENT,
		.limit = "there is no such node",
		.help =
		"bind the controller to nvme-peer first; its namespaces appear as /dev/ngpXnY",
	},
	{
		CALL_OPEN, ENOENT,
		.limit = "there is no such node",
		.help =
		"bind a controller: nvme-peer bind ADDRESS; nvme-peer topo shows the addresses of all",
	},
	{
		CALL_OPEN, EACCES,
		.limit = "the permissions of the node do not allow it",
		.help = "run as root, or give the user access by a udev rule",
	},
	{
		CALL_OPEN, ENOTTY,
		.limit = "the node does not understand NVME_PEER_INFO",
		.help =
		"name a controller node of nvme-peer, /dev/nvmepX; /dev/nvmeX belongs to the kernel's own driver",
	},
	{
		CALL_OPEN, E2BIG,
		.limit = "the library is newer than the kernel module",
		.help = "load a module that is as new as the library",
	},
	{
		CALL_ROUTE, ENODEV,
		.limit = "no PCI function has this address",
		.help = "lspci -D lists the addresses",
	},
	{
		CALL_NONE, EBADF,
		.limit = "the file descriptor is not open",
	},
	{
		CALL_ROUTE, EINVAL,
		.applies = asked_by_address,
		.limit = "the address names no function (valid is not 1)",
		.help = "take the address from nvmepeer_pci_parse()",
	},
	{
		CALL_ROUTE, EINVAL,
		.limit = "the file is not a dma-buf",
		.help = "export the memory from the GPU's driver as a dma-buf first",
	},
	{
		CALL_BUF_IMPORT, EINVAL,
		.applies = access_unknown,
		.limit = "the access is not known",
		.help = "use NVME_PEER_ACCESS_BOTH, _READ or _WRITE",
	},
	{
		CALL_BUF_IMPORT, EINVAL,
		.applies = import_misaligned,
		.help = "import whole pages; length 0 means all from the offset on",
		.detail = part_align_detail,
	},
	{
		CALL_BUF_IMPORT, ERANGE,
		.help = "stay within the dma-buf; length 0 means all from the offset on",
		.detail = part_detail,
	},
	{
		CALL_BUF_IMPORT, EACCES,
		.limit = "the dma-buf is open for reading only",
		.help = "import it with NVME_PEER_ACCESS_READ, or have it exported for reading and writing",
	},
	{
		CALL_BUF_IMPORT, EINVAL,
		.limit = "the file is not a dma-buf, or a flag is unknown",
		.help = "export the memory from the GPU's driver as a dma-buf first",
	},
	{
		CALL_BUF_IMPORT, EXDEV,
		.limit = "the controller cannot reach the memory",
		.help = "nvme-peer route tells the way and what blocks it",
		.detail = route_detail,
	},
	{
		CALL_BUF_IMPORT, ENXIO,
		.limit = "device memory was asked for, but the exporter delivers host RAM",
		.help =
		"have the exporter keep the buffer in device memory (large BAR, pinned placement), or import without NVME_PEER_BUF_REQUIRE_DEVICE to accept host RAM",
		.detail = placement_detail,
	},
	{
		CALL_BUF_IMPORT, ENOSPC,
		.limit = "too many buffers are imported on this open file",
		.help = "import fewer, larger buffers, or release those not needed",
	},
	{
		CALL_BUF_IMPORT, EOPNOTSUPP,
		.limit = bounce_limit,
		.help = bounce_help,
	},
	{
		CALL_BUF_RELEASE, EBUSY,
		.limit = "a queue pair may still use the buffer: a ring of it lies there, or the addresses were given and one of the controller is alive",
		.help = "destroy the queue pairs first, or close the controller: it lets go of the buffer when they have ended",
	},
	{
		CALL_BUF_TABLE, EPERM,
		.limit = "raw DMA addresses need CAP_SYS_RAWIO",
		.help = rawio_help,
	},
	{
		CALL_BUF_TABLE, EINVAL,
		.applies = table_misaligned,
		.help = "start at a page boundary",
		.detail = table_align_detail,
	},
	{
		CALL_BUF_TABLE, ERANGE,
		.help = "stay within the length that the import reported",
		.detail = range_detail,
	},
	{
		CALL_BUF_TABLE, EMSGSIZE,
		.what = "the memory is not one range of DMA addresses",
		.help = "use the table of addresses page by page, or allocate contiguous memory",
		.detail = break_detail,
	},
	{
		CALL_HOSTMEM, ENOSYS,
		.limit = "the kernel has neither /dev/udmabuf nor /dev/dma_heap/system",
		.help =
		"use a kernel with CONFIG_UDMABUF or CONFIG_DMABUF_HEAPS_SYSTEM, or memory of a device",
	},
	{
		CALL_HOSTMEM, EINVAL,
		.limit = "the size is 0, or above udmabuf's size_limit_mb",
		.help =
		"raise /sys/module/udmabuf/parameters/size_limit_mb, or take several pieces",
	},
	{
		CALL_HOSTMEM, EACCES,
		.limit = "no permission for /dev/udmabuf or /dev/dma_heap/system",
		.help = "run as root, or join the group that owns the node (often kvm)",
	},
	{
		CALL_QP_CREATE, EPERM,
		.applies = lockdown_forbids,
		.limit =
		"the kernel is locked down, and no IOMMU keeps what the controller is told to write from the kernel",
		.help =
		"have an IOMMU translate for the controller (intel_iommu=on, iommu.passthrough=0)",
	},
	{
		CALL_QP_CREATE, EPERM,
		.limit = "direct mode needs CAP_SYS_RAWIO",
		.help = rawio_help,
	},
	{
		CALL_QP_CREATE, EINVAL,
		.applies = mode_unknown,
		.limit = "the mode is not known",
		.help = "use NVME_PEER_MODE_DIRECT",
	},
	{
		CALL_QP_CREATE, EINVAL,
		.applies = too_few_entries,
		.help = "ask for 2 entries or more; one of them always stays empty",
		.detail = entries_detail,
	},
	{
		CALL_QP_CREATE, EINVAL,
		.applies = too_many_entries,
		.help = "ask for fewer entries and create several queue pairs for more depth",
		.detail = entries_detail,
	},
	{
		CALL_QP_CREATE, EINVAL,
		.applies = cq_smaller,
		.detail = cq_detail,
	},
	{
		CALL_QP_CREATE, EINVAL,
		.applies = offset_without_buffer,
		.limit = "an offset is given for a ring in host memory",
		.help = "set the offset to 0, or name a buffer",
	},
	{
		CALL_QP_CREATE, EINVAL,
		.applies = ring_misaligned,
		.help = "place each ring at a page boundary",
		.detail = align_detail,
	},
	{
		CALL_QP_CREATE, EINVAL,
		.applies = reserved_given,
		.limit = "a reserved field is not 0",
		.help = "set reserved fields to 0",
	},
	{
		CALL_QP_CREATE, EBUSY,
		.limit = "a command that changes namespaces is under way, such as Format",
		.help = "try again when it is done",
	},
	{
		CALL_QP_CREATE, EACCES,
		.limit = "a ring lies in a buffer that was not imported for it",
		.help = "the controller reads the submission ring and writes the completion ring: import with NVME_PEER_ACCESS_BOTH",
	},
	{
		CALL_QP_CREATE, ERANGE,
		.what = "a ring does not fit into its buffer",
		.help = "import a larger buffer or ask for fewer entries",
		.detail = fit_detail,
	},
	{
		CALL_QP_CREATE, EMSGSIZE,
		.what = "a ring lies in several segments",
		.limit =
		"this controller wants each ring in one contiguous range of DMA addresses (CAP.CQR)",
		.help =
		"allocate the ring physically contiguous in the device, or have an IOMMU translate",
	},
	{
		CALL_QP_CREATE, EEXIST,
		.what = "the rings overlap each other or those of another queue pair",
		.help = "give each ring a range of its own",
		.detail = fit_detail,
	},
	{
		CALL_QP_CREATE, ENOSPC,
		.applies = qids_are_quarantined,
		.what = "no queue identifier is free: those of closed queue pairs wait until nobody can store to their doorbells",
		.help =
		"close the doorbell dma-bufs of closed queue pairs, and end the processes that had mapped them: quarantine in the controller's folder of debugfs names both",
		.detail = qids_detail,
	},
	{
		CALL_QP_CREATE, ENOSPC,
		.applies = knows_info,
		.what = "no queue identifier is free",
		.help =
		"close a queue pair that is not needed (nvme-peer qp list), have the CPU keep fewer (cpu_queues in /sys/class/nvme-peer), or load the module with a larger peer_queues",
		.detail = qids_detail,
	},
	{
		CALL_QP_CREATE, EAGAIN,
		.limit = "the controller is being reset",
		.help = "try again when nvmepeer_info() says it is live",
	},
	{
		CALL_QP_CREATE, EIO,
		.limit = "the controller refused to create the queue",
		.help = "the kernel log has the controller's status",
	},
	{
		CALL_QP_CREATE, EOPNOTSUPP,
		.limit = bounce_limit,
		.help = bounce_help,
	},
	{
		CALL_QP_FROM_FD, ENOTTY,
		.limit = "the file is not a queue pair",
		.help = "pass the descriptor that nvmepeer_qp_fd() gives",
	},
	{
		CALL_QP_REARM, EAGAIN,
		.limit = "the controller is being reset, or its namespaces are being looked at",
		.help = "wait for the queue pair's file with poll(), then try again",
	},
	{
		CALL_QP_REARM, EALREADY,
		.limit = "the queue pair is live",
		.help = "use it; it has lost nothing since it was created or re-armed",
	},
	{
		CALL_QP_REARM, ESTALE,
		.limit = "the queue pair was lost again since",
		.help = "have every peer see the new loss, then pass the new count of losses",
	},
	{
		CALL_QP_REARM, ESHUTDOWN,
		.limit =
		"it cannot come back: the status page's reason tells why (ENOSPC: fewer queues are granted than before; ESTALE: memory or a namespace is not what it was; ENODEV: the controller is gone)",
		.help = dead_qp_help,
	},
	{
		CALL_QP_REARM, EIO,
		.limit = "the controller refused to create the queues",
		.help = "the kernel log has the status; it may be tried again",
	},
	{
		CALL_QP_EXPORT, EAGAIN,
		.limit = "the queue pair has lost its entries",
		.help = "re-arm it first: nvmepeer_qp_rearm()",
		.detail = export_detail,
	},
	{
		CALL_QP_EXPORT, ENODATA,
		.limit = "the ring lies in an imported buffer",
		.help = "take the dma-buf that was imported; its owner exports it",
		.detail = export_detail,
	},
	{
		CALL_QP_EXPORT, ENXIO,
		.limit = "the doorbell page also holds registers that no peer may reach",
		.help =
		"use rings with a relayed doorbell, or a controller with other doorbell spacing",
		.detail = export_detail,
	},
	{
		CALL_QP_EXPORT, EINVAL,
		.applies = static_export_elsewhere,
		.limit = "NVME_PEER_EXPORT_ALLOW_STATIC is for the doorbell page only",
		.help = "leave the flag out; rings and status page admit any importer",
		.detail = export_detail,
	},
	{
		CALL_QP_EXPORT, ESHUTDOWN,
		.limit = "the queue pair is gone",
		.help = dead_qp_help,
		.detail = export_detail,
	},
	{
		CALL_QP_MAP, EPERM,
		.limit = "the kernel does not allow this kind of mapping",
		.detail = export_detail,
	},
	{
		CALL_GEOMETRY, EINVAL,
		.detail = geometry_detail,
	},
	{
		CALL_READ, EINVAL,
		.applies = no_data_length,
		.limit = "a command moves 1 to 65536 blocks",
		.help = "split the transfer",
	},
	{
		CALL_WRITE, EINVAL,
		.applies = no_data_length,
		.limit = "a command moves 1 to 65536 blocks",
		.help = "split the transfer",
	},
	{
		CALL_READ, EINVAL,
		.limit =
		"the transfer is above the controller's max_transfer, or the memory is not 4-byte aligned",
		.help = "split the transfer; nvme-peer info shows max_transfer",
	},
	{
		CALL_WRITE, EINVAL,
		.limit =
		"the transfer is above the controller's max_transfer, or the memory is not 4-byte aligned",
		.help = "split the transfer; nvme-peer info shows max_transfer",
	},
	{
		CALL_NS_OPEN, EOPNOTSUPP,
		.limit = metadata_limit,
		.help = metadata_help,
	},
	{
		CALL_GEOMETRY, EOPNOTSUPP,
		.limit = metadata_limit,
		.help = metadata_help,
	},
	{
		CALL_NS_OPEN, EPROTO,
		.limit = "the namespace is in a format that Identify does not describe",
	},
	{
		CALL_NS_OPEN, ENOTTY,
		.limit = "the node does not understand NVME_IOCTL_ID",
		.help = "name a generic namespace node of nvme-peer, /dev/ngpXnY",
	},
	{
		CALL_URING, ENOSYS,
		.limit = "the kernel has no io_uring",
		.help = "use the ioctls: nvmepeer_ns_read() and nvmepeer_ns_write()",
	},
	{
		CALL_URING, EPERM,
		.limit = "io_uring is switched off",
		.help = "sysctl kernel.io_uring_disabled=0",
	},
	{
		CALL_URING, EINVAL,
		.limit = "the depth is 0 or too large, or the kernel is older than 5.19",
		.help = "ask for 1 to 32768 entries",
	},
	{
		CALL_NONE, 0,
		.applies = status_given,
		.detail = status_detail,
	},
	{
		CALL_NONE, ENOENT,
		.limit = "no buffer has this handle on this open file",
		.help = "handles belong to the open file that imported them",
	},
	{
		CALL_NONE, ESTALE,
		.limit = "the exporter has taken the memory back",
		.help = "release the buffer and import it again",
	},
	{
		CALL_NONE, ESHUTDOWN,
		.limit = gone_limit,
		.help = gone_help,
	},
	{
		CALL_NONE, ENODEV,
		.limit = gone_limit,
		.help = gone_help,
	},
	{
		CALL_NONE, ENOMEM,
		.limit = "no memory is left",
	},
	{
		CALL_NONE, EMFILE,
		.limit = "this process has too many open files",
		.help = "ulimit -n",
	},
	{
		CALL_NONE, EACCES,
		.limit = "the permissions of the node do not allow it",
		.help = "run as root, or give the user access by a udev rule",
	},
	{
		CALL_NONE, E2BIG,
		.limit = "the program asks for something that only a newer kernel module or library knows",
		.help = "load a module and install a library that are as new as the headers the program was compiled with",
	},
};

static const struct rule *find_rule(const struct failure *failure)
{
	const struct rule *rule;

	for (rule = rules; rule < rules + ARRAY_SIZE(rules); rule++) {
		if (rule->call && rule->call != failure->call)
			continue;
		if (rule->error != failure->error)
			continue;
		if (!rule->applies || rule->applies(failure))
			return rule;
	}
	return NULL;
}

static void copy_text(char *text, size_t length, const char *from)
{
	if (from)
		snprintf(text, length, "%s", from);
}

static void explain(const struct failure *failure, struct nvmepeer_explanation *explanation)
{
	const struct rule *rule = find_rule(failure);
	char text[128];

	if (failure->call == CALL_OTHER) {
		*explanation = failure->request.told;
		return;
	}
	memset(explanation, 0, sizeof(*explanation));
	explanation->call = calls[failure->call].name;
	explanation->error = failure->error;
	explanation->status = failure->status;
	if (failure->subject[0])
		snprintf(explanation->what, sizeof(explanation->what), "%s: %s",
			 failure->subject, calls[failure->call].what);
	else
		copy_text(explanation->what, sizeof(explanation->what),
			  calls[failure->call].what);
	if (!failure->call)
		return;
	if (!rule) {
		say_limit(explanation, "%s",
			  strerror_r(failure->error, text, sizeof(text)));
		return;
	}
	if (rule->what)
		snprintf(explanation->what, sizeof(explanation->what), "%s: %s",
			 failure->subject, rule->what);
	copy_text(explanation->limit, sizeof(explanation->limit), rule->limit);
	copy_text(explanation->help, sizeof(explanation->help), rule->help);
	if (rule->detail)
		rule->detail(failure, explanation);
}

/* A size that makes no sense has no record of its own: it would take that of the failure. */
int nvmepeer_errors_explain(struct nvmepeer_errors *errors,
			    struct nvmepeer_explanation *explanation, size_t size)
{
	struct nvmepeer_explanation told;
	struct failure failure;

	if (size < EXPLANATION_LEAST)
		return -EINVAL;
	failure_last(errors, &failure);
	explain(&failure, &told);
	sized_copy(explanation, size, &told, sizeof(told));
	return failure_result(&failure);
}

int nvmepeer_explain(struct nvmepeer_explanation *explanation, size_t size)
{
	return nvmepeer_errors_explain(NULL, explanation, size);
}

int nvmepeer_fail(const struct nvmepeer_explanation *explanation, size_t size)
{
	struct failure failure;

	if (size < EXPLANATION_LEAST)
		return -EINVAL;
	failure_init(&failure, CALL_OTHER, 0, "");
	sized_copy(&failure.request.told, sizeof(failure.request.told), explanation, size);
	failure.error = failure.request.told.error;
	failure.status = failure.error ? 0 : failure.request.told.status;
	return failure_note(&failure);
}
