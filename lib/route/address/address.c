/* Names, roles and capabilities against the directory as it stands in this turn. */
#include "route/address/address.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/capability.h"
#include "agent/work.h"
#include "base/grow.h"
#include "protocol/compose/json.h"
#include "protocol/terms.h"
#include "json/record.h"

struct agent {
    char *name, *role; /* role may be empty */
    uint8_t state;
    json_t *can; /* its capabilities, or NULL */
};

struct amp_addresses {
    struct amp_store *store;
    struct names {
        char **v;
        uint32_t n;
        size_t cap;
    } given;
    struct agent *agents;
    uint32_t n;
    size_t cap;
    bool loaded;
    struct amp_span to[AMP_ADDRESS_MAX], lost;
    struct names kept; /* what `to` points at */
    char *classed;     /* whose lane was asked for last in this turn */
    enum amp_lane lane;
    uint32_t n_to, n_lost;
};

static int names_add(struct names *l, struct amp_span name)
{
    if (amp_grow(&l->v, &l->cap, l->n, sizeof *l->v, NULL) < 0)
        return -1;
    l->v[l->n] = amp_span_dup(name);
    return l->v[l->n] ? (int)l->n++ : -1;
}

static void names_clear(struct names *l)
{
    while (l->n > 0)
        free(l->v[--l->n]);
}

static bool names_have(const struct names *l, struct amp_span name)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (amp_span_is(name, l->v[i]))
            return true;
    return false;
}

struct amp_addresses *amp_addresses_new(struct amp_store *store, struct amp_error *err)
{
    struct amp_addresses *a = calloc(1, sizeof *a);
    if (!a)
        amp_fail_memory(err);
    else
        a->store = store;
    return a;
}

void amp_addresses_turn(struct amp_addresses *a)
{
    while (a->n > 0) {
        struct agent *x = &a->agents[--a->n];
        free(x->name);
        free(x->role);
        json_decref(x->can);
    }
    a->loaded = false;
    free(a->classed);
    a->classed = NULL;
}

void amp_addresses_free(struct amp_addresses *a)
{
    if (!a)
        return;
    amp_addresses_turn(a);
    names_clear(&a->given);
    names_clear(&a->kept);
    free(a->given.v);
    free(a->kept.v);
    free(a->agents);
    free(a);
}

int amp_addresses_add(struct amp_addresses *a, struct amp_span agent, struct amp_error *err)
{
    if (agent.n == 0 || amp_span_is(agent, "all"))
        return amp_fail(err, AMP_USAGE, "bad_agent", "\"%.*s\" is not an agent's name",
                        (int)(agent.n < 200 ? agent.n : 200), agent.p);
    return names_add(&a->given, agent) < 0 ? amp_fail_memory(err) : 0;
}

bool amp_addresses_has(const struct amp_addresses *a, struct amp_span agent)
{
    return names_have(&a->given, agent);
}

/* ---- the directory, once a turn ---- */

/* What an agent registered; NULL where it did not. */
static int descriptor_load(const struct amp_agent_rec *rec, json_t **out, struct amp_error *err)
{
    *out = NULL;
    return rec->reach.descriptor.n > 0 && !(*out = amp_json_load(rec->reach.descriptor, err)) ? -1
                                                                                              : 0;
}

static int load_one(void *ctx, struct amp_span name, const struct amp_agent_rec *rec,
                    struct amp_error *err)
{
    struct amp_addresses *a = ctx;
    json_t *descriptor;
    if (rec->reach.state == AMP_REACH_ABSENT)
        return 0;
    if (amp_grow(&a->agents, &a->cap, a->n, sizeof *a->agents, err) < 0)
        return -1;
    if (descriptor_load(rec, &descriptor, err) < 0)
        return -1;
    struct agent *x = &a->agents[a->n++];
    *x = (struct agent){.name = amp_span_dup(name),
                        .role = amp_span_dup(amp_span_str(rec->reach.role)),
                        .state = rec->reach.state,
                        .can = json_incref(json_object_get(descriptor, "capabilities"))};
    json_decref(descriptor);
    return x->name && x->role ? 0 : amp_fail_memory(err);
}

static int load(struct amp_addresses *a, struct amp_error *err)
{
    if (a->loaded || !a->store)
        return 0;
    if (amp_agent_records(a->store, load_one, a, err) < 0)
        return -1;
    a->loaded = true;
    return 0;
}

/* The state of an agent; ABSENT where it is unknown. */
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

