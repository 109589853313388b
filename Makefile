# SPDX-License-Identifier: Apache-2.0
#
# Everything is built below build/, in one make process.  A flavour is the whole tree compiled with one set of flags into a
# directory of its own; the template at "Flavours" makes all rules of one.  Parts may be empty: sources are found by name.
#
#   CC=clang   another compiler          V=1         show the commands
#   BUILD=dir  another build directory   ONLY="common daemon/core"  these parts only, while another does not compile

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

VERSION := 0.1.0
BUILD ?= build
ONLY ?= common daemon client

PREFIX ?= /usr/local
exec_prefix ?= $(PREFIX)
bindir ?= $(exec_prefix)/bin
libdir ?= $(exec_prefix)/lib
includedir ?= $(PREFIX)/include
datarootdir ?= $(PREFIX)/share
datadir ?= $(datarootdir)
docdir ?= $(datarootdir)/doc/headrace
mandir ?= $(datarootdir)/man
pkgconfigdir ?= $(libdir)/pkgconfig
INSTALL ?= install
LDCONFIG ?= ldconfig

ifeq ($(origin CC),default)
CC := gcc
endif
AR := ar
OBJCOPY ?= objcopy
CLANG ?= clang
CFLAGS ?= -O2 -g
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 600

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror
STANDARD := -std=gnu11 -D_GNU_SOURCE -I. -fPIC -fno-semantic-interposition -pthread

Q := $(if $(V),,@)
say = $(if $(V),:,printf '  %-8s %s\n' $(1) $(2))

# What is missing on the machine is installed before the first object is compiled, because the include below makes $(BUILD)/
# libraries.mk, and that runs scripts/bootstrap: it is quick when there is nothing to do.
GOALS := $(or $(MAKECMDGOALS),all)
ifneq ($(filter-out help clean dist format,$(GOALS)),)
-include $(BUILD)/libraries.mk
endif

PACKAGES := libuv libcurl jansson expat libisal libxxhash libcrypto check

$(BUILD)/libraries.mk: FORCE
	@mkdir -p $(@D)
	@scripts/bootstrap packages
	@{ echo "LIBRARIES_CFLAGS := $$(pkg-config --cflags $(PACKAGES))"; \
	   for package in $(PACKAGES); do echo "LIBS_$$package := $$(pkg-config --libs $$package)"; done; } >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

LIBS := -Wl,--as-needed $(foreach package,$(filter-out check,$(PACKAGES)),$(LIBS_$(package))) -lm -ldl

# ---- Sources --------------------------------------------------------------------------------------------------------------------

