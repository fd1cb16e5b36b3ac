# Compiler flags.
CPPFLAGS += -Iinclude -Ilib -Icmd -D_GNU_SOURCE -DAMP_VERSION='"$(VERSION)"'
CFLAGS   += -std=gnu11 $(or $(OPT),-Og) $(DEBUG) -fno-strict-aliasing -ffunction-sections -fdata-sections
CFLAGS   += -fstack-protector-strong
# Relative relocations packed: a sixth of the pages that a small tool reads to start.
LDFLAGS  += -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,pack-relative-relocs

CFLAGS += -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
ifeq ($(DEVELOPER),1)
CFLAGS += -Werror -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
  -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wold-style-definition -Wcast-qual -Wnull-dereference
endif
ifneq ($(SANITIZE),)
CFLAGS  += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
# Not position-independent: the redzones of all globals of a program would be relocated each time that it starts.
LDFLAGS += -fsanitize=$(SANITIZE) -no-pie
else
CPPFLAGS += -D_FORTIFY_SOURCE=2
endif
