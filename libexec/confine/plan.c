/*
 * The plan: one JSON object that lib/work/agent/confine.c wrote. Every member is optional.
 *
 *     {"namespaces":BOOL,"landlock":BOOL,"seccomp":BOOL,   what is enforced
 *      "network":"DENY_ALL",                               SW4RM §18.5.2
 *      "signals":"none"|"group"|"command",                 see enum forwarding
 *      "home":PATH,                                        with namespaces: an empty directory
 *      "scratch":PATH,                                     without: holds HOME and TMPDIR
 *      "paths":[{"from":PATH,"at":PATH,"write":BOOL}],     real paths; parents before children;
 *                                                          without from: an empty directory
 *      "limits":{"processes":N,"memory_bytes":N,"file_bytes":N,"open_files":N,"cpu_seconds":N},
 *      "status_fd":N,"gate_fd":N}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/json/tape.h>

#include "confine.h"

#define PLAN_MAX ((size_t)4 << 20)

static struct amp_span member_text(const struct amp_tape *t, uint32_t at)
{
    return amp_tok_source(t, at);
}

static void bad_plan(const struct plan *p, const struct amp_tape *t, uint32_t at)
{
    struct amp_span text = member_text(t, at);
    give_up(p, 78, "the plan is invalid at %.*s", AMP_CLIP(text, 80));
}

/* A heap copy, which lives until the process ends. */
static const char *plan_string(const struct plan *p, const struct amp_tape *t, uint32_t at)
{
    AMP_BUF struct amp_buf arena = {0};
    struct amp_span text = {0};
    amp_buf_init(&arena, PLAN_MAX);
    if (t->tok[at].type != AMP_JSON_STRING || (t->tok[at].flags & AMP_TOK_NUL) ||
        amp_tok_text(t, at, &arena, &text, NULL) < 0)
        bad_plan(p, t, at);
    char *copy = amp_span_dup(text);
    if (!copy)
        give_up(p, 77, "out of memory");
    return copy;
}

static const char *plan_path(const struct plan *p, const struct amp_tape *t, uint32_t at)
{
    const char *path = plan_string(p, t, at);
    if (path[0] != '/' || strstr(path, "/../") || strlen(path) >= 4096)
        bad_plan(p, t, at);
    return path;
}

static bool plan_bool(const struct plan *p, const struct amp_tape *t, uint32_t at)
{
    if (t->tok[at].type != AMP_JSON_TRUE && t->tok[at].type != AMP_JSON_FALSE)
        bad_plan(p, t, at);
    return t->tok[at].type == AMP_JSON_TRUE;
}

static int64_t plan_number(const struct plan *p, const struct amp_tape *t, uint32_t at)
{
    int64_t n;
    if (!amp_tok_int(t, at, &n) || n < 0)
        bad_plan(p, t, at);
    return n;
}

static int plan_word(const struct plan *p, const struct amp_tape *t, uint32_t at,
                     const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (amp_tok_is(t, at, amp_span_str(words[i])))
            return i;
    bad_plan(p, t, at);
    return -1;
}

