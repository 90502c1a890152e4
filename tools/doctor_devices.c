// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Checks of nvme-peer doctor: the IOMMU, the GPUs with their drivers, BARs and
 * ways, and who has the disks.
 */
#include <string.h>

#include "doctor.h"
#include "sysfs.h"
#include "units.h"
#include "users.h"
#include "way.h"

/* What a GPU shows of its memory where the firmware leaves it as it was made. */
#define SMALL_BAR (256ULL << 20)

/* Calls @check for each function of a kind; how many there were. */
static size_t each(struct doctor *doctor, enum pci_kind kind,
		   void (*check)(struct doctor *doctor, const struct pci_function *function))
{
	size_t i, count = 0;

	for (i = 0; i < doctor->pci.count; i++) {
		if (doctor->pci.functions[i].kind != kind)
			continue;
		check(doctor, &doctor->pci.functions[i]);
		count++;
	}
	return count;
}

/* ---- IOMMU --------------------------------------------------------------- */

static void check_domain(struct doctor *doctor, const struct pci_function *controller)
{
	if (controller->group < 0)
		doctor_say(doctor, DOCTOR_WARN, "iommu",
			   "turn VT-d or AMD-Vi on in the firmware; Intel: kernel command line intel_iommu=on",
			   "%s: none, so whoever has a queue pair has power over all memory",
			   controller->address);
	else if (!strncmp(controller->domain, "DMA", 3))
		doctor_say(doctor, DOCTOR_OK, "iommu", NULL, "%s: translates, %s", controller->address,
			   controller->domain);
	else
		doctor_say(doctor, DOCTOR_WARN, "iommu",
			   "kernel command line iommu.passthrough=0, without iommu=pt",
			   "%s: %s, so whoever has a queue pair has power over all memory",
			   controller->address,
			   controller->domain[0] ? controller->domain : "its domain is not known");
}

/* ---- GPUs ---------------------------------------------------------------- */

static bool file_has(const char *path, const char *word)
{
	FILE *file = sysfs_open("%s", path);
	bool found = false;
	char line[512];

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, word);
	if (file)
		fclose(file);
	return found;
}

/* The version stands behind the flavour: "... for x86_64  580.65.06  Release ...". */
static void read_nvidia_version(char version[32])
{
	char line[SYSFS_TEXT], *word, *rest = line;

	snprintf(version, 32, "?");
	sysfs_read(line, "/proc/driver/nvidia/version");
	while ((word = strsep(&rest, " ")))
		if (strchr(word, '.') && strspn(word, "0123456789.") == strlen(word)) {
			snprintf(version, 32, "%.31s", word);
			return;
		}
}

static void check_nvidia(struct doctor *doctor, const struct pci_function *gpu)
{
	char version[32];

	read_nvidia_version(version);
	if (file_has("/proc/driver/nvidia/version", "Open Kernel Module"))
		doctor_say(doctor, DOCTOR_OK, "gpu", NULL, "%s: nvidia %s, open flavour", gpu->address,
			   version);
	else
		doctor_say(doctor, DOCTOR_FAIL, "gpu", "install the open flavour of the kernel module",
			   "%s: nvidia %s, proprietary flavour, exports no memory", gpu->address, version);
	if (file_has("/proc/driver/nvidia/params", "PeerMappingOverride=1"))
		doctor_say(doctor, DOCTOR_OK, "doorbells", NULL, "PeerMappingOverride=1");
	else
		doctor_say(doctor, DOCTOR_WARN, "doorbells",
			   "options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1\" in /etc/modprobe.d",
			   "only with CAP_SYS_ADMIN does nvidia let CUDA map them");
}