int amp_addresses_lane(struct amp_addresses *a, struct amp_span agent, enum amp_lane *lane,
                       struct amp_error *err)
{
    struct amp_agent_rec rec;
    json_t *descriptor;
    AMP_BUF struct amp_buf mem = {0};
    *lane = AMP_LANE_STANDARD;
    if (!a->store)
        return 0;
    if (!a->classed || !amp_span_is(agent, a->classed)) {
        amp_buf_init(&mem, AMP_REC_MAX);
        if (amp_agent_find(a->store, agent, &mem, &rec, err) < 0 ||
            descriptor_load(&rec, &descriptor, err) < 0)
            return -1;
        const char *word = json_string_value(json_object_get(descriptor, "communication_class"));
        a->lane = word && rec.reach.state != AMP_REACH_LEFT ? amp_lane_find(amp_span_str(word))
                                                            : AMP_LANE_STANDARD;
        if (a->lane == AMP_LANE_COUNT)
            a->lane = AMP_LANE_STANDARD;
        json_decref(descriptor);
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
    if (amp_span_is(a, "*"))
        return true;
    for (size_t i = 0; i < a.n && a.n == b.n; i++)
        if (tolower((unsigned char)a.p[i]) != tolower((unsigned char)b.p[i]))
            return false;
    return a.n == b.n;
}

/* Whether a content type is one of a declared modality, whose type or subtype may be a star;
 * parameters and case do not count. */
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
    struct amp_agent_rec rec;
    json_t *descriptor, *one;
    size_t i;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_agent_find(a->store, agent, &mem, &rec, err) < 0 ||
        descriptor_load(&rec, &descriptor, err) < 0)
        return -1;
    const json_t *list = json_object_get(descriptor, "modalities_supported");
    *yes = json_array_size(list) == 0;
    for (i = 0; i < json_array_size(list) && !*yes; i++) {
        one = json_array_get(list, i);
        *yes = json_is_string(one) &&
               modality_fits(amp_span_str(json_string_value(one)), content_type);
    }
    json_decref(descriptor);
    return 0;
}

/* ---- one of several ---- */

static uint64_t mix(const char *name, struct amp_span key)
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

/* The one that has the task; else that with the highest hash, which stays the same for a task
 * whoever else comes and goes. */
static int pick(struct amp_addresses *a, const struct amp_view *v, const struct names *among,
                uint32_t *picked, struct amp_error *err)
{
    struct amp_span key = v->task.n > 0 ? v->task : v->correlation.n > 0 ? v->correlation : v->id;
    uint64_t most = 0;
    *picked = 0;
    for (uint32_t i = 0; i < among->n && among->n > 1; i++) {
        struct amp_agent_status st = {0};
        if (a->store && v->task.n > 0 && amp_agent_status(a->store, among->v[i], &st, err) < 0)
            return -1;
        if (st.found && (amp_span_is(v->task, st.task) || amp_span_is(v->task, st.last_task))) {
            *picked = i;
            return 0;
        }
        uint64_t h = mix(among->v[i], key);
        if (i == 0 || h > most)
            most = h, *picked = i;
    }
    return 0;
}

/* ---- collecting ---- */

static int add(struct amp_addresses *a, struct amp_span name, struct amp_error *err)
{
    for (uint32_t i = 0; i < a->n_to; i++)
        if (amp_span_eq(a->to[i], name))
            return 0;
    if (a->n_to == AMP_ADDRESS_MAX)
        return amp_fail(err, AMP_NO, "invalid_targets", "it is for more than %d agents",
                        AMP_ADDRESS_MAX);
    int at = names_add(&a->kept, name);
    if (at < 0)
        return amp_fail_memory(err);
    a->to[a->n_to++] = amp_span_str(a->kept.v[at]);
    return 0;
}