static void plan_limit(struct plan *p, const struct amp_tape *t, uint32_t key)
{
    const struct {
        const char *name;
        int64_t *value;
    } rows[] = {{"processes", &p->processes},
                {"memory_bytes", &p->memory_bytes},
                {"file_bytes", &p->file_bytes},
                {"open_files", &p->open_files},
                {"cpu_seconds", &p->cpu_seconds}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (amp_tok_is(t, key, amp_span_str(rows[i].name))) {
            *rows[i].value = plan_number(p, t, key + 1);
            return;
        }
    bad_plan(p, t, key);
}

static void plan_place(struct plan *p, const struct amp_tape *t, uint32_t at)
{
    struct mount_place *place = &p->places[p->n_places];
    if (t->tok[at].type != AMP_JSON_OBJECT)
        bad_plan(p, t, at);
    *place = (struct mount_place){.tree = -1};
    for (uint32_t key = at + 1; key < t->tok[at].next; key = t->tok[key + 1].next) {
        if (amp_tok_is(t, key, AMP_SPAN("from")))
            place->from = plan_path(p, t, key + 1);
        else if (amp_tok_is(t, key, AMP_SPAN("at")))
            place->at = plan_path(p, t, key + 1);
        else if (amp_tok_is(t, key, AMP_SPAN("write")))
            place->write = plan_bool(p, t, key + 1);
        else
            bad_plan(p, t, key);
    }
    if (!place->from && (!place->at || place->write))
        bad_plan(p, t, at);
    if (!place->at)
        place->at = place->from;
    p->n_places++;
}

static void plan_places(struct plan *p, const struct amp_tape *t, uint32_t at)
{
    uint32_t n = t->tok[at].count;
    if (t->tok[at].type != AMP_JSON_ARRAY || n > PATHS_MAX)
        bad_plan(p, t, at);
    if (!(p->places = calloc(n + 1, sizeof *p->places)))
        give_up(p, 77, "out of memory");
    for (uint32_t i = at + 1; i < t->tok[at].next; i = t->tok[i].next)
        plan_place(p, t, i);
}

static void plan_member(struct plan *p, const struct amp_tape *t, uint32_t key)
{
    static const char *const networks[] = {"DENY_ALL", "EGRESS_RESTRICTED", "EGRESS_UNRESTRICTED",
                                           "FULL_ACCESS", NULL};
    static const char *const signals[] = {"none", "group", "command", NULL};
    uint32_t value = key + 1;
    struct amp_span name = amp_tok_raw(t, key);
    if (amp_span_is(name, "namespaces"))
        p->namespaces = plan_bool(p, t, value);
    else if (amp_span_is(name, "landlock"))
        p->landlock = plan_bool(p, t, value);
    else if (amp_span_is(name, "seccomp"))
        p->seccomp = plan_bool(p, t, value);
    else if (amp_span_is(name, "network"))
        p->network = (enum network)plan_word(p, t, value, networks);
    else if (amp_span_is(name, "signals"))
        p->forwarding = (enum forwarding)plan_word(p, t, value, signals);
    else if (amp_span_is(name, "home"))
        p->home = plan_path(p, t, value);
    else if (amp_span_is(name, "scratch"))
        p->scratch = plan_path(p, t, value);
    else if (amp_span_is(name, "paths"))
        plan_places(p, t, value);
    else if (amp_span_is(name, "limits") && t->tok[value].type == AMP_JSON_OBJECT)
        for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k + 1].next)
            plan_limit(p, t, k);
    else if (amp_span_is(name, "gate_fd"))
        p->gate_fd = (int)plan_number(p, t, value);
    else if (!amp_span_is(name, "status_fd")) /* read before */
        bad_plan(p, t, key);
}

static size_t plan_text(const struct plan *p, int fd, char **out)
{
    size_t n = 0, cap = 1 << 16;
    char *text = malloc(cap);
    for (;;) {
        if (n == cap && (cap *= 2) <= PLAN_MAX) {
            char *more = realloc(text, cap);
            if (!more)
                free(text);
            text = more;
        }
        if (!text || n == cap || cap > PLAN_MAX)
            give_up(p, 77, "the plan is too large");
        ssize_t got = read(fd, text + n, cap - n);
        if (got < 0)
            give_up(p, 78, "no plan on descriptor %d", fd);
        if (got == 0)
            break;
        n += (size_t)got;
    }
    close(fd);
    *out = text;
    return n;
}

void plan_read(struct plan *p, int fd)
{
    AMP_FREE char *text = NULL;
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape t = {0};
    size_t n = plan_text(p, fd, &text);
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, text, n, &fault) < 0 || t.tok[0].type != AMP_JSON_OBJECT)
        give_up(p, 78, "the plan is not a JSON object");
    uint32_t status = amp_tape_get(&t, 0, AMP_SPAN("status_fd"));
    if (status != AMP_TOK_NONE)
        p->status_fd = (int)plan_number(p, &t, status);
    for (uint32_t key = 1; key < t.n; key = t.tok[key + 1].next)
        plan_member(p, &t, key);
}
