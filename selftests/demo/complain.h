/* SPDX-License-Identifier: GPL-2.0-only */
/* What went wrong, on one line of the output. */
#ifndef DEMO_COMPLAIN_H
#define DEMO_COMPLAIN_H

#include <stdbool.h>

/* complain() - one line to stdout, with the library's explanation if @explain. */
__attribute__((format(printf, 2, 3)))
void complain(bool explain, const char *format, ...);

#endif /* DEMO_COMPLAIN_H */
