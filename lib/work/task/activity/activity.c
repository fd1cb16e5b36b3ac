/* Entries of the activity buffer in the store. */
#include "work/task/activity/activity.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/process/process.h"
#include "base/words.h"
#include "message/record/subject.h"

enum { ACTIVE, ENDED };
static const char *const states[] = {"ACTIVE", "ENDED", NULL};

AMP_WORDS(ends, AMP_ACTIVITY_ENDS);

#define MEMBER(as, key, member) AMP_REC(as, struct amp_activity, key, member)
#define ALWAYS(as, key, member) AMP_REC_EVER(as, struct amp_activity, key, member)
static const struct amp_rec_field fields[] = {
    ALWAYS(TEXT, "agent", agent),
    ALWAYS(TEXT, "task", task),
    MEMBER(TEXT, "subtask", subtask),
    MEMBER(INT, "attempt", attempt),
    MEMBER(TEXT, "role", role),
    ALWAYS(TEXT, "repo", repo),
    ALWAYS(TEXT, "worktree", worktree),
    ALWAYS(TEXT, "branch", branch),
    ALWAYS(TEXT, "description", description),
    ALWAYS(TIME, "began", began_ms),
    MEMBER(TIME, "ended", ended_ms),
    MEMBER(TEXT, "outcome", outcome),
    MEMBER(INT, "pid", pid),
    MEMBER(INT, "pid_started", pid_started),
};
AMP_REC_TABLE(activity_rec, "an entry of the activity buffer", struct amp_activity, fields);

struct change {
    const char *event;
    uint64_t rev;     /* of the record that was looked at; 0: any */
    int64_t ended_ms; /* 0: it goes on */
    struct amp_span outcome;
    int64_t due_ms;
};

/* Changes an active entry. */
static int entry_change(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct change *u = t->step->with;
    struct amp_activity *a = rec;

    (void)err;
    if (!t->now->found || a->state != ACTIVE || (u->rev && t->now->rev != u->rev))
        return 1;
    if (u->ended_ms) {
        a->state = ENDED;
        a->ended_ms = u->ended_ms;
        a->outcome = u->outcome;
    }
    a->due_ms = u->due_ms;
    t->change->event = u->event;
    return 0;
}

static const struct amp_subject entries = {.kind = AMP_ACTIVITY_KIND,
                                           .table = &activity_rec,
                                           .states = states,
                                           .state = AMP_SUBJECT_AT(struct amp_activity, state),
                                           .rev = AMP_SUBJECT_AT(struct amp_activity, rev),
                                           .key = AMP_SUBJECT_AT(struct amp_activity, key),
                                           .due = AMP_SUBJECT_AT(struct amp_activity, due_ms),
                                           .carry = entry_change};

static int64_t limit_of(int64_t given, int64_t otherwise)
{
    return given > 0 ? given : otherwise;
}

/* The text of an attempt's number in a key. */
struct number {
    char text[24];
};

static struct amp_key key_of(const struct amp_activity *a, struct number *n)
{
    snprintf(n->text, sizeof n->text, "%lld", (long long)a->attempt);
    return AMP_KEY(AMP_ACTIVITY_KIND, a->agent, a->task, a->subtask, amp_span_str(n->text));
}

/* At most 200 words and AMP_ACTIVITY_TEXT bytes, and no half of a character. */
static struct amp_span description_cut(struct amp_span text)
{
    size_t i = 0, end = 0;
    bool in_word = false;

    for (unsigned words = 0; i < text.n && i < AMP_ACTIVITY_TEXT; i++) {
        bool space = text.p[i] == ' ' || (unsigned char)(text.p[i] - '\t') < 5;
        words += !space && !in_word;
        in_word = !space;
        if (words > AMP_ACTIVITY_WORDS)
            return (struct amp_span){text.p, end};
        if (in_word)
            end = i + 1;
    }
    while (end < text.n && end > 0 && ((unsigned char)text.p[end] & 0xc0) == 0x80)
        end--;
    return (struct amp_span){text.p, end};
}

/* ---- reading ---- */

struct walk {
    const struct amp_activity_filter *f;
    amp_activity_fn fn;
    void *ctx;
};

static bool fits(struct amp_span wanted, struct amp_span has)
{
    return wanted.n == 0 || amp_span_eq(wanted, has);
}

