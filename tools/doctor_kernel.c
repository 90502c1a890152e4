// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Checks of nvme-peer doctor: version and configuration of the kernel, lockdown,
 * signatures, and the module.
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
		doctor_report(doctor, DOCTOR_WARN, "kernel", NULL, "version unknown");
	else if (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR))
		doctor_report(doctor, DOCTOR_OK, "kernel", NULL, "%s", release);
	else
		doctor_report(doctor, DOCTOR_FAIL, "kernel", "boot Linux 6.1 or newer",
			      "%s is too old", release);
}

/**
 * struct required - a required option of the kernel
 * @option: its name
 * @other: an alternative, or NULL
 * @level: severity if it is off
 * @lack: consequence if it is off
 * @help: the fix
 */
struct required {
	const char *option;
	const char *other;
	enum doctor_level level;
	const char *lack;
	const char *help;
};

static const struct required required[] = {
	{ "CONFIG_DMA_SHARED_BUFFER", NULL, DOCTOR_FAIL, "no memory can be imported or exported",
	  "boot a kernel with CONFIG_DMA_SHARED_BUFFER=y, which every graphics driver selects" },
	{ "CONFIG_PCI_P2PDMA", NULL, DOCTOR_WARN,
	  "the module determines routes itself, but amdgpu exports no device memory",
	  "with its GPUs, boot a kernel with CONFIG_PCI_P2PDMA=y" },
	{ "CONFIG_UDMABUF", "CONFIG_DMABUF_HEAPS_SYSTEM", DOCTOR_WARN,
	  "host memory cannot be imported: nvme-peer qp check and CPU peers do not work",
	  "boot a kernel with CONFIG_UDMABUF=y" },
};

enum { REQUIRED = sizeof(required) / sizeof(required[0]) };

static bool turns_on(const char *line, const char *option)
{
	size_t length = option ? strlen(option) : 0;

	return length && !strncmp(line, option, length) &&
	       (!strncmp(line + length, "=y", 2) || !strncmp(line + length, "=m", 2));
}

/* The shell expands the root, so that no path has to be quoted. */
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

static void read_config(FILE *config, bool on[REQUIRED])
{
	char line[512];
	size_t i;

	while (fgets(line, sizeof(line), config))
		for (i = 0; i < REQUIRED; i++)
			on[i] |= turns_on(line, required[i].option) || turns_on(line, required[i].other);
}

static void check_config(struct doctor *doctor, const char *release)
{
	bool on[REQUIRED] = { false }, packed;
	FILE *config = open_config(release, &packed);
	size_t i;

	if (!config) {
		doctor_report(doctor, DOCTOR_WARN, "config", "modprobe configs",
			      "neither /boot/config-%s nor /proc/config.gz exists", release);
		return;
	}
	read_config(config, on);
	if (packed)
		pclose(config);
	else
		fclose(config);
	for (i = 0; i < REQUIRED; i++)
		if (on[i])
			doctor_report(doctor, DOCTOR_OK, "config", NULL, "%s", required[i].option);
		else
			doctor_report(doctor, required[i].level, "config", required[i].help, "%s is off: %s",
				      required[i].option, required[i].lack);
}

/* ---- Lockdown and signatures --------------------------------------------- */

static bool module_is_loaded(void)
{
	return sysfs_exists("/sys/module/nvme_peer");
}

/* The level in brackets; "" without lockdown. */
static void read_lockdown(char level[SYSFS_TEXT])
{
	char text[SYSFS_TEXT];
	const char *word;

	sysfs_read(text, "/sys/kernel/security/lockdown");
	word = strchr(text, '[');
	snprintf(level, SYSFS_TEXT, "%.*s", word ? (int)strcspn(word + 1, "]") : 0,
		 word ? word + 1 : "");
}

