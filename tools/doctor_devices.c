// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Checks of nvme-peer doctor: the IOMMU, the GPUs with their drivers, BARs and routes, and
 * the users of the disks.
 */
#include <string.h>

#include "doctor.h"
#include "sysfs.h"
#include "units.h"
#include "disk_users.h"
#include "route.h"

/* Size of the BAR of a GPU without Resizable BAR. */
#define SMALL_BAR (256ULL << 20)

/* Calls @check for each function of a kind. Returns their number. */
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
		doctor_report(doctor, DOCTOR_WARN, "iommu",
			      "turn VT-d or AMD-Vi on in the firmware; Intel: kernel command line intel_iommu=on",
			      "%s: none: a queue pair gives access to all memory",
			      controller->address);
	else if (!strncmp(controller->domain, "DMA", 3))
		doctor_report(doctor, DOCTOR_OK, "iommu", NULL, "%s: translates, %s", controller->address,
			      controller->domain);
	else
		doctor_report(doctor, DOCTOR_WARN, "iommu",
			      "kernel command line iommu.passthrough=0, without iommu=pt",
			      "%s: %s: a queue pair gives access to all memory",
			      controller->address,
			      controller->domain[0] ? controller->domain : "domain unknown");
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

/* The version follows the flavour: "... for x86_64  580.65.06  Release ...". */
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
		doctor_report(doctor, DOCTOR_OK, "gpu", NULL, "%s: nvidia %s, open flavour", gpu->address,
			      version);
	else
		doctor_report(doctor, DOCTOR_FAIL, "gpu", "install the open flavour of the kernel module",
			      "%s: nvidia %s, proprietary flavour, which "
			      "exports no memory", gpu->address, version);
	if (file_has("/proc/driver/nvidia/params", "PeerMappingOverride=1"))
		doctor_report(doctor, DOCTOR_OK, "doorbells", NULL, "PeerMappingOverride=1");
	else
		doctor_report(doctor, DOCTOR_WARN, "doorbells",
			      "options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1\" in /etc/modprobe.d",
			      "nvidia allows CUDA to map them only with CAP_SYS_ADMIN");
}

static void check_gpu_driver(struct doctor *doctor, const struct pci_function *gpu)
{
	static const char *const without_export[] = { "nouveau", "radeon", "i915", "xe", "ast", "mgag200" };
	size_t i;

	for (i = 0; i < sizeof(without_export) / sizeof(without_export[0]); i++)
		if (!strcmp(gpu->driver, without_export[i])) {
			doctor_report(doctor, DOCTOR_WARN, "gpu", "use nvidia's open module or amdgpu",
				      "%s: %s exports no device memory to peers", gpu->address, gpu->driver);
			return;
		}
	if (!strcmp(gpu->driver, "nvidia"))
		check_nvidia(doctor, gpu);
	else if (gpu->driver[0])
		doctor_report(doctor, DOCTOR_OK, "gpu", NULL, "%s: %s", gpu->address, gpu->driver);
	else
		doctor_report(doctor, DOCTOR_WARN, "gpu", "load its driver", "%s: no driver is bound",
			      gpu->address);
}

static void check_bar(struct doctor *doctor, const struct pci_function *gpu)
{
	uint64_t bytes = pci_largest_bar(gpu);
	char size[UNITS_TEXT];

	units_memory(bytes, size);
	if (bytes > SMALL_BAR)
		doctor_report(doctor, DOCTOR_OK, "bar", NULL, "%s: %s", gpu->address, size);
	else
		doctor_report(doctor, DOCTOR_WARN, "bar",
			      "turn Above 4G Decoding and Resizable BAR on in the firmware",
			      "%s: only %s of its memory can be reached", gpu->address, size);
}

/* ---- Routes -------------------------------------------------------------- */

/* An open route ranks above an unknown one, and that above none. */
static int rank(const struct route *route)
{
	return route_is_open(route) ? 2 : !route->from_module;
}

/* The best route between @gpu and any controller. Returns false without controllers. */
static bool find_best(struct doctor *doctor, const struct pci_function *gpu, struct route *best)
{
	const struct pci *pci = &doctor->pci;
	bool found = false;
	struct route route;
	size_t i;

	for (i = 0; i < pci->count; i++) {
		if (pci->functions[i].kind != PCI_CONTROLLER)
			continue;
		route_find(&route, gpu, &pci->functions[i]);
		if (!found || rank(&route) > rank(best))
			*best = route;
		found = true;
	}
	return found;
}

static void check_route(struct doctor *doctor, const struct pci_function *gpu)
{
	static const enum doctor_level levels[] = { DOCTOR_FAIL, DOCTOR_WARN, DOCTOR_OK };
	char verdict[ROUTE_VERDICT];
	struct route best;

	if (!find_best(doctor, gpu, &best))
		return;
	doctor_report(doctor, levels[rank(&best)], "route",
		      route_is_open(&best) ? NULL : "nvme-peer topo shows the commands",
		      "%s and %s: %s, %s", gpu->address, best.controller->address,
		      route_verdict(&best, verdict), route_reason(&best));
}

/* ---- Disks --------------------------------------------------------------- */

static bool is_bound(const struct pci_function *function)
{
	return !strcmp(function->driver, "nvme-peer");
}

/* One bound controller is enough: do not propose to bind another. */
static bool any_is_bound(const struct pci *pci)
{
	size_t i = 0;

	while (i < pci->count && !is_bound(&pci->functions[i]))
		i++;
	return i < pci->count;
}

static void check_disk(struct doctor *doctor, const struct pci_function *controller)
{
	char help[64];
	struct disk_users users;

	disk_users_find(controller, &users);
	if (is_bound(controller)) {
		doctor_report(doctor, DOCTOR_OK, "disk", NULL, "%s: bound to nvme-peer, as %s",
			      controller->address, controller->node);
	} else if (users.count) {
		doctor_report(doctor, DOCTOR_WARN, "disk", "unmount, swapoff, stop or close what uses it",
			      "%s: %s%s", controller->address, users.texts[0],
			      users.count > 1 ? ", and more" : "");
	} else {
		snprintf(help, sizeof(help), "nvme-peer bind %s", controller->address);
		doctor_report(doctor, DOCTOR_OK, "disk", any_is_bound(&doctor->pci) ? NULL : help,
			      "%s: bound to %s, not in use",
			      controller->address, controller->driver[0] ? controller->driver : "no driver");
	}
	disk_users_free(&users);
}

void doctor_devices(struct doctor *doctor)
{
	each(doctor, PCI_CONTROLLER, check_domain);
	if (!each(doctor, PCI_GPU, check_gpu_driver))
		doctor_report(doctor, DOCTOR_WARN, "gpu", NULL, "no GPU found: only the CPU can be a peer");
	each(doctor, PCI_GPU, check_bar);
	each(doctor, PCI_GPU, check_route);
	if (!each(doctor, PCI_CONTROLLER, check_disk))
		doctor_report(doctor, DOCTOR_FAIL, "disk", "insert an NVMe SSD, or enable its slot in the firmware",
			      "no NVMe controller found");
}
