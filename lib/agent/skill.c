/* The records of distributed skills. */
#include "agent/skill.h"

#include <string.h>

#include "json/record.h"

#define WANTED    "WANTED"
#define CONFIRMED "CONFIRMED"

static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(TEXT, struct amp_skill, "capability", capability),
    AMP_REC_EVER(TEXT, struct amp_skill, "agent", agent),
    AMP_REC_EVER(CSTR, struct amp_skill, "wanted", wanted),
    AMP_REC_EVER(CSTR, struct amp_skill, "installed", installed),
    AMP_REC(CSTR, struct amp_skill, "event", task),
    AMP_REC(TIME, struct amp_skill, "asked", asked_ms),
    AMP_REC(TIME, struct amp_skill, "required_by", due_ms),
    AMP_REC(TIME, struct amp_skill, "confirmed", confirmed_ms),
};
AMP_REC_TABLE(skill_rec, "the record of a skill", struct amp_skill, fields);

struct change {
    const struct amp_skill_change *c;
    struct amp_buf *mem, *json;
    bool wants;
};

static int change_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    const struct change *h = ctx;
    const struct amp_skill_change *c = h->c;
    struct amp_skill k;
    if (amp_rec_parse(&skill_rec, now->found ? now->json : AMP_SPAN("{}"), h->mem, &k, err) < 0)
        return -1;
    k.capability = c->capability;
    k.agent = c->agent;
    if (h->wants) {
        k.wanted = c->version;
        k.task = c->task ? c->task : "";
        k.asked_ms = c->now_ms;
        k.due_ms = c->due_ms;
    } else {
        if (*k.wanted && strcmp(k.wanted, c->version) != 0)
            return amp_fail(err, AMP_NO, "version_incompatible",
                            "version %.64s of %.*s is wanted, not %.64s", k.wanted,
                            AMP_CLIP(c->capability, 160), c->version);
        if (now->found && amp_span_is(now->state, CONFIRMED) &&
            strcmp(k.installed, c->version) == 0)
            return 1;
        k.installed = c->version;
        k.confirmed_ms = c->now_ms;
        k.task = "";
    }
    amp_buf_reset(h->json);
    if (amp_rec_write(&skill_rec, &k, h->json, err) < 0)
        return -1;
    change->event = h->wants ? "distribute" : "confirm";
    change->to = strcmp(k.wanted, k.installed) == 0 || !h->wants ? CONFIRMED : WANTED;
    change->actor = c->actor;
    change->json = amp_buf_span(h->json);
    return 0;
}

static int skill_change(struct amp_store *s, const struct amp_skill_change *c, bool wants,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX}, json = {.max = 1 << 20};
    struct change h = {.c = c, .mem = &mem, .json = &json, .wants = wants};
    return amp_store_update(s, AMP_KEY(AMP_SKILL_KIND, c->capability, c->agent), NULL, change_fn,
                            &h, NULL, err);
}

int amp_skill_want(struct amp_store *s, const struct amp_skill_change *c, struct amp_error *err)
{
    return skill_change(s, c, true, err);
}

int amp_skill_confirm(struct amp_store *s, const struct amp_skill_change *c, struct amp_error *err)
{
    return skill_change(s, c, false, err);
}

struct each {
    struct amp_span capability;
    amp_skill_fn fn;
    void *ctx;
    struct amp_buf *mem;
};

static int on_skill(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                    struct amp_error *err)
{
    struct each *e = ctx;
    struct amp_skill k;
    (void)id;
    if (amp_rec_parse(&skill_rec, rec->json, e->mem, &k, err) < 0)
        return -1;
    k.confirmed = amp_span_is(rec->state, CONFIRMED);
    return e->capability.n == 0 || amp_span_eq(e->capability, k.capability) ? e->fn(e->ctx, &k, err)
                                                                            : 0;
}

int amp_skills_each(struct amp_store *s, struct amp_span capability, amp_skill_fn fn, void *ctx,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct each e = {capability, fn, ctx, &mem};
    return amp_store_each(s, AMP_SKILL_KIND, NULL, on_skill, &e, err);
}
