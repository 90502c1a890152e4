// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Checks of nvme-peer doctor: the kernel, what it was built with, what it lets
 * itself be told, and the module.
 */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "sysfs.h"

/* The oldest kernel that the module is built for. */
enum { OLDEST_MAJOR = 6, OLDEST_MINOR = 1 };

#define EFI_VARIABLES "/sys/firmware/efi/efivars"
#define SECURE_BOOT EFI_VARIABLES "/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

/* ---- Version and configuration ------------------------------------------- */

static void check_version(struct doctor *doctor, const char *release)
{
	unsigned int major = 0, minor = 0;

	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		doctor_say(doctor, DOCTOR_WARN, "kernel", NULL, "its version is not known");
	else if (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR))
		doctor_say(doctor, DOCTOR_OK, "kernel", NULL, "%s", release);
	else
		doctor_say(doctor, DOCTOR_FAIL, "kernel", "boot Linux 6.1 or newer",
			   "%s is too old", release);
}

/**
 * struct want - an option of the kernel that something needs
 * @option: its name; a second one does as well
 * @other: that one, or NULL
 * @level: how bad it is without
 * @lack: what does not work then
 * @cure: what to do
 */
struct want {
	const char *option;
	const char *other;
	enum doctor_level level;
	const char *lack;
	const char *cure;
};

static const struct want wants[] = {
	{ "CONFIG_DMA_SHARED_BUFFER", NULL, DOCTOR_FAIL, "no memory can be imported or exported",
	  "boot a kernel with CONFIG_DMA_SHARED_BUFFER=y, as any with a graphics driver has it" },
	{ "CONFIG_PCI_P2PDMA", NULL, DOCTOR_WARN,
	  "the module judges ways itself, but amdgpu exports no device memory",
	  "with its GPUs, boot a kernel with CONFIG_PCI_P2PDMA=y" },
	{ "CONFIG_UDMABUF", "CONFIG_DMABUF_HEAPS_SYSTEM", DOCTOR_WARN,
	  "host memory cannot be imported: nvme-peer qp check and CPU peers do not work",
	  "boot a kernel with CONFIG_UDMABUF=y" },
};

enum { WANTS = sizeof(wants) / sizeof(wants[0]) };

static bool turns_on(const char *line, const char *option)
{
	size_t length = option ? strlen(option) : 0;

	return length && !strncmp(line, option, length) &&
	       (!strncmp(line + length, "=y", 2) || !strncmp(line + length, "=m", 2));
}

/* The shell finds the root by itself, so that no path has to be quoted. */
static FILE *open_packed(bool *packed)
{
	*packed = sysfs_exists("/proc/config.gz");
	return *packed ? popen("exec gzip -dc <\"$NVME_PEER_SYSROOT/proc/config.gz\"", "re") : NULL;
}

static FILE *open_config(const char *release, bool *packed)
{
	FILE *file = sysfs_open("/boot/config-%s", release);

	*packed = false;
	if (!file)
		file = sysfs_open("/lib/modules/%s/config", release);
	return file ? file : open_packed(packed);
}

static void read_config(FILE *config, bool on[WANTS])
{
	char line[512];
	size_t i;

	while (fgets(line, sizeof(line), config))
		for (i = 0; i < WANTS; i++)
			on[i] |= turns_on(line, wants[i].option) || turns_on(line, wants[i].other);
}

static void check_config(struct doctor *doctor, const char *release)
{
	bool on[WANTS] = { false }, packed;
	FILE *config = open_config(release, &packed);
	size_t i;

	if (!config) {
		doctor_say(doctor, DOCTOR_WARN, "config", "modprobe configs",
			   "neither /boot/config-%s nor /proc/config.gz is there", release);
		return;
	}
	read_config(config, on);
	if (packed)
		pclose(config);
	else
		fclose(config);
	for (i = 0; i < WANTS; i++)
		if (on[i])
			doctor_say(doctor, DOCTOR_OK, "config", NULL, "%s", wants[i].option);
		else
			doctor_say(doctor, wants[i].level, "config", wants[i].cure, "%s is off: %s",
				   wants[i].option, wants[i].lack);
}

/* ---- What the kernel lets itself be told --------------------------------- */

static bool module_is_loaded(void)
{
	return sysfs_exists("/sys/module/nvme_peer");
}

/* The word in brackets; "" where there is no lockdown. */
static void read_lockdown(char level[SYSFS_TEXT])
{
	char text[SYSFS_TEXT];
	const char *word;

	sysfs_read(text, "/sys/kernel/security/lockdown");
	word = strchr(text, '[');
	snprintf(level, SYSFS_TEXT, "%.*s", word ? (int)strcspn(word + 1, "]") : 0,
		 word ? word + 1 : "");
}

