// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults that somebody else brings about: resets by every way there is, errors of PCI
 * Express, functions that go and come, and what a user may try at the worst moment.
 */
#include "kind.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* The port above the one that is well; selftests/lib/cell.sh. */
#define PORT	"rp1"

static int write_attribute(const struct np_ctrl *ctrl, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", ctrl->address, name);
	return np_write_file(path, text);
}

/* --- resets -------------------------------------------------------------------- */

static int reset(const struct np_ctrl *ctrl)
{
	return np_ioctl(ctrl->fd, NVME_IOCTL_RESET, NULL);
}

static int reset_by_ioctl(struct fault *fault)
{
	return reset(fault->target->ctrl);
}

static int reset_by_attribute(struct fault *fault)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/reset_controller",
		 fault->target->ctrl->instance);
	return np_write_file(path, "1");
}

static int reset_function(struct fault *fault)
{
	return write_attribute(fault->target->ctrl, "reset_method", "flr") ?:
	       write_attribute(fault->target->ctrl, "reset", "1");
}

static int reset_bus(struct fault *fault)
{
	return write_attribute(fault->target->ctrl, "reset_method", "bus") ?:
	       write_attribute(fault->target->ctrl, "reset", "1");
}

static int reset_both(struct fault *fault)
{
	return reset(fault->target->ctrl) ?: reset(fault->other->ctrl);
}

static void *reset_in_background(void *argument)
{
	return (void *)(intptr_t)reset(argument);
}

/* One of them waits for the other, or is told that there is one. */
static int two_resets(struct fault *fault)
{
	pthread_t thread;
	void *result;
	int ret;

	ret = -pthread_create(&thread, NULL, reset_in_background, fault->target->ctrl);
	if (ret)
		return ret;
	ret = reset_function(fault);
	pthread_join(thread, &result);
	return ret ?: (intptr_t)result == -EBUSY ? 0 : (int)(intptr_t)result;
}

/* While the peers come back from the one before. */
static int reset_again(struct fault *fault)
{
	int ret = reset(fault->target->ctrl);

	np_sleep_ms((int)(nrand48(fault->random) % 10));
	return ret ?: reset(fault->target->ctrl);
}

/* --- functions and links -------------------------------------------------------- */

static int unbind(struct fault *fault)
{
	return np_unbind(fault->target->ctrl->address);
}

static int pull(struct fault *fault)
{
	return np_pull(fault->target->ctrl->address) ?:
	       np_find_again(fault->target->ctrl->address);
}

/* Bit 0 of the Correctable Error Status: Receiver Error. */
static int corrected_error(struct fault *fault)
{
	(void)fault;
	return np_monitor("pcie_aer_inject_error -c " PORT " 1");
}

static int error_not_fatal(struct fault *fault)
{
	(void)fault;
	return np_monitor("pcie_aer_inject_error " PORT " POISON_TLP");
}

static int fatal_error(struct fault *fault)
{
	(void)fault;
	return np_monitor("pcie_aer_inject_error " PORT " MALF_TLP");
}

/* --- users ----------------------------------------------------------------------- */

/*
 * Data of a peer lay in memory that its exporter wants back. Who knows the addresses is
 * not known, so that no peer of the controller keeps its queue pair.
 */
static int take_memory(struct fault *fault)
{
	struct nvmep_test_move move = { .fd = fault->victim->dmabuf };
	int test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC), ret;

	if (test < 0)
		return -errno;
	ret = np_ioctl(test, NVMEP_TEST_MOVE, &move);
	close(test);
	return ret;
}

/* Another owner of a queue pair, which can still store to its doorbells. */
static int kill_owner(struct fault *fault)
{
	struct np_mapper mapper;
	int ret = np_mapper_start(&mapper, fault->target->ctrl->fd);

	if (ret)
		return ret;
	kill(mapper.pid, SIGKILL);
	np_mapper_end(&mapper);
	return 0;
}

static int try_to_unload(struct fault *fault)
{
	(void)fault;
	return np_module_unload(0) == -EAGAIN ? 0 : -EBADE;
}