static void check_gpu_driver(struct doctor *doctor, const struct pci_function *gpu)
{
	static const char *const without_export[] = { "nouveau", "radeon", "i915", "xe", "ast", "mgag200" };
	size_t i;

	for (i = 0; i < sizeof(without_export) / sizeof(without_export[0]); i++)
		if (!strcmp(gpu->driver, without_export[i])) {
			doctor_say(doctor, DOCTOR_WARN, "gpu", "nvidia's open module and amdgpu export it",
				   "%s: %s exports no device memory to peers", gpu->address, gpu->driver);
			return;
		}
	if (!strcmp(gpu->driver, "nvidia"))
		check_nvidia(doctor, gpu);
	else if (gpu->driver[0])
		doctor_say(doctor, DOCTOR_OK, "gpu", NULL, "%s: %s", gpu->address, gpu->driver);
	else
		doctor_say(doctor, DOCTOR_WARN, "gpu", "load its driver", "%s: no driver has it",
			   gpu->address);
}

static void check_bar(struct doctor *doctor, const struct pci_function *gpu)
{
	uint64_t bytes = pci_largest_bar(gpu);
	char size[UNITS_TEXT];

	units_memory(bytes, size);
	if (bytes > SMALL_BAR)
		doctor_say(doctor, DOCTOR_OK, "bar", NULL, "%s: %s", gpu->address, size);
	else
		doctor_say(doctor, DOCTOR_WARN, "bar",
			   "turn Above 4G Decoding and Resizable BAR on in the firmware",
			   "%s: no more than %s of its memory can be reached", gpu->address, size);
}

/* ---- Ways ---------------------------------------------------------------- */

/* An open way is better than a question, and that better than none. */
static int rank(const struct way *way)
{
	return way_is_open(way) ? 2 : !way->asked;
}

/* The best way between @gpu and any controller; false without controllers. */
static bool find_best(struct doctor *doctor, const struct pci_function *gpu, struct way *best)
{
	const struct pci *pci = &doctor->pci;
	bool found = false;
	struct way way;
	size_t i;

	for (i = 0; i < pci->count; i++) {
		if (pci->functions[i].kind != PCI_CONTROLLER)
			continue;
		way_find(&way, gpu, &pci->functions[i]);
		if (!found || rank(&way) > rank(best))
			*best = way;
		found = true;
	}
	return found;
}

static void check_way(struct doctor *doctor, const struct pci_function *gpu)
{
	static const enum doctor_level levels[] = { DOCTOR_FAIL, DOCTOR_WARN, DOCTOR_OK };
	char verdict[WAY_VERDICT];
	struct way best;

	if (!find_best(doctor, gpu, &best))
		return;
	doctor_say(doctor, levels[rank(&best)], "way",
		   way_is_open(&best) ? NULL : "nvme-peer topo shows what to type",
		   "%s and %s: %s, %s", gpu->address, best.controller->address,
		   way_verdict(&best, verdict), way_reason(&best));
}

/* ---- Disks --------------------------------------------------------------- */

static void check_disk(struct doctor *doctor, const struct pci_function *controller)
{
	char cure[64];
	struct users users;

	users_find(controller, &users);
	if (!strcmp(controller->driver, "nvme-peer")) {
		doctor_say(doctor, DOCTOR_OK, "disk", NULL, "%s: nvme-peer has it, as %s",
			   controller->address, controller->node);
	} else if (users.count) {
		doctor_say(doctor, DOCTOR_WARN, "disk", "unmount, swapoff, stop or close what uses it",
			   "%s: %s%s", controller->address, users.texts[0],
			   users.count > 1 ? ", and more" : "");
	} else {
		snprintf(cure, sizeof(cure), "nvme-peer bind %s", controller->address);
		doctor_say(doctor, DOCTOR_OK, "disk", cure, "%s: %s has it, and nobody uses it",
			   controller->address, controller->driver[0] ? controller->driver : "no driver");
	}
	users_free(&users);
}

void doctor_devices(struct doctor *doctor)
{
	each(doctor, PCI_CONTROLLER, check_domain);
	if (!each(doctor, PCI_GPU, check_gpu_driver))
		doctor_say(doctor, DOCTOR_WARN, "gpu", NULL, "there is none: only the CPU can be a peer");
	each(doctor, PCI_GPU, check_bar);
	each(doctor, PCI_GPU, check_way);
	if (!each(doctor, PCI_CONTROLLER, check_disk))
		doctor_say(doctor, DOCTOR_FAIL, "disk", NULL, "there is no NVMe controller");
}
