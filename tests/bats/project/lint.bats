# The checks that the compiler does not make, and that these checks find what they look for.
# static
# long
load ../lib

setup() {
  cd "$AMP_TOP" || return 1
}

# A tree with one file in it, and the checker.
tree() {
  mkdir -p "$BATS_TEST_TMPDIR/t/scripts" "$(dirname "$BATS_TEST_TMPDIR/t/$1")"
  cp scripts/lint.sh "$BATS_TEST_TMPDIR/t/scripts/"
  cat >"$BATS_TEST_TMPDIR/t/$1"
  cd "$BATS_TEST_TMPDIR/t"
}

@test "the sources have no findings" {
  bash scripts/lint.sh
}

@test "an upward and a sideways include are found" {
  tree lib/message/store/x.c <<<'/* x */
#include <amp/base/buf.h>
#include "message/delivery/ledger.h"
#include "message/port/port.h"
#include "cli/cli.h"
#include "work/task/task.h"'
  run -1 bash scripts/lint.sh includes
  [ "${lines[0]}" = "lib/message/store/x.c:3: message/store includes message/delivery, which is not below it" ]
  [ "${lines[1]}" = "lib/message/store/x.c:4: message/store includes message/port, which is not below it" ]
  [ "${lines[2]}" = "lib/message/store/x.c:5: message/store includes cli" ]
  [ "${lines[3]}" = "lib/message/store/x.c:6: message/store includes work, which is not below it" ]
  [ ${#lines[@]} -eq 4 ]
  # Not below it is also a higher house for work; people may include both.
  mkdir -p lib/work/task lib/people/answer
  printf '%s\n' '/* w */' '#include "people/answer/a.h"' '#include "message/store/x.h"' >lib/work/task/w.c
  printf '%s\n' '/* a */' '#include "work/task/w.h"' '#include "message/store/x.h"' >lib/people/answer/a.c
  run -1 bash scripts/lint.sh includes
  [ "${lines[4]}" = "lib/work/task/w.c:2: work includes people, which is not below it" ]
  [ ${#lines[@]} -eq 5 ]
}

@test "files that include each other are found between folders and in the house of messages" {
  tree lib/task/x.c <<<'/* x */
#include "agent/y.h"'
  mkdir -p lib/agent lib/message/store
  touch lib/task/x.h
  echo '#include "task/x.h"' >lib/agent/y.h
  printf '%s\n' '/* a */' '#include "message/store/b.h"' >lib/message/store/a.c
  printf '%s\n' '/* b */' '#include "message/store/a.h"' >lib/message/store/b.c
  touch lib/message/store/a.h lib/message/store/b.h
  printf '%s\n' '/* p */' '#include "task/q.h"' >lib/task/p.c
  printf '%s\n' '/* q */' '#include "task/p.h"' >lib/task/q.c
  touch lib/task/p.h lib/task/q.h
  run -1 bash scripts/lint.sh cycles
  [ "${lines[0]}" = "lib/agent/y: files include each other: lib/agent/y lib/task/x" ]
  [ "${lines[1]}" = "lib/message/store/a: files include each other: lib/message/store/a lib/message/store/b" ]
  [ "${lines[2]}" = "note: lib/task/p: files include each other: lib/task/p lib/task/q" ]
  [ ${#lines[@]} -eq 3 ]
}

@test "a kind of records that two folders name is found" {
  tree lib/task/x.c <<<'/* x */
#define KIND "task"
int a = amp_store_get(s, KIND, id, &rec, err);'
  mkdir -p lib/worktree cmd/x
  printf '%s\n' '/* y */' 'int b = amp_store_each(s, "task", NULL,' >lib/worktree/y.c
  printf '%s\n' '/* z */' 'int c = amp_store_update(some->store, AMP_KEY(' '    "task", id));' >lib/worktree/z.c
  printf '%s\n' '/* m */' 'bool d = amp_span_is(r->kind, "task");' >cmd/x/m.c
  run -1 bash scripts/lint.sh kinds
  [ "$(grep -c 'the kind "task" is owned by lib/task$' <<<"$output")" -eq 3 ]
  [ ${#lines[@]} -eq 3 ]
}

@test "a protocol that is named outside its room is found" {
  tree lib/task/x.c <<<'/* AMP_PROTOCOL_LIST */
bool a = v->protocol == AMP_PROTO_AOP && amp_span_is(r.protocol, "amp");
struct amp_key k = amp_key("rtp", id); const char *tool = "amp";'
  mkdir -p lib/message/protocol/aop
  echo 'int p = AMP_PROTO_AOP;' >lib/message/protocol/aop/aop.c
  run -1 bash scripts/lint.sh protocols
  [ "${lines[0]}" = "lib/task/x.c:2: names a protocol (0 lines of this file may)" ]
  [ "${lines[1]}" = "lib/task/x.c:3: names a protocol (0 lines of this file may)" ]
  [ ${#lines[@]} -eq 2 ]
}

@test "a call of what a protocol's folder declares is found outside of it" {
  tree lib/work/rtp/r.h <<<'/* r: amp_other() */
int amp_rtp_work(void);'
  mkdir -p lib/work/{loop,rtp/run} cmd/x
  echo '/* amp_rtp_work() */
int f(void) { return amp_rtp_work() + amp_other(); }' | tee lib/work/loop/l.c lib/work/rtp/run/r.c >cmd/x/main.c
  run -1 bash scripts/lint.sh carried
  [ "$output" = "lib/work/loop/l.c:2: calls lib/work/rtp (0 lines of this file may)" ]
}

@test "a folder of many files or lines is noted" {
  tree lib/task/x.c <<<'/* x */'
  mkdir -p lib/agent lib/hitl lib/port
  for i in {1..12}; do echo '/* a */' >lib/agent/$i.c; done
  for i in {1..13}; do echo '/* h */' >lib/hitl/$i.c; done
  printf '/* p */\n%.0s' {1..3000} >lib/port/p.c
  run -0 bash scripts/lint.sh folders
  [ "${lines[0]}" = "note: lib/hitl: 13 files, 13 lines of C: a second subject? (12 files, 2500 lines)" ]
  [ "${lines[1]}" = "note: lib/port: 1 files, 3000 lines of C: a second subject? (12 files, 2500 lines)" ]
  [ ${#lines[@]} -eq 2 ]
}

@test "files that only one neighbour calls are noted" {
  tree lib/x/x.c <<<'int x_two(void), x_row(void), x_y(void);
int (*const x_table[])(void) = {x_row};
int x_called(void) { return x_two() + x_y(); }'
  mkdir -p cmd/x lib/y build/lib/{x,y} build/cmd/x
  echo 'int x_two(void) { return 1; }' >lib/x/two.c
  echo 'int x_row(void) { return 1; }' >lib/x/row.c
  echo 'int x_y(void) { return 1; }' >lib/y/y.c
  echo 'int verb(void) { return 1; }' >cmd/x/verb.c
  echo 'int x_called(void), verb(void); int main(void) { return x_called() + verb(); }' >cmd/x/main.c
  export BUILD_DIR=build
  run -0 bash scripts/lint.sh neighbours
  [[ "$output" == note:*"not checked" ]]
  for f in lib/x/{x,two,row} lib/y/y cmd/x/{main,verb}; do ${CC:-cc} -c -o build/$f.o $f.c; done
  touch -d '1 minute' build/*/*/*.o
  run -0 bash scripts/lint.sh neighbours
  [ "$output" = "note: lib/x/two.c serves only lib/x/x.c" ]
}

@test "names of libc that are hidden are found" {
  need nm
  tree lib/task/x.c <<<'/* x */
static int bind(struct a *a)
{
    char accept[2];
}
static const struct row link[] = {0};
int remove_all(void);'
  run -1 bash scripts/lint.sh shadows
  [ "${lines[0]}" = "lib/task/x.c:2: bind: a name of libc" ]
  [ "${lines[1]}" = "lib/task/x.c:6: link: a name of libc" ]
  [ ${#lines[@]} -eq 2 ]
}

@test "a struct or macro that two files define is found" {
  tree lib/task/x.h <<<'/* x */
struct amp_spent {
  int a;
};
#define AMP_SPENT_KIND "spent"'
  mkdir -p lib/pool
  { cat lib/task/x.h && echo 'struct amp_spent *f(void);'; } >lib/pool/y.h
  run -1 bash scripts/lint.sh names
  [ "${lines[0]}" = "lib/task/x.h:2: struct amp_spent: also in lib/pool/y.h" ]
  [ "${lines[1]}" = "lib/task/x.h:5: #define AMP_SPENT_KIND: also in lib/pool/y.h" ]
  [ ${#lines[@]} -eq 2 ]
}

@test "a struct of the name of one in a header is found, one that two .c files have is not" {
  tree lib/task/a.c <<<'/* a */
struct walk {
  int a;
};
struct place {
  int a;
};'
  mkdir -p cmd/x
  cp lib/task/a.c lib/task/b.c
  printf '%s\n' 'struct place {' '  int b;' '};' >cmd/x/x.h
  run -1 bash scripts/lint.sh names
  [ "${lines[0]}" = "lib/task/a.c:5: struct place: also in cmd/x/x.h" ]
  [ "${lines[1]}" = "lib/task/b.c:5: struct place: also in cmd/x/x.h" ]
  [ ${#lines[@]} -eq 2 ]
}

@test "a code that is a text is found, a word of the list is not" {
  tree lib/task/x.h <<<'/* x */
int x_refuse(int x, const char *code, const char *why);
int x_name(const char *name, const char *code);'
  echo '/* x */
struct y f = {.code = AMP_CODE(no_route)};
struct y g = {.code = "no_rout"};
int a = x_refuse(1, AMP_CODE(no_route), "no_place") + x_name("my_name", AMP_CODE(no_route));
int b = x_refuse(1, "no_rout", "there is none");' >lib/task/x.c
  run -1 bash scripts/lint.sh codes
  [ "${lines[0]}" = 'lib/task/x.c: "no_rout" is a text: write AMP_CODE(no_rout)' ]
  [ "${lines[1]}" = "${lines[0]}" ]
  [ ${#lines[@]} -eq 2 ]
}

@test "banned calls are found in code, not in comments and strings" {
  tree lib/json/x.c <<<'/* strcpy(a, b) */
const char *s = "strcpy(";
int x_strcpy(void);
void f(char *a) { strcpy (a, s); }'
  run -1 bash scripts/lint.sh banned
  [ "$output" = "lib/json/x.c:4: strcpy: banned" ]
}

@test "a cleanup variable without a value is found, also one of a macro that names the type" {
  tree lib/json/x.c <<<'/* x */
#define BUF __attribute__((cleanup(release)))
#define WORK AMP_CLEANUP(work_release) struct work
void f(void)
{
    BUF struct buf a = {0}, b;
    WORK w;
    WORK v = {0};
    json_auto_t *j;
    AMP_CLEANUP(close_it) int fd = -1;
}'
  run -1 bash scripts/lint.sh cleanup
  [ "${lines[0]}" = "lib/json/x.c:6: a cleanup variable without an initialiser" ]
  [ "${lines[1]}" = "lib/json/x.c:7: a cleanup variable without an initialiser" ]
  [ "${lines[2]}" = "lib/json/x.c:9: a cleanup variable without an initialiser" ]
  [ ${#lines[@]} -eq 3 ]
}

@test "printing and ending are found outside the command line's room" {
  tree lib/json/x.c <<<'/* x */
void f(void) { printf("x"); snprintf(b, 1, "x"); exit(1); _exit(2); }'
  run -1 bash scripts/lint.sh exits
  [ "${lines[0]}" = "lib/json/x.c:2: printf: only cli prints and exits" ]
}

@test "starting a process elsewhere is found" {
  tree cmd/x/main.c <<<'/* x */
void f(void) { fork(); execv(a, b); }'
  run -1 bash scripts/lint.sh processes
  [[ "$output" == *"only lib/base/process/child.c executes"* ]]
  [[ "$output" == *"only lib/base/process/child.c forks"* ]]
}

@test "an external name that only its own file or only tests use is found" {
  tree lib/x/x.c <<<'int x_both(void) { return 1; }
int x_own(void) { return 2; }
int x_called(void) { return x_both() + x_own(); }
int x_tested(void) { return 3; }'
  mkdir -p cmd/x tests/unit bench build/lib/x build/cmd/x
  echo 'int x_called(void); int main(void) { return x_called(); }' >cmd/x/main.c
  echo 'int x_both(void), x_tested(void); int f(void) { return x_both() + x_tested(); }' \
    >tests/unit/x_test.c
  export BUILD_DIR=build
  run -0 bash scripts/lint.sh external
  [[ "$output" == note:* ]]
  ${CC:-cc} -c -o build/lib/x/x.o lib/x/x.c
  ${CC:-cc} -c -o build/cmd/x/main.o cmd/x/main.c
  touch -d '1 minute' build/*/x/*.o
  run -1 bash scripts/lint.sh external
  [ "${lines[0]}" = "lib/x/x.c:2: x_own: no other file uses it: static" ]
  [ "${lines[1]}" = "lib/x/x.c:4: x_tested: no program uses it" ]
  [ ${#lines[@]} -eq 2 ]
}

@test "a suite outside of the houses, and two of one name, are found" {
  tree tests/unit/x_test.c <<<'/* x */'
  mkdir -p tests/bats/{work,people}
  touch tests/bats/{work,people}/x.bats tests/bats/{y.bats,lib.bash}
  run -1 bash scripts/lint.sh tests
  [ "${lines[0]}" = "tests/bats/y.bats:1: a suite is in the folder of its house" ]
  [ "${lines[1]}" = "tests/unit/x_test.c:1: a suite is in the folder of its house" ]
  [ "${lines[2]}" = "tests/bats/work/x.bats:1: two suites have this name" ]
  [ ${#lines[@]} -eq 3 ]
}

@test "a header that needs another is found" {
  tree include/amp/x/x.h <<<'size_t f(void);'
  run -1 bash scripts/lint.sh headers
  [ "$output" = "include/amp/x/x.h:1: does not compile alone" ]
}

@test "a guard that is not the path is found" {
  tree lib/x/y.h <<<'#ifndef AMP_FLOW_Y_H
#define AMP_FLOW_Y_H
#endif'
  run -1 bash scripts/lint.sh headers
  [ "$output" = "lib/x/y.h:1: the guard of this path is AMP_X_Y_H" ]
}

@test "an effect that nothing carries out, and an event that nothing raises or that is a literal, are found" {
  tree lib/x/x.h <<<'#define AMP_X_EVENTS(X) \
    X(AMP_X_EV_GO, "go", "on") \
    X(AMP_X_EV_STOP, "stop", "end")
#define AMP_X_EFFECTS(X) \
    X(AMP_X_DO_RUN, "run", "run it") \
    X(AMP_X_DO_END, "end", "end it")'
  echo 'int rows = AMP_X_EV_STOP + AMP_X_DO_END;' >lib/x/x_fsm.c
  echo '/* AMP_X_DO_END */
int f(void) { change->event = "stop"; return AMP_X_EV_GO + AMP_X_DO_RUN + amp_x_fsm; }' >lib/x/x.c
  run -1 bash scripts/lint.sh machines
  [ "${lines[0]}" = "lib/x/x.h:3: AMP_X_EV_STOP: no code raises this event" ]
  [ "${lines[1]}" = "lib/x/x.h:6: AMP_X_DO_END: no code carries out this effect" ]
  [ "${lines[2]}" = "lib/x/x.c:2: the name of an event comes from its machine" ]
  [ ${#lines[@]} -eq 3 ]
}