static bool entry_fits(const struct amp_activity_filter *f, const struct amp_activity *a)
{
    bool listed = f->n_tasks == 0;
    for (uint32_t i = 0; i < f->n_tasks; i++)
        listed = listed || amp_span_eq(f->tasks[i], a->task);
    return listed && fits(f->agent, a->agent) && fits(f->repo, a->repo) &&
           fits(f->worktree, a->worktree) && fits(f->task, a->task);
}

static int entry_visit(void *ctx, const void *rec, struct amp_error *err)
{
    const struct walk *w = ctx;

    return entry_fits(w->f, rec) ? w->fn(w->ctx, rec, err) : 0;
}

static int entries_each(struct amp_store *s, const struct amp_activity_filter *f,
                        amp_subject_each_fn fn, void *ctx, struct amp_error *err)
{
    return amp_subject_each(&entries, s,
                            f->ended     ? states[ENDED]
                            : f->history ? NULL
                                         : states[ACTIVE],
                            fn, ctx, err);
}

int amp_activity_each(struct amp_store *s, const struct amp_activity_filter *f, amp_activity_fn fn,
                      void *ctx, struct amp_error *err)
{
    return entries_each(s, f, entry_visit, &(struct walk){f, fn, ctx}, err);
}

bool amp_activity_is_alive(const struct amp_activity *a)
{
    return a->pid > 0 && amp_process_started((pid_t)a->pid) == a->pid_started;
}

/* ---- limits ---- */

struct census {
    const char *state;
    uint64_t n;
};

static int state_count(void *ctx, struct amp_span kind, struct amp_span state, uint64_t n,
                       struct amp_error *err)
{
    struct census *c = ctx;
    (void)kind;
    (void)err;
    if (amp_span_is(state, c->state))
        c->n += n;
    return 0;
}

static int entries_count(struct amp_store *s, const char *state, uint64_t *n, struct amp_error *err)
{
    struct census c = {state, 0};
    if (amp_store_tally(s, AMP_ACTIVITY_KIND, state_count, &c, err) < 0)
        return -1;
    *n = c.n;
    return 0;
}

int amp_activity_count(struct amp_store *s, uint64_t *n, struct amp_error *err)
{
    return entries_count(s, states[ACTIVE], n, err);
}

static int own_count(void *ctx, const void *rec, struct amp_error *err)
{
    int64_t *n = ctx;

    (void)err;
    *n += ((const struct amp_activity *)rec)->state == ACTIVE;
    return 0;
}

static int room_check(struct amp_store *s, const struct amp_activity *a, struct amp_key key,
                      const struct amp_activity_limits *limits, struct amp_activity_room *room,
                      struct amp_error *err)
{
    const int64_t per_agent = limit_of(limits->per_agent, AMP_ACTIVITY_PER_AGENT);
    const int64_t warn = limit_of(limits->warn, AMP_ACTIVITY_WARN);
    struct amp_store_rec now;
    uint64_t active;
    int64_t own = 0;

    *room = (struct amp_activity_room){.max = limit_of(limits->max, AMP_ACTIVITY_MAX)};
    if (amp_store_get(s, key, &now, err) < 0)
        return -1;
    bool again = now.found && amp_span_is(now.state, states[ACTIVE]);
    if (entries_count(s, states[ACTIVE], &active, err) < 0)
        return -1;
    room->active = active + !again;
    if (again)
        return 0;
    if (active >= (uint64_t)room->max)
        return amp_fail(err, AMP_NO, activity_buffer_full,
                        "the activity buffer has %llu entries (the limit, activity.max, is %lld)",
                        (unsigned long long)active, (long long)room->max);
    if (amp_subject_of(&entries, s, a->agent, own_count, &own, err) < 0)
        return -1;
    if (own >= per_agent)
        return amp_fail(err, AMP_NO, activity_buffer_full,
                        "the agent %.*s has %lld entries in the activity buffer (the limit, "
                        "activity.per_agent, is %lld)",
                        AMP_CLIP(a->agent, 100), (long long)own, (long long)per_agent);
    room->crossed = room->active * 100 >= (uint64_t)(room->max * warn) &&
                    active * 100 < (uint64_t)(room->max * warn);
    return 0;
}

/* ---- changing ---- */

int amp_activity_begin(struct amp_store *s, const struct amp_activity *a,
                       const struct amp_activity_limits *limits, struct amp_activity_room *room,
                       struct amp_error *err)
{
    struct amp_activity entry = *a;
    struct number n;
    const struct amp_key key = key_of(a, &n);