/* Locked down, queue pairs are only for controllers whose addresses are translated. */
static bool all_translated(const struct pci *pci)
{
	size_t i;

	for (i = 0; i < pci->count; i++)
		if (pci->functions[i].kind == PCI_CONTROLLER &&
		    strncmp(pci->functions[i].domain, "DMA", 3) != 0)
			return false;
	return true;
}

static void check_lockdown(struct doctor *doctor)
{
	char level[SYSFS_TEXT];

	read_lockdown(level);
	if (!level[0] || !strcmp(level, "none"))
		doctor_say(doctor, DOCTOR_OK, "lockdown", NULL, "off");
	else if (all_translated(&doctor->pci))
		doctor_say(doctor, DOCTOR_OK, "lockdown", NULL,
			   "%s, and an IOMMU translates for each controller", level);
	else
		doctor_say(doctor, DOCTOR_FAIL, "lockdown",
			   "turn the IOMMU on with translation (iommu.passthrough=0), or Secure Boot off",
			   "%s: no queue pairs where no IOMMU translates for the controller", level);
}

/* What the firmware has told of Secure Boot. */
enum secure_boot { SECURE_BOOT_OFF, SECURE_BOOT_ON, SECURE_BOOT_UNKNOWN };

static const char *const secure_boot_words[] = { "off", "on", "unknown" };

/* A file system that is not mounted leaves an empty folder. */
static bool sees_variables(void)
{
	struct dirent **names;
	int count = sysfs_list(&names, EFI_VARIABLES);

	sysfs_list_free(names, count);
	return count > 0;
}

/* A firmware that is no UEFI knows nothing of it, nor does one without that variable. */
static enum secure_boot read_secure_boot(void)
{
	unsigned char variable[5] = { 0 };

	/* Four bytes of attributes come before the value. */
	if (sysfs_bytes(variable, sizeof(variable), SECURE_BOOT) == sizeof(variable))
		return variable[4] == 1 ? SECURE_BOOT_ON : SECURE_BOOT_OFF;
	if (!sysfs_exists("/sys/firmware/efi"))
		return SECURE_BOOT_OFF;
	return sees_variables() && !sysfs_exists(SECURE_BOOT) ? SECURE_BOOT_OFF : SECURE_BOOT_UNKNOWN;
}

/* Kernels that do not call the firmware, as real-time ones, have no place to mount it at. */
static const char *cure_of_unknown(void)
{
	if (!sysfs_exists(EFI_VARIABLES))
		return "boot with efi=runtime, or look into the firmware's set-up";
	return sees_variables() ? "look into the firmware's set-up" :
				  "mount -t efivarfs none " EFI_VARIABLES;
}

static void check_unloaded(struct doctor *doctor, enum secure_boot secure, bool enforced)
{
	if (enforced || secure == SECURE_BOOT_ON)
		doctor_say(doctor, DOCTOR_WARN, "signature",
			   "sign nvme_peer.ko (scripts/sign-file) with a key that mokutil --import has enrolled",
			   "Secure Boot is %s%s: modules without a known signature may not be loaded",
			   secure_boot_words[secure],
			   secure == SECURE_BOOT_ON ? "" : ", but signatures are enforced");
	else
		doctor_say(doctor, DOCTOR_WARN, "signature", cure_of_unknown(),
			   "Secure Boot is unknown, the firmware's variables cannot be read: if it is on, modules need a signature");
}

static void check_signature(struct doctor *doctor)
{
	enum secure_boot secure = read_secure_boot();
	char enforced[SYSFS_TEXT];

	sysfs_read(enforced, "/sys/module/module/parameters/sig_enforce");
	if (secure == SECURE_BOOT_OFF && enforced[0] != 'Y')
		doctor_say(doctor, DOCTOR_OK, "signature", NULL, "Secure Boot is off, modules need none");
	else if (module_is_loaded())
		doctor_say(doctor, DOCTOR_OK, "signature", NULL, "Secure Boot is %s, the module is loaded",
			   secure_boot_words[secure]);
	else
		check_unloaded(doctor, secure, enforced[0] == 'Y');
}

static void check_module(struct doctor *doctor)
{
	char taint[SYSFS_TEXT];

	if (!module_is_loaded()) {
		doctor_say(doctor, DOCTOR_FAIL, "module", "modprobe nvme_peer",
			   "nvme_peer is not loaded");
		return;
	}
	sysfs_read(taint, "/sys/module/nvme_peer/taint");
	doctor_say(doctor, DOCTOR_OK, "module", NULL, "nvme_peer is loaded%s%s",
		   taint[0] ? ", the kernel is tainted by it: " : "", taint);
}

void doctor_kernel(struct doctor *doctor)
{
	char release[SYSFS_TEXT];

	sysfs_read(release, "/proc/sys/kernel/osrelease");
	check_version(doctor, release);
	check_config(doctor, release);
	check_lockdown(doctor);
	check_signature(doctor);
	check_module(doctor);
}
