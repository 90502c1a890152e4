# SPDX-License-Identifier: MIT OR GPL-2.0
# One library, shared and static, its list of symbols and its installation. Set before: top, OUT,
# name, from (its directory), objects, headers (to install), symbols (headers that declare its
# calls, without .h), libraries (to link). Defines PREFIX, LIBDIR, library_files.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
version := $(shell cat $(top)/VERSION)
soname := lib$(name).so.0
library_files := $(OUT)/lib/lib$(name).a $(OUT)/lib/lib$(name).so
pc = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(version)|' $(from)/lib$(name).pc.in

$(OUT)/lib/lib$(name).a: $(objects) | $(OUT)/lib
	rm -f $@
	$(AR) rcs $@ $^

$(OUT)/lib/$(soname): $(objects) $(from)/lib$(name).map | $(OUT)/lib
	$(CC) $(LDFLAGS) -shared -Wl,-soname,$(soname) -Wl,-z,defs -Wl,--version-script,$(from)/lib$(name).map \
		-o $@ $(objects) $(libraries)

$(OUT)/lib/lib$(name).so: $(OUT)/lib/$(soname)
	ln -sf $(soname) $@

# Those above libnvmepeer link with it.
ifneq ($(name),nvmepeer)
$(OUT)/lib/$(soname): $(OUT)/lib/libnvmepeer.so
endif

# Tests run without arguments.
$(symbols_test): $(top)/lib/tests/symbols.sh $(OUT)/lib/lib$(name).so | $(OUT)/tests
	printf '#!/bin/sh\nexec %s %s $(symbols)\n' $(top)/lib/tests/symbols.sh $(OUT)/lib/lib$(name).so >$@
	chmod +x $@

install-library: $(library_files)
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 644 $(OUT)/lib/lib$(name).a $(DESTDIR)$(LIBDIR)
	install -m 755 $(OUT)/lib/$(soname) $(DESTDIR)$(LIBDIR)
	ln -sf $(soname) $(DESTDIR)$(LIBDIR)/lib$(name).so
	$(pc) >$(DESTDIR)$(LIBDIR)/pkgconfig/lib$(name).pc
	cd $(top)/include && install -m 644 $(headers) $(DESTDIR)$(PREFIX)/include

.PHONY: install-library
