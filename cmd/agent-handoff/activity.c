/* agent-handoff activity: who works on what and where, and what ended lately. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/grow.h"
#include "cli/config.h"
#include "cli/list.h"
#include "message/store/wake.h"
#include "shared/work/tool.h"
#include "work/task/activity/notice/activity.h"

#define LINE_MAX_BYTES (1u << 20)

static const char *agent, *repo, *worktree, *task;
static bool follow, history, reconcile;

#define FILTER_OPTS                                                                                \
    {0, "agent", AMP_OPT_STRING, &agent, "NAME", "only entries of this agent", .values = "agent"}, \
        {'C', "repo", AMP_OPT_DIR, &repo, "DIR", "only entries of this repository"},               \
    {                                                                                              \
        0, "worktree", AMP_OPT_DIR, &worktree, "DIR", "only entries of this worktree"              \
    }

static const struct amp_opt activity_opts[] = {
    FILTER_OPTS,
    {0, "task", AMP_OPT_STRING, &task, "TASK", "only entries of this task", .values = "task"},
    {'a', "all", AMP_OPT_FLAG, &history, NULL, "also entries that ended"},
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL, "continue with each change until a signal"},
    AMP_OPT_JSON("print one JSON object per entry"),
    {0, "reconcile", AMP_OPT_FLAG, &reconcile, NULL,
     "first end the entries without a process, or whose task has ended"},
    AMP_OPT_END,
};
static const struct amp_opt activity_purge_opts[] = {
    FILTER_OPTS,
    {'a', "all", AMP_OPT_FLAG, &history, NULL, "also entries that ended"},
    AMP_OPT_END,
};

/* Directories are recorded as absolute paths without links. */
static struct amp_span path_of(const char *given, char **real)
{
    *real = given ? realpath(given, NULL) : NULL;
    return amp_span_str(*real ? *real : given ? given : "");
}

struct places {
    char *repo, *worktree;
};

static struct amp_activity_filter filter_of(struct places *p)
{
    return (struct amp_activity_filter){.agent = amp_span_str(agent ? agent : ""),
                                        .repo = path_of(repo, &p->repo),
                                        .worktree = path_of(worktree, &p->worktree),
                                        .task = amp_span_str(task ? task : ""),
                                        .history = history};
}

static void places_free(struct places *p)
{
    free(p->repo);
    free(p->worktree);
}

/* ---- printing ---- */

/* An entry that was printed: while following, only changes are printed again. */
struct printed {
    uint64_t key; /* a hash of the entry's key */
    int64_t began_ms;
    bool ended, seen;
};

struct listing {
    struct amp_store *store;
    struct amp_activity_filter filter;
    struct amp_listing *list;
    struct printed *v;
    size_t n, cap;
    bool again;
    struct amp_buf line;
};

static uint64_t hash_add(uint64_t h, struct amp_span s)
{
    for (size_t i = 0; i <= s.n; i++)
        h = (h ^ (i < s.n ? (unsigned char)s.p[i] : 0xffu)) * 0x100000001b3u;
    return h;
}

static uint64_t entry_hash(const struct amp_activity *a)
{
    uint64_t h = hash_add(0xcbf29ce484222325u, a->agent);
    return hash_add(hash_add(h, a->task), a->subtask) ^ (uint64_t)a->attempt * 0x9e3779b97f4a7c15u;
}

/* 1: the entry was printed as it is, 0: it was not, -1: failure. */
static int is_printed(struct listing *l, const struct amp_activity *a, struct amp_error *err)
{
    const uint64_t key = entry_hash(a);
    for (size_t i = 0; i < l->n; i++) {
        struct printed *p = &l->v[i];
        if (p->key != key)
            continue;
        bool same = p->began_ms == a->began_ms && p->ended == (a->ended_ms != 0);
        *p = (struct printed){key, a->began_ms, a->ended_ms != 0, true};
        return same;
    }
    if (amp_grow(&l->v, &l->cap, l->n, sizeof *l->v, err) < 0)
        return -1;
    l->v[l->n++] = (struct printed){key, a->began_ms, a->ended_ms != 0, true};
    /* An entry that ended before the first look, or between two, is not a change. */
    return l->again && a->ended_ms && !history;
}

