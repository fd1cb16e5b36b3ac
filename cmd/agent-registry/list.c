/* Lists of agents and capabilities, as tables or as one JSON object per line. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/store/wake.h"
#include "registry.h"
#include "json/record.h"

static bool json, all, follow, index_only, keys, installed;
static const char *role, *capability;

static const struct amp_opt list_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "print one JSON object per line"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL,
     .doc = "include agents that left and disabled capabilities"},
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL, .doc = "continue with each change"},
    {0, "role", AMP_OPT_STRING, &role, "ROLE", .doc = "only agents with this role"},
    {0, "capability", AMP_OPT_STRING, &capability, "NAME",
     .doc = "only agents that have this capability", .values = "capability"},
    {0, "keys", AMP_OPT_FLAG, &keys, NULL, .doc = "list trusted keys and revocations instead"},
    AMP_OPT_ALLOWED_SIGNERS(reg_identity.allowed_signers),
    AMP_OPT_END,
};
static const struct amp_opt capabilities_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "print the catalog records"},
    {0, "index", AMP_OPT_FLAG, &index_only, NULL, .doc = "print the index records"},
    {0, "installed", AMP_OPT_FLAG, &installed, NULL,
     .doc = "list the agents that were asked to install a skill, and what they confirmed"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL,
     .doc = "include agents that left and disabled capabilities"},
    AMP_OPT_END,
};

struct listing {
    struct amp_store *store;
    json_t *known; /* the revisions that were printed, by name */
    int64_t now_ms;
};

static void set_time(json_t *to, const char *key, int64_t ms)
{
    char t[AMP_TIME_MAX];
    if (ms <= 0)
        return;
    amp_time_format(ms, t);
    json_object_set_new(to, key, json_string(t));
}

int reg_print_json(const json_t *j, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, (size_t)64 << 20);
    if (amp_json_line(j, &b, err) < 0)
        return -1;
    return amp_out(amp_buf_span(&b), err);
}

/* Columns have fixed widths, because rows are printed one by one. */
int reg_print_row(const char *const *cells, const int *widths, int n, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 1 << 16);
    for (int i = 0; i < n; i++) {
        size_t before = b.len;
        if (amp_text_safe(amp_span_str(cells[i]), widths[i], &b, err) < 0)
            return -1;
        while (i + 1 < n && b.len - before < (size_t)widths[i] + 2)
            if (amp_buf_str(&b, " ", err) < 0)
                return -1;
    }
    if (amp_buf_str(&b, "\n", err) < 0)
        return -1;
    return amp_out(amp_buf_span(&b), err);
}

/* The registered descriptor, as a new reference; NULL on failure. */
static json_t *descriptor_load(const struct amp_agent_reach *r, struct amp_error *err)
{
    json_t *d = r->descriptor.n > 0 ? amp_json_load(r->descriptor, err) : json_object();
    if (!d && r->descriptor.n == 0)
        amp_fail_memory(err);
    return d;
}

/* complete: with the descriptor and the health values. */
static int agent_print(struct amp_span agent, const struct amp_agent_reach *r, json_t *d,
                       bool complete, struct amp_error *err)
{
    json_auto_t *j = json_pack(
        "{s:s%, s:s, s:s, s:s, s:s, s:O*, s:O*, s:I}", "agent_id", agent.p, agent.n, "reachability",
        amp_reach_fsm.states[r->state].name, "name", amp_json_str(d, "name"), "role", r->role,
        "communication_class", amp_json_str(d, "communication_class"), "capabilities",
        json_object_get(d, "capabilities"), "modalities_supported",
        json_object_get(d, "modalities_supported"), "missed_heartbeats", (json_int_t)r->missed);
    if (!j)
        return amp_fail_memory(err);
    set_time(j, "joined", r->joined_ms);
    set_time(j, "last_seen", r->seen_ms);
    amp_json_put(j, "node_id", r->node);
    amp_json_put(j, "state", r->reported);
    if (r->answers > 0) {
        json_object_set_new(j, "answer_ms", json_integer(r->answer_ms));
        json_object_set_new(j, "answer_most_ms", json_integer(r->answer_most_ms));
        json_object_set_new(j, "answers", json_integer(r->answers));
    }
    if (r->state == AMP_REACH_LEFT) {
        set_time(j, "left", r->left_ms);
        json_object_set_new(j, "reason", json_string(r->reason));
    }
    if (complete)
        json_object_set(j, "descriptor", d);
    if (complete && r->health.n > 0) {
        json_t *health = amp_json_load(r->health, err);
        if (!health)
            return -1;
        json_object_set_new(j, "health", health);
    }
    return reg_print_json(j, err);
}

