# SPDX-License-Identifier: MIT OR GPL-2.0
# Compiler flags of the library and of every program built on it.

CFLAGS ?= -O2 -g
user_cflags := -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wundef -I$(top)/include -I$(top)/include/uapi $(CFLAGS)
