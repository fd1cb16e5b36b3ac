/* Entries of the activity buffer in the store. */
#include "activity/activity.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/process/process.h"
#include "json/record.h"

#define ACTIVE "ACTIVE"
#define ENDED  "ENDED"

static const char *const ends[] = {
#define X(id, word) [AMP_ACTIVITY_##id] = word,
    AMP_ACTIVITY_ENDS(X)
#undef X
};

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

static int entry_visit(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    const struct walk *w = ctx;
    struct amp_activity a;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};

    (void)id;
    if (amp_rec_parse(&activity_rec, rec->json, &mem, &a, err) < 0)
        return -1;
    return entry_fits(w->f, &a) ? w->fn(w->ctx, &a, err) : 0;
}

int amp_activity_each(struct amp_store *s, const struct amp_activity_filter *f, amp_activity_fn fn,
                      void *ctx, struct amp_error *err)
{
    struct walk w = {f, fn, ctx};
    return amp_store_each(s, AMP_ACTIVITY_KIND,
                          f->ended     ? ENDED
                          : f->history ? NULL
                                       : ACTIVE,
                          entry_visit, &w, err);
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
    return entries_count(s, ACTIVE, n, err);
}

struct own {
    struct amp_span agent;
    int64_t n;
};

static int own_count(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                     struct amp_error *err)
{
    struct own *o = ctx;
    (void)err;
    o->n += amp_span_is(rec->state, ACTIVE) && amp_span_eq(id, o->agent);
    return 0;
}

static int agent_count(struct amp_store *s, struct amp_span agent, int64_t *n,
                       struct amp_error *err)
{
    struct own o = {.agent = agent};
    struct amp_span prefix = amp_key_prefix(agent);
    int rc = prefix.n > 0 ? amp_store_each_of(s, AMP_ACTIVITY_KIND, prefix, own_count, &o, err)
                          : amp_store_each(s, AMP_ACTIVITY_KIND, ACTIVE, own_count, &o, err);
    *n = o.n;
    return rc;
}

static int room_check(struct amp_store *s, const struct amp_activity *a, struct amp_key key,
                      const struct amp_activity_limits *limits, struct amp_activity_room *room,
                      struct amp_error *err)
{
    const int64_t per_agent = limit_of(limits->per_agent, AMP_ACTIVITY_PER_AGENT);
    const int64_t warn = limit_of(limits->warn, AMP_ACTIVITY_WARN);
    struct amp_store_rec now;
    uint64_t active;
    int64_t own;

    *room = (struct amp_activity_room){.max = limit_of(limits->max, AMP_ACTIVITY_MAX)};
    if (amp_store_get(s, key, &now, err) < 0)
        return -1;
    bool again = now.found && amp_span_is(now.state, ACTIVE);
    if (entries_count(s, ACTIVE, &active, err) < 0)
        return -1;
    room->active = active + !again;
    if (again)
        return 0;
    if (active >= (uint64_t)room->max)
        return amp_fail(err, AMP_NO, activity_buffer_full,
                        "the activity buffer has %llu entries (the limit, activity.max, is %lld)",
                        (unsigned long long)active, (long long)room->max);
    if (agent_count(s, a->agent, &own, err) < 0)
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

struct change {
    struct amp_activity a; /* what is written */
    const char *event, *to, *actor;
    int64_t due_ms;
    uint64_t rev; /* of the record that was looked at; 0: any */
    bool ends;
    bool changed;
    struct amp_buf json, mem;
};

static void change_init(struct change *u)
{
    amp_buf_init(&u->json, AMP_REC_MAX);
    amp_buf_init(&u->mem, AMP_REC_MAX);
}

static void change_release(struct change *u)
{
    amp_buf_release(&u->json);
    amp_buf_release(&u->mem);
}

static int entry_change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                        struct amp_error *err)
{
    struct change *u = ctx;
    struct amp_activity a = u->a;

    u->changed = false;
    if (u->ends) {
        if (!now->found || !amp_span_is(now->state, ACTIVE) || (u->rev && now->rev != u->rev))
            return 1;
        if (amp_rec_parse(&activity_rec, now->json, &u->mem, &a, err) < 0)
            return -1;
        a.ended_ms = u->a.ended_ms;
        a.outcome = u->a.outcome;
    }
    amp_buf_reset(&u->json);
    if (amp_rec_write(&activity_rec, &a, &u->json, err) < 0)
        return -1;
    u->changed = true;
    c->event = u->event;
    c->to = u->to;
    c->json = amp_buf_span(&u->json);
    c->due_ms = u->due_ms;
    c->actor = u->actor;
    return 0;
}

