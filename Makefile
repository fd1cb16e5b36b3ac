# One makefile for everything. Targets: all demo check bench soak install uninstall html dist deb deps
# format lint clean. Variables: V=1, DEVELOPER=1, SANITIZE=address,undefined, DEBUG=-g1, STRIP=1, PREFIX,
# DESTDIR, BUILD.

VERSION  := 0.1.0
PREFIX   ?= /usr/local
DESTDIR  ?=
BUILD    ?= build
CC       ?= cc
AR       ?= ar
PKG_CONFIG ?= pkg-config
# Instrumented code takes three times as long to optimise, for programs that run for moments.
OPT      ?= $(if $(SANITIZE),-Og,-O2)
# -g1 (lines, no variables) is compiled in two thirds of the time.
DEBUG    ?= $(if $(SANITIZE),-g1,-g)

BINDIR     := $(PREFIX)/bin
LIBEXECDIR := $(PREFIX)/libexec/amp
LIBDIR     := $(PREFIX)/lib
INCDIR     := $(PREFIX)/include
MANDIR     := $(PREFIX)/share/man
SHAREDIR   := $(PREFIX)/share/amp
HTMLDIR    := $(PREFIX)/share/doc/amp-tools/html
ZSHDIR     := $(PREFIX)/share/zsh/site-functions

# V=1 shows the commands whole.
Q   := $(if $(V),,@)
say  = @$(if $(V),true,printf '  %-7s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$(2))')

include scripts/flags.mk

# Sorted: the order of the objects in the archive is the same everywhere.
LIB_SRC   := $(sort $(wildcard lib/*/*.c lib/*/*/*.c lib/*/*/*/*.c))
LIB_OBJ   := $(LIB_SRC:%.c=$(BUILD)/%.o) $(BUILD)/gen/schemas.o
PUB_ROOMS := base json schema fsm protocol machines
# The shared library: the public rooms and the machines' tables.
SO_SRC    := $(sort $(wildcard $(PUB_ROOMS:%=lib/%/*.c) $(PUB_ROOMS:%=lib/%/*/*.c) \
  $(PUB_ROOMS:%=lib/%/*/*/*.c) lib/*/*_fsm.c lib/*/*/*_fsm.c))
SO_OBJ    := $(SO_SRC:%.c=$(BUILD)/pic/%.o) $(BUILD)/pic/gen/schemas.o
TOOLS     := $(notdir $(patsubst %/,%,$(dir $(wildcard cmd/*/main.c))))
HELPERS   := $(notdir $(patsubst %/,%,$(dir $(wildcard libexec/*/main.c))))
SCRIPTS   := $(notdir $(wildcard libexec/scripts/*))
BINS      := $(TOOLS:%=$(BUILD)/bin/%)
LIBEXECS  := $(HELPERS:%=$(BUILD)/libexec/amp/%) $(SCRIPTS:%=$(BUILD)/libexec/amp/%) \
  $(BUILD)/share/amp/channels
UNITS     := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/*_test.c))
FIXTURES  := $(patsubst tests/fixture/%.c,$(BUILD)/tests/fixture/%,$(wildcard tests/fixture/*.c))
# tests/fault: libraries to preload are named fail*.c, the rest are programs.
SHIMS     := $(patsubst %.c,$(BUILD)/%.so,$(wildcard tests/fault/fail*.c))
CHECKERS  := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/conformance/*.c tests/differential/*.c) \
  $(filter-out tests/fault/fail%.c,$(wildcard tests/fault/*.c)))
# The attempts of the escape suite, one program.
ESCAPE    := $(BUILD)/tests/escape/attempts
# The fuzz targets as programs that run their inputs, without libFuzzer.
REPLAYS   := $(patsubst %_fuzz.c,$(BUILD)/%_replay,$(wildcard tests/fuzz/*_fuzz.c))
SCHEMAS   := $(sort $(wildcard schemas/*/*.json))
PUB_H     := $(sort $(wildcard include/amp/*.h include/amp/*/*.h))

# Only what a program really uses is linked: --as-needed drops the rest.
LIBS          := -lpthread -lpcre2-8 -lsqlite3 -ljansson -lsodium
# Static: no time for the loader, and no LD_PRELOAD of the command's environment while it still has
# rights. The sanitizers need the shared libc.
LDFLAGS_confine := $(if $(SANITIZE),,-static-pie)
LIBS_git-worker := -lgit2 -lz
LIBS_jq-worker  := -ljq
LIBS_port-http  := -lcurl
LIBS_key-worker := -lcrypto
LIBS_amp-top    := -lncursesw -ltinfo

.PHONY: all programs demo check check-fast bench fuzz soak install install-html uninstall html dist deb \
  deps deps-check format lint clean unit-tests units print-flags
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

all: programs $(BUILD)/lib/libamp.so

# Without the shared library, which has objects of its own.
programs: deps-check $(BINS) $(LIBEXECS)

$(BUILD)/gen/schemas.c: scripts/embed-schemas.sh $(SCHEMAS)
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)sh scripts/embed-schemas.sh $(SCHEMAS) >$@

$(BUILD)/gen/schemas.o: $(BUILD)/gen/schemas.c
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/pic/gen/schemas.o: $(BUILD)/gen/schemas.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -MMD -MP -c -o $@ $<

# The filters of confine, made with libseccomp.
$(BUILD)/gen/confine-filters: libexec/confine-filters/filters.c libexec/confine/filter.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< -lseccomp

$(BUILD)/gen/confine_filters.c: $(BUILD)/gen/confine-filters
	$(call say,GEN,$@)
	$(Q)$< >$@

$(BUILD)/gen/confine_filters.o: $(BUILD)/gen/confine_filters.c
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) -Ilibexec/confine $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/libexec/amp/confine: $(BUILD)/gen/confine_filters.o

