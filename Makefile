# SPDX-License-Identifier: GPL-2.0-only
# Entry points for users and developers; `make help` lists them.
#
# Two kinds of builds:
#  - native, against this machine's kernel headers (or KDIR=) and libraries: make, make install
#  - in the tests' Debian tree, which selftests/setup/setup.sh makes:        make module KERNEL=, make user
# Objects go to build/<kernel>/ and build/user/ only.

top := $(abspath $(dir $(lastword $(MAKEFILE_LIST))))
build := $(top)/build
setup := $(top)/selftests/setup
in_tree := $(setup)/in-tree

kernels := 6.1 6.12 7
DESTDIR ?=
PREFIX ?= /usr/local

# Directories with user programs, in the order of their dependencies.
user_dirs := $(patsubst %/Makefile,%,$(wildcard $(addsuffix /Makefile,$(addprefix $(top)/,lib lib/cuda lib/store integrations/nixl tools python rust examples selftests/device selftests/vfio_user selftests/softgpu selftests/badctrl selftests/tests selftests/demo selftests/coverage selftests/fault selftests/fuzz selftests/bench))))

# Arguments of their Makefiles: the directory for results (lib/, tests/ and programs), and the
# directory of Debian's kselftest_harness.h.
OUT ?= $(build)/native
cache := $(or $(NVME_PEER_CACHE),$(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/nvme-peer)
user_args = OUT=$(OUT) KSELFTEST=$(cache)/kselftest
# Only what the demonstration needs, a tenth of all programs.
demo_dirs := $(addprefix $(top)/,lib selftests/vfio_user selftests/softgpu selftests/badctrl selftests/demo)

.DEFAULT_GOAL := all
.PHONY: all native deb module modules user user-here setup demo demo-user smoke check check-long check-faults check-mutants unit lint html bench-cpu bench-gpu bench-card headers-table clean install install-user help

help:
	@echo 'Native, with this machine'"'"'s headers:'
	@echo '  all (default)   the module for the running kernel (KDIR=DIR: another), library and tools'
	@echo '  install         install them (DESTDIR=, PREFIX=)'
	@echo '  install-user    the same without the module: needs no kernel headers'
	@echo '  deb             Debian packages, the module as DKMS source (DEB=: into which folder)'
	@echo 'In the tests'"'"' own Debian tree, made on first use (root, NVME_PEER_CACHE= says where):'
	@echo '  demo            show CPU and software GPU doing I/O on one controller'
	@echo '  check           builds for $(kernels), unit tests, all selftests; check-long adds the slow ones'
	@echo '  smoke           what finds most mistakes in about four minutes: selftests/smoke.list'
	@echo '  check-mutants   break module and libraries in one place at a time; a test must fail'
	@echo '  check-faults    10,000 random faults under load, half of them on the debug kernel'
	@echo '  bench-cpu       instructions of an I/O of the CPU, with nvme-peer and the in-tree driver'
	@echo '  module          modules for KERNEL=$(subst $() ,|,$(kernels)) (default 7) into build/KERNEL/'
	@echo '  modules         modules for all of them'
	@echo '  user            library, tools, software GPU and tests into build/user/'
	@echo '  unit            run the unit tests; lint: checkpatch, sparse, Coccinelle, shellcheck, layers'
	@echo '  headers-table   the module against every package of kernel headers that Debian offers'
	@echo '  html            Documentation/ as pages, into build/documentation/html/'
	@echo '  clean           remove build/'
	@echo 'On a machine with an NVIDIA GPU and nvcc:'
	@echo '  bench-gpu       build, check and measure the device library'
	@echo '  bench-card      the GPU drives the module in a guest; without a GPU by a fake libcuda'
	@echo 'One test: selftests/run --only NAME (selftests/run --help)'

## Native

ifeq ($(KERNEL),)
KDIR ?= /lib/modules/$(shell uname -r)/build
endif

all: native

# Tests need the test set-up; a native build has only what is installed.
native: user_dirs := $(filter %/lib %/lib/cuda %/lib/store %/tools,$(user_dirs))
native:
	$(setup)/build-modules --native $(abspath $(KDIR))
	@mkdir -p $(OUT)
	@set -e; for dir in $(user_dirs); do $(MAKE) --no-print-directory -C $$dir $(user_args) all; done

# One sub-make for each directory, in order, as later ones link results of earlier ones. A
# directory that fails does not stop the others.
user-here:
	@mkdir -p $(OUT)
	@status=0; for dir in $(user_dirs); do \
		$(MAKE) --no-print-directory -C $$dir $(user_args) all || status=1; done; exit $$status

install: native install-user
	@set -e; release=$$(sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h); \
	install -D -m 644 $(build)/$$release/nvme_peer.ko $(DESTDIR)/lib/modules/$$release/updates/nvme_peer.ko; \
	if [ -z "$(DESTDIR)" ]; then depmod -a $$release; fi

# Libraries, headers, pkg-config files, the command with its completion, udev rules and manual
# pages.
install-user:
	@mkdir -p $(OUT)
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/linux $(top)/include/uapi/linux/nvme_peer.h
	@set -e; for dir in $(addprefix $(top)/,lib lib/cuda lib/store tools Documentation/man); do \
		$(MAKE) --no-print-directory -C $$dir $(user_args) install DESTDIR=$(DESTDIR) PREFIX=$(PREFIX); done
	@# Libraries below /usr/local are found by the loader's cache only.
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then PATH="$$PATH:/sbin:/usr/sbin" ldconfig; fi

# In a copy, as dpkg-buildpackage writes to the source directory and its parent.
DEB ?= $(build)/deb
DEB_VERSION ?= $(shell sed -n '1s/.*(\(.*\)).*/\1/p' $(top)/debian/changelog)
deb:
	rm -rf $(DEB)/source
	mkdir -p $(DEB)/source
	tar -C $(top) --exclude=./build --exclude=./.git -c . | tar -C $(DEB)/source -x
	sed -i '1s/(.*)/($(DEB_VERSION))/' $(DEB)/source/debian/changelog
	cd $(DEB)/source && dpkg-buildpackage -us -uc -b
	rm -rf $(DEB)/source

## In the tree

# With KDIR=, which names headers outside the tree, build only the module, natively.
ifneq ($(origin KDIR),command line)
module: KERNEL := $(or $(KERNEL),7)
module:
	@$(setup)/setup.sh $(KERNEL)
	@$(setup)/build-modules $(KERNEL)
else
module:
	@$(setup)/build-modules --native $(abspath $(KDIR))
endif

modules:
	@$(setup)/setup.sh $(kernels)
	@set -e; for kernel in $(kernels); do $(setup)/build-modules $$kernel; done

user:
	@$(setup)/setup.sh --tree-only
	@mkdir -p $(build)
	@flock $(build)/.user.lock $(in_tree) $(MAKE) --no-print-directory -j$(shell nproc) -f $(top)/Makefile user-here OUT=$(build)/user

# Without kselftest_harness.h no tests are built.
demo-user:
	@mkdir -p $(build)
	@flock $(build)/.user.lock $(in_tree) $(MAKE) --no-print-directory -j$(shell nproc) -f $(top)/Makefile user-here \
		user_dirs="$(demo_dirs)" user_args="OUT=$(build)/user KSELFTEST="

setup:
	$(setup)/setup.sh

demo:
	@$(top)/selftests/run --demo

unit: user
	@$(setup)/setup.sh --tree-only --lint
	@$(top)/selftests/run --unit

check:
	@$(top)/selftests/check

smoke:
	@$(top)/selftests/check --smoke

check-long:
	@$(top)/selftests/check --long

check-mutants: user
	@$(in_tree) $(top)/selftests/device/mutate
	@$(in_tree) $(top)/selftests/tests/unit-store-mutants.sh --all
	@$(top)/selftests/mutants/run --jobs 2

check-faults:
	@$(top)/selftests/run --long --only fault_campaign --cell debug/on/root --cell 7/on/root --jobs 2

# The last run has its data in the memory of a GPU.
bench-cpu:
	@$(top)/selftests/bench/run
	@$(top)/selftests/bench/run --no-build --iommu off --rates
	@$(top)/selftests/bench/run --no-build --cpus 8
	@$(top)/selftests/bench/run --no-build --iommu off --drivers nvme-peer,nvme-peer+8busy --json $(build)/bench-cpu-busy.json \
		pass-32 read-32
	@$(top)/selftests/run --no-build --no-shadow --medium-rate 4000 --cell 7/off/root -- /selftests/bench/share.sh
	@$(top)/selftests/bench/run --no-build --drivers nvme-peer,nvme-peer@gpu --json $(build)/bench-cpu-gpu.json \
		pass-fixed-1 pass-fixed-32 pass-fixed-128k pass-fixed-128k-whole poll-pass-32

headers-table:
	@$(top)/selftests/packages/headers

lint:
	@$(setup)/setup.sh --lint
	@$(top)/selftests/lint/run

html:
	@$(setup)/setup.sh --tree-only --lint
	@$(in_tree) $(top)/Documentation/pages $(top) $(cache)/checkpatch/scripts/kernel-doc $(build)/documentation/html

# Needs no set-up, only nvcc and a GPU.
bench-gpu:
	@$(top)/selftests/cuda/bench-gpu.sh

# Uses the set-up, or an unpacked bundle (setup/bundle).
bench-card:
	@$(top)/selftests/cuda/card.sh

clean:
	rm -rf $(build)
