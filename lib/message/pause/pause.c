/* The record of suspensions by people. */
#include "message/pause/pause.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"

#define RECORD_MAX ((size_t)1 << 20)
#define ACTOR      "hitl-prompt"

static const char *const scopes[] = {
    [AMP_PAUSE_ALL] = "all", [AMP_PAUSE_TASK] = "task", [AMP_PAUSE_AGENT] = "agent", NULL};

const char *amp_pause_scope_name(int scope)
{
    return scopes[scope];
}

static const struct amp_rec_words scope_words = {.list = scopes};

#define PAUSE(as, key_, member) AMP_REC_EVER(as, struct amp_pause, key_, member)
static const struct amp_rec_field pause_fields[] = {
    AMP_REC_ENUM(struct amp_pause, "scope", scope, &scope_words),
    PAUSE(TEXT, "name", name),
    PAUSE(TEXT, "operator", person),
    PAUSE(TEXT, "by", by),
    AMP_REC(TEXT, struct amp_pause, "key", key),
    PAUSE(TEXT, "channel", channel),
    PAUSE(TEXT, "reason", reason),
    PAUSE(TIME, "since", since_ms),
    AMP_REC(TEXT, struct amp_pause, "alg", alg),
    AMP_REC(TEXT, struct amp_pause, "signature", signature),
};
AMP_REC_TABLE(pause_rec, "a suspension", struct amp_pause, pause_fields);

/* The record has what the last change was about, for the log: its frames are the history. */
struct stored {
    struct amp_pause *list;
    uint32_t n_list;
    struct amp_pause last;
};
static const struct amp_rec_field stored_fields[] = {
    AMP_REC_MANY(struct stored, "list", list, &pause_rec, true),
    AMP_REC_IN(struct stored, "last", last, &pause_rec, true),
};
AMP_REC_TABLE(stored_rec, "the suspensions", struct stored, stored_fields);

int amp_pause_text(const struct amp_pause *p, bool resume, struct amp_buf *out,
                   struct amp_error *err)
{
    const uint8_t event = resume ? AMP_PAUSE_EV_RESUME : AMP_PAUSE_EV_SUSPEND;
    char since[AMP_TIME_MAX];
    struct amp_jw w;

    amp_time_format(p->since_ms, since);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "event", amp_pause_fsm.events[event].name);
    amp_jw_member_text(&w, "scope", amp_pause_scope_name((int)p->scope));
    amp_jw_member_str(&w, "name", p->name);
    amp_jw_member_str(&w, "operator", p->person);
    amp_jw_member_str(&w, "by", p->by);
    amp_jw_member_str(&w, "channel", p->channel);
    amp_jw_member_str(&w, "reason", p->reason);
    amp_jw_member_text(&w, "since", since);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

void amp_pauses_init(struct amp_pauses *p)
{
    *p = (struct amp_pauses){0};
    amp_buf_init(&p->mem, AMP_REC_MAX);
}

void amp_pauses_release(struct amp_pauses *p)
{
    amp_buf_release(&p->mem);
    *p = (struct amp_pauses){0};
}

static int pauses_parse(struct amp_span json, struct amp_pauses *p, struct amp_error *err)
{
    struct stored rec;

    if (amp_rec_parse(&stored_rec, json, &p->mem, &rec, err) < 0)
        return -1;
    p->v = rec.list;
    p->n_v = rec.n_list;
    return 0;
}

static struct amp_key pause_key(void)
{
    return AMP_KEY(AMP_PAUSE_KIND, AMP_SPAN("now"));
}

int amp_pauses_read(struct amp_store *s, struct amp_pauses *p, struct amp_error *err)
{
    struct amp_store_rec rec;

    if (amp_store_get(s, pause_key(), &rec, err) < 0)
        return -1;
    if (rec.rev == p->rev)
        return 0;
    p->n_v = 0;
    if (rec.found && amp_span_is(rec.state, amp_pause_fsm.states[AMP_PAUSE_PAUSED].name) &&
        pauses_parse(rec.json, p, err) < 0)
        return -1;
    p->rev = rec.rev;
    return 0;
}

int amp_pause_last(struct amp_span json, struct amp_buf *mem, struct amp_pause *out,
                   struct amp_error *err)
{
    struct stored rec;

    if (amp_rec_parse(&stored_rec, json, mem, &rec, err) < 0)
        return -1;
    *out = rec.last;
    return 0;
}

const struct amp_pause *amp_pauses_find(const struct amp_pauses *p, struct amp_span task,
                                        struct amp_span agent)
{
    const struct amp_pause *found = NULL;

