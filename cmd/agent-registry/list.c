/* The directory and the capabilities for people (tables) and programs (one record a line). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "flow/wake.h"
#include "registry.h"

static bool json, all, follow, index_only;
static const char *role, *capability;

const struct amp_opt list_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "one record a line"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL, .doc = "also what left or is disabled"},
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL, .doc = "go on with each change"},
    {0, "role", AMP_OPT_STRING, &role, "ROLE", .doc = "only agents of this role"},
    {0, "capability", AMP_OPT_STRING, &capability, "NAME",
     .doc = "only agents that have this capability"},
    AMP_OPT_END,
};
const struct amp_opt show_opts[] = {AMP_OPT_END};
const struct amp_opt capabilities_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "the catalog records, one a line"},
    {0, "index", AMP_OPT_FLAG, &index_only, NULL, .doc = "the index records, one a line"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL, .doc = "also what left or is disabled"},
    AMP_OPT_END,
};

struct listing {
    struct registry r;
    struct amp_error err;
    int rc;
    json_t *known; /* what was told of whom, by name: revision */
    int64_t now_ms;
    bool found;
};

static int64_t num(const json_t *j, const char *key)
{
    return json_integer_value(json_object_get(j, key));
}

static void set_time(json_t *to, const char *key, int64_t ms)
{
    char t[AMP_TIME_MAX];
    if (ms <= 0)
        return;
    amp_time_format(ms, t);
    json_object_set_new(to, key, json_string(t));
}

static int print_json(json_t *j, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, (size_t)64 << 20);
    int rc = j ? amp_json_dump(j, &b, err) : amp_fail_memory(err);
    json_decref(j);
    if (rc < 0 || amp_buf_str(&b, "\n", err) < 0)
        return -1;
    return amp_out(amp_buf_span(&b), err);
}

/* Columns of fixed widths: each row stands alone, also while following. */
static int print_row(const char *const *cells, const int *widths, int n, struct amp_error *err)
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

static json_t *agent_record(struct amp_span agent, uint8_t state, const json_t *rec, bool whole)
{
    const json_t *d = json_object_get(rec, "agent");
    json_t *j = json_pack(
        "{s:s%, s:s, s:s, s:s, s:s, s:O*, s:O*, s:I}", "agent_id", agent.p, agent.n, "reachability",
        amp_reach_fsm.states[state].name, "name", amp_json_str(d, "name"), "role",
        amp_json_str(rec, "role"), "communication_class", amp_json_str(d, "communication_class"),
        "capabilities", json_object_get(d, "capabilities"), "modalities_supported",
        json_object_get(d, "modalities_supported"), "missed_heartbeats", num(rec, "missed"));
    set_time(j, "joined", num(rec, "joined"));
    set_time(j, "last_seen", num(rec, "seen"));
    if (*amp_json_str(rec, "node"))
        json_object_set(j, "node_id", json_object_get(rec, "node"));
    if (*amp_json_str(rec, "said"))
        json_object_set(j, "state", json_object_get(rec, "said"));
    if (json_object_get(rec, "answers")) {
        json_object_set(j, "answer_ms", json_object_get(rec, "answer"));
        json_object_set(j, "answer_most_ms", json_object_get(rec, "answer_most"));
        json_object_set(j, "answers", json_object_get(rec, "answers"));
    }
    if (state == AMP_REACH_LEFT) {
        set_time(j, "left", num(rec, "left"));
        json_object_set(j, "reason", json_object_get(rec, "reason"));
    }
    if (whole) {
        json_object_set(j, "descriptor", json_object_get(rec, "agent"));
        json_object_set(j, "health", json_object_get(rec, "health"));
    }
    return j;
}

static const int agent_widths[] = {24, 12, 16, 12, 8, 10, 40};

static int agent_row(const struct listing *l, struct amp_span agent, uint8_t state,
                     const json_t *rec, struct amp_error *err)
{
    const json_t *d = json_object_get(rec, "agent"), *cap;
    char seen[24] = "", took[24] = "";
    size_t i;
    AMP_BUF struct amp_buf caps = {0};
    AMP_FREE char *name = amp_span_dup(agent);
    amp_buf_init(&caps, 1 << 20);
    json_array_foreach(json_object_get(d, "capabilities"), i, cap)
    {
        if (amp_buf_fmt(&caps, err, "%s%s", i > 0 ? "," : "", json_string_value(cap)) < 0)
            return -1;
    }
    snprintf(seen, sizeof seen, "%llds ago", (long long)(l->now_ms - num(rec, "seen")) / 1000);
    if (num(rec, "answers") > 0)
        snprintf(took, sizeof took, "%lldms", (long long)num(rec, "answer"));
    const char *cells[] = {name,
                           amp_reach_fsm.states[state].name,
                           amp_json_str(rec, "role"),
                           amp_json_str(d, "communication_class"),
                           took,
                           seen,
                           caps.len > 0 ? caps.data : ""};
    return print_row(cells, agent_widths, 7, err);
}

static bool has(const json_t *list, const char *word)
{
    size_t i;
    const json_t *x;
    json_array_foreach(list, i, x)
    {
        if (strcmp(json_string_value(x), word) == 0)
            return true;
    }
    return false;
}

