/* SPDX-License-Identifier: GPL-2.0-only */
/* How badctrl misbehaves: written by tests, obeyed by the device. */
#ifndef BADCTRL_H
#define BADCTRL_H

#define BADCTRL_VENDOR	0x1234
#define BADCTRL_DEVICE	0xbadc

#define BADCTRL_BAR_BYTES	0x4000

/* 32-bit register in BAR0 behind those of NVMe; a function reset clears it. */
#define BADCTRL_REG_MODE	0x3000

/* Doorbells that were rung while it was not ready; writing the mode clears it. */
#define BADCTRL_REG_EARLY	0x3004

/**
 * enum badctrl_mode - what it does wrong
 * @BADCTRL_NEVER_READY: CSTS.RDY does not follow CC.EN
 * @BADCTRL_FATAL: enabling it ends in CSTS.CFS
 * @BADCTRL_SILENT: becomes ready and answers no command
 * @BADCTRL_NEVER_STOPS: as before, and stays ready when it is disabled
 * @BADCTRL_GONE: every register reads all ones
 * @BADCTRL_NO_QUEUE: CAP.MQES is 0, which the specification does not allow
 * @BADCTRL_HUGE_PAGES: CAP.MPSMIN is larger than a page of the host
 */
enum badctrl_mode {
	BADCTRL_NEVER_READY = 0,
	BADCTRL_FATAL = 1,
	BADCTRL_SILENT = 2,
	BADCTRL_NEVER_STOPS = 3,
	BADCTRL_GONE = 4,
	BADCTRL_NO_QUEUE = 5,
	BADCTRL_HUGE_PAGES = 6,
};

#endif /* BADCTRL_H */
