/*
 * SW4RM 0.5.0: the rules about the envelope that a schema cannot express. Rules also run on lines
 * that violate their schema, so any field may be missing. Recommendations, and requirements that
 * the protocol's own examples violate, are warnings.
 */
#include <string.h>

#include "base/codes.h"
#include "message/protocol/sw4rm/sw4rm.h"

static const uint8_t hex_digit[256] = {['0' ... '9'] = 1, ['a' ... 'f'] = 1, ['A' ... 'F'] = 1};

/* Whether n bytes, a multiple of four, are hexadecimal digits. */
static inline bool is_hex(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned good = 1;
    for (size_t i = 0; i < n; i += 4)
        good &= hex_digit[p[i]] & hex_digit[p[i + 1]] & hex_digit[p[i + 2]] & hex_digit[p[i + 3]];
    return good;
}

/* 8-4-4-4-12 hexadecimal digits of version 4. */
static bool is_uuid4(struct amp_span id)
{
    const char *p = id.p;
    return id.n == 36 && p[8] == '-' && p[13] == '-' && p[18] == '-' && p[23] == '-' &&
           p[14] == '4' && memchr("89abAB", p[19], 6) && is_hex(p, 8) && is_hex(p + 9, 4) &&
           is_hex(p + 14, 4) && is_hex(p + 19, 4) && is_hex(p + 24, 12);
}

/* The protocol requires UUIDs, but its own examples have other ids: a warning. */
static void ids_check(struct amp_check *c)
{
    const struct {
        struct amp_span id;
        const char *pointer;
    } ids[] = {{c->v->id, "/message_id"}, {c->v->correlation, "/correlation_id"}};
    for (unsigned i = 0; i < AMP_SPEC_COUNT(ids); i++)
        if (ids[i].id.n > 0 && !is_uuid4(ids[i].id))
            amp_check_rule(c, AMP_SEV_WARNING, AMP_CODE(validation_error), "uuid", ids[i].pointer,
                           "a UUID of version 4", "is not a UUID of version 4");
}

/* Messages have one recipient; it is outside the envelope. */
static void recipient_check(struct amp_check *c)
{
    if (c->v->n_to > 1)
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(validation_error), "unicast", "/to",
                       "one recipient", "names %u recipients", c->v->n_to);
    else if (c->v->n_to == 1 && amp_span_is(c->v->to[0], "all"))
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(validation_error), "unicast", "/to",
                       "one recipient", "names everybody");
}

/* {producer_id}:{operation_type}:{deterministic_hash}; a producer_id may contain colons. */
static void token_check(struct amp_check *c)
{
    struct amp_span t = c->v->token;
    if (t.n == 0)
        return;
    if (memchr(t.p, '\n', t.n)) {
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(validation_error), "token", "/idempotency_token",
                       "a token on one line", "contains a line feed");
        return;
    }
    const char *hash = memrchr(t.p, ':', t.n);
    const char *operation = hash ? memrchr(t.p, ':', (size_t)(hash - t.p)) : NULL;
    if (!operation || operation == t.p || hash == operation + 1 || hash == t.p + t.n - 1)
        amp_check_rule(c, AMP_SEV_WARNING, AMP_CODE(validation_error), "token",
                       "/idempotency_token", "{producer_id}:{operation_type}:{hash}",
                       "does not have the recommended form");
}

static size_t digits_count(struct amp_span s, size_t from)
{
    size_t n = 0;
    while (from + n < s.n && s.p[from + n] >= '0' && s.p[from + n] <= '9')
        n++;
    return n;
}

/* "1725552000.000001.node-a": time, counter, node. */
static bool is_hlc(struct amp_span s)
{
    size_t time = digits_count(s, 0);
    if (time == 0 || time >= s.n || s.p[time] != '.')
        return false;
    size_t counter = digits_count(s, time + 1), node = time + 1 + counter;
    return counter > 0 && node + 1 < s.n && s.p[node] == '.';
}

static void hlc_check(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t tok = amp_tape_get(t, 0, AMP_SPAN("hlc_timestamp"));
    if (tok == AMP_TOK_NONE || (t->tok[tok].type == AMP_JSON_STRING && t->tok[tok].len == 0)) {
        if (c->opt->hlc)
            amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(validation_error),
                           tok == AMP_TOK_NONE ? "required" : "hlc", "/hlc_timestamp",
                           "time, counter and node, such as 1725552000.000001.node-a",
                           "%s, and hybrid logical clocks are on",
                           tok == AMP_TOK_NONE ? "is missing" : "is empty");
        return;
    }
    if (t->tok[tok].type != AMP_JSON_STRING || is_hlc(amp_tok_raw(t, tok)))
        return;
    amp_check_rule(c, c->opt->hlc ? AMP_SEV_ERROR : AMP_SEV_WARNING, AMP_CODE(validation_error),
                   "hlc", "/hlc_timestamp",
                   "time, counter and node, such as 1725552000.000001.node-a",
                   "is not a hybrid logical clock");
}

static void expiry_check(struct amp_check *c)
{
    if (c->opt->now_ms > 0 && c->v->expires_ms > 0 && c->v->expires_ms <= c->opt->now_ms)
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(ttl_expired), "ttl", "/ttl_ms",
                       "a message that has not expired", "has expired");
}

void amp_sw4rm_rules(struct amp_check *c)
{
    recipient_check(c);
    ids_check(c);
    token_check(c);
    hlc_check(c);
    expiry_check(c);
    amp_sw4rm_content_rules(c);
    amp_sw4rm_payload_rules(c);
}
