/* Review items: made, extended, listed, closed. */
#include "work/agent/review.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/record/subject.h"
#include "work/agent/capability.h"

enum { WATCHED, OPEN, CLOSED };
static const char *const states[] = {"WATCHED", "OPEN", "CLOSED", NULL};

struct stored {
    const char *id, *note;
    struct amp_span capability, failure, delegation, executor;
    struct amp_span *corr;
    uint32_t n_corr;
    int64_t count, first_ms, created_ms, last_ms; /* first: of the failures that are watched */
    uint8_t state;
};
static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(CSTR, struct stored, "review", id),
    AMP_REC_EVER(TEXT, struct stored, "capability", capability),
    AMP_REC_EVER(TEXT, struct stored, "failure", failure),
    AMP_REC(TEXT, struct stored, "delegation_version", delegation),
    AMP_REC(TEXT, struct stored, "executor_version", executor),
    AMP_REC_WORDS(struct stored, "correlations", corr, true),
    AMP_REC_EVER(INT, struct stored, "count", count),
    AMP_REC(TIME, struct stored, "first", first_ms),
    AMP_REC(TIME, struct stored, "created", created_ms),
    AMP_REC(TIME, struct stored, "last", last_ms),
    AMP_REC(CSTR, struct stored, "note", note),
};
AMP_REC_TABLE(stored_rec, "a review item", struct stored, fields);

struct adding {
    const struct amp_review_cause *c;
    const json_t *catalog;
    bool made;
    char id[AMP_UUID_MAX + 4];
};

static struct amp_span version_of(const json_t *catalog, const char *ref)
{
    return amp_span_str(amp_json_str(json_object_get(catalog, ref), "version"));
}

/* Begins a new item, or a new count. */
static void item_begin(struct stored *r, const struct adding *a)
{
    r->id = r->note = "";
    r->capability = a->c->capability;
    r->failure = amp_span_str(a->c->failure);
    r->n_corr = 0;
    r->count = 0;
    r->created_ms = 0;
    r->first_ms = a->c->now_ms;
}

/* The list has room for one more. */
static void sample_add(struct stored *r, struct amp_span corr)
{
    for (uint32_t i = 0; i < r->n_corr; i++)
        if (amp_span_eq(r->corr[i], corr))
            return;
    if (corr.n > 0 && r->n_corr < AMP_REVIEW_SAMPLES)
        r->corr[r->n_corr++] = corr;
}

static void failure_add(struct stored *r, struct adding *a, bool found)
{
    const struct amp_review_cause *c = a->c;
    const bool open = r->state == OPEN;

    if (!open && !(found && r->state == WATCHED && c->now_ms - r->first_ms <= AMP_REVIEW_ROUTES_MS))
        item_begin(r, a);
    sample_add(r, c->correlation);
    r->count++;
    r->last_ms = c->now_ms;
    a->made = !open && (!c->route || r->count >= AMP_REVIEW_ROUTES);
    if (a->made) {
        snprintf(a->id, sizeof a->id, "rev_");
        amp_uuid4(a->id + 4);
        r->id = a->id;
        r->created_ms = c->now_ms;
        r->delegation = version_of(a->catalog, "delegationSkillRef");
        r->executor = version_of(a->catalog, "executorSkillRef");
    }
    r->state = open || a->made ? OPEN : WATCHED;
}

struct closing {
    const char *id, *note;
    char capability[200], failure[64];
    bool done;
};

struct change {
    struct adding *add; /* or */
    struct closing *close;
};

static int item_change(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct change *c = t->step->with;
    struct stored *r = rec;

    (void)err;
    if (c->add) {
        failure_add(r, c->add, t->now->found);
        t->change->event = c->add->made ? "review" : "fail";
        return 0;
    }
    c->close->done = r->state == OPEN && strcmp(r->id, c->close->id) == 0;
    if (!c->close->done)
        return 1;
    r->note = c->close->note ? c->close->note : "";
    r->state = CLOSED;
    t->change->event = "close";
    return 0;
}

static const struct amp_subject items = {.kind = AMP_REVIEW_KIND,
                                         .table = &stored_rec,
                                         .states = states,
                                         .state = AMP_SUBJECT_AT(struct stored, state),
                                         .carry = item_change};