static const int agent_widths[] = {24, 12, 16, 12, 8, 10, 40};

static int agent_row(const struct listing *l, struct amp_span agent,
                     const struct amp_agent_reach *r, const json_t *d, struct amp_error *err)
{
    const json_t *cap;
    char seen[24] = "", took[24] = "";
    size_t i;
    AMP_BUF struct amp_buf caps = {0};
    AMP_FREE char *name = amp_span_dup(agent);
    amp_buf_init(&caps, 1 << 20);
    json_array_foreach (json_object_get(d, "capabilities"), i, cap) {
        if (amp_buf_fmt(&caps, err, "%s%s", i > 0 ? "," : "", json_string_value(cap)) < 0)
            return -1;
    }
    snprintf(seen, sizeof seen, "%llds ago", (long long)(l->now_ms - r->seen_ms) / 1000);
    if (r->answers > 0)
        snprintf(took, sizeof took, "%lldms", (long long)r->answer_ms);
    const char *cells[] = {name,
                           amp_reach_fsm.states[r->state].name,
                           r->role,
                           amp_json_str(d, "communication_class"),
                           took,
                           seen,
                           caps.len > 0 ? caps.data : ""};
    return reg_print_row(cells, agent_widths, 7, err);
}

static bool has_text(const json_t *list, const char *word)
{
    size_t i;
    const json_t *x;
    json_array_foreach (list, i, x) {
        if (strcmp(json_string_value(x), word) == 0)
            return true;
    }
    return false;
}

/* Whether this revision was printed before, or need not be; records it. */
static bool is_known(struct listing *l, struct amp_span agent, const struct amp_agent_reach *r)
{
    AMP_FREE char *name = amp_span_dup(agent);
    const json_t *was = name ? json_object_get(l->known, name) : NULL;
    if (!name || (was && json_integer_value(was) == r->rev))
        return true;
    bool first = !was;
    json_object_set_new(l->known, name, json_integer((json_int_t)r->rev));
    return first && r->state == AMP_REACH_LEFT && !all;
}

static int on_agent(void *ctx, struct amp_span agent, const struct amp_agent_rec *rec,
                    struct amp_error *err)
{
    struct listing *l = ctx;
    const struct amp_agent_reach *r = &rec->reach;
    if (r->state == AMP_REACH_ABSENT || (role && strcmp(role, r->role) != 0))
        return 0;
    json_auto_t *d = descriptor_load(r, err);
    if (!d)
        return -1;
    if (capability && !has_text(json_object_get(d, "capabilities"), capability))
        return 0;
    if (l->known ? is_known(l, agent, r) : r->state == AMP_REACH_LEFT && !all)
        return 0;
    return json ? agent_print(agent, r, d, false, err) : agent_row(l, agent, r, d, err);
}

static int list_look(struct listing *l, struct amp_error *err)
{
    l->now_ms = amp_now_ms();
    return amp_agent_records(l->store, on_agent, l, err);
}

/* Lists the agents, and again after each change of the state by another process. */
static int list_follow(struct listing *l, struct amp_error *err)
{
    struct amp_wake wake;
    const struct amp_wake_for f = {
        .log = true, .out_fd = STDOUT_FILENO, .timeout_ms = -1, .stop = &amp_stop};
    unsigned why = 0;
    int rc;
    if (amp_wake_open(&wake, reg_state, err) < 0)
        return -1;
    amp_signals_install();
    do {
        rc = amp_wake_drain(&wake, err) < 0 || list_look(l, err) < 0 ? -1 : amp_out_flush(err);
        if (rc == 0)
            rc = amp_wake_wait(&wake, &f, &why, err);
    } while (rc == 0 && !amp_stop && !(why & AMP_WAKE_OUT));
    amp_wake_close(&wake);
    return rc;
}

static int list_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (keys && (all || follow || role || capability))
        amp_die_usage("--keys excludes --all, --follow, --role and --capability");
    if (keys)
        c->opens = AMP_OPENS_NOTHING;
    return 0;
}

