/* The records of distributed skills. */
#include "work/agent/skill.h"

#include <string.h>

#include "base/codes.h"

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
    bool wants;
};

static int skill_set(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct change *h = t->step->with;
    const struct amp_skill_change *c = h->c;
    struct amp_skill *k = rec;

    k->capability = c->capability;
    k->agent = c->agent;
    if (h->wants) {
        k->wanted = c->version;
        k->task = c->task ? c->task : "";
        k->asked_ms = c->now_ms;
        k->due_ms = c->due_ms;
    } else {
        if (*k->wanted && strcmp(k->wanted, c->version) != 0)
            return amp_fail(err, AMP_NO, version_incompatible,
                            "version %.64s of %.*s is wanted, not %.64s", k->wanted,
                            AMP_CLIP(c->capability, 160), c->version);
        if (t->now->found && k->state == AMP_SKILL_CONFIRMED &&
            strcmp(k->installed, c->version) == 0)
            return 1;
        k->installed = c->version;
        k->confirmed_ms = c->now_ms;
        k->task = "";
    }
    t->change->event = h->wants ? "distribute" : "confirm";
    k->state =
        h->wants && strcmp(k->wanted, k->installed) != 0 ? AMP_SKILL_WANTED : AMP_SKILL_CONFIRMED;
    return 0;
}

static const char *const states[] = {"WANTED", "CONFIRMED", NULL};
static const struct amp_subject skills = {.kind = AMP_SKILL_KIND,
                                          .table = &skill_rec,
                                          .states = states,
                                          .state = AMP_SUBJECT_AT(struct amp_skill, state),
                                          .carry = skill_set};

static int skill_change(struct amp_store *s, const struct amp_skill_change *c, bool wants,
                        struct amp_error *err)
{
    const struct change h = {c, wants};
    const struct amp_subject_step step = {
        .key = AMP_KEY(skills.kind, c->capability, c->agent), .with = &h, .actor = c->actor};

    return amp_subject_step(&skills, s, &step, NULL, NULL, NULL, err);
}

int amp_skill_want(struct amp_store *s, const struct amp_skill_change *c, struct amp_error *err)
{
    return skill_change(s, c, true, err);
}

int amp_skill_confirm(struct amp_store *s, const struct amp_skill_change *c, struct amp_error *err)
{
    return skill_change(s, c, false, err);
}

int amp_skills_each(struct amp_store *s, struct amp_span capability, amp_subject_each_fn fn,
                    void *ctx, struct amp_error *err)
{
    return capability.n ? amp_subject_of(&skills, s, capability, fn, ctx, err)
                        : amp_subject_each(&skills, s, NULL, fn, ctx, err);
}