static int item_step(struct amp_store *s, struct amp_span capability, const char *failure,
                     const struct change *c, const char *actor, struct amp_error *err)
{
    const struct amp_subject_step step = {
        .key = AMP_KEY(AMP_REVIEW_KIND, capability, amp_span_str(failure)),
        .with = c,
        .actor = actor};

    return amp_subject_step(&items, s, &step, NULL, NULL, NULL, err);
}

int amp_review_add(struct amp_store *s, const struct amp_review_cause *c, bool *made,
                   struct amp_error *err)
{
    struct amp_capability cap;
    if (amp_capability_find(s, c->capability, &cap, err) < 0)
        return -1;
    struct adding a = {.c = c, .catalog = cap.catalog};
    int rc = 0;
    /* A failed route counts only for a capability that agents should have. */
    bool counts =
        cap.catalog && (!c->route || strcmp(amp_json_str(cap.catalog, "status"), "active") == 0);
    if (counts)
        rc = item_step(s, c->capability, c->failure, &(struct change){.add = &a}, c->actor, err);
    amp_capability_release(&cap);
    if (made)
        *made = a.made;
    return rc < 0 ? -1 : 0;
}

/* ---- the list ---- */

static json_t *item_make(const struct stored *r)
{
    char at[AMP_TIME_MAX];
    json_t *samples = json_array();
    amp_time_format(r->created_ms, at);
    for (uint32_t i = 0; i < r->n_corr; i++)
        json_array_append_new(samples, json_stringn(r->corr[i].p, r->corr[i].n));
    json_t *j = json_pack("{s:s, s:s%}", "reviewId", r->id, "capabilityId", r->capability.p,
                          r->capability.n);
    if (j && r->delegation.n > 0)
        json_object_set_new(j, "delegationSkillVersion",
                            json_stringn(r->delegation.p, r->delegation.n));
    if (j && r->executor.n > 0)
        json_object_set_new(j, "executorSkillVersion", json_stringn(r->executor.p, r->executor.n));
    if (!j ||
        json_object_set_new(j, "failureClass", json_stringn(r->failure.p, r->failure.n)) < 0 ||
        json_object_set_new(j, "sampleCorrIds", samples) < 0 ||
        json_object_set_new(j, "createdAt", json_string(at)) < 0) {
        json_decref(j);
        return NULL;
    }
    return j;
}

struct each {
    amp_review_fn fn;
    void *ctx;
};

static int on_review(void *ctx, const void *rec, struct amp_error *err)
{
    const struct each *e = ctx;
    const struct stored *r = rec;
    if (r->state == WATCHED)
        return 0;
    json_auto_t *item = item_make(r);
    if (!item)
        return amp_fail_memory(err);
    const struct amp_review out = {
        .state = states[r->state], .item = item, .count = r->count, .last_ms = r->last_ms};
    return e->fn(e->ctx, &out, err);
}

int amp_reviews_each(struct amp_store *s, amp_review_fn fn, void *ctx, struct amp_error *err)
{
    return amp_subject_each(&items, s, NULL, on_review, &(struct each){fn, ctx}, err);
}

/* ---- closing ---- */

static int open_find(void *ctx, const struct amp_review *r, struct amp_error *err)
{
    struct closing *c = ctx;
    (void)err;
    if (strcmp(r->state, states[OPEN]) != 0 ||
        strcmp(amp_json_str(r->item, "reviewId"), c->id) != 0)
        return 0;
    snprintf(c->capability, sizeof c->capability, "%s", amp_json_str(r->item, "capabilityId"));
    snprintf(c->failure, sizeof c->failure, "%s", amp_json_str(r->item, "failureClass"));
    return 1;
}

int amp_review_close(struct amp_store *s, const char *id, const char *note, const char *actor,
                     struct amp_error *err)
{
    struct closing c = {.id = id, .note = note};
    if (amp_reviews_each(s, open_find, &c, err) < 0)
        return -1;
    if (*c.capability && item_step(s, amp_span_str(c.capability), c.failure,
                                   &(struct change){.close = &c}, actor, err) < 0)
        return -1;
    return c.done ? 0
                  : amp_fail(err, AMP_NO, unknown_ref, "there is no open review item %.100s", id);
}
