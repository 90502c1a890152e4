/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Module parameters that more than one room reads.
 */
#ifndef _NVMEP_PARAMS_H
#define _NVMEP_PARAMS_H

extern unsigned int nvmep_io_timeout;		/* seconds; of disks to come */
extern unsigned int nvmep_admin_timeout;	/* seconds */

#endif /* _NVMEP_PARAMS_H */
