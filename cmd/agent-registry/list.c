/* Lists of agents and capabilities, as tables or as one JSON object per line. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/store/wake.h"
#include "registry.h"
#include "work/agent/skill.h"
#include "json/record.h"

static bool all, follow, index_only, keys, installed;
static const char *role, *capability;

static const struct amp_opt list_opts[] = {
    AMP_OPT_JSON("print one JSON object per line"),
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
    AMP_OPT_JSON("print the catalog records"),
    {0, "index", AMP_OPT_FLAG, &index_only, NULL, .doc = "print the index records"},
    {0, "installed", AMP_OPT_FLAG, &installed, NULL,
     .doc = "list the agents that were asked to install a skill, and what they confirmed"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL,
     .doc = "include agents that left and disabled capabilities"},
    AMP_OPT_END,
};

struct listing {
    struct amp_command *c;
    json_t *known; /* the revisions that were printed, by name */
};

int reg_print_json(const json_t *j, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, (size_t)64 << 20);
    if (amp_json_line(j, &b, err) < 0)
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

/* ---- agents ---- */

struct agent_row {
    struct amp_span agent;
    struct amp_agent_reach r;
    const json_t *d; /* the descriptor */
    const char *name, *class;
    char took[24];
};

static struct amp_span capabilities_text(const void *row, char mem[AMP_CELL_MAX])
{
    const struct agent_row *a = row;
    const json_t *cap;
    size_t i, n = 0;
    json_array_foreach (json_object_get(a->d, "capabilities"), i, cap) {
        if (n < AMP_CELL_MAX)
            n += (size_t)snprintf(mem + n, AMP_CELL_MAX - n, "%s%s", i > 0 ? "," : "",
                                  json_string_value(cap));
    }
    return n ? amp_span_str(mem) : AMP_SPAN("");
}

/* A list of texts of the descriptor. */
static void texts_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct agent_row *a = row;
    const json_t *list = json_object_get(a->d, key), *text;
    size_t i;
    if (!list)
        return;
    amp_jw_member_open(w, key, '[');
    json_array_foreach (list, i, text) {
        amp_jw_str(w, amp_span_str(json_string_value(text)));
    }
    amp_jw_close(w, ']');
}

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct agent_row, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct agent_row, key, head, member)
static const struct amp_column agent_columns[] = {
    EVER(TEXT, "agent_id", "agent", agent),
    AMP_COLUMN_STATE(struct agent_row, "reachability", "reachability", r.state, &amp_reach_fsm),
    EVER(CSTR, "name", NULL, name),
    EVER(CSTR, "role", "role", r.role),
    EVER(CSTR, "communication_class", "class", class),
    AMP_COLUMN_PUT("capabilities", texts_put),
    AMP_COLUMN_PUT("modalities_supported", texts_put),
    EVER(INT, "missed_heartbeats", NULL, r.missed),
    SOME(TIME, "joined", NULL, r.joined_ms),
    SOME(CSTR, "node_id", NULL, r.node),
    SOME(CSTR, "state", NULL, r.reported),
    SOME(CHARS, NULL, "answer", took),
    SOME(AGE, "last_seen", "seen", r.seen_ms),
    AMP_COLUMN_MADE(NULL, "capabilities", capabilities_text),
    SOME(COUNT, "answer_ms", NULL, r.answer_ms),
    SOME(COUNT, "answer_most_ms", NULL, r.answer_most_ms),
    SOME(INT, "answers", NULL, r.answers),
    SOME(TIME, "left", NULL, r.left_ms),
    SOME(CSTR, "reason", NULL, r.reason),
    SOME(RAW, "descriptor", NULL, r.descriptor),
    SOME(RAW, "health", NULL, r.health),
    {0},
};

/* complete: with the descriptor and the health values. */
static struct agent_row row_of(struct amp_span agent, const struct amp_agent_reach *r,
                               const json_t *d, bool complete)
{
    struct agent_row row = {agent, *r, d, amp_json_str(d, "name"),
                            amp_json_str(d, "communication_class")};
    if (r->answers > 0)
        snprintf(row.took, sizeof row.took, "%lldms", (long long)r->answer_ms);
    else
        row.r.answer_ms = row.r.answer_most_ms = -1;
    if (r->state != AMP_REACH_LEFT) {
        row.r.left_ms = 0;
        row.r.reason = NULL;
    }
    if (!complete)
        row.r.descriptor = row.r.health = AMP_SPAN("");
    return row;
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
    const struct agent_row row = row_of(agent, r, d, false);
    return amp_listing_row(l->c->list, &row, err);
}