    entry.description = description_cut(a->description);
    entry.pid = getpid();
    entry.pid_started = amp_process_started(getpid());
    entry.ended_ms = 0;
    entry.outcome = (struct amp_span){0};
    entry.state = ACTIVE;
    entry.due_ms = a->began_ms + AMP_ACTIVITY_LOOK_MS;
    int rc = amp_store_begin(s, err);
    if (rc == 0) {
        rc = room_check(s, a, key, limits, room, err);
        if (rc == 0)
            rc = amp_subject_put(&entries, s, key, &entry, false, "begin", NULL, err);
        amp_store_end(s);
    }
    return rc < 0 ? -1 : 0;
}

/* 1: changed. */
static int entry_step(struct amp_store *s, struct amp_key key, const struct change *u,
                      const char *actor, struct amp_error *err)
{
    const struct amp_subject_step step = {.key = key, .with = u, .actor = actor};
    enum amp_store_outcome how;

    return amp_subject_step(&entries, s, &step, NULL, NULL, &how, err) < 0
               ? -1
               : how == AMP_STORE_COMMITTED;
}

/* 1: ended. */
static int entry_end(struct amp_store *s, struct amp_key key, uint64_t rev,
                     enum amp_activity_end how, int64_t now_ms, const char *actor,
                     const struct amp_activity_limits *limits, struct amp_error *err)
{
    const bool ours = how == AMP_ACTIVITY_LOST || how == AMP_ACTIVITY_OVER;
    const struct change u = {.event = ours ? "reconcile" : "end",
                             .rev = rev,
                             .ended_ms = now_ms,
                             .outcome = amp_span_str(ends[how]),
                             .due_ms =
                                 now_ms + limit_of(limits->history_ms, AMP_ACTIVITY_HISTORY_MS)};

    return entry_step(s, key, &u, actor, err);
}

/* ---- removing ---- */

struct removal {
    struct amp_store *store;
    const struct amp_activity_filter *f; /* NULL: ended entries */
    const char *event, *actor;
    uint32_t n, most;
};

static int entry_remove(struct removal *r, const struct amp_key *key, uint64_t rev,
                        struct amp_error *err)
{
    int rc = amp_subject_remove(&entries, r->store, *key, rev, r->event, r->actor, err);

    r->n += rc > 0;
    return rc < 0 ? -1 : r->most && r->n >= r->most;
}

static int entry_drop(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_activity *a = rec;
    struct removal *r = ctx;
    bool drops = r->f ? entry_fits(r->f, a) : a->state == ENDED;

    return drops ? entry_remove(r, a->key, a->rev, err) : 0;
}

static int row_drop(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                    struct amp_error *err)
{
    (void)id;
    return amp_span_is(rec->state, states[ENDED]) ? entry_remove(ctx, rec->key, rec->rev, err) : 0;
}

/* Active entries are due within AMP_ACTIVITY_LOOK_MS, so the oldest of the history come first among
 * the entries that are due later. */
static int history_trim(struct amp_store *s, int64_t now_ms,
                        const struct amp_activity_limits *limits, struct amp_error *err)
{
    const uint64_t most = (uint64_t)limit_of(limits->history, AMP_ACTIVITY_HISTORY);
    uint64_t n;

    if (entries_count(s, states[ENDED], &n, err) < 0)
        return -1;
    if (n <= most)
        return 0;
    struct removal r = {
        .store = s, .event = "evict", .most = n - most > 64 ? 64 : (uint32_t)(n - most)};
    const struct amp_store_window w = {.kind = AMP_ACTIVITY_KIND,
                                       .due_ms = now_ms + 2 * (int64_t)AMP_ACTIVITY_LOOK_MS,
                                       .key = AMP_SPAN(""),
                                       .most = r.most};
    return amp_store_due_window(s, &w, row_drop, &r, err);
}

int amp_activity_end(struct amp_store *s, const struct amp_activity *a, enum amp_activity_end how,
                     int64_t now_ms, const struct amp_activity_limits *limits,
                     struct amp_error *err)
{
    struct number n;
    int rc = entry_end(s, key_of(a, &n), 0, how, now_ms, NULL, limits, err);

    return rc > 0 ? history_trim(s, now_ms, limits, err) : rc;
}

int amp_activity_forget(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *gone,
                        struct amp_error *err)
{
    struct removal r = {.store = s, .event = "forget", .actor = actor};
    int rc = amp_subject_due(&entries, s, now_ms, entry_drop, &r, err);
    *gone += r.n;
    return rc;
}