static int one_agent(void *ctx, struct amp_span agent, uint8_t state, uint64_t rev,
                     const json_t *rec)
{
    struct listing *l = ctx;
    if (role && strcmp(role, amp_json_str(rec, "role")) != 0)
        return 0;
    if (capability &&
        !has(json_object_get(json_object_get(rec, "agent"), "capabilities"), capability))
        return 0;
    if (l->known) {
        AMP_FREE char *name = amp_span_dup(agent);
        const json_t *was = name ? json_object_get(l->known, name) : NULL;
        if (!name || (was && (uint64_t)json_integer_value(was) == rev))
            return 0;
        json_object_set_new(l->known, name, json_integer((json_int_t)rev));
        if (!was && state == AMP_REACH_LEFT && !all)
            return 0;
    } else if (state == AMP_REACH_LEFT && !all) {
        return 0;
    }
    l->rc = json ? print_json(agent_record(agent, state, rec, false), &l->err)
                 : agent_row(l, agent, state, rec, &l->err);
    return l->rc < 0;
}

static int list_look(struct listing *l, struct amp_error *err)
{
    l->now_ms = amp_now_ms();
    int rc = amp_directory_each(l->r.dir.store, one_agent, l, err);
    if (l->rc < 0)
        *err = l->err;
    return rc < 0 || l->rc < 0 ? -1 : 0;
}

/* Looks at once, and again whenever another process has written to the state. */
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

int reg_list(int argc, char **argv)
{
    static const char *const head[] = {"agent",  "reachability", "role",        "class",
                                       "answer", "seen",         "capabilities"};
    struct listing l = {0};
    struct amp_error err = {0};
    int status = 0;
    if (follow)
        l.known = json_object();
    int rc = reg_open(&l.r, NULL, true, &err);
    if (rc == 0 && !json)
        rc = print_row(head, agent_widths, 7, &err);
    if (rc == 0)
        rc = follow ? list_follow(&l, &err) : list_look(&l, &err);
    if (rc < 0)
        status = amp_complain(&err);
    json_decref(l.known);
    reg_close(&l.r);
    return status;
}

int reg_show(int argc, char **argv)
{
    struct registry r = {0};
    struct amp_error err = {0};
    int status = 0;
    if (argc == 0)
        amp_die_usage("which agent?");
    int rc = reg_open(&r, NULL, true, &err);
    for (int i = 0; i < argc && rc == 0; i++) {
        uint8_t state;
        json_t *rec = NULL;
        rc = amp_directory_find(r.dir.store, amp_span_str(argv[i]), &state, &rec, &err);
        if (rc == 0 && !rec) {
            struct amp_error none;
            amp_fail(&none, AMP_NO, "not_registered", "%s is not registered", argv[i]);
            amp_status_note(amp_complain(&none));
        } else if (rc == 0) {
            rc = print_json(agent_record(amp_span_str(argv[i]), state, rec, true), &err);
        }
        json_decref(rec);
    }
    if (rc < 0)
        status = amp_complain(&err);
    reg_close(&r);
    return status;
}

static const int cap_widths[] = {32, 12, 10, 24, 12, 8};

static int one_capability(void *ctx, struct amp_span id, const json_t *rec)
{
    struct listing *l = ctx;
    json_t *c = json_object_get(rec, "catalog");
    char eta[24];
    uint8_t state;
    if (!all && strcmp(amp_json_str(c, "status"), "disabled") == 0)
        return 0;
    l->found = true;
    if (json || index_only) {
        l->rc = print_json(json_incref(index_only ? json_object_get(rec, "index") : c), &l->err);
        return l->rc < 0;
    }
    AMP_FREE char *name = amp_span_dup(id);
    snprintf(eta, sizeof eta, "%llds", (long long)num(c, "defaultEtaSeconds"));
    l->rc = amp_directory_find(l->r.dir.store, amp_span_str(amp_json_str(c, "ownerAgentId")),
                               &state, NULL, &l->err);
    const char *cells[] = {name,
                           amp_json_str(c, "version"),
                           amp_json_str(c, "status"),
                           amp_json_str(c, "ownerAgentId"),
                           amp_reach_fsm.states[l->rc < 0 ? 0 : state].name,
                           eta};
    if (l->rc == 0)
        l->rc = print_row(cells, cap_widths, 6, &l->err);
    return l->rc < 0;
}

int reg_capabilities(int argc, char **argv)
{
    static const char *const head[] = {"capability", "version",      "status",
                                       "owner",      "reachability", "eta"};
    struct listing l = {0};
    struct amp_error err = {0};
    int status = 0;
    int rc = reg_open(&l.r, NULL, true, &err);
    if (rc == 0 && !json && !index_only)
        rc = print_row(head, cap_widths, 6, &err);
    if (rc == 0 && argc == 0)
        rc = amp_capability_each(l.r.dir.store, one_capability, &l, &err);
    all = all || argc > 0;
    for (int i = 0; i < argc && rc == 0 && l.rc == 0; i++) {
        json_t *rec = NULL;
        rc = amp_capability_find(l.r.dir.store, amp_span_str(argv[i]), &rec, &err);
        if (rc == 0 && rec)
            one_capability(&l, amp_span_str(argv[i]), rec);
        else if (rc == 0)
            rc = amp_fail(&err, AMP_NO, "capability_unknown", "%s was never published", argv[i]);
        json_decref(rec);
    }
    if (rc == 0 && l.rc < 0) {
        err = l.err;
        rc = -1;
    }
    if (rc < 0)
        status = amp_complain(&err);
    reg_close(&l.r);
    return status;
}
