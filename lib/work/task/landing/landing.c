/* The record of a task's landings. */
#include "work/task/landing/landing.h"

#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"

#define ACTOR "task-dispatch"

#define EVER(as, key_, member) AMP_REC_EVER(as, struct amp_landing, key_, member)
#define SOME(as, key_, member) AMP_REC(as, struct amp_landing, key_, member)
static const struct amp_rec_field landing_fields[] = {
    EVER(TEXT, "task", task),     EVER(TEXT, "repo", repo),
    EVER(TEXT, "branch", branch), EVER(TEXT, "from", from),
    EVER(TEXT, "to", to),         EVER(TEXT, "commit", commit),
    EVER(TEXT, "tree", tree),     EVER(TEXT, "operator", person),
    EVER(TEXT, "by", by),         SOME(TEXT, "key", key),
    EVER(TIME, "at", at_ms),      SOME(TEXT, "merged", merged),
    SOME(TEXT, "check", test),    SOME(TEXT, "output_sha256", digest),
    SOME(TEXT, "alg", alg),       SOME(TEXT, "signature", signature),
};
AMP_REC_TABLE(landing_rec, "a landing", struct amp_landing, landing_fields);

static const struct amp_rec_field landings_fields[] = {
    AMP_REC_EVER(TEXT, struct amp_landings, "task", task),
    AMP_REC_IN(struct amp_landings, "now", now, &landing_rec, true),
    AMP_REC_MANY(struct amp_landings, "list", v, &landing_rec, true),
};
AMP_REC_TABLE(landings_rec, "a task's landings", struct amp_landings, landings_fields);

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
    amp_jw_some_str(&w, "merged", l->merged);
    amp_jw_some_str(&w, "check", l->test);
    amp_jw_some_str(&w, "output_sha256", l->digest);
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

int amp_landing_last(struct amp_span json, struct amp_buf *mem, struct amp_landing *out,
                     struct amp_error *err)
{
    struct amp_landings all;

    if (amp_rec_parse(&landings_rec, json, mem, &all, err) < 0)
        return -1;
    *out = all.n_v ? all.v[all.n_v - 1] : (struct amp_landing){0};
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

/* ---- the records ---- */

static bool is_same(const struct amp_landing *a, const struct amp_landing *b)
{
    return amp_span_eq(a->branch, b->branch) && amp_span_eq(a->from, b->from) &&
           amp_span_eq(a->to, b->to);
}

static void landing_add(struct amp_landings *rec)
{
    if (rec->n_v == AMP_LANDING_MAX)
        memmove(rec->v, rec->v + 1, --rec->n_v * sizeof *rec->v);
    rec->v[rec->n_v++] = rec->now; /* lists have room for one */
}

static uint32_t facts_of(const void *rec, const struct amp_subject_turn *t)
{
    (void)t;
    return ((const struct amp_landings *)rec)->n_v ? AMP_LANDING_IF_BEFORE : 0;
}

static int landing_carry(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_landing *l = t->step->with;
    struct amp_landings *all = rec;

    if (!(t->effects & AMP_LANDING_DO_ORDER) && !is_same(&all->now, l))
        return amp_fail(err, AMP_NO, landing_changed, "another process lands the task");
    all->task = l->task;
    if (t->effects & AMP_LANDING_DO_ORDER)
        all->now = *l;
    if (t->effects & AMP_LANDING_DO_ADD)
        landing_add(all);
    if (t->effects & AMP_LANDING_DO_DROP)
        all->now = (struct amp_landing){0};
    return 0;
}

static const struct amp_subject landings = {.kind = AMP_LANDING_KIND,
                                            .table = &landings_rec,
                                            .machine = &amp_landing_fsm,
                                            .state = AMP_SUBJECT_AT(struct amp_landings, state),
                                            .facts = facts_of,
                                            .carry = landing_carry};

int amp_landings_read(struct amp_store *s, struct amp_span task, struct amp_landings *out,
                      struct amp_error *err)
{
    struct amp_landings all;

    if (amp_subject_find(&landings, s, AMP_KEY(AMP_LANDING_KIND, task), &out->mem, &all, err) < 0)
        return -1;
    all.mem = out->mem;
    *out = all;
    return 0;
}

struct moved {
    const char *branch, *to;
    char at[65];
    bool went;
};

static bool landing_follow(struct moved *m, const struct amp_landing *l)
{
    /* Another landing may have moved it on since. */
    return strcmp(m->at, m->to) != 0 && amp_span_is(l->branch, m->branch) &&
           amp_span_is(l->from, m->at) && !amp_span_eq(l->from, l->to) &&
           amp_span_copy(l->to, m->at, sizeof m->at);
}

static int landings_follow(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                           struct amp_error *err)
{
    struct moved *m = ctx;
    AMP_LANDINGS all = {0};
    struct amp_landings read;
    (void)id;

    amp_landings_init(&all);
    if (amp_rec_parse(&landings_rec, rec->json, &all.mem, &read, err) < 0)
        return -1;
    for (uint32_t i = 0; i < read.n_v; i++)
        m->went |= landing_follow(m, &read.v[i]);
    m->went |= landing_follow(m, &read.now);
    return 0;
}

int amp_landings_moved(struct amp_store *s, const char *branch, const char *from, const char *to,
                       struct amp_error *err)
{
    struct moved m = {
        .branch = branch, .to = to, .went = amp_span_copy(amp_span_str(from), m.at, 65)};

    while (m.went && strcmp(m.at, to) != 0) {
        m.went = false;
        if (amp_store_each(s, AMP_LANDING_KIND, NULL, landings_follow, &m, err) < 0)
            return -1;
    }
    return m.went;
}

int amp_landing_step(struct amp_store *s, uint8_t event, const struct amp_landing *l,
                     struct amp_error *err)
{
    const struct amp_subject_step step = {
        .key = AMP_KEY(AMP_LANDING_KIND, l->task), .event = event, .with = l, .actor = ACTOR};

    return amp_subject_step(&landings, s, &step, NULL, NULL, NULL, err);
}
