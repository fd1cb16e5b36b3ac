/* Candidates of a handoff: registered agents with its capabilities. */
#include "flow/handoff/handoff.h"

#include <stdio.h>
#include <string.h>

#include "agent/record.h"
#include "protocol/compose/json.h"
#include "json/record.h"

struct search {
    const struct amp_handoff *r;
    bool again;
    char *best;
    uint64_t weight;
    bool found, idle;
};

static bool can_all(const json_t *can, const struct amp_handoff *r)
{
    for (uint32_t i = 0; i < r->n_wanted; i++) {
        bool has = false;
        size_t k;
        const json_t *x;
        json_array_foreach (can, k, x) {
            has = has || (json_is_string(x) && amp_span_is(r->wanted[i], json_string_value(x)));
        }
        if (!has)
            return false;
    }
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

/* 1: the descriptor has the capabilities, 0: it does not. */
static int descriptor_fits(const struct amp_handoff *r, const struct amp_agent_rec *rec,
                           struct amp_error *err)
{
    json_auto_t *d = NULL;
    if (rec->reach.descriptor.n > 0 && !(d = amp_json_load(rec->reach.descriptor, err)))
        return -1;
    return can_all(json_object_get(d, "capabilities"), r);
}

/* Prefers an agent without work. */
static int agent_look(void *ctx, struct amp_span name, const struct amp_agent_rec *rec,
                      struct amp_error *err)
{
    struct search *s = ctx;

    if (!amp_reach_active(rec->reach.state) || amp_span_eq(name, s->r->from) ||
        was_asked(s, name) || name.n > 255)
        return 0;
    int fits = descriptor_fits(s->r, rec, err);
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
    struct search s = {.r = r, .again = again, .best = out};

    out[0] = '\0';
    if (r->n_wanted == 0 || r->n_tries + again >= AMP_HANDOFF_TRIES_MAX)
        return 0;
    return amp_agent_records(h->store, agent_look, &s, err) < 0 ? -1 : s.found;
}

int amp_handoff_candidate_check(struct amp_handoffs *h, const struct amp_handoff *r,
                                struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_agent_rec rec;

    if (r->n_wanted == 0)
        return 0;
    if (amp_agent_find(h->store, r->to, &mem, &rec, err) < 0)
        return -1;
    if (rec.reach.state == AMP_REACH_ABSENT)
        return 0;
    int fits = descriptor_fits(r, &rec, err);
    if (fits != 0)
        return fits < 0 ? -1 : 0;
    return amp_fail(err, AMP_NO, "capability_unavailable",
                    "%.*s does not have the capabilities that the handoff requires",
                    AMP_CLIP(r->to, 100));
}
