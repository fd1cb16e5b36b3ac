#!/bin/bash
# hitl-prompt hook, decided by a rule, beside an empty program, each call after one of the other: the least and the median
# difference in milliseconds. With N=500 pairs and 12 rules; then with 200 rules more.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$PWD/build/bin/hitl-prompt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/pairs.c" <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
extern char **environ;
static double run(char **argv, const char *in)
{
    struct timespec a, b;
    posix_spawn_file_actions_t fa;
    pid_t p;
    int st;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, in, O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    clock_gettime(CLOCK_MONOTONIC, &a);
    if (posix_spawnp(&p, argv[0], &fa, NULL, argv, environ) || waitpid(p, &st, 0) != p || st)
        exit(1);
    clock_gettime(CLOCK_MONOTONIC, &b);
    posix_spawn_file_actions_destroy(&fa);
    return (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
}
static int cmp(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
/* pairs N INPUT EMPTY PROGRAM ARGS... */
int main(int argc, char **argv)
{
    int n = atoi(argv[1]);
    double *e = malloc((size_t)n * sizeof *e), *d = malloc((size_t)n * sizeof *d);
    double *t = malloc((size_t)n * sizeof *t);
    char *empty[] = {argv[3], NULL};
    if (argc < 5 || !e || !d || !t)
        return 1;
    for (int i = 0; i < n; i++) {
        e[i] = run(empty, argv[2]);
        t[i] = run(argv + 4, argv[2]);
        d[i] = t[i] - e[i];
    }
    qsort(e, (size_t)n, sizeof *e, cmp);
    qsort(t, (size_t)n, sizeof *t, cmp);
    qsort(d, (size_t)n, sizeof *d, cmp);
    printf("empty %.3f ms, hook %.3f ms, over it: least %.3f, median %.3f ms\n", e[0], t[0],
           t[0] - e[0], d[n / 2]);
    return 0;
}
C
echo 'int main(void){return 0;}' >"$work/empty.c"
cc -O2 -o "$work/pairs" "$work/pairs.c"
cc -O2 -o "$work/empty" "$work/empty.c"
umask 077
git init -q "$work/repo"
printf '{"session_id":"s","cwd":"%s","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git status && git diff --stat | cat"}}' \
  "$work/repo" >"$work/event"
sed 's/"ls \*"/"cat *"/' share/agents/amp.json >"$work/amp.json"
jq '.hitl.hook.rules += [range(200) | {decision: "deny", kind: "command", command: "tool-\(.) *"}]' "$work/amp.json" >"$work/many.json"
[ "$("$tool" hook -c "$work/amp.json" <"$work/event" | jq -r .hookSpecificOutput.permissionDecision)" = allow ]
for rules in amp many; do
  printf '%-5s' "$rules"
  "$work/pairs" "${N:-500}" "$work/event" "$work/empty" "$tool" hook -c "$work/$rules.json"
done
