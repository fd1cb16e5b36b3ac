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
# Of every folder; without it, -O2 is for what works on each byte or message (FAST), and -Og for the rest, which waits
# for disks, people and other programs. Instrumented code takes three times as long to optimise.
OPT      ?= $(if $(SANITIZE),-Og)
# Lines, no variables: -g takes a sixth longer.
DEBUG    ?= -g1

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
# HOUSE_cmd/TOOL, HOUSE_tests/fuzz/NAME and the like: the highest house of lib that a program includes.
ignored := $(shell mkdir -p $(BUILD) && sh scripts/houses.sh >$(BUILD)/houses.mk.$$$$ && \
  mv $(BUILD)/houses.mk.$$$$ $(BUILD)/houses.mk)
include $(BUILD)/houses.mk

# From the highest to the lowest: each includes only those behind it. The ground is the rest of lib.
HOUSES    := people work message ground
below_people  := people work message ground
below_work    := work message ground
below_message := message ground
below_ground  := ground
GROUND    := $(filter-out $(HOUSES),$(notdir $(patsubst %/,%,$(wildcard lib/*/))))
sources    = $(foreach d,$(1),$(wildcard $(d)/*.c $(d)/*/*.c $(d)/*/*/*.c $(d)/*/*/*/*.c))
# Sorted: the order of the objects in an archive is the same everywhere.
objects    = $(patsubst %.c,$(BUILD)/%.o,$(sort $(call sources,$(1))))
OBJ_ground := $(call objects,$(GROUND:%=lib/%)) $(BUILD)/gen/schemas.o
$(foreach h,$(filter-out ground,$(HOUSES)),$(eval OBJ_$(h) := $(call objects,lib/$(h))))
# What several programs share beside the houses: opening a state, the person, findings.
OBJ_shared := $(call objects,cmd/shared)
# Folders whose work is done for each byte or each message.
FAST      := base cli fsm json schema message/delivery message/port message/protocol message/record message/route message/store
# The shared library: the public folders and the machines' tables.
SO_SRC    := $(sort $(call sources,lib/base lib/json lib/schema lib/fsm lib/message/protocol) lib/people/machines.c \
  $(filter %_fsm.c,$(call sources,lib)))
SO_OBJ    := $(SO_SRC:%.c=$(BUILD)/pic/%.o) $(BUILD)/pic/gen/schemas.o
TOOLS     := $(notdir $(patsubst %/,%,$(dir $(wildcard cmd/*/main.c))))
HELPERS   := $(notdir $(patsubst %/,%,$(dir $(wildcard libexec/*/main.c))))
SHARED    := channels task
SCRIPTS   := $(notdir $(wildcard libexec/scripts/*))
BINS      := $(TOOLS:%=$(BUILD)/bin/%)
LIBEXECS  := $(HELPERS:%=$(BUILD)/libexec/amp/%) $(SCRIPTS:%=$(BUILD)/libexec/amp/%) \
  $(SHARED:%=$(BUILD)/share/amp/%)
# HOUSE=NAME: only the tests of this house, which link it and those below it, the tools that its suites name, and the
# helpers of these tools. ("project" has the suites of all tools.)
$(if $(wildcard tests/bats/$(HOUSE)),,$(error no tests of '$(HOUSE)'; HOUSE is one of $(notdir $(patsubst %/,%,$(wildcard tests/bats/*/)))))
of_house   = $(foreach t,$(2),$(if $(filter $(or $(below_$(1)),$(HOUSES)),$(HOUSE_$(t))),$(t)))
NAMED     := $(if $(HOUSE),$(filter $(TOOLS),$(shell cat tests/bats/$(HOUSE)/*.bats | tr -cs 'a-z-' '\n' | sort -u)),$(TOOLS))
HIGHEST   := $(firstword $(filter $(foreach t,$(NAMED),$(HOUSE_cmd/$(t))),$(HOUSES)))
UNIT_TESTS := $(patsubst %.c,%,$(wildcard tests/unit/$(or $(HOUSE),*)/*_test.c))
UNITS     := $(addprefix $(BUILD)/tests/unit/,$(notdir $(UNIT_TESTS)))
FIXTURES  := $(patsubst tests/fixture/%.c,$(BUILD)/tests/fixture/%,$(wildcard tests/fixture/*.c))
# tests/fault: libraries to preload are named fail*.c, the rest are programs.
SHIMS     := $(patsubst %.c,$(BUILD)/%.so,$(wildcard tests/fault/fail*.c))
CHECKERS  := $(addprefix $(BUILD)/,$(call of_house,$(HOUSE),$(patsubst %.c,%,$(wildcard tests/conformance/*.c \
  tests/differential/*.c) $(filter-out tests/fault/fail%.c,$(wildcard tests/fault/*.c)))))
# The attempts of the escape suite, one program.
ESCAPE    := $(BUILD)/tests/escape/attempts
# The fuzz targets as programs that run their inputs, without libFuzzer.
REPLAYS   := $(patsubst %_fuzz,$(BUILD)/%_replay,$(call of_house,$(HOUSE),$(patsubst %.c,%,$(wildcard tests/fuzz/*_fuzz.c))))
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
  deps deps-check format lint clean unit-tests units print-flags FORCE $(TOOLS) $(HELPERS)
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

all: programs $(BUILD)/lib/libamp.so $(BUILD)/lib/libamp.a

# Without the libraries for programs of others. The name of a program makes it alone.
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

# Private: the file of flags, which each object needs, has the same flags for all.
ifeq ($(OPT),)
$(foreach r,$(FAST),$(eval $(BUILD)/lib/$(r)/%.o: private OPT := -O2))
$(BUILD)/cmd/amp-validate/%.o: private OPT := -O2
$(BUILD)/pic/%.o: private OPT := -O2
endif

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/pic/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -fvisibility=default -MMD -MP -c -o $@ $<

# An archive for each house. It is thin: it names the objects, and has no copy of them.
define house
$(BUILD)/lib/$(1).a: $(OBJ_$(1))
	@rm -f $$@
	$$(call say,AR,$$@)
	$$(Q)$$(AR) rcsT $$@ $$^
endef
$(foreach h,$(HOUSES) shared,$(eval $(call house,$(h))))
archives = $(patsubst %,$(BUILD)/lib/%.a,$(if $(filter cmd/%,$(1)),shared) $(below_$(house_of)))
house_of = $(or $(HOUSE_$(1)),$(patsubst tests/unit/%/,%,$(dir $(1))))
grouped  = -Wl,--start-group $(filter %.a,$^) -Wl,--end-group

# All houses in one archive with the objects, for programs of others.
$(BUILD)/lib/libamp.a: $(foreach h,$(HOUSES),$(OBJ_$(h)))
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
$(1)/$(2): $$(patsubst %.c,$$(BUILD)/%.o,$$(sort $$(wildcard $(3)/$(2)/*.c $(3)/$(2)/*/*.c))) $(call archives,$(3)/$(2))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(CC) $$(LDFLAGS) $$(LDFLAGS_$(2)) -o $$@ $$(filter %.o,$$^) $$(grouped) \
	  $$(if $$(LDFLAGS_$(2)),,-Wl,--as-needed $$(LIBS)) $$(LIBS_$(2))