# The messages of amp-validate --example.
$(BUILD)/gen/examples.c: scripts/embed-examples.sh examples/messages/messages.tsv
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)sh scripts/embed-examples.sh examples/messages/messages.tsv >$@

$(BUILD)/gen/examples.o: $(BUILD)/gen/examples.c
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) -I. $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bin/amp-validate: $(BUILD)/gen/examples.o

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/pic/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -fvisibility=default -MMD -MP -c -o $@ $<

$(BUILD)/lib/libamp.a: $(LIB_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^

# What the shared library exports: exactly what the public headers declare.
$(BUILD)/gen/libamp.map: scripts/exports.sh $(PUB_H)
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)CC='$(CC)' sh scripts/exports.sh --map $(PUB_H) >$@

$(BUILD)/lib/libamp.so: $(SO_OBJ) $(BUILD)/gen/libamp.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libamp.so.0 -Wl,--version-script=$(BUILD)/gen/libamp.map \
	  $(if $(SANITIZE),,-Wl,-z,defs) -o $@ $(SO_OBJ) -Wl,--as-needed $(LIBS)

define program
$(1)/$(2): $$(patsubst %.c,$$(BUILD)/%.o,$$(sort $$(wildcard $(3)/$(2)/*.c $(3)/$(2)/*/*.c))) $$(BUILD)/lib/libamp.a
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(CC) $$(LDFLAGS) $$(LDFLAGS_$(2)) -o $$@ $$(filter %.o,$$^) $$(BUILD)/lib/libamp.a \
	  $$(if $$(LDFLAGS_$(2)),,-Wl,--as-needed $$(LIBS)) $$(LIBS_$(2))
endef
$(foreach t,$(TOOLS),$(eval $(call program,$(BUILD)/bin,$(t),cmd)))
$(foreach h,$(HELPERS),$(eval $(call program,$(BUILD)/libexec/amp,$(h),libexec)))

# Programs, and what they source (*.sh).
$(BUILD)/libexec/amp/%: libexec/scripts/%
	@mkdir -p $(@D)
	$(Q)install -m $(if $(filter %.sh,$<),644,755) $< $@

# Where the programs of the build tree look for the channels.
$(BUILD)/share/amp/channels:
	@mkdir -p $(@D)
	$(Q)ln -sfn $(abspath share/channels) $@

# The view of amp-top, without a terminal.
$(BUILD)/tests/unit/top_view_test: $(patsubst %.c,$(BUILD)/%.o,$(wildcard cmd/amp-top/model/*.c cmd/amp-top/view/*.c))

$(UNITS) $(FIXTURES) $(CHECKERS): %: %.o $(BUILD)/lib/libamp.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(BUILD)/lib/libamp.a -Wl,--as-needed $(LIBS)

$(ESCAPE): $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/escape/*.c))
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^

$(REPLAYS): %_replay: %_fuzz.o $(BUILD)/tests/fuzz/replay.o $(BUILD)/lib/libamp.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(BUILD)/lib/libamp.a -Wl,--as-needed $(LIBS)

$(BUILD)/tests/fault/%.so: tests/fault/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 $(OPT) -g -fPIC -fno-builtin -shared -o $@ $< -ldl

# Rebuilds when the flags change.
$(BUILD)/flags: FORCE | deps-check
	@mkdir -p $(@D)
	@echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)' | cmp -s - $@ || \
	  echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)' >$@
FORCE:

-include $(shell find $(BUILD) -path $(BUILD)/deb -prune -o -name '*.d' -type f -print 2>/dev/null)

include scripts/targets.mk