int amp_activity_begin(struct amp_store *s, const struct amp_activity *a,
                       const struct amp_activity_limits *limits, struct amp_activity_room *room,
                       struct amp_error *err)
{
    struct change u = {
        .a = *a, .event = "begin", .to = ACTIVE, .due_ms = a->began_ms + AMP_ACTIVITY_LOOK_MS};
    struct number n;
    const struct amp_key key = key_of(a, &n);

    u.a.description = description_cut(a->description);
    u.a.pid = getpid();
    u.a.pid_started = amp_process_started(getpid());
    u.a.ended_ms = 0;
    u.a.outcome = (struct amp_span){0};
    change_init(&u);
    int rc = amp_store_begin(s, err);
    if (rc == 0) {
        rc = room_check(s, a, key, limits, room, err);
        if (rc == 0)
            rc = amp_store_update(s, key, NULL, entry_change, &u, NULL, err);
        amp_store_end(s);
    }
    change_release(&u);
    return rc < 0 ? -1 : 0;
}

static int entry_end(struct amp_store *s, struct amp_key key, uint64_t rev,
                     enum amp_activity_end how, int64_t now_ms, const char *actor,
                     const struct amp_activity_limits *limits, bool *changed, struct amp_error *err)
{
    struct change u = {.a = {.ended_ms = now_ms, .outcome = amp_span_str(ends[how])},
                       .event = how == AMP_ACTIVITY_LOST || how == AMP_ACTIVITY_OVER ? "reconcile"
                                                                                     : "end",
                       .to = ENDED,
                       .actor = actor,
                       .rev = rev,
                       .due_ms = now_ms + limit_of(limits->history_ms, AMP_ACTIVITY_HISTORY_MS),
                       .ends = true};

    change_init(&u);
    int rc = amp_store_update(s, key, NULL, entry_change, &u, NULL, err);
    change_release(&u);
    *changed = rc == 0 && u.changed;
    return rc;
}

/* ---- removing ---- */

static int entry_drop(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                      struct amp_error *err)
{
    const struct change *u = ctx;
    (void)err;
    if (!now->found || now->rev != u->rev)
        return 1;
    c->event = u->event;
    c->to = "REMOVED";
    c->json = AMP_SPAN("{}");
    c->actor = u->actor;
    c->remove = true;
    return 0;
}

struct removal {
    struct amp_store *store;
    const struct amp_activity_filter *f; /* NULL: ended entries */
    const char *event, *actor;
    uint32_t n, most;
};

static int record_drop(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct removal *r = ctx;
    struct change u = {.event = r->event, .actor = r->actor, .rev = rec->rev};
    enum amp_store_outcome how;
    struct amp_activity a;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};

    (void)id;
    if (!r->f && !amp_span_is(rec->state, ENDED))
        return 0;
    if (r->f && amp_rec_parse(&activity_rec, rec->json, &mem, &a, err) < 0)
        return -1;
    if (r->f && !entry_fits(r->f, &a))
        return 0;
    if (amp_store_update(r->store, *rec->key, NULL, entry_drop, &u, &how, err) < 0)
        return -1;
    r->n += how == AMP_STORE_COMMITTED;
    return r->most && r->n >= r->most;
}

/* Active entries are due within AMP_ACTIVITY_LOOK_MS, so the oldest of the history come first among
 * the entries that are due later. */
static int history_trim(struct amp_store *s, int64_t now_ms,
                        const struct amp_activity_limits *limits, struct amp_error *err)
{
    const uint64_t most = (uint64_t)limit_of(limits->history, AMP_ACTIVITY_HISTORY);
    uint64_t n;

    if (entries_count(s, ENDED, &n, err) < 0)
        return -1;
    if (n <= most)
        return 0;
    struct removal r = {
        .store = s, .event = "evict", .most = n - most > 64 ? 64 : (uint32_t)(n - most)};
    const struct amp_store_window w = {.kind = AMP_ACTIVITY_KIND,
                                       .due_ms = now_ms + 2 * (int64_t)AMP_ACTIVITY_LOOK_MS,
                                       .key = AMP_SPAN(""),
                                       .most = r.most};
    return amp_store_due_window(s, &w, record_drop, &r, err);
}

int amp_activity_end(struct amp_store *s, const struct amp_activity *a, enum amp_activity_end how,
                     int64_t now_ms, const struct amp_activity_limits *limits,
                     struct amp_error *err)
{
    struct number n;
    bool changed;

    if (entry_end(s, key_of(a, &n), 0, how, now_ms, NULL, limits, &changed, err) < 0)
        return -1;
    return changed ? history_trim(s, now_ms, limits, err) : 0;
}

