// SPDX-License-Identifier: GPL-2.0-only
/*
 * Module parameters that more than one room reads; one that a single room reads
 * is declared there.
 */
#include <linux/module.h>

#include "params.h"

unsigned int nvmep_io_timeout = 30;
module_param_named(io_timeout, nvmep_io_timeout, uint, 0644);
MODULE_PARM_DESC(io_timeout,
		 "seconds until an I/O command is aborted, for controllers bound from now on");

unsigned int nvmep_admin_timeout = 60;
module_param_named(admin_timeout, nvmep_admin_timeout, uint, 0644);
MODULE_PARM_DESC(admin_timeout,
		 "seconds until an admin command has the controller reset");
