/* The keys that the state directory trusts, and their revocations: as a list, and published to the
 * agents. */
#include <string.h>

#include <amp/base/clock.h>

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

struct key_row {
    struct amp_trust_entry e;
    const char *key, *type;
    struct amp_span namespaces, public;
    int64_t after_ms, before_ms;
};

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct key_row, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct key_row, key, head, member)
const struct amp_column reg_key_columns[] = {
    EVER(TEXT, "principals", "PRINCIPALS", e.principals),
    EVER(CSTR, "key", "KEY", key),
    EVER(CSTR, NULL, "TYPE", type),
    EVER(TEXT, "namespaces", NULL, namespaces),
    SOME(TIME, "valid_after", NULL, after_ms),
    SOME(TIME, "valid_before", "UNTIL", before_ms),
    SOME(TIME, "revoked_from", "REVOKED", e.revoked_ms),
    EVER(TEXT, "public_key", NULL, public),
    {0},
};

/* The row of a key, with its revocation; the key is in text. It has no secrets. */
static int row_make(const struct amp_trust_entry *e, struct amp_buf *text, struct key_row *out,
                    struct amp_error *err)
{
    *out = (struct key_row){.e = *e,
                            .key = e->key->fingerprint,
                            .type = e->key->type,
                            .namespaces = e->namespaces.n ? e->namespaces : AMP_SPAN("*"),
                            .after_ms = e->valid_after_s * 1000,
                            .before_ms = e->valid_before_s * 1000};
    if (amp_pubkey_write(e->key, NULL, text, err) < 0)
        return -1;
    out->public = amp_buf_span(text);
    return 0;
}

static int on_key_row(void *ctx, const struct amp_trust_entry *e, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {.max = 8192};
    struct key_row row;
    return row_make(e, &text, &row, err) < 0 ? -1 : amp_listing_row(ctx, &row, err);
}

int reg_keys_list(struct amp_listing *l, struct amp_error *err)
{
    AMP_CLEANUP(amp_auto_trust) struct amp_trust *trust = NULL;
    if (!reg_state)
        amp_die_no_state();
    return trust_open(&trust, err) < 0 ? -1 : amp_trust_each(trust, on_key_row, l, err);
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
    AMP_BUF struct amp_buf text = {.max = 8192}, line = {.max = 1 << 16};
    struct key_row row;
    if (row_make(e, &text, &row, err) < 0 || amp_view_line(reg_key_columns, &row, &line, err) < 0)
        return -1;
    json_t *j = amp_json_load(amp_buf_span(&line), err);
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
