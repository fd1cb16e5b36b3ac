/* The keys that the state directory trusts, and their revocations: as a list, and published to the
 * agents. */
#include <string.h>

#include <amp/base/clock.h>

#include "cli/table.h"
#include "message/delivery/sender/identity.h"
#include "registry.h"

struct amp_identity_cli reg_identity = AMP_IDENTITY_CLI;

/* The trust of the state; findings are printed. */
static void finding_warn(void *ctx, const struct amp_trust_finding *f)
{
    (void)ctx;
    amp_warn("%s:%u: %s: %s; the line is ignored", f->path, f->line, f->code, f->what);
}

static int trust_open(struct amp_trust **out, struct amp_error *err)
{
    return amp_state_trust(reg_state, reg_identity.allowed_signers, finding_warn, NULL, out, err);
}

/* One key as JSON, with its revocation. It has no secrets. */
static json_t *key_json(const struct amp_trust_entry *e, struct amp_error *err)
{
    char after[AMP_TIME_MAX] = "", before[AMP_TIME_MAX] = "", revoked[AMP_TIME_MAX] = "";
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, 8192);
    if (amp_pubkey_write(e->key, NULL, &text, err) < 0)
        return NULL;
    if (e->valid_after_s > 0)
        amp_time_format(e->valid_after_s * 1000, after);
    if (e->valid_before_s > 0)
        amp_time_format(e->valid_before_s * 1000, before);
    if (e->revoked_ms != 0)
        amp_time_format(e->revoked_ms, revoked);
    json_t *j = json_pack("{s:s, s:s%, s:s%, s:s*, s:s*, s:s*, s:s}", "key", e->key->fingerprint,
                          "principals", e->principals.p, e->principals.n, "namespaces",
                          e->namespaces.n > 0 ? e->namespaces.p : "*",
                          e->namespaces.n > 0 ? e->namespaces.n : (size_t)1, "valid_after",
                          *after ? after : NULL, "valid_before", *before ? before : NULL,
                          "revoked_from", *revoked ? revoked : NULL, "public_key", text.data);
    if (!j)
        amp_fail_memory(err);
    return j;
}

static int on_key_json(void *ctx, const struct amp_trust_entry *e, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    json_auto_t *j = key_json(e, err);
    (void)ctx;
    amp_buf_init(&line, 1 << 16);
    if (!j || amp_json_line(j, &line, err) < 0)
        return -1;
    return amp_out(amp_buf_span(&line), err);
}

static int on_key_row(void *ctx, const struct amp_trust_entry *e, struct amp_error *err)
{
    char until[AMP_TIME_MAX] = "-", revoked[AMP_TIME_MAX] = "-";
    if (e->valid_before_s > 0)
        amp_time_format(e->valid_before_s * 1000, until);
    if (e->revoked_ms != 0)
        amp_time_format(e->revoked_ms, revoked);
    const struct amp_span cells[] = {e->principals, amp_span_str(e->key->fingerprint),
                                     amp_span_str(e->key->type), amp_span_str(until),
                                     amp_span_str(revoked)};
    return amp_table_row(ctx, cells, 5, err);
}

int reg_keys_list(bool json, struct amp_error *err)
{
    static const char *const head[] = {"PRINCIPALS", "KEY", "TYPE", "UNTIL", "REVOKED"};
    AMP_CLEANUP(amp_auto_trust) struct amp_trust *trust = NULL;
    struct amp_table table;
    if (!reg_state)
        amp_die_no_state();
    if (trust_open(&trust, err) < 0)
        return -1;
    if (json)
        return amp_trust_each(trust, on_key_json, NULL, err);
    amp_table_init(&table, head, 5);
    int rc = amp_trust_each(trust, on_key_row, &table, err);
    if (rc == 0)
        rc = amp_table_print(&table, err);
    amp_table_release(&table);
    return rc;
}

/* Publishes by a NOTIFICATION to each agent that is registered and answers. */

struct publishing {
    struct registry *r;
    struct amp_identities *ids;
    json_t *keys;
    int64_t now_ms;
};

static int on_key_publish(void *ctx, const struct amp_trust_entry *e, struct amp_error *err)
{
    json_t *j = key_json(e, err);
    return j && json_array_append_new(ctx, j) == 0 ? 0 : j ? amp_fail_memory(err) : -1;
}

static int on_agent_publish(void *ctx, struct amp_span agent, const struct amp_agent_rec *rec,
                            struct amp_error *err)
{
    struct publishing *p = ctx;
    if (rec->reach.state != AMP_REACH_REACHABLE && rec->reach.state != AMP_REACH_LATE)
        return 0;
    char id[AMP_UUID_MAX];
    AMP_BUF struct amp_buf line = {0};
    const struct amp_sw4rm_say say = {.type = "NOTIFICATION", .to = agent, .now_ms = p->now_ms};
    amp_buf_init(&line, (size_t)32 << 20);
    json_t *payload = json_pack("{s:s, s:O}", "event", "keys_published", "keys", p->keys);
    if (!payload)
        return amp_fail_memory(err);
    if (amp_voice_sw4rm(&p->r->dir.voice, &say, payload, &line, id, err) < 0)
        return -1;
    int rc = p->ids ? amp_identities_sign(p->ids, amp_buf_span(&line), &p->r->turn, err)
                    : amp_buf_add(&p->r->turn, line.data, line.len, err);
    return rc < 0 ? -1 : amp_buf_str(&p->r->turn, "\n", err);
}

int reg_keys_publish(struct registry *r, struct amp_error *err)
{
    AMP_CLEANUP(amp_auto_trust) struct amp_trust *trust = NULL;
    json_auto_t *keys = json_array();
    struct publishing p = {.r = r, .keys = keys, .now_ms = amp_now_ms()};
    const struct amp_identity_tool tool = {
        .state = reg_state, .config = reg_config, .principal = r->name};
    if (!keys)
        return amp_fail_memory(err);
    if (trust_open(&trust, err) < 0 || amp_trust_each(trust, on_key_publish, keys, err) < 0 ||
        amp_identity_cli_open(&reg_identity, &tool, &p.ids, err) < 0)
        return -1;
    int rc = amp_agent_records(r->dir.store, on_agent_publish, &p, err);
    amp_identities_close(p.ids);
    return rc;
}