in_parts = $(filter $(addsuffix /%,$(ONLY)),$(1))
COMMON := $(call in_parts,$(sort $(wildcard common/*.c)))
DAEMON := $(call in_parts,$(sort $(wildcard daemon/*.c daemon/*/*.c)))
LIBRARY := $(call in_parts,$(sort $(wildcard client/lib/*.c)))
CLI := $(call in_parts,$(sort $(wildcard client/cli/*.c)))
MAINS := $(filter %/main.c,$(DAEMON) $(CLI))
PRODUCT := $(COMMON) $(DAEMON) $(LIBRARY) $(CLI)

# Unit tests mirror the tree, with or without daemon/; what lies beside them under another name is linked to all of them.
unit_files := $(sort $(wildcard tests/unit/*.c tests/unit/*/*.c tests/unit/*/*/*.c tests/unit/*/*/*/*.c))
unit_tests := $(foreach file,$(unit_files),$(if $(filter test_%,$(notdir $(file))),$(file)))
UNIT_TESTS := $(filter tests/unit/tests/% $(foreach part,$(ONLY) $(patsubst daemon/%,%,$(ONLY)),tests/unit/$(part)/%) $(if $(filter daemon,$(ONLY)),%),\
                $(unit_tests))
UNIT_HELPERS := $(filter-out $(unit_tests),$(unit_files))
comma := ,
# Functions that tests/unit/fail.c can make fail; they are led there in test programs only.
FAILING := malloc calloc realloc reallocarray aligned_alloc strdup strndup vasprintf memfd_create mmap ftruncate \
	fallocate socket bind listen connect accept4 sendmsg recvmsg recv read pread fstat flock rename fdopendir \
	fopen getrandom asprintf fcntl open openat pthread_create
WRAPS := $(addprefix -Wl$(comma)--wrap=,tcase_create _mark_point $(FAILING))
FUZZERS := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_REPLAY := $(wildcard tests/fuzz/replay.c)
BENCHES := $(sort $(wildcard tests/bench/*.c))
DIFFERENTIAL := $(sort $(wildcard tests/differential/*.c))
# Complete programs against the public header and the shared library only.
EXAMPLES := $(if $(LIBRARY),$(sort $(wildcard docs/examples/*.c tests/integration/*.c tests/fault/*.c tests/conformance/*.c)))
TESTING := $(UNIT_TESTS) $(UNIT_HELPERS) $(FUZZERS) $(FUZZ_REPLAY) $(BENCHES) $(DIFFERENTIAL) $(EXAMPLES)
VERSION_SCRIPT := client/lib/libheadrace.map

# ---- Flavours -------------------------------------------------------------------------------------------------------------------

# $(call flavour,NAME,DIRECTORY,COMPILER,FLAGS): targets NAME (the programs), NAME-tests (all test programs).
define flavour
.PHONY: $(1) $(1)-tests
$(1)_objects = $$(patsubst %.c,$(2)/obj/%.o,$$(1))

$(2)/obj/flags: FORCE
	@mkdir -p $$(@D)
	@echo '$(3) $$(CPPFLAGS) $$(CFLAGS) $(4) $$(WARNINGS) $$(STANDARD) $$(LDFLAGS)' >$$@.new
	@if cmp -s $$@.new $$@; then rm $$@.new; else mv $$@.new $$@; fi

$(2)/obj/%.o: %.c $(2)/obj/flags
	@mkdir -p $$(@D); $$(call say,CC,$$@)
	$$(Q)$(3) $$(STANDARD) $$(if $$(filter docs/%,$$<),-Iclient/include) $$(WARNINGS) $$(LIBRARIES_CFLAGS) $$(CPPFLAGS) $$(CFLAGS) $(4) \
		-DHEADRACE_VERSION='"$(VERSION)"' -MMD -MP -c -o $$@ $$<

# Archives are made anew, so that the object of a file that was removed does not linger in them.
$(2)/obj/all.a: $$(call $(1)_objects,$$(filter-out $$(MAINS),$$(PRODUCT)))
$(2)/obj/common.a: $$(call $(1)_objects,$$(COMMON))
$(2)/obj/daemon.a: $$(call $(1)_objects,$$(COMMON) $$(filter-out $$(MAINS),$$(DAEMON)))
$(2)/obj/helpers.a: $$(call $(1)_objects,$$(UNIT_HELPERS))
$(2)/obj/%.a: $(2)/obj/flags Makefile
	@mkdir -p $$(@D); $$(call say,AR,$$@)
	$$(Q)rm -f $$@; $$(AR) rcs $$@ $$(filter %.o,$$^)

$(2)/headraced: $$(call $(1)_objects,$$(filter daemon/%,$$(MAINS))) $(2)/obj/daemon.a
	@$$(call say,LD,$$@)
	$$(Q)$(3) $$(CFLAGS) $(4) $$(LDFLAGS) -pthread -o $$@ $$^ $$(LIBS)

$(2)/libheadrace.so.1: $$(call $(1)_objects,$$(LIBRARY)) $(2)/obj/common.a $$(VERSION_SCRIPT)
	@$$(call say,LD,$$@)
	$$(Q)$(3) $$(CFLAGS) $(4) $$(LDFLAGS) -pthread -shared -Wl,-soname,libheadrace.so.1 \
		-Wl,--version-script=$$(VERSION_SCRIPT) -o $$@ $$(filter %.o %.a,$$^) $$(LIBS)

$(2)/libheadrace.so: $(2)/libheadrace.so.1
	$$(Q)ln -sf libheadrace.so.1 $$@

# One object in which only the public names are left, so that ours never meet those of the program that links it.
$(2)/libheadrace.a: $$(call $(1)_objects,$$(LIBRARY) $$(COMMON))
	@$$(call say,AR,$$@)
	$$(Q)rm -f $$@; $$(LD) -r -o $(2)/obj/libheadrace.o $$^ && \
		$$(OBJCOPY) -w --keep-global-symbol='hr_*' $(2)/obj/libheadrace.o && $$(AR) rcs $$@ $(2)/obj/libheadrace.o

$(2)/headrace: $$(call $(1)_objects,$$(CLI)) $(2)/obj/common.a $(2)/libheadrace.so
	@$$(call say,LD,$$@)
	$$(Q)$(3) $$(CFLAGS) $(4) $$(LDFLAGS) -pthread -Wl,-rpath,'$$$$ORIGIN' -o $$@ $$^ $$(LIBS)

$(2)/tests/unit/%: $(2)/obj/tests/unit/%.o $(2)/obj/helpers.a $(2)/obj/all.a
	@mkdir -p $$(@D); $$(call say,LD,$$@)
	$$(Q)$(3) $$(CFLAGS) $(4) $$(LDFLAGS) -pthread $$(WRAPS) -o $$@ $$^ $$(LIBS) $$(LIBS_check)

$(2)/tests/replay/%: $(2)/obj/tests/fuzz/%.o $(2)/obj/tests/fuzz/replay.o $(2)/obj/all.a
	@mkdir -p $$(@D); $$(call say,LD,$$@)
	$$(Q)$(3) $$(CFLAGS) $(4) $$(LDFLAGS) -pthread -o $$@ $$^ $$(LIBS)

$(2)/bench/%: $(2)/obj/tests/bench/%.o $(2)/obj/all.a
	@mkdir -p $$(@D); $$(call say,LD,$$@)
	$$(Q)$(3) $$(CFLAGS) $(4) $$(LDFLAGS) -pthread -o $$@ $$^ $$(LIBS)

$(2)/tests/differential/%: $(2)/obj/tests/differential/%.o $(2)/obj/all.a
	@mkdir -p $$(@D); $$(call say,LD,$$@)
	$$(Q)$(3) $$(CFLAGS) $(4) $$(LDFLAGS) -pthread -o $$@ $$^ $$(LIBS)

$(2)/examples/%: $(2)/obj/%.o $(2)/libheadrace.so
	@mkdir -p $$(@D); $$(call say,LD,$$@)
	$$(Q)$(3) $$(CFLAGS) $(4) $$(LDFLAGS) -pthread -Wl,-rpath,$$(abspath $(2)) -o $$@ $$^

$(1): $$(if $$(filter daemon/%,$$(MAINS)),$(2)/headraced) $$(if $$(filter client/%,$$(MAINS)),$(2)/headrace) \
	$$(if $$(LIBRARY),$(2)/libheadrace.so $(2)/libheadrace.a)
$(1)-tests: $(1) $$(patsubst tests/%.c,$(2)/tests/%,$$(UNIT_TESTS)) \
	$$(if $$(FUZZ_REPLAY),$$(patsubst tests/fuzz/%.c,$(2)/tests/replay/%,$$(FUZZERS))) \
	$$(patsubst tests/%.c,$(2)/tests/%,$$(DIFFERENTIAL)) \
	$$(patsubst %.c,$(2)/examples/%,$$(EXAMPLES))

.SECONDARY: $$(call $(1)_objects,$$(PRODUCT) $$(TESTING))
-include $$(patsubst %.c,$(2)/obj/%.d,$$(PRODUCT) $$(TESTING))
endef

UNDEFINED := -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
$(eval $(call flavour,product,$(BUILD),$$(CC),))
$(eval $(call flavour,asan,$(BUILD)/asan,$$(CC),-O1 $(UNDEFINED)))
$(eval $(call flavour,tsan,$(BUILD)/tsan,$$(CC),-O1 -fno-omit-frame-pointer -fsanitize=thread))
$(eval $(call flavour,fuzzing,$(BUILD)/fuzz,$$(CLANG),-O1 $(UNDEFINED) -fsanitize=fuzzer-no-link))

$(BUILD)/fuzz/fuzz_%: $(BUILD)/fuzz/obj/tests/fuzz/fuzz_%.o $(BUILD)/fuzz/obj/all.a
	@$(call say,LD,$@)
	$(Q)$(CLANG) $(CFLAGS) $(UNDEFINED) -fsanitize=fuzzer $(LDFLAGS) -pthread -o $@ $^ $(LIBS)

# ---- Targets --------------------------------------------------------------------------------------------------------------------

.PHONY: FORCE help all demo check check-peers bench fuzz soak sanitize lint format install dist clean python tests

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

all: product ## build headraced, headrace, libheadrace.so.1 and .a (installs missing packages first)

tests: product-tests ## build the test programs, too

# The Python packages that tests compare with, in an environment of their own.
python: $(BUILD)/venv/complete
$(BUILD)/venv/complete: tests/requirements.txt scripts/bootstrap
	@scripts/bootstrap python $(BUILD)/venv

demo: all python ## load 546 event files from a slow server and check every record
	@HEADRACE_BUILD=$(BUILD) $(BUILD)/venv/bin/python scripts/demo

FUZZ_PROGRAMS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZERS))

$(BUILD)/fuzz/seeds/complete: scripts/fuzz-seeds $(BUILD)/tests/differential/decode
	@mkdir -p $(@D)
	@scripts/fuzz-seeds $(BUILD)/tests/differential/decode $(@D)
	@touch $@

check: all tests asan-tests tsan-tests python $(FUZZ_PROGRAMS) $(BUILD)/fuzz/seeds/complete ## every test (a quarter of an hour on two cores)
	@HEADRACE_BUILD=$(BUILD) $(BUILD)/venv/bin/python scripts/check

check-peers: all python ## test against real servers (Ceph, ...), which are installed or built first where they are missing
	@HEADRACE_BUILD=$(BUILD) $(BUILD)/venv/bin/python scripts/check --peers

bench: all python $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(BENCHES)) ## measure, beside limit programs and peers
	@HEADRACE_BUILD=$(BUILD) $(BUILD)/venv/bin/python scripts/bench $(BENCH)

fuzz: $(FUZZ_PROGRAMS) $(BUILD)/fuzz/seeds/complete $(BUILD)/asan/tests/differential/decode python ## fuzz each target for FUZZ_SECONDS (60)
	@HEADRACE_BUILD=$(BUILD) scripts/fuzz $(FUZZ_SECONDS) $(notdir $(FUZZ_PROGRAMS))

soak: all tests python ## repeat the tests in random order for SOAK_SECONDS (600)
	@HEADRACE_BUILD=$(BUILD) $(BUILD)/venv/bin/python scripts/check --soak $(SOAK_SECONDS)

sanitize: asan-tests tsan-tests python ## all tests under address, undefined and thread sanitizers
	@HEADRACE_BUILD=$(BUILD) $(BUILD)/venv/bin/python scripts/check --sanitize

lint: ## clang-tidy, check-layers and the manual pages' lint
	@scripts/check-layers
	@scripts/lint $(PRODUCT) -- $(STANDARD) $(LIBRARIES_CFLAGS) -DHEADRACE_VERSION='"$(VERSION)"'

format: ## let clang-format lay out every C file
	@clang-format -i $(wildcard $(foreach part,common daemon client tests,$(part)/*.[ch] $(part)/*/*.[ch] $(part)/*/*/*.[ch] $(part)/*/*/*/*.[ch]))

# The installed program finds the library by its place, wherever PREFIX is; in the system's own directories it needs no help.
$(BUILD)/install/headrace: $(call product_objects,$(CLI)) $(BUILD)/obj/common.a $(BUILD)/libheadrace.so FORCE
	@mkdir -p $(@D); $(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -pthread $(if $(filter /usr/lib% /lib%,$(libdir)),,-Wl,-rpath,$(libdir)) \
		-o $@ $(filter %.o %.a %.so,$^) $(LIBS)

install: all $(BUILD)/install/headrace ## install below PREFIX (/usr/local), staged by DESTDIR
	$(INSTALL) -d $(addprefix $(DESTDIR),$(bindir) $(libdir) $(includedir) $(pkgconfigdir) $(docdir) $(datadir)/headrace)
	$(INSTALL) -m 755 $(BUILD)/headraced $(BUILD)/install/headrace $(DESTDIR)$(bindir)
	$(INSTALL) -m 755 $(BUILD)/libheadrace.so.1 $(DESTDIR)$(libdir)
	ln -sf libheadrace.so.1 $(DESTDIR)$(libdir)/libheadrace.so
	$(INSTALL) -m 644 $(BUILD)/libheadrace.a $(DESTDIR)$(libdir)
	$(INSTALL) -m 644 $(wildcard client/include/*.h) $(DESTDIR)$(includedir)
	$(INSTALL) -m 644 conf/headrace.json $(DESTDIR)$(datadir)/headrace
	$(INSTALL) -m 644 LICENSE $(wildcard *.md docs/*.md) $(DESTDIR)$(docdir)
	sed -e 's|@prefix@|$(PREFIX)|' -e 's|@libdir@|$(libdir)|' -e 's|@includedir@|$(includedir)|' -e 's|@version@|$(VERSION)|' \
		client/headrace.pc.in >$(DESTDIR)$(pkgconfigdir)/headrace.pc
	for page in $(wildcard docs/man/*.[1-8]); do \
		$(INSTALL) -D -m 644 $$page $(DESTDIR)$(mandir)/man$${page##*.}/$${page##*/} || exit 1; done
	$(if $(DESTDIR),,if [ "$$(id -u)" = 0 ]; then PATH=$$PATH:/usr/sbin:/sbin $(LDCONFIG); fi)

dist: ## make the source archive of the last commit, the same to the byte each time
	@test -e .git || { echo 'make dist: the archive is made from a git clone, and this is none' >&2; exit 1; }
	@mkdir -p $(BUILD)
	git archive --format=tar --prefix=headrace-$(VERSION)/ -o $(BUILD)/headrace-$(VERSION).tar HEAD
	gzip -n -9 -f $(BUILD)/headrace-$(VERSION).tar

clean: ## remove what was built, but not the Python environment and servers of others
	rm -rf $(filter-out $(BUILD)/venv $(BUILD)/peers,$(wildcard $(BUILD)/*))
