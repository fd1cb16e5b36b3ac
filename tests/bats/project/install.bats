# Installation, and the library as others see it.
# static
load ../lib

setup() {
  cd "$AMP_TOP" || return 1
  dest=$BATS_TEST_TMPDIR/dest
}

@test "install puts everything under DESTDIR and PREFIX, programs find their helpers, uninstall leaves what is others'" {
  mkdir -p "$dest/opt/amp/bin" "$dest/opt/amp/share/man/man1" "$dest/opt/amp/include"
  touch "$dest/opt/amp/bin/other" "$dest/opt/amp/share/man/man1/other.1" "$dest/opt/amp/include/other.h"
  make_same install DESTDIR="$dest" PREFIX=/opt/amp
  cd "$dest/opt/amp"
  for f in lib/libamp.so.0 lib/libamp.a lib/pkgconfig/libamp.pc include/amp/base/buf.h \
    share/man/man7/amp-exit.7; do
    [ -f "$f" ] || {
      echo "missing: $f"
      return 1
    }
  done
  for t in "$AMP_TOP"/cmd/*/main.c; do
    [ -e "$t" ] || continue
    t=$(basename "$(dirname "$t")")
    run -0 "bin/$t" --version
    [ -f "share/man/man1/$t.1" ]
    while IFS=$'\t' read -r kind verb _; do
      [ "$kind" != verb ] || [ -f "share/man/man1/$t-${verb%% *}.1" ]
    done < <("bin/$t" --options)
    [ -f "share/bash-completion/completions/$t" ]
    [ -f "share/zsh/site-functions/_$t" ]
    [ -f "share/fish/vendor_completions.d/$t.fish" ]
  done
  for s in "$AMP_TOP"/schemas/*/*.json; do
    cmp "$s" "share/amp/schemas/${s#"$AMP_TOP"/schemas/}"
  done
  diff -r "$AMP_TOP/examples/hooks" share/amp/hooks
  diff -r "$AMP_TOP/share/channels" share/amp/channels
  diff -r "$AMP_TOP/share/task" share/amp/task
  need jq
  echo '{"hitl":{"channels":{"scripts":[{"name":"ntfy"}]}}}' >"$BATS_TEST_TMPDIR/channels.json"
  run -78 setsid bin/hitl-prompt -c "$BATS_TEST_TMPDIR/channels.json" --state "$BATS_TEST_TMPDIR/state" </dev/null
  [[ $output == *"hitl.channels: ntfy: the setting topic is missing"* ]]
  diff -r "$AMP_TOP/examples" share/amp/examples
  [ "$(find . -type f -perm /022 | wc -l)" -eq 0 ]
  cp "$AMP_BUILD/tests/fixture/helper-path" bin/
  for h in libexec/amp/*; do
    # What scripts source is no program.
    [[ $h != *.sh ]] || continue
    run -0 bin/helper-path "${h##*/}"
    [ "$(realpath "$output")" = "$(realpath "$h")" ]
  done
  ln -s "$PWD/bin/helper-path" "$BATS_TEST_TMPDIR/link"
  run -0 "$BATS_TEST_TMPDIR/link" git-worker
  run -69 bin/helper-path no-such-helper
  rm bin/helper-path
  cd "$AMP_TOP"
  make_same uninstall DESTDIR="$dest" PREFIX=/opt/amp
  run find "$dest" -type f -o -type l
  [ "${#lines[@]}" -eq 3 ]
  [ "$(grep -c '/other[^/]*$' <<<"$output")" -eq 3 ]
}

@test "libamp.so exports what the headers declare, and nothing else" {
  local h
  cd "$BATS_TEST_TMPDIR"
  nm -D --defined-only "$AMP_BUILD/lib/libamp.so" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' |
    sort -u >exported
  run -1 grep -v '^amp_' exported
  # ccache keeps no list of them.
  export CCACHE_DISABLE=1
  # The compiler's own list of functions, and the variables, of the headers that are installed.
  while IFS= read -r h; do
    echo "#include \"$h\""
  done < <(find "$AMP_TOP/include/amp" -name '*.h') >all.c
  gcc -std=gnu11 -D_GNU_SOURCE -I"$AMP_TOP/include" -fsyntax-only -aux-info aux all.c
  {
    grep -F "/include/amp/" aux | grep -v ' static ' | grep -oE 'amp_[a-z0-9_]+ \(' | tr -d ' ('
    gcc -std=gnu11 -D_GNU_SOURCE -I"$AMP_TOP/include" -E -P all.c |
      grep -oE 'extern [^(;]*[ *]amp_[a-z0-9_]+(\[\])*;' | sed -E 's/.*[ *](amp_[a-z0-9_]+).*/\1/'
  } | sort -u >declared
  [ "$(wc -l <declared)" -gt 150 ]
  echo "declared, but not exported:"
  run -0 comm -23 declared exported
  echo "$output"
  [ -z "$output" ]
  echo "exported, but not declared:"
  run -0 comm -13 declared exported
  echo "$output"
  [ -z "$output" ]
}

