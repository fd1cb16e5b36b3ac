/* Finds recipients by names, roles and capabilities in the directory of the turn. */
#include "message/route/address/address.h"
#include "message/route/address/worktree.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/routing.h"
#include "message/route/outlet/units.h"
#include "work/agent/capability.h"
#include "work/agent/work.h"
#include "json/record.h"

void amp_addresses_turn(struct amp_addresses *a)
{
    while (a->n > 0) {
        struct amp_registered *x = &a->agents[--a->n];
        free(x->name);
        free(x->role);
        json_decref(x->can);
    }
    a->loaded = false;
    free(a->classed);
    a->classed = NULL;
}

void amp_addresses_release(struct amp_addresses *a)
{
    amp_addresses_turn(a);
    free(a->agents);
    while (a->n_given > 0)
        free(a->given[--a->n_given].name);
    free(a->given);
    json_decref(a->eligible);
}

const struct amp_given *amp_addresses_given(const struct amp_addresses *a, struct amp_span agent)
{
    for (uint32_t i = 0; i < a->n_given; i++)
        if (amp_span_is(agent, a->given[i].name))
            return &a->given[i];
    return NULL;
}

/* ---- the directory ---- */

/* The descriptor that an agent registered, or NULL. */
static int descriptor_load(const struct amp_agent_rec *rec, json_t **out, struct amp_error *err)
{
    *out = NULL;
    return rec->reach.descriptor.n > 0 && !(*out = amp_json_load(rec->reach.descriptor, err)) ? -1
                                                                                              : 0;
}

static int agent_load(void *ctx, struct amp_span name, const struct amp_agent_rec *rec,
                      struct amp_error *err)
{
    struct amp_addresses *a = ctx;
    json_auto_t *descriptor = NULL;
    if (rec->reach.state == AMP_REACH_ABSENT)
        return 0;
    if (amp_grow(&a->agents, &a->cap, a->n, sizeof *a->agents, err) < 0)
        return -1;
    if (descriptor_load(rec, &descriptor, err) < 0)
        return -1;
    struct amp_registered *x = &a->agents[a->n++];
    *x = (struct amp_registered){.name = amp_span_dup(name),
                                 .role = amp_span_dup(amp_span_str(rec->reach.role)),
                                 .state = rec->reach.state,
                                 .can = json_incref(json_object_get(descriptor, "capabilities"))};
    return x->name && x->role ? 0 : amp_fail_memory(err);
}

static int directory_load(struct amp_addresses *a, struct amp_error *err)
{
    if (a->loaded || !a->store)
        return 0;
    if (amp_agent_records(a->store, agent_load, a, err) < 0)
        return -1;
    a->loaded = true;
    return 0;
}

/* The state of an agent; ABSENT if it is unknown. */
static int state_of(struct amp_addresses *a, struct amp_span name, uint8_t *state,
                    struct amp_error *err)
{
    struct amp_agent_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    *state = AMP_REACH_ABSENT;
    if (!a->loaded && a->store) {
        amp_buf_init(&mem, AMP_REC_MAX);
        if (amp_agent_find(a->store, name, &mem, &rec, err) < 0)
            return -1;
        *state = rec.reach.state;
    }
    for (uint32_t i = 0; i < a->n; i++)
        if (amp_span_is(name, a->agents[i].name))
            *state = a->agents[i].state;
    return 0;
}

int amp_addresses_registered(struct amp_addresses *a, struct amp_span agent, bool *yes,
                             struct amp_error *err)
{
    uint8_t state;
    if (state_of(a, agent, &state, err) < 0)
        return -1;
    *yes = state != AMP_REACH_ABSENT && state != AMP_REACH_LEFT;
    return 0;
}

/* The state of an agent and its descriptor, or NULL. */
static int descriptor_find(const struct amp_addresses *a, struct amp_span agent, uint8_t *state,
                           json_t **out, struct amp_error *err)
{
    struct amp_agent_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_agent_find(a->store, agent, &mem, &rec, err) < 0)
        return -1;
    *state = rec.reach.state;
    return descriptor_load(&rec, out, err);
}