int amp_activity_purge(struct amp_store *s, const struct amp_activity_filter *f, const char *actor,
                       uint32_t *gone, struct amp_error *err)
{
    struct removal r = {.store = s, .f = f, .event = "purge", .actor = actor};
    int rc = entries_each(s, f, entry_drop, &r, err);
    *gone = r.n;
    return rc;
}

/* ---- reconciling ---- */

struct reconciling {
    struct amp_store *store;
    const struct amp_activity_reconcile *how;
    const struct amp_activity_limits *limits;
    uint32_t n;
};

static int entry_reconcile(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_activity *a = rec;
    struct reconciling *r = ctx;
    const struct amp_activity_reconcile *how = r->how;
    int rc = 0;

    if (a->state != ACTIVE)
        return 0;
    bool lost = !amp_activity_is_alive(a);
    if (lost || (how->task_ended && how->task_ended(how->ctx, r->store, a->task))) {
        rc = entry_end(r->store, *a->key, a->rev, lost ? AMP_ACTIVITY_LOST : AMP_ACTIVITY_OVER,
                       how->now_ms, how->actor, r->limits, err);
        r->n += rc > 0;
    } else if (how->due) {
        const struct change u = {
            .event = "keep", .rev = a->rev, .due_ms = how->now_ms + AMP_ACTIVITY_LOOK_MS};
        rc = entry_step(r->store, *a->key, &u, how->actor, err);
    }
    return rc < 0 ? -1 : 0;
}

int amp_activity_reconcile(struct amp_store *s, const struct amp_activity_reconcile *how,
                           const struct amp_activity_limits *limits, uint32_t *n_ended,
                           struct amp_error *err)
{
    struct reconciling r = {s, how, limits, 0};
    int rc = how->due ? amp_subject_due(&entries, s, how->now_ms, entry_reconcile, &r, err)
             : how->agent
                 ? amp_subject_of(&entries, s, amp_span_str(how->agent), entry_reconcile, &r, err)
                 : amp_subject_each(&entries, s, states[ACTIVE], entry_reconcile, &r, err);

    if (n_ended)
        *n_ended += r.n;
    return rc;
}

/* ---- writing ---- */

static struct amp_span task_text(const void *row, char mem[AMP_CELL_MAX])
{
    const struct amp_activity *a = row;

    (void)mem;
    return a->subtask.n ? a->subtask : a->task;
}

static struct amp_span doing_text(const void *row, char mem[AMP_CELL_MAX])
{
    const struct amp_activity *a = row;

    (void)mem;
    return a->ended_ms ? a->outcome
                       : amp_span_str(amp_activity_is_alive(a) ? "active" : "no process");
}

static struct amp_span place_text(const void *row, char mem[AMP_CELL_MAX])
{
    const struct amp_span dir = ((const struct amp_activity *)row)->worktree;
    const char *slash = dir.n ? memrchr(dir.p, '/', dir.n) : NULL;

    (void)mem;
    return slash ? (struct amp_span){slash + 1, dir.n - (size_t)(slash + 1 - dir.p)} : dir;
}

static struct amp_span state_text(const void *row, char mem[AMP_CELL_MAX])
{
    (void)mem;
    return amp_span_str(states[((const struct amp_activity *)row)->ended_ms ? ENDED : ACTIVE]);
}

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct amp_activity, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct amp_activity, key, head, member)
const struct amp_column amp_activity_columns[] = {
    EVER(TEXT, "agent_id", "AGENT", agent),
    EVER(TEXT, "task_id", NULL, task),
    AMP_COLUMN_MADE(NULL, "TASK", task_text),
    AMP_COLUMN_MADE(NULL, "STATE", doing_text),
    EVER(TEXT, "repo_id", NULL, repo),
    EVER(TEXT, "worktree_id", NULL, worktree),
    EVER(AGE, "timestamp", "FOR", began_ms),
    EVER(TEXT, "branch", "BRANCH", branch),
    AMP_COLUMN_MADE(NULL, "WORKTREE", place_text),
    EVER(TEXT, "description", "WHAT", description),
    SOME(TEXT, "subtask_id", NULL, subtask),
    SOME(INT, "attempt", NULL, attempt),
    SOME(TEXT, "role", NULL, role),
    AMP_COLUMN_MADE("state", NULL, state_text, .ever = true),
    SOME(TIME, "ended", NULL, ended_ms),
    SOME(TEXT, "outcome", NULL, outcome),
    {0},
};
