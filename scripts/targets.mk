# Targets that are not about compiling.

DEPS_BUILD := gcc make git libjansson-dev libjq-dev libcurl4-openssl-dev libgit2-dev \
  libsqlite3-dev libpcre2-dev libsodium-dev libssl-dev libxxhash-dev libseccomp-dev libncurses-dev \
  zlib1g-dev
DEPS_TEST  := bats curl dbus-daemon g++ jq libnotify-bin mandoc openssh-client openssl pre-commit procps shellcheck sqlite3 strace tmux pkg-config \
  zsh fish

deps-check:
	@sh scripts/deps.sh check $(DEPS_BUILD)

deps:
	@sh scripts/deps.sh install $(DEPS_BUILD) $(DEPS_TEST)

demo:
	@sh scripts/deps.sh ensure $(DEPS_BUILD) jq
	@$(MAKE) --no-print-directory -j$$(nproc) programs
	@KEEP='$(KEEP)' bash examples/qa-loop/demo.sh

# What the suites of a house run.
TESTED = $(NAMED) $(notdir $(call of_house,$(HIGHEST),$(HELPERS:%=libexec/%))) \
  $(filter-out $(HELPERS:%=$(BUILD)/libexec/amp/%),$(LIBEXECS))

check:
	@sh scripts/deps.sh ensure $(DEPS_BUILD) $(DEPS_TEST)
	@$(MAKE) --no-print-directory -j$$(nproc) $(if $(HOUSE),$(TESTED),all) units
	@bash tests/run $(HOUSE:%=--house %)

# Without the programs that the bats files need.
unit-tests: $(UNITS)

units: $(UNITS) $(FIXTURES) $(SHIMS) $(CHECKERS) $(ESCAPE) $(REPLAYS)

check-fast: all units
	@bash tests/run --fast

bench: all
	@bash bench/run

fuzz:
	@bash tests/fuzz/run $(SECONDS_EACH)

soak: all units
	@bash tests/soak

# The names of the page $$m, a word each: a page of several verbs is installed under the name of each.
man-names = sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([^ ]*\).*/\1/p' $$m

install: all
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBEXECDIR) $(DESTDIR)$(LIBDIR)/pkgconfig \
	  $(DESTDIR)$(INCDIR)/amp $(DESTDIR)$(SHAREDIR)/schemas $(DESTDIR)$(SHAREDIR)/hooks
	install -m 755 $(if $(STRIP),-s) $(BINS) $(DESTDIR)$(BINDIR)
	install -m 755 $(if $(STRIP),-s) $(HELPERS:%=$(BUILD)/libexec/amp/%) $(DESTDIR)$(LIBEXECDIR)
	cp $(SCRIPTS:%=$(BUILD)/libexec/amp/%) $(DESTDIR)$(LIBEXECDIR)
	install -m 644 $(if $(STRIP),-s) $(BUILD)/lib/libamp.so $(DESTDIR)$(LIBDIR)/libamp.so.0
	ln -sf libamp.so.0 $(DESTDIR)$(LIBDIR)/libamp.so
	install -m 644 $(BUILD)/lib/libamp.a $(DESTDIR)$(LIBDIR)
	$(if $(STRIP),strip --strip-debug --enable-deterministic-archives $(DESTDIR)$(LIBDIR)/libamp.a)
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' \
	  -e 's|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|' \
	  -e 's|@INCDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(INCDIR))|' scripts/libamp.pc.in \
	  >$(DESTDIR)$(LIBDIR)/pkgconfig/libamp.pc
	chmod 644 $(DESTDIR)$(LIBDIR)/pkgconfig/libamp.pc
	cp -R include/amp/. $(DESTDIR)$(INCDIR)/amp/
	$(if $(wildcard share/*),cp -R share/. $(DESTDIR)$(SHAREDIR)/)
	cp -R schemas/. $(DESTDIR)$(SHAREDIR)/schemas/
	cp -R examples/hooks/. $(DESTDIR)$(SHAREDIR)/hooks/
	rm -rf $(DESTDIR)$(SHAREDIR)/examples
	cp -R examples $(DESTDIR)$(SHAREDIR)/examples
	for m in man/*.[157]; do s=$${m##*.}; install -d $(DESTDIR)$(MANDIR)/man$$s; \
	  install -m 644 $$m $(DESTDIR)$(MANDIR)/man$$s; \
	  for n in $$($(man-names)); do [ $$n.$$s = $${m##*/} ] || \
	    ln -sf $${m##*/} $(DESTDIR)$(MANDIR)/man$$s/$$n.$$s; done; done
	sh scripts/completions.sh install "$(DESTDIR)$(PREFIX)/share" "$(DESTDIR)$(ZSHDIR)" $(TOOLS)

uninstall:
	rm -f $(TOOLS:%=$(DESTDIR)$(BINDIR)/%) $(DESTDIR)$(LIBDIR)/libamp.so* \
	  $(DESTDIR)$(LIBDIR)/libamp.a $(DESTDIR)$(LIBDIR)/pkgconfig/libamp.pc
	rm -rf $(DESTDIR)$(LIBEXECDIR) $(DESTDIR)$(INCDIR)/amp $(DESTDIR)$(SHAREDIR) $(DESTDIR)$(HTMLDIR)
	for m in man/*.[157]; do for n in $$($(man-names)); do \
	  rm -f $(DESTDIR)$(MANDIR)/man$${m##*.}/$$n.$${m##*.}; done; done
	sh scripts/completions.sh uninstall "$(DESTDIR)$(PREFIX)/share" "$(DESTDIR)$(ZSHDIR)" $(TOOLS)

# The manual as HTML, with an index and a search.
html:
	@sh scripts/html.sh $(BUILD)/html $(VERSION)

install-html: html
	install -d $(DESTDIR)$(HTMLDIR)
	install -m 644 $(BUILD)/html/* $(DESTDIR)$(HTMLDIR)

# The files of the project as a tarball, the same from git and from the tarball.
dist:
	@mkdir -p $(BUILD)
	@sh scripts/dist.sh amp-tools-$(VERSION) $(BUILD)/amp-tools-$(VERSION).tar.gz

# Debian packages, built from the tarball in a directory of its own: build/deb/*.deb.
deb: dist
	@sh scripts/deb.sh $(BUILD)/amp-tools-$(VERSION).tar.gz $(BUILD)/deb

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

lint:
	@bash scripts/lint.sh

clean:
	rm -rf $(BUILD)

# For tests and editors: what a source file is compiled with.
print-flags:
	$(info $(CPPFLAGS) $(CFLAGS))@:
