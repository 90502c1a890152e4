// SPDX-License-Identifier: GPL-2.0-only
/* Where the trace events of trace.h live. */
#define CREATE_TRACE_POINTS
#include "trace.h"
