/* The record of a task's landings. */
#include "task/landing/landing.h"

#include <string.h>

#include <amp/base/clock.h>

#define RECORD_MAX ((size_t)4 << 20)
#define ACTOR      "task-dispatch"

#define EVER(as, key_, member) AMP_REC_EVER(as, struct amp_landing, key_, member)
#define SOME(as, key_, member) AMP_REC(as, struct amp_landing, key_, member)
static const struct amp_rec_field landing_fields[] = {
    EVER(TEXT, "task", task),
    EVER(TEXT, "repo", repo),
    EVER(TEXT, "branch", branch),
    EVER(TEXT, "from", from),
    EVER(TEXT, "to", to),
    EVER(TEXT, "commit", commit),
    EVER(TEXT, "tree", tree),
    EVER(TEXT, "operator", person),
    EVER(TEXT, "by", by),
    SOME(TEXT, "key", key),
    EVER(TIME, "at", at_ms),
    SOME(TEXT, "alg", alg),
    SOME(TEXT, "signature", signature),
};
AMP_REC_TABLE(landing_rec, "a landing", struct amp_landing, landing_fields);

struct stored {
    struct amp_landing now, *list;
    uint32_t n_list;
};
static const struct amp_rec_field stored_fields[] = {
    AMP_REC_IN(struct stored, "now", now, &landing_rec, true),
    AMP_REC_MANY(struct stored, "list", list, &landing_rec, true),
};
AMP_REC_TABLE(stored_rec, "a task's landings", struct stored, stored_fields);

int amp_landing_text(const struct amp_landing *l, struct amp_buf *out, struct amp_error *err)
{
    char at[AMP_TIME_MAX];
    struct amp_jw w;

    amp_time_format(l->at_ms, at);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "event", "land");
    amp_jw_member_str(&w, "task", l->task);
    amp_jw_member_str(&w, "branch", l->branch);
    amp_jw_member_str(&w, "from", l->from);
    amp_jw_member_str(&w, "to", l->to);
    amp_jw_member_str(&w, "commit", l->commit);
    amp_jw_member_str(&w, "tree", l->tree);
    amp_jw_member_str(&w, "operator", l->person);
    amp_jw_member_str(&w, "by", l->by);
    amp_jw_member_text(&w, "at", at);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

void amp_landings_init(struct amp_landings *l)
{
    *l = (struct amp_landings){0};
    amp_buf_init(&l->mem, AMP_REC_MAX);
}

void amp_landings_release(struct amp_landings *l)
{
    amp_buf_release(&l->mem);
    *l = (struct amp_landings){0};
}

/* The state of a record. -1: unknown. */
static int state_read(const struct amp_store_rec *rec, uint8_t *state, struct amp_error *err)
{
    int at = rec->found ? amp_fsm_state(&amp_landing_fsm, rec->state) : AMP_LANDING_NONE;

    if (at < 0)
        return amp_fail(err, AMP_DATAERR, "bad_record", "a task's landings have an unknown state");
    *state = (uint8_t)at;
    return 0;
}

int amp_landings_read(struct amp_store *s, struct amp_span task, struct amp_landings *out,
                      struct amp_error *err)
{
    struct amp_store_rec rec;
    struct stored all;

    if (amp_store_get(s, AMP_KEY(AMP_LANDING_KIND, task), &rec, err) < 0 ||
        state_read(&rec, &out->state, err) < 0 ||
        amp_rec_parse(&stored_rec, rec.found ? rec.json : AMP_SPAN("{}"), &out->mem, &all, err) < 0)
        return -1;
    out->now = all.now;
    out->v = all.list;
    out->n_v = all.n_list;
    return 0;
}

int amp_landing_last(struct amp_span json, struct amp_buf *mem, struct amp_landing *out,
                     struct amp_error *err)
{
    struct stored all;

    if (amp_rec_parse(&stored_rec, json, mem, &all, err) < 0)
        return -1;
    *out = all.n_list ? all.list[all.n_list - 1] : (struct amp_landing){0};
    return 0;
}

int amp_landing_write(const struct amp_landing *l, struct amp_buf *out, struct amp_error *err)
{
    return amp_rec_write(&landing_rec, l, out, err);
}

int amp_landing_parse(struct amp_span json, struct amp_buf *mem, struct amp_landing *out,
                      struct amp_error *err)
{
    return amp_rec_parse(&landing_rec, json, mem, out, err);
}

struct each {
    amp_landing_fn fn;
    void *ctx;
};

static int on_each(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                   struct amp_error *err)
{
    const struct each *e = ctx;
    uint8_t state = AMP_LANDING_NONE;

    return state_read(rec, &state, err) < 0 ? -1 : e->fn(e->ctx, id, state, err);
}

int amp_landing_each(struct amp_store *s, amp_landing_fn fn, void *ctx, struct amp_error *err)
{
    return amp_store_each(s, AMP_LANDING_KIND, NULL, on_each, &(struct each){fn, ctx}, err);
}

/* ---- changes ---- */

struct change {
    uint8_t event;
    const struct amp_landing *l;
    struct amp_buf mem, json;
};

static bool is_same(const struct amp_landing *a, const struct amp_landing *b)
{
    return amp_span_eq(a->branch, b->branch) && amp_span_eq(a->from, b->from) &&
           amp_span_eq(a->to, b->to);
}

static void landing_add(struct stored *rec)
{
    if (rec->n_list == AMP_LANDING_MAX)
        memmove(rec->list, rec->list + 1, --rec->n_list * sizeof *rec->list);
    rec->list[rec->n_list++] = rec->now; /* lists have room for one */
}

static int landing_change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                          struct amp_error *err)
{
    struct change *u = ctx;
    struct stored rec;
    struct amp_fsm_result r;
    uint8_t at = AMP_LANDING_NONE;

    if (state_read(now, &at, err) < 0 ||
        amp_rec_parse(&stored_rec, now->found ? now->json : AMP_SPAN("{}"), &u->mem, &rec, err) < 0)
        return -1;
    uint32_t facts = rec.n_list ? AMP_LANDING_IF_BEFORE : 0;
    if (amp_fsm_step(&amp_landing_fsm, at, u->event, facts, &r, err) < 0)
        return -1;
    if (!(r.effects & AMP_LANDING_DO_ORDER) && !is_same(&rec.now, u->l))
        return amp_fail(err, AMP_NO, "landing_changed", "another process lands the task");
    if (r.effects & AMP_LANDING_DO_ORDER)
        rec.now = *u->l;
    if (r.effects & AMP_LANDING_DO_ADD)
        landing_add(&rec);
    if (r.effects & AMP_LANDING_DO_DROP)
        rec.now = (struct amp_landing){0};
    c->event = amp_landing_fsm.events[u->event].name;
    c->to = amp_landing_fsm.states[r.to].name;
    c->actor = ACTOR;
    amp_buf_reset(&u->json);
    int rc = amp_rec_write(&stored_rec, &rec, &u->json, err);
    c->json = amp_buf_span(&u->json);
    return rc;
}

int amp_landing_step(struct amp_store *s, uint8_t event, const struct amp_landing *l,
                     struct amp_error *err)
{
    struct change u = {.event = event, .l = l};
    enum amp_store_outcome outcome;

    amp_buf_init(&u.mem, AMP_REC_MAX);
    amp_buf_init(&u.json, RECORD_MAX);
    int rc = amp_store_update(s, AMP_KEY(AMP_LANDING_KIND, l->task), NULL, landing_change, &u,
                              &outcome, err);
    amp_buf_release(&u.mem);
    amp_buf_release(&u.json);
    return rc;
}
