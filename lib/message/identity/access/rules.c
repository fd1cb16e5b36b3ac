/* Access rules. */
#include "message/identity/access/rules.h"

#include <stdlib.h>
#include <string.h>

#include <amp/json/tape.h>

#include "base/codes.h"

enum { TYPE, SENDER, RECIPIENT, TOOL, SCOPE, PATTERNS };
static const char *const pattern_names[PATTERNS] = {"type", "sender", "recipient", "tool", "scope"};

struct access_rule {
    enum amp_access_effect effect;
    char *pattern[PATTERNS]; /* NULL: any */
};

struct amp_access {
    enum amp_access_effect fallback;
    uint32_t n;
    struct access_rule rule[AMP_ACCESS_RULES_MAX];
};

struct amp_access *amp_access_new(struct amp_error *err)
{
    struct amp_access *a = calloc(1, sizeof *a);
    if (!a)
        amp_fail_memory(err);
    return a;
}

static void rule_release(struct access_rule *r)
{
    for (int i = 0; i < PATTERNS; i++)
        free(r->pattern[i]);
    *r = (struct access_rule){0};
}

void amp_access_free(struct amp_access *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; i < a->n; i++)
        rule_release(&a->rule[i]);
    free(a);
}

void amp_access_set_default(struct amp_access *a, enum amp_access_effect e)
{
    a->fallback = e;
}

uint32_t amp_access_count(const struct amp_access *a)
{
    return a->n;
}

static int member_index(const struct amp_tape *t, uint32_t key)
{
    for (int i = 0; i < PATTERNS; i++)
        if (amp_tok_is(t, key, amp_span_str(pattern_names[i])))
            return i;
    return -1;
}

static int effect_read(const struct amp_tape *t, uint32_t tok, enum amp_access_effect *out)
{
    if (amp_tok_is(t, tok, AMP_SPAN("allow")))
        *out = AMP_ACCESS_ALLOW;
    else if (amp_tok_is(t, tok, AMP_SPAN("deny")))
        *out = AMP_ACCESS_DENY;
    else
        return -1;
    return 0;
}

static int pattern_read(const struct amp_tape *t, uint32_t tok, char **out, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_span text;
    amp_buf_init(&mem, 8 * AMP_ACCESS_PATTERN_MAX);
    if (t->tok[tok].type != AMP_JSON_STRING || t->tok[tok].flags & AMP_TOK_NUL ||
        amp_tok_text(t, tok, &mem, &text, NULL) < 0 || text.n == 0 ||
        text.n > AMP_ACCESS_PATTERN_MAX)
        return amp_fail(err, AMP_CONFIG, bad_access_rule,
                        "a pattern of an access rule is a string of 1 to %d bytes",
                        AMP_ACCESS_PATTERN_MAX);
    free(*out);
    *out = amp_span_dup(text);
    return *out ? 0 : amp_fail_memory(err);
}

static int rule_read(const struct amp_tape *t, struct access_rule *r, struct amp_error *err)
{
    bool has_effect = false;
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_CONFIG, bad_access_rule, "an access rule is an object");
    for (uint32_t key = 1; key < t->tok[0].next; key = t->tok[key + 1].next) {
        int i = member_index(t, key);
        if (i >= 0) {
            if (pattern_read(t, key + 1, &r->pattern[i], err) < 0)
                return -1;
            continue;
        }
        if (!amp_tok_is(t, key, AMP_SPAN("effect")))
            return amp_fail(err, AMP_CONFIG, bad_access_rule,
                            "an access rule has effect, type, sender, recipient, tool and scope");
        if (effect_read(t, key + 1, &r->effect) < 0)
            return amp_fail(err, AMP_CONFIG, bad_access_rule,
                            "the effect of an access rule is allow or deny");
        has_effect = true;
    }
    return has_effect ? 0
                      : amp_fail(err, AMP_CONFIG, bad_access_rule, "an access rule has no effect");
}

int amp_access_add(struct amp_access *a, struct amp_span json, struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    struct access_rule r = {0};
    if (a->n == AMP_ACCESS_RULES_MAX)
        return amp_fail(err, AMP_CONFIG, bad_access_rule, "there are more than %d access rules",
                        AMP_ACCESS_RULES_MAX);
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, json.p, json.n, &fault) < 0)
        return amp_json_fail(err, AMP_CONFIG, AMP_CODE(bad_access_rule),
                             "an access rule is not JSON", &fault);
    if (rule_read(&t, &r, err) < 0) {
        rule_release(&r);
        return -1;
    }
    a->rule[a->n++] = r;
    return 0;
}

static bool one_matches(const char *pattern, struct amp_span text)
{
    return !pattern || (text.n > 0 && amp_span_glob(text, amp_span_str(pattern)));
}

static bool scopes_match(const struct access_rule *r, const struct amp_access_facts *f)
{
    uint32_t hits = 0;
    if (!r->pattern[SCOPE])
        return true;
    for (uint32_t i = 0; i < f->n_scopes; i++)
        hits += one_matches(r->pattern[SCOPE], f->scopes[i]);
    return hits > 0 && (r->effect == AMP_ACCESS_DENY || hits == f->n_scopes);
}

static bool rule_matches(const struct access_rule *r, const struct amp_access_facts *f,
                         struct amp_span recipient)
{
    return one_matches(r->pattern[TYPE], f->type) && one_matches(r->pattern[SENDER], f->sender) &&
           one_matches(r->pattern[RECIPIENT], recipient) &&
           one_matches(r->pattern[TOOL], f->tool) && scopes_match(r, f);
}

static struct amp_access_decision
decide_for(const struct amp_access *a, const struct amp_access_facts *f, struct amp_span recipient)
{
    struct amp_access_decision d = {.effect = a->fallback, .recipient = recipient};
    for (uint32_t i = 0; i < a->n; i++) {
        const struct access_rule *r = &a->rule[i];
        if ((r->effect == AMP_ACCESS_ALLOW && d.rule) || !rule_matches(r, f, recipient))
            continue;
        d.effect = r->effect;
        d.rule = i + 1;
        if (r->effect == AMP_ACCESS_DENY)
            break;
    }
    return d;
}

struct amp_access_decision amp_access_decide(const struct amp_access *a,
                                             const struct amp_access_facts *f)
{
    struct amp_access_decision d =
        decide_for(a, f, f->n_recipients ? f->recipients[0] : AMP_SPAN(""));
    for (uint32_t i = 1; i < f->n_recipients && d.effect == AMP_ACCESS_ALLOW; i++)
        d = decide_for(a, f, f->recipients[i]);
    return d;
}
