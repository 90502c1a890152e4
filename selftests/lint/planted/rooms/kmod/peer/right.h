/* SPDX-License-Identifier: GPL-2.0-only */
/* What the right hand may show to the roof. */
#include "core/lower.h"