static void check_lockdown(struct doctor *doctor)
{
	char level[SYSFS_TEXT];

	read_lockdown(level);
	if (!level[0] || !strcmp(level, "none"))
		doctor_report(doctor, DOCTOR_OK, "lockdown", NULL, "off");
	else
		doctor_report(doctor, DOCTOR_FAIL, "lockdown",
			      "turn Secure Boot off, or remove lockdown= from the kernel command line",
			      "%s: the kernel refuses queue pairs", level);
}

/* Secure Boot, as reported by the firmware. */
enum secure_boot { SECURE_BOOT_OFF, SECURE_BOOT_ON, SECURE_BOOT_UNKNOWN };

static const char *const secure_boot_words[] = { "off", "on", "unknown" };

/* The directory is empty if efivarfs is not mounted. */
static bool has_efi_variables(void)
{
	struct dirent **names;
	int count = sysfs_list(&names, EFI_VARIABLES);

	sysfs_list_free(names, count);
	return count > 0;
}

/* Off without UEFI, and if the firmware does not have the variable. */
static enum secure_boot read_secure_boot(void)
{
	unsigned char variable[5] = { 0 };

	/* Four bytes of attributes precede the value. */
	if (sysfs_bytes(variable, sizeof(variable), SECURE_BOOT) == sizeof(variable))
		return variable[4] == 1 ? SECURE_BOOT_ON : SECURE_BOOT_OFF;
	if (!sysfs_exists("/sys/firmware/efi"))
		return SECURE_BOOT_OFF;
	return has_efi_variables() && !sysfs_exists(SECURE_BOOT) ? SECURE_BOOT_OFF : SECURE_BOOT_UNKNOWN;
}

/* Kernels without EFI runtime services, such as real-time ones, lack the directory. */
static const char *help_of_unknown(void)
{
	if (!sysfs_exists(EFI_VARIABLES))
		return "boot with efi=runtime, or check the setup of the firmware";
	return has_efi_variables() ? "check the setup of the firmware" :
				  "mount -t efivarfs none " EFI_VARIABLES;
}

static void check_unloaded(struct doctor *doctor, enum secure_boot secure, bool enforced)
{
	if (enforced || secure == SECURE_BOOT_ON)
		doctor_report(doctor, DOCTOR_WARN, "signature",
			      "sign nvme_peer.ko (scripts/sign-file) with a key that mokutil --import has enrolled",
			      "Secure Boot is %s%s: modules without a known signature may not be loaded",
			      secure_boot_words[secure],
			      secure == SECURE_BOOT_ON ? "" : ", but signatures are enforced");
	else
		doctor_report(doctor, DOCTOR_WARN, "signature", help_of_unknown(),
			      "Secure Boot is unknown, as EFI variables cannot be read: if it is on, modules need a signature");
}

static void check_signature(struct doctor *doctor)
{
	enum secure_boot secure = read_secure_boot();
	char enforced[SYSFS_TEXT];

	sysfs_read(enforced, "/sys/module/module/parameters/sig_enforce");
	if (secure == SECURE_BOOT_OFF && enforced[0] != 'Y')
		doctor_report(doctor, DOCTOR_OK, "signature", NULL, "Secure Boot is off, modules need no signature");
	else if (module_is_loaded())
		doctor_report(doctor, DOCTOR_OK, "signature", NULL, "Secure Boot is %s, the module is loaded",
			      secure_boot_words[secure]);
	else
		check_unloaded(doctor, secure, enforced[0] == 'Y');
}

static void check_module(struct doctor *doctor)
{
	char taint[SYSFS_TEXT];

	if (!module_is_loaded()) {
		doctor_report(doctor, DOCTOR_FAIL, "module", "modprobe nvme_peer",
			      "nvme_peer is not loaded");
		return;
	}
	sysfs_read(taint, "/sys/module/nvme_peer/taint");
	doctor_report(doctor, DOCTOR_OK, "module", NULL, "nvme_peer is loaded%s%s",
		      taint[0] ? ", taints the kernel: " : "", taint);
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