@test "the list of exports: macros, inline functions, variables, attributes" {
  mkdir -p "$BATS_TEST_TMPDIR/include/amp"
  cat >"$BATS_TEST_TMPDIR/include/amp/x.h" <<'C'
#include <stdio.h>
#define LIST(X) X(one) X(two)
#define X(name) int amp_##name(struct amp_x *x, int (*fn)(void *ctx, int i));
LIST(X)
#undef X
struct amp_x { int (*member)(void); struct { int deep; } inner; };
typedef int (*amp_fn)(void *ctx);
enum amp_e { AMP_A = sizeof(struct amp_x) };
static inline int amp_inline(int a) { return a ? (a) : 0; }
struct amp_x *amp_pointer(void) __attribute__((format(printf, 3, 4)));
__attribute__((cold)) void amp_cold(void);
extern const struct amp_x amp_rows[];
extern int amp_n;
C
  cd "$AMP_TOP"
  run -0 sh scripts/exports.sh "$BATS_TEST_TMPDIR/include/amp/x.h"
  [ "$output" = "$(printf 'amp_%s\n' cold n one pointer rows two)" ]
}

@test "a program builds against the installed library with pkg-config" {
  need pkg-config
  native "it looks at the symbols of the library"
  make_same install DESTDIR="$dest" PREFIX=/opt/amp
  cat >"$BATS_TEST_TMPDIR/p.c" <<'C'
#include <stdio.h>
#include <amp/base/clock.h>
#include <amp/compose.h>
#include <amp/base/num.h>
#include <amp/fsm/fsm.h>
#include <amp/json/tape.h>
#include <amp/machines.h>
#include <amp/protocol/protocol.h>
#include <amp/schema/schema.h>
int main(void)
{
    char t[AMP_TIME_MAX];
    struct amp_fsm_result r = {0};
    const struct amp_fsm *m = amp_machine_find(AMP_SPAN("escalation"));
    amp_time_format(0, t);
    puts(t);
    amp_fsm_step(m, m->initial, (uint8_t)amp_fsm_event(m, AMP_SPAN("arrive")),
                 1u << amp_fsm_fact(m, AMP_SPAN("info")), &r, NULL);
    puts(m->states[r.to].name);
    struct amp_envelope e = {.type = "task_result", .from = "executor", .to = "coordinator",
                             .task_id = "T-2026-001"};
    struct amp_buf line;
    amp_buf_init(&line, 4096);
    if (amp_compose_text(&e, AMP_SPAN("[]"), &line, NULL, NULL) == 0 || line.len ||
        amp_compose_text(&e, AMP_SPAN("{\"a\":[1]}"), &line, NULL, NULL))
        return 1;
    fwrite(line.data, 1, line.len, stdout);
    amp_buf_release(&line);
    return amp_machines[0] != &amp_agent_fsm;
}
C
  cd "$BATS_TEST_TMPDIR"
  export PKG_CONFIG_SYSROOT_DIR=$dest PKG_CONFIG_PATH=$dest/opt/amp/lib/pkgconfig
  # shellcheck disable=SC2046
  gcc -std=c11 -Wall -Werror -o p p.c $(pkg-config --cflags --libs libamp)
  LD_LIBRARY_PATH=$dest/opt/amp/lib run -0 ./p
  [ "${lines[0]}" = 1970-01-01T00:00:00.000Z ]
  [ "${lines[1]}" = NOTED ]
  [[ ${lines[2]} == '{"msg_id":"task_result-T-2026-001-'*'"payload":{"a":[1]}}' ]]
}

@test "each header compiles from C++ by itself, and a C++ program links" {
  local h
  need g++ pkg-config
  native "it looks at the symbols of the library"
  make_same install DESTDIR="$dest" PREFIX=/opt/amp
  cd "$dest/opt/amp/include"
  while IFS= read -r h; do
    echo "#include <$h>" >"$BATS_TEST_TMPDIR/h.cc"
    g++ -std=c++11 -Wall -Wextra -pedantic -Werror -I. -fsyntax-only "$BATS_TEST_TMPDIR/h.cc"
  done < <(find amp -name '*.h')
  cat >"$BATS_TEST_TMPDIR/p.cc" <<'C'
#include <cstdio>
#include <cstring>
#include <amp/base/file.h>
#include <amp/json/tape.h>
#include <amp/schema/schema.h>
int main()
{
    const char *text = "{\"a\":[1,2]}";
    struct amp_tape tape;
    struct amp_json_fault fault;
    int64_t second = 0;
    amp_tape_init(&tape, nullptr);
    if (amp_tape_scan(&tape, text, strlen(text), &fault) == 0)
        amp_tok_int(&tape, amp_tape_pointer(&tape, 0, amp_span_str("/a/1")), &second);
    amp_tape_release(&tape);
    std::printf("%d\n", (int)second);
    return amp_schema_file_find(amp_span_str("amp/ack.json")) ? 0 : 1;
}
C
  cd "$BATS_TEST_TMPDIR"
  export PKG_CONFIG_SYSROOT_DIR=$dest PKG_CONFIG_PATH=$dest/opt/amp/lib/pkgconfig
  # shellcheck disable=SC2046
  g++ -std=c++11 -Wall -Werror -o pp p.cc $(pkg-config --cflags --libs libamp)
  LD_LIBRARY_PATH=$dest/opt/amp/lib run -0 ./pp
  [ "$output" = 2 ]
}