/* While following, people get lines. */
static int entry_line(struct listing *l, const struct amp_activity *a, struct amp_error *err)
{
    char time[AMP_TIME_MAX];
    const char *state = amp_activity_is_alive(a) ? "active" : "no process";
    const struct amp_span texts[] = {a->agent, a->subtask.n ? a->subtask : a->task,
                                     a->ended_ms ? a->outcome : amp_span_str(state), a->branch,
                                     a->description};

    amp_time_format(a->ended_ms ? a->ended_ms : a->began_ms, time);
    amp_buf_reset(&l->line);
    if (amp_buf_str(&l->line, time, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (amp_buf_str(&l->line, "  ", err) < 0 || amp_text_safe(texts[i], 0, &l->line, err) < 0)
            return -1;
    return amp_buf_str(&l->line, "\n", err) < 0 ? -1 : amp_out(amp_buf_span(&l->line), err);
}

static int entry_print(void *ctx, const struct amp_activity *a, struct amp_error *err)
{
    struct listing *l = ctx;
    int shown = follow ? is_printed(l, a, err) : 0;

    if (shown)
        return shown < 0 ? -1 : 0;
    if (follow && !amp_listing_json)
        return entry_line(l, a, err);
    struct amp_activity row = *a;
    if (!amp_listing_json && a->ended_ms)
        row.began_ms = a->ended_ms; /* people see how long ago that was */
    return amp_listing_row(l->list, &row, err);
}

/* Entries that were purged may be made again. */
static void printed_sweep(struct listing *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].seen) {
            l->v[i].seen = false;
            l->v[n++] = l->v[i];
        }
    l->n = n;
}

static int list_follow(struct listing *l, struct amp_error *err)
{
    struct amp_wake wake;
    const struct amp_wake_for f = {
        .log = true, .out_fd = STDOUT_FILENO, .timeout_ms = -1, .stop = &amp_stop};
    unsigned why = 0;
    int rc;

    l->filter.history = true;
    if (amp_wake_open(&wake, amp_tool_state, err) < 0)
        return -1;
    amp_signals_install();
    do {
        rc = amp_wake_drain(&wake, err);
        if (rc >= 0)
            rc = amp_activity_each(l->store, &l->filter, entry_print, l, err);
        if (rc == 0)
            rc = amp_out_flush(err);
        printed_sweep(l);
        l->again = true;
        if (rc == 0)
            rc = amp_wake_wait(&wake, &f, &why, err);
    } while (rc == 0 && !amp_stop && !(why & AMP_WAKE_OUT));
    amp_wake_close(&wake);
    return rc < 0 ? -1 : 0;
}

/* ---- the verbs ---- */

static int buffer_reconcile(struct amp_store *s, struct amp_error *err)
{
    struct amp_activity_limits limits;
    json_t *config = NULL;
    uint32_t n = 0;

    if (amp_config_load(amp_tool_config, amp_tool_state, &config, err) < 0)
        return -1;
    amp_notice_limits(config, &limits);
    if (amp_notice_reconcile(s, NULL, &limits, amp_now_ms(), &n, err) < 0 ||
        amp_store_sync(s, err) < 0)
        return -1;
    if (n > 0)
        amp_note("%u entr%s without a process or with an ended task", n, n == 1 ? "y" : "ies");
    return 0;
}

static int activity_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (reconcile)
        c->opens = AMP_OPENS_MADE;
    if (follow || history)
        c->none = follow ? NULL : "no agent works";
    return 0;
}

static int activity_list(struct amp_command *c, struct amp_error *err)
{
    struct places places = {0};
    struct listing l = {.store = c->store, .list = c->list, .line = {.max = LINE_MAX_BYTES}};

    if (reconcile && buffer_reconcile(c->store, err) < 0)
        return -1;
    l.filter = filter_of(&places);
    int rc =
        follow ? list_follow(&l, err) : amp_activity_each(l.store, &l.filter, entry_print, &l, err);
    amp_buf_release(&l.line);
    free(l.v);
    places_free(&places);
    return rc < 0 ? -1 : follow && amp_stop ? AMP_INTERRUPTED : AMP_OK;
}

static int purge_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (c->argc == 0 && !agent && !repo && !worktree)
        amp_die_usage("no entries selected: give tasks, --agent, --repo or --worktree");
    return 0;
}

static int activity_purge(struct amp_command *c, struct amp_error *err)
{
    struct places places = {0};
    uint32_t gone = 0;

    AMP_FREE struct amp_span *tasks = calloc((size_t)c->argc + 1, sizeof *tasks);
    if (!tasks)
        return amp_fail_memory(err);
    for (int i = 0; i < c->argc; i++)
        tasks[i] = amp_span_str(c->argv[i]);
    struct amp_activity_filter f = filter_of(&places);
    f.tasks = tasks;
    f.n_tasks = (uint32_t)c->argc;
    int rc = amp_activity_purge(c->store, &f, amp_cli_name(), &gone, err);
    if (rc == 0)
        rc = amp_store_sync(c->store, err);
    places_free(&places);
    if (rc == 0)
        amp_note("%u entr%s removed", gone, gone == 1 ? "y" : "ies");
    return rc;
}

const struct amp_verb activity_verbs[] = {
    {"activity", "", "list who works on what and where", activity_opts, activity_list,
     .check = activity_check, .opens = AMP_OPENS_READ, .lists = amp_activity_columns,
     .none = "no agent works (--all also lists what ended)", .finds_state = true},
    {"activity purge", "[TASK…]", "remove entries of the activity buffer", activity_purge_opts,
     activity_purge, .check = purge_check, .opens = AMP_OPENS_MADE,
     .act = "purge the activity buffer", .finds_state = true, .values = "task",
     .who = AMP_WHO_PERSON},
    {0},
};