static int add_all(struct amp_addresses *a, const struct amp_view *v, struct amp_error *err)
{
    if (load(a, err) < 0)
        return -1;
    for (uint32_t i = 0; i < a->n; i++) {
        struct amp_span name = amp_span_str(a->agents[i].name);
        if (amp_reach_active(a->agents[i].state) && !amp_span_eq(name, v->from) &&
            add(a, name, err) < 0)
            return -1;
    }
    /* Without a registry whoever has a port is there. */
    for (uint32_t i = 0; i < a->given.n && !a->store; i++) {
        struct amp_span name = amp_span_str(a->given.v[i]);
        if (!amp_span_eq(name, v->from) && add(a, name, err) < 0)
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

/* One agent of a role, or (role empty) one that can do what is wanted. *gone: there are such, but
 * none that answers. */
static int add_one_of(struct amp_addresses *a, const struct amp_view *v, struct amp_span role,
                      const struct amp_spans *wanted, bool *gone, struct amp_error *err)
{
    struct names among = {0};
    uint32_t picked;
    int rc = load(a, err);
    for (uint32_t i = 0; i < a->n && rc == 0; i++) {
        const struct agent *x = &a->agents[i];
        if (wanted ? !can_all(x->can, wanted) : !*x->role || !amp_span_is(role, x->role))
            continue;
        if (amp_span_is(v->from, x->name) || x->state == AMP_REACH_LEFT)
            continue;
        if (!amp_reach_active(x->state))
            *gone = true;
        else if (names_add(&among, amp_span_str(x->name)) < 0)
            rc = amp_fail_memory(err);
    }
    if (rc == 0 && among.n > 0) {
        rc = pick(a, v, &among, &picked, err);
        if (rc == 0)
            rc = add(a, amp_span_str(among.v[picked]), err);
    }
    names_clear(&among);
    free(among.v);
    return rc;
}

/* ---- by capability ---- */

static const char *text(const json_t *j, const char *key)
{
    return json_string_value(json_object_get(j, key));
}

static bool is_same_major(struct amp_span a, struct amp_span b)
{
    const char *x = memchr(a.p, '.', a.n), *y = memchr(b.p, '.', b.n);
    return x && y && x - a.p == y - b.p && memcmp(a.p, b.p, (size_t)(x - a.p)) == 0;
}

/* Whether the skill of those who ask goes with that of the owner. */
static bool skills_fit(const json_t *catalog)
{
    const char *mode = text(catalog, "compatibilityMode");
    struct amp_span asks = amp_span_str(
                        text(json_object_get(catalog, "delegationSkillRef"), "version")),
                    does =
                        amp_span_str(text(json_object_get(catalog, "executorSkillRef"), "version"));
    if (!mode || asks.n == 0 || does.n == 0)
        return true;
    int c = amp_semver_compare(does, asks);
    if (strcmp(mode, "strict") == 0)
        return c == 0;
    return c >= 0 && (strcmp(mode, "backward") != 0 || is_same_major(does, asks));
}

static int capability_refuse(struct amp_error *err, const char *code, struct amp_span cap,
                             const char *why)
{
    return amp_fail(err, AMP_NO, code, "%.*s %s", (int)(cap.n < 160 ? cap.n : 160), cap.p, why);
}

/* Those of `eligible` that the capability's index names too. */
static int eligible_narrow(struct amp_store *s, struct amp_span cap, json_t **eligible,
                           struct amp_error *err)
{
    struct amp_capability c;
    json_t *both, *x, *y;
    size_t i, k;
    if (amp_capability_find(s, cap, &c, err) < 0)
        return -1;
    const char *status = text(c.catalog, "status");
    int rc = 0;
    if (!c.catalog)
        rc = capability_refuse(err, "no_route", cap, "is not published");
    else if (status && strcmp(status, "disabled") == 0)
        rc = capability_refuse(err, "capability_unavailable", cap, "is disabled");
    else if (!skills_fit(c.catalog))
        rc = capability_refuse(err, "version_incompatible", cap,
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
        return capability_refuse(err, "no_route", wanted->v[0],
                                 "cannot be looked up without a state directory");
    for (uint32_t k = 0; k < wanted->n && rc == 0; k++)
        rc = eligible_narrow(s, wanted->v[k], eligible, err);
    if (rc == 0 && json_array_size(*eligible) == 0)
        rc = capability_refuse(err, "no_route", wanted->v[0],
                               "and no agent has the other required capabilities");
    return rc;
}

static int add_eligible(struct amp_addresses *a, const struct amp_view *v,
                        const struct amp_spans *wanted, struct amp_error *err)
{
    json_t *eligible = NULL, *x;
    size_t i;
    int rc = eligible_find(a->store, wanted, &eligible, err);
    json_array_foreach (eligible, i, x) {
        struct amp_span name = amp_span_str(json_string_value(x));
        uint8_t state;
        if (rc < 0 || amp_span_eq(name, v->from))
            continue;
        rc = state_of(a, name, &state, err);
        if (rc == 0 && amp_reach_active(state))
            rc = add(a, name, err);
    }
    json_decref(eligible);
    if (rc == 0 && a->n_to == 0)
        rc = capability_refuse(err, "capability_unavailable", wanted->v[0],
                               "has no reachable owner");
    return rc;
}

/* ---- all of it ---- */

/* One name of the message: 1 it leads to somebody, 0 to nobody. */
static int add_name(struct amp_addresses *a, const struct amp_view *v, struct amp_span name,
                    bool *expanded, bool *gone, struct amp_error *err)
{
    uint8_t state;
    uint32_t before = a->n_to;
    if (amp_span_is(name, "all")) {
        *expanded = true;
        return add_all(a, v, err) < 0 ? -1 : a->n_to > before;
    }
    if (state_of(a, name, &state, err) < 0)
        return -1;
    if ((state != AMP_REACH_ABSENT && state != AMP_REACH_LEFT) || names_have(&a->given, name))
        return add(a, name, err) < 0 ? -1 : 1;
    if (add_one_of(a, v, name, NULL, gone, err) < 0)
        return -1;
    *gone = *gone || state == AMP_REACH_LEFT;
    if (a->n_to == before)
        return 0;
    *expanded = true;
    return 1;
}

static const struct amp_spans *wanted_by(const struct amp_view *v)
{
    static const struct amp_spans none = {0};
    return v->kind == AMP_KIND_DISPATCH  ? &v->body.dispatch.wanted
           : v->kind == AMP_KIND_HANDOFF ? &v->body.handoff.wanted
                                         : &none;
}

static int for_nobody(struct amp_addresses *a, const struct amp_view *v, bool gone,
                      struct amp_error *err)
{
    const struct amp_terms *terms = amp_terms_of(v->protocol);
    const char *lost = terms->lost_code ? terms->lost_code : "no_route";
    struct amp_span name = a->lost;
    int n = (int)(name.n < 160 ? name.n : 160);
    if (a->n_lost == 0 && terms->unaddressed_code && v->kind == AMP_KIND_DISPATCH)
        return amp_fail(err, AMP_NO, terms->unaddressed_code,
                        "it names neither agents nor capabilities");
    if (a->n_lost == 0)
        return amp_fail(err, AMP_NO, "no_route", "it names no recipient");
    if (amp_span_is(name, "all"))
        return amp_fail(err, AMP_NO, lost, "it is for all, but no other agent is registered");
    if (gone && !terms->lost_code)
        return amp_fail(err, AMP_NO, "agent_unavailable", "%.*s is unreachable or has left", n,
                        name.p);
    return amp_fail(err, AMP_NO, lost, "%.*s is neither an agent nor a role", n, name.p);
}

int amp_addresses_find(struct amp_addresses *a, const struct amp_view *v,
                       struct amp_recipients *out, struct amp_error *err)
{
    const struct amp_spans *wanted = wanted_by(v);
    bool gone = false;
    *out = (struct amp_recipients){.to = a->to};
    a->n_to = a->n_lost = 0;
    names_clear(&a->kept);
    if (wanted->n > 0 && amp_terms_of(v->protocol)->by_catalog) {
        out->expanded = true;
        if (add_eligible(a, v, wanted, err) < 0)
            return -1;
    } else if (wanted->n > 0 && v->n_to == 0) {
        out->expanded = true;
        if (add_one_of(a, v, (struct amp_span){"", 0}, wanted, &gone, err) < 0)
            return -1;
        if (a->n_to == 0)
            return capability_refuse(err, gone ? "agent_unavailable" : "no_route", wanted->v[0],
                                     "and no reachable agent has the other required capabilities");
    }
    bool by_name = !out->expanded;
    for (uint32_t i = 0; i < v->n_to && by_name; i++) {
        int rc = add_name(a, v, v->to[i], &out->expanded, &gone, err);
        if (rc < 0)
            return -1;
        if (rc == 0 && a->n_lost++ == 0)
            a->lost = v->to[i];
    }
    if (a->n_to == 0)
        return for_nobody(a, v, gone, err);
    out->n = a->n_to;
    out->lost = a->lost;
    out->n_lost = a->n_lost;
    return 0;
}

const char *amp_address_seed_code(const struct amp_view *v, const char *code)
{
    const char *own = amp_terms_of(v->protocol)->undeliverable_code;
    return own && v->kind == AMP_KIND_DISPATCH && strcmp(code, own) != 0 ? own : "";
}

bool amp_address_is_temporary(const char *code)
{
    return strcmp(code, "agent_unavailable") == 0 || strcmp(code, "capability_unavailable") == 0 ||
           strcmp(code, "no_route") == 0;
}