/* A kernel that cannot sleep at all has nothing to refuse. */
static int try_to_sleep(struct fault *fault)
{
	int test = np_sleep_begin(fault->target->ctrl->address), ret;

	if (test == -EOPNOTSUPP)
		return 0;
	if (test < 0)
		return test;
	ret = np_fall_asleep();
	np_sleep_end(test);
	return ret == -EBUSY ? 0 : -EBADE;
}

static int rescan(struct fault *fault)
{
	return np_ioctl(fault->target->ctrl->fd, NVME_IOCTL_RESCAN, NULL);
}

/* --- during a reset --------------------------------------------------------------- */

/* Which of the two ends how depends on which was first; what came of both is judged. */
static int during_reset(struct fault *fault, int (*strike)(struct fault *fault))
{
	pthread_t thread;
	int ret;

	ret = -pthread_create(&thread, NULL, reset_in_background, fault->target->ctrl);
	if (ret)
		return ret;
	np_sleep_ms((int)(nrand48(fault->random) % 20));
	ret = strike(fault);
	pthread_join(thread, NULL);
	return ret;
}

static int unbind_in_reset(struct fault *fault)
{
	return during_reset(fault, unbind);
}

static int pull_in_reset(struct fault *fault)
{
	return during_reset(fault, pull);
}

static int fatal_error_in_reset(struct fault *fault)
{
	return during_reset(fault, fatal_error);
}

static int take_memory_in_reset(struct fault *fault)
{
	return during_reset(fault, take_memory);
}

/* --- the table ------------------------------------------------------------------- */

const struct kind interferences[] = {
	{ "reset by ioctl", ON_BOTH, 80, FATE_LOST, FATE_LOST, .strike = reset_by_ioctl },
	{ "reset by sysfs", ON_BOTH, 40, FATE_LOST, FATE_LOST, .strike = reset_by_attribute },
	{ "reset of the function", ON_BOTH, 80, FATE_LOST, FATE_LOST, .strike = reset_function },
	{ "reset of the bus", ON_WELL, 40, FATE_LOST, FATE_LOST, .strike = reset_bus },
	{ "two resets at once", ON_BOTH, 40, FATE_LOST, FATE_LOST, .again = true,
	  .strike = two_resets },
	{ "reset on the way back", ON_BOTH, 40, FATE_LOST, FATE_LOST, .again = true,
	  .strike = reset_again },
	{ "both controllers at once", ON_BOTH, 60, FATE_LOST, FATE_LOST, .both = true,
	  .strike = reset_both },
	{ "driver unbound", ON_BOTH, 15, FATE_ENDED, FATE_ENDED, FATE_ENDED, .strike = unbind },
	{ "function pulled", ON_WELL, 15, FATE_ENDED, FATE_ENDED, FATE_ENDED, .strike = pull },
	{ "corrected PCI error", ON_WELL, 15, .strike = corrected_error },
	{ "PCI error that is not fatal", ON_WELL, 10, .strike = error_not_fatal },
	{ "fatal PCI error", ON_WELL, 10, FATE_LOST, FATE_LOST, .strike = fatal_error },
	{ "driver unbound during a reset", ON_BOTH, 10, FATE_ENDED, FATE_ENDED, FATE_ENDED,
	  .strike = unbind_in_reset },
	{ "function pulled during a reset", ON_WELL, 8, FATE_ENDED, FATE_ENDED, FATE_ENDED,
	  .strike = pull_in_reset },
	{ "fatal PCI error during a reset", ON_WELL, 8, FATE_LOST, FATE_LOST, .again = true,
	  .strike = fatal_error_in_reset },
	{ "exporter takes memory back during a reset", ON_BOTH, 15, FATE_ENDED, FATE_ENDED,
	  .strike = take_memory_in_reset },
	{ "exporter takes memory back", ON_BOTH, 20, FATE_ENDED, FATE_ENDED, .strike = take_memory },
	{ "owner of another queue pair is killed", ON_BOTH, 20, .strike = kill_owner },
	{ "module cannot be unloaded", ON_BOTH, 10, .strike = try_to_unload },
	{ "controller cannot sleep", ON_BOTH, 10, .strike = try_to_sleep },
	{ "namespaces are looked at", ON_BOTH, 20, .strike = rescan },
};

const unsigned int interference_count = sizeof(interferences) / sizeof(interferences[0]);