endef
$(foreach t,$(TOOLS),$(eval $(call program,$(BUILD)/bin,$(t),cmd)))
$(foreach h,$(HELPERS),$(eval $(call program,$(BUILD)/libexec/amp,$(h),libexec)))
$(TOOLS): %: $(BUILD)/bin/%
$(HELPERS): %: $(BUILD)/libexec/amp/%

# Programs, and what they source (*.sh).
$(BUILD)/libexec/amp/%: libexec/scripts/%
	@mkdir -p $(@D)
	$(Q)install -m $(if $(filter %.sh,$<),644,755) $< $@

# Where the programs of the build tree look for the scripts that they run.
$(SHARED:%=$(BUILD)/share/amp/%): $(BUILD)/share/amp/%:
	@mkdir -p $(@D)
	$(Q)ln -sfn $(abspath share/$*) $@

# The view of amp-top, without a terminal.
$(BUILD)/tests/unit/top_view_test: $(patsubst %.c,$(BUILD)/%.o,$(wildcard cmd/amp-top/model/*.c cmd/amp-top/view/*.c)) \
  $(call archives,cmd/amp-top)

$(FIXTURES) $(CHECKERS): %: %.o
$(foreach t,$(UNIT_TESTS),$(eval $(BUILD)/tests/unit/$(notdir $(t)): $(BUILD)/$(t).o $(call archives,$(t))))
$(foreach t,$(FIXTURES) $(CHECKERS),$(eval $(t): $(call archives,$(t:$(BUILD)/%=%))))
$(UNITS) $(FIXTURES) $(CHECKERS):
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(grouped) -Wl,--as-needed $(LIBS)

$(ESCAPE): $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/escape/*.c))
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^

$(REPLAYS): %_replay: %_fuzz.o $(BUILD)/tests/fuzz/replay.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(grouped) -Wl,--as-needed $(LIBS)
$(foreach t,$(REPLAYS),$(eval $(t): $(call archives,$(t:$(BUILD)/%_replay=%_fuzz))))

$(BUILD)/tests/fault/%.so: tests/fault/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 $(OPT) -g -fPIC -fno-builtin -shared -o $@ $< -ldl

# Rebuilds when the flags change.
$(BUILD)/flags: FORCE | deps-check
	@mkdir -p $(@D)
	@echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(FAST)' | cmp -s - $@ || \
	  echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(FAST)' >$@
FORCE:

-include $(shell find $(BUILD) -path $(BUILD)/deb -prune -o -name '*.d' -type f -print 2>/dev/null)

include scripts/targets.mk
