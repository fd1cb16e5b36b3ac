/* Candidates of a handoff: registered agents with its capabilities. */
#include "work/handoff/offer/handoff.h"

#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "work/agent/capability.h"
#include "work/agent/record.h"
#include "json/record.h"

struct wanting {
    const struct amp_handoff *r;
    json_t *index[AMP_HANDOFF_WANTED_MAX]; /* of the wanted capabilities that are published */
};
struct search {
    const struct amp_handoff *r;
    struct wanting *of;
    bool again;
    char *best;
    uint64_t weight;
    bool found, idle;
};

static void wanting_release(struct wanting *of)
{
    for (uint32_t i = 0; i < of->r->n_wanted; i++)
        json_decref(of->index[i]);
}

static int wanting_load(struct amp_store *s, struct wanting *of, struct amp_error *err)
{
    for (uint32_t i = 0; i < of->r->n_wanted; i++) {
        struct amp_capability cap;
        if (amp_capability_find(s, of->r->wanted[i], &cap, err) < 0)
            return -1;
        of->index[i] = json_incref(cap.index);
        amp_capability_release(&cap);
    }
    return 0;
}

static bool list_has(const json_t *list, struct amp_span text)
{
    size_t k;
    const json_t *x;
    json_array_foreach (list, k, x)
        if (json_is_string(x) && amp_span_is(text, json_string_value(x)))
            return true;
    return false;
}

/* Each capability is one of the agent's own, or one that is published with the agent. */
static bool can_all(const struct wanting *of, struct amp_span agent, const json_t *can)
{
    for (uint32_t i = 0; i < of->r->n_wanted; i++)
        if (!list_has(can, of->r->wanted[i]) &&
            !list_has(json_object_get(of->index[i], "eligibleAgentIds"), agent))
            return false;
    return true;
}

static bool was_asked(const struct search *s, struct amp_span agent)
{
    for (uint32_t i = 0; i < s->r->n_tries; i++)
        if (amp_span_eq(s->r->tries[i].agent, agent))
            return true;
    return s->again && amp_span_eq(s->r->to, agent);
}

/* A hash of the agent and the handoff, so that several handoffs go to several agents. */
static uint64_t pair_weigh(struct amp_span a, struct amp_span b)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < a.n; i++)
        h = (h ^ (unsigned char)a.p[i]) * 0x100000001b3u;
    h = (h ^ '\n') * 0x100000001b3u;
    for (size_t i = 0; i < b.n; i++)
        h = (h ^ (unsigned char)b.p[i]) * 0x100000001b3u;
    return h;
}

/* 1: the agent has the capabilities, 0: it does not. */
static int agent_fits(const struct wanting *of, struct amp_span agent,
                      const struct amp_agent_rec *rec, struct amp_error *err)
{
    json_auto_t *d = NULL;
    if (rec->reach.descriptor.n > 0 && !(d = amp_json_load(rec->reach.descriptor, err)))
        return -1;
    return can_all(of, agent, json_object_get(d, "capabilities"));
}

/* Prefers an agent without work. */
static int agent_look(void *ctx, struct amp_span name, const struct amp_agent_rec *rec,
                      struct amp_error *err)
{
    struct search *s = ctx;

    if (!amp_reach_active(rec->reach.state) || amp_span_eq(name, s->r->from) ||
        was_asked(s, name) || name.n > 255)
        return 0;
    int fits = agent_fits(s->of, name, rec, err);
    if (fits <= 0)
        return fits;
    bool idle = *rec->work.task == '\0';
    uint64_t weight = pair_weigh(name, s->r->id);
    if (s->found && (s->idle > idle || (s->idle == idle && s->weight >= weight)))
        return 0;
    s->found = true;
    s->idle = idle;
    s->weight = weight;
    amp_span_copy(name, s->best, 256);
    return 0;
}

int amp_handoff_candidate(struct amp_handoffs *h, const struct amp_handoff *r, bool again,
                          char out[256], struct amp_error *err)
{
    struct wanting of = {.r = r};
    struct search s = {.r = r, .of = &of, .again = again, .best = out};

    out[0] = '\0';
    if (r->n_wanted == 0 || r->n_wanted > AMP_HANDOFF_WANTED_MAX ||
        r->n_tries + again >= AMP_HANDOFF_TRIES_MAX ||
        (r->deadline_ms > 0 && r->deadline_ms <= h->now_ms))
        return 0;
    int rc = wanting_load(h->store, &of, err);
    if (rc == 0)
        rc = amp_agent_records(h->store, agent_look, &s, err);
    wanting_release(&of);
    return rc < 0 ? -1 : s.found;
}

int amp_handoff_candidate_check(struct amp_handoffs *h, const struct amp_handoff *r,
                                struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_agent_rec rec;
    struct wanting of = {.r = r};

    if (r->n_wanted == 0 || r->n_wanted > AMP_HANDOFF_WANTED_MAX)
        return 0;
    if (amp_agent_find(h->store, r->to, &mem, &rec, err) < 0)
        return -1;
    if (rec.reach.state == AMP_REACH_ABSENT)
        return 0;
    int fits = wanting_load(h->store, &of, err);
    if (fits == 0)
        fits = agent_fits(&of, r->to, &rec, err);
    wanting_release(&of);
    if (fits != 0)
        return fits < 0 ? -1 : 0;
    return amp_fail(err, AMP_NO, capability_unavailable,
                    "%.*s does not have the capabilities that the handoff requires",
                    AMP_CLIP(r->to, 100));
}