int amp_activity_forget(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *gone,
                        struct amp_error *err)
{
    struct removal r = {.store = s, .event = "forget", .actor = actor};
    int rc = amp_store_due(s, AMP_ACTIVITY_KIND, now_ms, record_drop, &r, err);
    *gone += r.n;
    return rc;
}

int amp_activity_purge(struct amp_store *s, const struct amp_activity_filter *f, const char *actor,
                       uint32_t *gone, struct amp_error *err)
{
    struct removal r = {.store = s, .f = f, .event = "purge", .actor = actor};
    int rc = amp_store_each(s, AMP_ACTIVITY_KIND,
                            f->ended     ? ENDED
                            : f->history ? NULL
                                         : ACTIVE,
                            record_drop, &r, err);
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

static int entry_keep(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                      struct amp_error *err)
{
    struct change *u = ctx;
    if (!now->found || now->rev != u->rev)
        return 1;
    amp_buf_reset(&u->json);
    if (amp_buf_add(&u->json, now->json.p, now->json.n, err) < 0)
        return -1;
    c->event = "keep";
    c->to = ACTIVE;
    c->json = amp_buf_span(&u->json);
    c->due_ms = u->due_ms;
    c->actor = u->actor;
    return 0;
}

static int entry_reconcile(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                           struct amp_error *err)
{
    struct reconciling *r = ctx;
    const struct amp_activity_reconcile *how = r->how;
    struct amp_activity a;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    bool changed = false;

    if (!amp_span_is(rec->state, ACTIVE) || (how->agent && !amp_span_is(id, how->agent)))
        return 0;
    if (amp_rec_parse(&activity_rec, rec->json, &mem, &a, err) < 0)
        return -1;
    const struct amp_key key = *rec->key;
    const uint64_t rev = rec->rev;
    bool lost = !amp_activity_is_alive(&a);
    if (lost || (how->task_ended && how->task_ended(how->ctx, r->store, a.task))) {
        if (entry_end(r->store, key, rev, lost ? AMP_ACTIVITY_LOST : AMP_ACTIVITY_OVER, how->now_ms,
                      how->actor, r->limits, &changed, err) < 0)
            return -1;
        r->n += changed;
        return 0;
    }
    if (!how->due)
        return 0;
    struct change u = {
        .actor = how->actor, .rev = rev, .due_ms = how->now_ms + AMP_ACTIVITY_LOOK_MS};
    change_init(&u);
    int rc = amp_store_update(r->store, key, NULL, entry_keep, &u, NULL, err);
    change_release(&u);
    return rc;
}

int amp_activity_reconcile(struct amp_store *s, const struct amp_activity_reconcile *how,
                           const struct amp_activity_limits *limits, uint32_t *n_ended,
                           struct amp_error *err)
{
    struct reconciling r = {s, how, limits, 0};
    struct amp_span prefix = amp_key_prefix(amp_span_str(how->agent ? how->agent : ""));
    int rc;

    if (how->due)
        rc = amp_store_due(s, AMP_ACTIVITY_KIND, how->now_ms, entry_reconcile, &r, err);
    else if (prefix.n > 0)
        rc = amp_store_each_of(s, AMP_ACTIVITY_KIND, prefix, entry_reconcile, &r, err);
    else
        rc = amp_store_each(s, AMP_ACTIVITY_KIND, ACTIVE, entry_reconcile, &r, err);
    if (n_ended)
        *n_ended += r.n;
    return rc;
}

/* ---- writing ---- */

int amp_activity_write(const struct amp_activity *a, struct amp_buf *out, struct amp_error *err)
{
    char time[AMP_TIME_MAX];
    struct amp_jw w;

    amp_time_format(a->began_ms, time);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "agent_id", a->agent);
    amp_jw_member_str(&w, "task_id", a->task);
    amp_jw_member_str(&w, "repo_id", a->repo);
    amp_jw_member_str(&w, "worktree_id", a->worktree);
    amp_jw_member_str(&w, "branch", a->branch);
    amp_jw_member_text(&w, "timestamp", time);
    amp_jw_member_str(&w, "description", a->description);
    amp_jw_some_str(&w, "subtask_id", a->subtask);
    if (a->attempt > 0)
        amp_jw_member_int(&w, "attempt", a->attempt);
    amp_jw_some_str(&w, "role", a->role);
    amp_jw_member_text(&w, "state", a->ended_ms ? ENDED : ACTIVE);
    if (a->ended_ms) {
        amp_time_format(a->ended_ms, time);
        amp_jw_member_text(&w, "ended", time);
        amp_jw_member_str(&w, "outcome", a->outcome);
    }
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}