static int reg_list(struct amp_command *c, struct amp_error *err)
{
    static const char *const head[] = {"agent",  "reachability", "role",        "class",
                                       "answer", "seen",         "capabilities"};
    if (keys)
        return reg_keys_list(json, err);
    json_auto_t *known = follow ? json_object() : NULL;
    struct listing l = {.store = c->store, .known = known};
    if (!json && reg_print_row(head, agent_widths, 7, err) < 0)
        return -1;
    return follow ? list_follow(&l, err) : list_look(&l, err);
}

static int reg_show(struct amp_command *c, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    for (int i = 0; i < c->argc; i++) {
        struct amp_span agent = amp_span_str(c->argv[i]);
        struct amp_agent_rec rec;
        struct amp_error none;
        if (amp_agent_find(c->store, agent, &mem, &rec, err) < 0)
            return -1;
        if (rec.reach.state == AMP_REACH_ABSENT) {
            amp_fail(&none, AMP_NO, not_registered, "%s is not registered", c->argv[i]);
            amp_status_note(amp_complain(&none));
            continue;
        }
        json_auto_t *d = descriptor_load(&rec.reach, err);
        if (!d || agent_print(agent, &rec.reach, d, true, err) < 0)
            return -1;
    }
    return 0;
}

static const int cap_widths[] = {32, 12, 10, 24, 12, 8};

static int on_capability(void *ctx, struct amp_span id, const struct amp_capability *cap,
                         struct amp_error *err)
{
    struct listing *l = ctx;
    const json_t *c = cap->catalog;
    char eta[24];
    struct amp_agent_rec owner;
    AMP_BUF struct amp_buf mem = {0};
    if (!all && strcmp(amp_json_str(c, "status"), "disabled") == 0)
        return 0;
    if (json || index_only)
        return reg_print_json(index_only ? cap->index : cap->catalog, err);
    AMP_FREE char *name = amp_span_dup(id);
    snprintf(eta, sizeof eta, "%llds",
             (long long)json_integer_value(json_object_get(c, "defaultEtaSeconds")));
    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_agent_find(l->store, amp_span_str(amp_json_str(c, "ownerAgentId")), &mem, &owner, err) <
        0)
        return -1;
    const char *cells[] = {name,
                           amp_json_str(c, "version"),
                           amp_json_str(c, "status"),
                           amp_json_str(c, "ownerAgentId"),
                           amp_reach_fsm.states[owner.reach.state].name,
                           eta};
    return reg_print_row(cells, cap_widths, 6, err);
}

static int capabilities_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (installed && (c->argc > 1 || index_only))
        amp_die_usage("--installed takes one ID, and no --index");
    return 0;
}

static int reg_capabilities(struct amp_command *c, struct amp_error *err)
{
    static const char *const head[] = {"capability", "version",      "status",
                                       "owner",      "reachability", "eta"};
    struct listing l = {.store = c->store};
    if (installed)
        return reg_installed(c->store, amp_span_str(c->argc > 0 ? c->argv[0] : ""), json, err);
    if (!json && !index_only && reg_print_row(head, cap_widths, 6, err) < 0)
        return -1;
    if (c->argc == 0)
        return amp_capability_each(c->store, on_capability, &l, err);
    all = true;
    for (int i = 0, rc = 0; i < c->argc; i++) {
        struct amp_capability cap;
        rc = amp_capability_find(c->store, amp_span_str(c->argv[i]), &cap, err);
        if (rc == 0 && cap.catalog)
            rc = on_capability(&l, amp_span_str(c->argv[i]), &cap, err);
        else if (rc == 0)
            rc = amp_fail(err, AMP_NO, capability_unknown, "%s is not published", c->argv[i]);
        amp_capability_release(&cap);
        if (rc < 0)
            return -1;
    }
    return 0;
}

const struct amp_verb list_verbs[] = {
    {"list", "", "list the agents", list_opts, reg_list, .check = list_check,
     .opens = AMP_OPENS_LOOK, .finds_state = true},
    {"show", "AGENT…", "print everything recorded about agents", NULL, reg_show, .least = 1,
     .usage = "no agent given", .opens = AMP_OPENS_LOOK, .finds_state = true, .values = "agent"},
    {0},
};
const struct amp_verb capabilities_verbs[] = {
    {"capabilities", "[ID…]", "list the capabilities", capabilities_opts, reg_capabilities,
     .check = capabilities_check, .opens = AMP_OPENS_LOOK, .finds_state = true,
     .values = "capability"},
    {0},
};