    for (uint32_t i = 0; i < p->n_v; i++) {
        const struct amp_pause *v = &p->v[i];
        if (v->scope == AMP_PAUSE_ALL)
            return v;
        struct amp_span of = v->scope == AMP_PAUSE_TASK ? task : agent;
        if (!found && of.n > 0 && amp_span_eq(v->name, of))
            found = v;
    }
    return found;
}

/* ---- changes ---- */

struct change {
    const struct amp_pause *p;
    bool resume;
    uint32_t n; /* how many changed */
    struct amp_buf mem, json;
};

static bool is_of(const struct amp_pause *v, const struct amp_pause *p)
{
    return v->scope == p->scope && amp_span_eq(v->name, p->name);
}

static int pause_add(struct change *u, struct stored *rec, struct amp_error *err)
{
    for (uint32_t i = 0; i < rec->n_list; i++)
        if (is_of(&rec->list[i], u->p))
            return 1;
    if (rec->n_list == AMP_PAUSES_MAX)
        return amp_fail(err, AMP_NO, pause_limit,
                        "%d tasks and agents are suspended (the limit); use --all", AMP_PAUSES_MAX);
    rec->list[rec->n_list++] = *u->p;
    u->n = 1;
    return 0;
}

static int pause_remove(struct change *u, struct stored *rec)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < rec->n_list; i++)
        if (u->p->scope != AMP_PAUSE_ALL && !is_of(&rec->list[i], u->p))
            rec->list[kept++] = rec->list[i];
    u->n = rec->n_list - kept;
    rec->n_list = kept;
    return u->n == 0;
}

static int on_change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                     struct amp_error *err)
{
    struct change *u = ctx;
    struct stored rec;
    struct amp_fsm_result r;
    int at = now->found ? amp_fsm_state(&amp_pause_fsm, now->state) : AMP_PAUSE_QUIET;
    uint8_t event = u->resume ? AMP_PAUSE_EV_RESUME : AMP_PAUSE_EV_SUSPEND;

    u->n = 0;
    if (at < 0)
        return amp_fail(err, AMP_DATAERR, bad_record, "the suspensions have an unknown state");
    if (amp_rec_parse(&stored_rec, now->found ? now->json : AMP_SPAN("{}"), &u->mem, &rec, err) < 0)
        return -1;
    int rc = u->resume ? pause_remove(u, &rec) : pause_add(u, &rec, err);
    if (rc)
        return rc;
    if (amp_fsm_step(&amp_pause_fsm, (uint8_t)at, event, rec.n_list ? 0 : AMP_PAUSE_IF_LAST, &r,
                     err) < 0)
        return -1;
    if (!(r.effects & (u->resume ? AMP_PAUSE_DO_RELEASE : AMP_PAUSE_DO_STOP)))
        return amp_fail(err, AMP_INTERNAL, machine_unsound, "pause: the list must not change");
    rec.last = *u->p;
    c->event = amp_pause_fsm.events[event].name;
    c->to = amp_pause_fsm.states[r.to].name;
    c->actor = ACTOR;
    amp_buf_reset(&u->json);
    rc = amp_rec_write(&stored_rec, &rec, &u->json, err);
    c->json = amp_buf_span(&u->json);
    return rc;
}

static int change_make(struct amp_store *s, struct change *u, struct amp_error *err)
{
    enum amp_store_outcome outcome;

    if (u->p->name.n > AMP_PAUSE_NAME_MAX || (u->p->name.n == 0) != (u->p->scope == AMP_PAUSE_ALL))
        return amp_fail(err, AMP_DATAERR, bad_name, "a task or an agent of 1 to %d bytes",
                        AMP_PAUSE_NAME_MAX);
    if (u->p->reason.n > AMP_PAUSE_TEXT_MAX)
        return amp_fail(err, AMP_DATAERR, buffer_full, "the reason is longer than %d bytes",
                        AMP_PAUSE_TEXT_MAX);
    amp_buf_init(&u->mem, AMP_REC_MAX);
    amp_buf_init(&u->json, RECORD_MAX);
    int rc = amp_store_update(s, pause_key(), NULL, on_change, u, &outcome, err);
    amp_buf_release(&u->mem);
    amp_buf_release(&u->json);
    return rc;
}

int amp_pause_suspend(struct amp_store *s, const struct amp_pause *p, bool *changed,
                      struct amp_error *err)
{
    struct change u = {.p = p};

    if (change_make(s, &u, err) < 0)
        return -1;
    *changed = u.n > 0;
    return 0;
}

int amp_pause_resume(struct amp_store *s, const struct amp_pause *who, uint32_t *n,
                     struct amp_error *err)
{
    struct change u = {.p = who, .resume = true};

    if (change_make(s, &u, err) < 0)
        return -1;
    *n = u.n;
    return 0;
}
