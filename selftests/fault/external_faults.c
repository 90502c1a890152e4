// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults from outside the controller: resets by all methods, PCI Express errors,
 * functions that are removed and rescanned, and calls of users at critical moments.
 */
#include "fault_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* The port above the controller without faults; selftests/lib/cell.sh. */
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

/* One reset waits for the other, or is refused. */
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

/* While the peers re-arm after the previous one. */
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
	return np_surprise_remove(fault->target->ctrl->address) ?:
	       np_rescan(fault->target->ctrl->address);
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
 * The exporter invalidates memory of a peer. The queue pairs of its node end; without strict
 * translation all of the controller, as any may use its addresses.
 */
static int invalidate_memory(struct fault *fault)
{
	struct nvmep_test_move move = { .fd = fault->victim->dmabuf };
	int test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC), ret;

	if (test < 0)
		return -errno;
	ret = np_ioctl(test, NVMEP_TEST_MOVE, &move);
	close(test);
	return ret;
}

/* Kill the owner of another queue pair, which can still store to its doorbells. */
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

/*
 * A kernel without suspend has nothing to refuse. Mediated queue pairs cannot refuse it: they are lost, as
 * by a reset.
 */
static int try_to_sleep(struct fault *fault)
{
	int test = np_sleep_begin(fault->target->ctrl->address), ret;

	if (test == -EOPNOTSUPP)
		return 0;
	if (test < 0)
		return test;
	ret = np_suspend();
	np_sleep_end(test);
	return ret == (np_as_tenant() ? 0 : -EBUSY) ? 0 : -EBADE;
}

static int rescan(struct fault *fault)
{
	return np_ioctl(fault->target->ctrl->fd, NVME_IOCTL_RESCAN, NULL);
}

/* --- during a reset --------------------------------------------------------------- */

/* The result depends on which one is first; the results of both are verified. */
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
	return during_reset(fault, invalidate_memory);
}

/* --- the table ------------------------------------------------------------------- */

const struct kind external_faults[] = {
	{ "reset by ioctl", ON_BOTH, 80, FATE_LOST, FATE_LOST, .strike = reset_by_ioctl },
	{ "reset by sysfs", ON_BOTH, 40, FATE_LOST, FATE_LOST, .strike = reset_by_attribute },
	{ "reset of the function", ON_BOTH, 80, FATE_LOST, FATE_LOST, .strike = reset_function },
	{ "reset of the bus", ON_WELL, 40, FATE_LOST, FATE_LOST, .strike = reset_bus },
	{ "two resets at once", ON_BOTH, 40, FATE_LOST, FATE_LOST, .again = true,
	  .strike = two_resets },
	{ "two resets at once", ON_BOTH, 40, FATE_LOST, FATE_LOST, .again = true,
	  .strike = reset_again },
	{ "reset during re-arm", ON_BOTH, 60, FATE_LOST, FATE_LOST, .both = true,
	  .strike = reset_both },
	{ "driver unbound", ON_BOTH, 15, FATE_ENDED, FATE_ENDED, FATE_ENDED, .strike = unbind },
	{ "function pulled", ON_WELL, 15, FATE_ENDED, FATE_ENDED, FATE_ENDED, .strike = pull },
	{ "corrected PCI error", ON_WELL, 15, .strike = corrected_error },
	{ "non-fatal PCI error", ON_WELL, 10, .strike = error_not_fatal },
	{ "fatal PCI error", ON_WELL, 10, FATE_LOST, FATE_LOST, .strike = fatal_error },
	{ "driver unbound during a reset", ON_BOTH, 10, FATE_ENDED, FATE_ENDED, FATE_ENDED,
	  .strike = unbind_in_reset },
	{ "function pulled during a reset", ON_WELL, 8, FATE_ENDED, FATE_ENDED, FATE_ENDED,
	  .strike = pull_in_reset },
	{ "fatal PCI error during a reset", ON_WELL, 8, FATE_LOST, FATE_LOST, .again = true,
	  .strike = fatal_error_in_reset },
	{ "exporter invalidates memory during a reset", ON_BOTH, 15, FATE_ENDED, FATE_ENDED,
	  .by_node = true, .confined = FATE_LOST, .strike = take_memory_in_reset },
	{ "exporter invalidates memory", ON_BOTH, 20, FATE_ENDED, FATE_ENDED,
	  .by_node = true, .strike = invalidate_memory },
	{ "owner of another queue pair is killed", ON_BOTH, 20, .takes_qid = true,
	  .strike = kill_owner },
	{ "module cannot be unloaded", ON_BOTH, 10, .strike = try_to_unload },
	{ "suspend is refused", ON_BOTH, 10, .tenants = FATE_LOST, .strike = try_to_sleep },
	{ "namespace rescan", ON_BOTH, 20, .strike = rescan },
};

const unsigned int interference_count = sizeof(external_faults) / sizeof(external_faults[0]);