int amp_addresses_lane(struct amp_addresses *a, struct amp_span agent, enum amp_lane *lane,
                       struct amp_error *err)
{
    json_auto_t *descriptor = NULL;
    uint8_t state;
    *lane = AMP_LANE_STANDARD;
    if (!a->store)
        return 0;
    if (!a->classed || !amp_span_is(agent, a->classed)) {
        if (descriptor_find(a, agent, &state, &descriptor, err) < 0)
            return -1;
        const char *word = amp_json_str(descriptor, "communication_class");
        a->lane = state != AMP_REACH_LEFT ? amp_lane_find(amp_span_str(word)) : AMP_LANE_STANDARD;
        if (a->lane == AMP_LANE_COUNT)
            a->lane = AMP_LANE_STANDARD;
        free(a->classed);
        if (!(a->classed = amp_span_dup(agent)))
            return amp_fail_memory(err);
    }
    *lane = a->lane;
    return 0;
}

/* ---- content types ---- */

static struct amp_span part_before(struct amp_span s, char end)
{
    const char *at = s.n > 0 ? memchr(s.p, end, s.n) : NULL;
    if (at)
        s.n = (size_t)(at - s.p);
    return s;
}

static struct amp_span type_bare(struct amp_span s)
{
    s = part_before(s, ';');
    while (s.n > 0 && s.p[0] == ' ')
        s.p++, s.n--;
    while (s.n > 0 && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

static bool is_same_part(struct amp_span a, struct amp_span b)
{
    return amp_span_is(a, "*") || (a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0);
}

/* Whether a content type fits a declared modality, whose type or subtype may be "*". Parameters and
 * case do not count. */
static bool modality_fits(struct amp_span declared, struct amp_span content_type)
{
    struct amp_span a = type_bare(declared), b = type_bare(content_type);
    struct amp_span at = part_before(a, '/'), bt = part_before(b, '/');
    if (at.n == a.n || bt.n == b.n)
        return is_same_part(a, b);
    return is_same_part(at, bt) && is_same_part((struct amp_span){a.p + at.n + 1, a.n - at.n - 1},
                                                (struct amp_span){b.p + bt.n + 1, b.n - bt.n - 1});
}

int amp_addresses_takes(const struct amp_addresses *a, struct amp_span agent,
                        struct amp_span content_type, bool *yes, struct amp_error *err)
{
    json_auto_t *descriptor = NULL;
    uint8_t state;
    size_t i;
    const json_t *one;
    if (descriptor_find(a, agent, &state, &descriptor, err) < 0)
        return -1;
    const json_t *list = json_object_get(descriptor, "modalities_supported");
    *yes = json_array_size(list) == 0;
    json_array_foreach (list, i, one) {
        const char *modality = json_string_value(one);
        *yes = *yes || (modality && modality_fits(amp_span_str(modality), content_type));
    }
    return 0;
}

int amp_addresses_units(const struct amp_addresses *a, struct amp_span agent, uint8_t *takes,
                        struct amp_error *err)
{
    json_auto_t *descriptor = NULL;
    uint8_t state;
    size_t i;
    const json_t *one;
    *takes = 0;
    if (descriptor_find(a, agent, &state, &descriptor, err) < 0)
        return -1;
    json_array_foreach (json_object_get(descriptor, "modalities_supported"), i, one) {
        const char *modality = json_string_value(one);
        *takes |= modality && strcasecmp(modality, AMP_UNIT_CHUNK_TYPE) == 0 ? AMP_TAKES_CHUNKS : 0;
        *takes |=
            modality && strcasecmp(modality, AMP_UNIT_BATCH_TYPE) == 0 ? AMP_TAKES_BATCHES : 0;
    }
    return 0;
}

/* ---- one of several ---- */

static uint64_t name_weigh(const char *name, struct amp_span key)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    h = (h ^ '\n') * 0x100000001b3u;
    for (size_t i = 0; i < key.n; i++)
        h = (h ^ (unsigned char)key.p[i]) * 0x100000001b3u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

/* Selects the agent that has the task; else the one with the highest hash, which does not change
 * for a task when other agents come and go. NULL: an error. */
static const struct amp_registered *agent_select(struct amp_addresses *a, const struct amp_view *v,
                                                 const struct amp_registered *const *among,
                                                 uint32_t n, struct amp_error *err)
{
    struct amp_span key = v->task.n > 0 ? v->task : v->correlation.n > 0 ? v->correlation : v->id;
    const struct amp_registered *best = among[0];
    uint64_t most = 0;
    for (uint32_t i = 0; i < n && n > 1; i++) {
        struct amp_agent_status st = {0};
        if (v->task.n > 0 && amp_agent_status(a->store, among[i]->name, &st, err) < 0)
            return NULL;
        if (st.found && (amp_span_is(v->task, st.task) || amp_span_is(v->task, st.last_task)))
            return among[i];
        uint64_t h = name_weigh(among[i]->name, key);
        if (i == 0 || h > most) {
            most = h;
            best = among[i];
        }
    }
    return best;
}

/* ---- collecting ---- */

static int recipient_add(struct amp_recipients *out, struct amp_span name, struct amp_error *err)
{
    for (uint32_t i = 0; i < out->n; i++)
        if (amp_span_eq(out->to[i], name))
            return 0;
    if (out->n == AMP_ADDRESS_MAX)
        return amp_fail(err, AMP_NO, invalid_targets, "it is for more than %d agents",
                        AMP_ADDRESS_MAX);
    out->to[out->n++] = name;
    return 0;
}

static int all_add(struct amp_addresses *a, const struct amp_view *v, struct amp_recipients *out,
                   struct amp_error *err)
{
    if (directory_load(a, err) < 0)
        return -1;
    for (uint32_t i = 0; i < a->n; i++) {
        struct amp_span name = amp_span_str(a->agents[i].name);
        if (amp_reach_active(a->agents[i].state) && !amp_span_eq(name, v->from) &&
            recipient_add(out, name, err) < 0)
            return -1;
    }
    /* Without a registry these are the agents with a port. */
    for (uint32_t i = 0; i < a->n_given && !a->store; i++) {
        struct amp_span name = amp_span_str(a->given[i].name);
        if (!amp_span_eq(name, v->from) && recipient_add(out, name, err) < 0)
            return -1;
    }
    return 0;
}

static bool can_all(const json_t *can, const struct amp_spans *wanted)
{
    for (uint32_t i = 0; i < wanted->n; i++) {
        bool has = false;
        size_t k;
        const json_t *x;
        json_array_foreach (can, k, x) {
            has = has || (json_is_string(x) && amp_span_is(wanted->v[i], json_string_value(x)));
        }
        if (!has)
            return false;
    }
    return true;
}

/* Adds one agent of a role, or (with `wanted`) one that has these capabilities. */
static int one_add(struct amp_addresses *a, const struct amp_view *v, struct amp_span role,
                   const struct amp_spans *wanted, struct amp_recipients *out,
                   struct amp_error *err)
{
    uint32_t n = 0;
    if (directory_load(a, err) < 0)
        return -1;
    AMP_FREE const struct amp_registered **among = calloc((size_t)a->n + 1, sizeof(*among));
    if (!among)
        return amp_fail_memory(err);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct amp_registered *x = &a->agents[i];
        if (wanted ? !can_all(x->can, wanted) : !*x->role || !amp_span_is(role, x->role))
            continue;
        if (amp_span_is(v->from, x->name) || x->state == AMP_REACH_LEFT)
            continue;
        bool bound = true;
        if (amp_worktree_is_work(v) &&
            amp_worktree_has(a->store, amp_span_str(x->name), &bound, err) < 0)
            return -1;
        out->unbound = out->unbound || !bound;
        if (!bound)
            continue;
        if (amp_reach_active(x->state))
            among[n++] = x;
        else
            out->gone = true;
    }
    if (n == 0)
        return 0;
    const struct amp_registered *one = agent_select(a, v, among, n, err);
    return one ? recipient_add(out, amp_span_str(one->name), err) : -1;
}

/* ---- by capability ---- */

static bool is_same_major(struct amp_span a, struct amp_span b)
{
    const char *x = memchr(a.p, '.', a.n), *y = memchr(b.p, '.', b.n);
    return x && y && x - a.p == y - b.p && memcmp(a.p, b.p, (size_t)(x - a.p)) == 0;
}

/* Whether the delegation skill of the capability matches its executor skill. */
static bool skills_fit(const json_t *catalog)
{
    const char *mode = amp_json_str(catalog, "compatibilityMode");
    struct amp_span delegation =
        amp_span_str(amp_json_str(json_object_get(catalog, "delegationSkillRef"), "version"));
    struct amp_span executor =
        amp_span_str(amp_json_str(json_object_get(catalog, "executorSkillRef"), "version"));
    if (!*mode || delegation.n == 0 || executor.n == 0)
        return true;
    int c = amp_semver_compare(executor, delegation);
    if (strcmp(mode, "strict") == 0)
        return c == 0;
    return c >= 0 && (strcmp(mode, "backward") != 0 || is_same_major(executor, delegation));
}

static int capability_refuse(struct amp_error *err, const char *code, struct amp_span cap,
                             const char *why)
{
    return amp_fail_text(err, AMP_NO, code, "%.*s %s", (int)(cap.n < 160 ? cap.n : 160), cap.p,
                         why);
}

/* Removes the agents from `eligible` that are not in the capability's index. */
static int eligible_narrow(struct amp_store *s, struct amp_span cap, json_t **eligible,
                           struct amp_error *err)
{
    struct amp_capability c;
    json_t *both, *x, *y;
    size_t i, k;
    if (amp_capability_find(s, cap, &c, err) < 0)
        return -1;
    int rc = 0;
    if (!c.catalog)
        rc = capability_refuse(err, AMP_CODE(no_route), cap, "is not published");
    else if (strcmp(amp_json_str(c.catalog, "status"), "disabled") == 0)
        rc = capability_refuse(err, AMP_CODE(capability_unavailable), cap, "is disabled");
    else if (!skills_fit(c.catalog))
        rc = capability_refuse(err, AMP_CODE(version_incompatible), cap,
                               "has a delegation skill that does not match its executor skill");
    both = json_array();
    json_array_foreach (json_object_get(c.index, "eligibleAgentIds"), i, x) {
        bool had = !*eligible;
        json_array_foreach (*eligible, k, y) {
            had = had || json_equal(x, y);
        }
        if (had)
            json_array_append(both, x);
    }
    json_decref(*eligible);
    *eligible = both;
    amp_capability_release(&c);
    return rc;
}

static int eligible_find(struct amp_store *s, const struct amp_spans *wanted, json_t **eligible,
                         struct amp_error *err)
{
    int rc = 0;
    *eligible = NULL;
    if (!s)
        return capability_refuse(err, AMP_CODE(no_route), wanted->v[0],
                                 "cannot be looked up without a state directory");
    for (uint32_t k = 0; k < wanted->n && rc == 0; k++)
        rc = eligible_narrow(s, wanted->v[k], eligible, err);
    if (rc == 0 && json_array_size(*eligible) == 0)
        rc = capability_refuse(err, AMP_CODE(no_route), wanted->v[0],
                               "and no agent has the other required capabilities");
    return rc;
}

static int eligible_add(struct amp_addresses *a, const struct amp_view *v,
                        const struct amp_spans *wanted, struct amp_recipients *out,
                        struct amp_error *err)
{
    json_t *x;
    size_t i;
    int rc = eligible_find(a->store, wanted, &a->eligible, err);
    json_array_foreach (a->eligible, i, x) {
        struct amp_span name = amp_span_str(json_string_value(x));
        uint8_t state;
        if (rc < 0 || amp_span_eq(name, v->from))
            continue;
        rc = state_of(a, name, &state, err);
        if (rc == 0 && amp_reach_active(state))
            rc = recipient_add(out, name, err);
    }
    if (rc == 0 && out->n == 0)
        rc = capability_refuse(err, AMP_CODE(capability_unavailable), wanted->v[0],
                               "has no reachable owner");
    return rc;
}

/* ---- finding ---- */

/* Adds the recipients of one name. 1: it has one, 0: none, -1: error. */
static int name_add(struct amp_addresses *a, const struct amp_view *v, struct amp_span name,
                    struct amp_recipients *out, struct amp_error *err)
{
    uint8_t state;
    uint32_t before = out->n;
    if (amp_span_is(name, "all")) {
        out->expanded = true;
        return all_add(a, v, out, err) < 0 ? -1 : out->n > before;
    }
    if (state_of(a, name, &state, err) < 0)
        return -1;
    if ((state != AMP_REACH_ABSENT && state != AMP_REACH_LEFT) || amp_addresses_given(a, name))
        return recipient_add(out, name, err) < 0 ? -1 : 1;
    if (one_add(a, v, name, NULL, out, err) < 0)
        return -1;
    out->gone = out->gone || state == AMP_REACH_LEFT;
    if (out->n == before)
        return 0;
    out->expanded = true;
    return 1;
}

static const struct amp_spans *wanted_by(const struct amp_view *v)
{
    static const struct amp_spans none = {0};
    return v->kind == AMP_KIND_DISPATCH  ? &v->body.dispatch.wanted
           : v->kind == AMP_KIND_HANDOFF ? &v->body.handoff.wanted
                                         : &none;
}

/* Fills the error of a message without recipients. */
static int recipients_refuse(const struct amp_recipients *out, const struct amp_view *v,
                             struct amp_error *err)
{
    const struct amp_routing_terms *terms = amp_routing_of(v->protocol);
    const char *lost = terms->lost_code ? terms->lost_code : AMP_CODE(no_route);
    struct amp_span name = out->lost;
    int n = (int)(name.n < 160 ? name.n : 160);
    if (out->n_lost == 0 && terms->unaddressed_code && v->kind == AMP_KIND_DISPATCH)
        return amp_fail_text(err, AMP_NO, terms->unaddressed_code,
                             "it names neither agents nor capabilities");
    if (out->n_lost == 0)
        return amp_fail(err, AMP_NO, no_route, "it names no recipient");
    if (amp_span_is(name, "all"))
        return amp_fail_text(err, AMP_NO, lost, "it is for all, but no other agent is registered");
    if (out->unbound)
        return amp_fail_text(err, AMP_NO, AMP_NOT_BOUND, "no agent of the role %.*s is bound", n,
                             name.p);
    if (out->gone && !terms->lost_code)
        return amp_fail(err, AMP_NO, agent_unavailable, "%.*s is unreachable or has left", n,
                        name.p);
    return amp_fail_text(err, AMP_NO, lost, "%.*s is neither an agent nor a role", n, name.p);
}

int amp_addresses_find(struct amp_addresses *a, const struct amp_view *v,
                       struct amp_recipients *out, struct amp_error *err)
{
    const struct amp_spans *wanted = wanted_by(v);
    *out = (struct amp_recipients){.to = a->to};
    json_decref(a->eligible);
    a->eligible = NULL;
    if (wanted->n > 0 && amp_routing_of(v->protocol)->by_catalog) {
        out->expanded = true;
        return eligible_add(a, v, wanted, out, err);
    }
    if (wanted->n > 0 && v->n_to == 0) {
        out->expanded = true;
        if (one_add(a, v, AMP_SPAN(""), wanted, out, err) < 0)
            return -1;
        if (out->n > 0)
            return 0;
        if (out->unbound)
            return capability_refuse(err, AMP_NOT_BOUND, wanted->v[0],
                                     "is offered only by agents that are not bound to a worktree");
        return capability_refuse(err, out->gone ? AMP_CODE(agent_unavailable) : AMP_CODE(no_route),
                                 wanted->v[0],
                                 "and no reachable agent has the other required capabilities");
    }
    for (uint32_t i = 0; i < v->n_to; i++) {
        int rc = name_add(a, v, v->to[i], out, err);
        if (rc < 0)
            return -1;
        if (rc == 0 && out->n_lost++ == 0)
            out->lost = v->to[i];
    }
    return out->n > 0 ? 0 : recipients_refuse(out, v, err);
}

const char *amp_address_seed_code(const struct amp_view *v, const char *code)
{
    const char *own = amp_routing_of(v->protocol)->undeliverable_code;
    return own && v->kind == AMP_KIND_DISPATCH && strcmp(code, own) != 0 ? own : "";
}

bool amp_address_is_temporary(const char *code)
{
    return amp_code_is(code, agent_unavailable) || strcmp(code, AMP_NOT_BOUND) == 0 ||
           amp_code_is(code, capability_unavailable) || amp_code_is(code, no_route);
}
