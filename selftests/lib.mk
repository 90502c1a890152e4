# SPDX-License-Identifier: GPL-2.0-only
# What the Makefile of a target needs of kselftest's lib.mk: it sets TEST_GEN_PROGS and includes this
# file. The programs are those of tests/, built with this machine's compiler into OUT/tests.

selftests := $(abspath $(dir $(lastword $(MAKEFILE_LIST))))
OUT ?= $(abspath $(selftests)/../build/native)
target := $(notdir $(CURDIR))
programs := $(TEST_GEN_PROGS:%=$(OUT)/tests/%)

# kselftest_harness.h: in the kernel's source or the cache of the tests' set-up.
cache := $(or $(NVME_PEER_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/nvme-peer)
KSELFTEST ?= $(firstword $(patsubst %/kselftest_harness.h,%,$(wildcard $(addsuffix /kselftest_harness.h,\
	$(cache)/kselftest $(addsuffix /tools/testing/selftests,/lib/modules/$(shell uname -r)/source $(wildcard /usr/src/linux*))))))

export TEST_BDF TEST_BDF2 TEST_WIPE

.DEFAULT_GOAL := all
.PHONY: all run_tests install clean

all:
	@[ -f "$(KSELFTEST)/kselftest_harness.h" ] || { \
		echo 'no kselftest_harness.h: KSELFTEST=LINUX/tools/testing/selftests, of the source of Linux 6.12 or newer' >&2; exit 1; }
	@mkdir -p $(OUT)
	@for library in lib lib/store; do \
		$(MAKE) --no-print-directory -C $(selftests)/../$$library OUT=$(OUT) KSELFTEST= all || exit; done
	@$(MAKE) --no-print-directory -C $(selftests)/tests OUT=$(OUT) KSELFTEST=$(KSELFTEST) $(programs)

run_tests: all
	@$(selftests)/lib/run-target $(CURDIR) $(programs)

# For another machine: INSTALL_PATH/qualify runs what is installed.
install: all
	@install -D -t $(INSTALL_PATH) $(selftests)/qualify
	@install -D -t $(INSTALL_PATH)/lib $(addprefix $(selftests)/lib/,run-target ktap.sh results.sh)
	@install -D -t $(INSTALL_PATH)/$(target) settings $(programs)

clean:
	rm -f $(programs)