static int list_look(struct listing *l, struct amp_error *err)
{
    l->c->list->now_ms = amp_now_ms();
    return amp_agent_records(l->c->store, on_agent, l, err);
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
        rc = amp_wake_drain(&wake, err) < 0 || list_look(l, err) < 0 ||
                     amp_listing_flush(l->c->list, err) < 0
                 ? -1
                 : amp_out_flush(err);
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
    if (keys) {
        c->opens = AMP_OPENS_NOTHING;
        c->lists = reg_key_columns;
    }
    return 0;
}

static int reg_list(struct amp_command *c, struct amp_error *err)
{
    if (keys)
        return reg_keys_list(c->list, err);
    json_auto_t *known = follow ? json_object() : NULL;
    struct listing l = {.c = c, .known = known};
    return follow ? list_follow(&l, err) : list_look(&l, err);
}

static int reg_show(struct amp_command *c, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    amp_listing_json = true;
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
        if (!d)
            return -1;
        const struct agent_row row = row_of(agent, &rec.reach, d, true);
        if (amp_listing_row(c->list, &row, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- capabilities ---- */

struct capability_row {
    struct amp_span id;
    const char *version, *status, *owner;
    uint8_t reach;
    char eta[24];
};

/* Programs get the documents of the catalog. */
#define CELL(form, head, member) AMP_COLUMN_EVER(form, struct capability_row, NULL, head, member)
static const struct amp_column capability_columns[] = {
    CELL(TEXT, "capability", id),
    CELL(CSTR, "version", version),
    CELL(CSTR, "status", status),
    CELL(CSTR, "owner", owner),
    AMP_COLUMN_STATE(struct capability_row, NULL, "reachability", reach, &amp_reach_fsm),
    CELL(CHARS, "eta", eta),
    {0},
};

static int on_capability(void *ctx, struct amp_span id, const struct amp_capability *cap,
                         struct amp_error *err)
{
    struct amp_command *c = ctx;
    const json_t *of = cap->catalog;
    struct amp_agent_rec owner;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct capability_row row = {id, amp_json_str(of, "version"), amp_json_str(of, "status"),
                                 amp_json_str(of, "ownerAgentId")};
    if (!all && strcmp(row.status, "disabled") == 0)
        return 0;
    if (amp_listing_json || index_only)
        return reg_print_json(index_only ? cap->index : of, err);
    if (amp_agent_find(c->store, amp_span_str(row.owner), &mem, &owner, err) < 0)
        return -1;
    row.reach = owner.reach.state;
    snprintf(row.eta, sizeof row.eta, "%llds",
             (long long)json_integer_value(json_object_get(of, "defaultEtaSeconds")));
    return amp_listing_row(c->list, &row, err);
}

static int capabilities_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (installed && (c->argc > 1 || index_only))
        amp_die_usage("--installed takes one ID, and no --index");
    if (installed)
        c->lists = reg_skill_columns;
    return 0;
}

static int reg_capabilities(struct amp_command *c, struct amp_error *err)
{
    if (installed)
        return amp_skills_each(c->store, amp_span_str(c->argc > 0 ? c->argv[0] : ""),
                               amp_listing_row, c->list, err);
    if (c->argc == 0)
        return amp_capability_each(c->store, on_capability, c, err);
    all = true;
    for (int i = 0, rc = 0; i < c->argc; i++) {
        struct amp_capability cap;
        rc = amp_capability_find(c->store, amp_span_str(c->argv[i]), &cap, err);
        if (rc == 0 && cap.catalog)
            rc = on_capability(c, amp_span_str(c->argv[i]), &cap, err);
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
     .opens = AMP_OPENS_LOOK, .lists = agent_columns, .finds_state = true},
    {"show", "AGENT…", "print everything recorded about agents", NULL, reg_show, .least = 1,
     .usage = "no agent given", .opens = AMP_OPENS_LOOK, .lists = agent_columns,
     .finds_state = true, .values = "agent"},
    {0},
};
const struct amp_verb capabilities_verbs[] = {
    {"capabilities", "[ID…]", "list the capabilities", capabilities_opts, reg_capabilities,
     .check = capabilities_check, .opens = AMP_OPENS_LOOK, .lists = capability_columns,
     .finds_state = true, .values = "capability"},
    {0},
};
