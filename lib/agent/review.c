/* Review items: made, extended, listed, closed. */
#include "agent/review.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "agent/capability.h"
#include "base/codes.h"
#include "json/record.h"

#define OPEN    "OPEN"
#define CLOSED  "CLOSED"
#define WATCHED "WATCHED"

struct stored {
    const char *id, *note;
    struct amp_span capability, failure, delegation, executor;
    struct amp_span *corr;
    uint32_t n_corr;
    int64_t count, first_ms, created_ms, last_ms; /* first: of the failures that are watched */
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
    struct amp_buf *mem, *json;
    bool made;
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

static int add_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                  struct amp_error *err)
{
    struct adding *a = ctx;
    const struct amp_review_cause *c = a->c;
    char id[AMP_UUID_MAX + 4] = "rev_";
    struct stored r;
    bool open = now->found && amp_span_is(now->state, OPEN);
    bool watched = now->found && amp_span_is(now->state, WATCHED);
    if (amp_rec_parse(&stored_rec, now->found ? now->json : AMP_SPAN("{}"), a->mem, &r, err) < 0)
        return -1;
    if (!open && !(watched && c->now_ms - r.first_ms <= AMP_REVIEW_ROUTES_MS))
        item_begin(&r, a);
    sample_add(&r, c->correlation);
    r.count++;
    r.last_ms = c->now_ms;
    a->made = !open && (!c->route || r.count >= AMP_REVIEW_ROUTES);
    if (a->made) {
        amp_uuid4(id + 4);
        r.id = id;
        r.created_ms = c->now_ms;
        r.delegation = version_of(a->catalog, "delegationSkillRef");
        r.executor = version_of(a->catalog, "executorSkillRef");
    }
    amp_buf_reset(a->json);
    change->event = a->made ? "review" : "fail";
    change->to = open || a->made ? OPEN : WATCHED;
    change->actor = c->actor;
    if (amp_rec_write(&stored_rec, &r, a->json, err) < 0)
        return -1;
    change->json = amp_buf_span(a->json);
    return 0;
}

int amp_review_add(struct amp_store *s, const struct amp_review_cause *c, bool *made,
                   struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX}, json = {.max = 1 << 20};
    struct amp_capability cap;
    if (amp_capability_find(s, c->capability, &cap, err) < 0)
        return -1;
    struct adding a = {.c = c, .catalog = cap.catalog, .mem = &mem, .json = &json};
    int rc = 0;
    /* A failed route counts only for a capability that agents should have. */
    bool counts =
        cap.catalog && (!c->route || strcmp(amp_json_str(cap.catalog, "status"), "active") == 0);
    if (counts)
        rc = amp_store_update(s, AMP_KEY(AMP_REVIEW_KIND, c->capability, amp_span_str(c->failure)),
                              NULL, add_fn, &a, NULL, err);
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
    struct amp_buf *mem;
};

static int on_review(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                     struct amp_error *err)
{
    struct each *e = ctx;
    struct stored r;
    (void)id;
    if (amp_span_is(rec->state, WATCHED))
        return 0;
    if (amp_rec_parse(&stored_rec, rec->json, e->mem, &r, err) < 0)
        return -1;
    json_auto_t *item = item_make(&r);
    if (!item)
        return amp_fail_memory(err);
    const struct amp_review out = {.state = amp_span_is(rec->state, OPEN) ? OPEN : CLOSED,
                                   .item = item,
                                   .count = r.count,
                                   .last_ms = r.last_ms};
    return e->fn(e->ctx, &out, err);
}

int amp_reviews_each(struct amp_store *s, amp_review_fn fn, void *ctx, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    return amp_store_each(s, AMP_REVIEW_KIND, NULL, on_review, &(struct each){fn, ctx, &mem}, err);
}

/* ---- closing ---- */

struct closing {
    const char *id, *note, *actor;
    int64_t now_ms;
    char capability[200], failure[64];
    struct amp_buf *mem, *json;
    bool done;
};

static int open_find(void *ctx, const struct amp_review *r, struct amp_error *err)
{
    struct closing *c = ctx;
    (void)err;
    if (strcmp(r->state, OPEN) != 0 || strcmp(amp_json_str(r->item, "reviewId"), c->id) != 0)
        return 0;
    snprintf(c->capability, sizeof c->capability, "%s", amp_json_str(r->item, "capabilityId"));
    snprintf(c->failure, sizeof c->failure, "%s", amp_json_str(r->item, "failureClass"));
    return 1;
}

static int close_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                    struct amp_error *err)
{
    struct closing *c = ctx;
    struct stored r;
    c->done = false;
    if (!now->found || !amp_span_is(now->state, OPEN))
        return 1;
    if (amp_rec_parse(&stored_rec, now->json, c->mem, &r, err) < 0)
        return -1;
    if (strcmp(r.id, c->id) != 0)
        return 1;
    r.note = c->note ? c->note : "";
    amp_buf_reset(c->json);
    if (amp_rec_write(&stored_rec, &r, c->json, err) < 0)
        return -1;
    change->event = "close";
    change->to = CLOSED;
    change->actor = c->actor;
    change->json = amp_buf_span(c->json);
    c->done = true;
    return 0;
}

int amp_review_close(struct amp_store *s, const char *id, const char *note, const char *actor,
                     int64_t now_ms, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX}, json = {.max = 1 << 20};
    struct closing c = {
        .id = id, .note = note, .actor = actor, .now_ms = now_ms, .mem = &mem, .json = &json};
    if (amp_reviews_each(s, open_find, &c, err) < 0)
        return -1;
    if (*c.capability &&
        amp_store_update(
            s, AMP_KEY(AMP_REVIEW_KIND, amp_span_str(c.capability), amp_span_str(c.failure)), NULL,
            close_fn, &c, NULL, err) < 0)
        return -1;
    return c.done ? 0
                  : amp_fail(err, AMP_NO, unknown_ref, "there is no open review item %.100s", id);
}
