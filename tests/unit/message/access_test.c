/* Access rules: what matches, and which rule decides. */
#include "message/identity/access/rules.h"

#include "../tap.h"

static struct amp_error err;

static struct amp_access *rules_of(const char *const *rules)
{
    struct amp_access *a = amp_access_new(&err);
    for (; *rules; rules++)
        if (amp_access_add(a, amp_span_str(*rules), &err) < 0)
            printf("# %s\n", err.what);
    return a;
}

struct cell {
    const char *name;
    const char *rules[4];
    const char *type, *sender, *to[3], *tool, *scope[3];
    bool denied;
    uint32_t rule;
};

static const struct cell cells[] = {
    {"no rule: the default", {NULL}, "t", "s", {"r"}, NULL, {NULL}, false, 0},
    {"a rule that allows", {"{\"effect\":\"allow\"}"}, "t", "s", {"r"}, NULL, {NULL}, false, 1},
    {"a rule that denies all", {"{\"effect\":\"deny\"}"}, "", "", {NULL}, NULL, {NULL}, true, 1},
    {"deny after allow",
     {"{\"effect\":\"allow\"}", "{\"effect\":\"deny\",\"type\":\"t*\"}"},
     "task",
     "s",
     {"r"},
     NULL,
     {NULL},
     true,
     2},
    {"deny before allow",
     {"{\"effect\":\"deny\",\"sender\":\"s?\"}", "{\"effect\":\"allow\"}"},
     "t",
     "s1",
     {"r"},
     NULL,
     {NULL},
     true,
     1},
    {"one of the recipients is denied",
     {"{\"effect\":\"deny\",\"recipient\":\"bob\"}"},
     "t",
     "s",
     {"ann", "bob"},
     NULL,
     {NULL},
     true,
     1},
    {"a recipient pattern needs a recipient",
     {"{\"effect\":\"deny\",\"recipient\":\"*\"}"},
     "t",
     "s",
     {NULL},
     NULL,
     {NULL},
     false,
     0},
    {"a tool pattern needs a tool",
     {"{\"effect\":\"deny\",\"tool\":\"*\"}"},
     "t",
     "s",
     {"r"},
     NULL,
     {NULL},
     false,
     0},
    {"a tool", {"{\"effect\":\"deny\",\"tool\":\"sh*\"}"}, "t", "s", {"r"}, "sh", {NULL}, true, 1},
    {"deny: any scope",
     {"{\"effect\":\"deny\",\"scope\":\"branch:x*\"}"},
     "t",
     "s",
     {"r"},
     NULL,
     {"repo:/r", "branch:x1"},
     true,
     1},
    {"allow: all scopes",
     {"{\"effect\":\"allow\",\"scope\":\"branch:*\"}"},
     "t",
     "s",
     {"r"},
     NULL,
     {"repo:/r", "branch:x1"},
     false,
     0},
    {"all patterns must match",
     {"{\"effect\":\"deny\",\"type\":\"t\",\"sender\":\"other\"}"},
     "t",
     "s",
     {"r"},
     NULL,
     {NULL},
     false,
     0},
};

static struct amp_access_decision decide(const struct amp_access *a, const struct cell *c)
{
    struct amp_span to[3], scope[3];
    struct amp_access_facts f = {.type = amp_span_str(c->type),
                                 .sender = amp_span_str(c->sender),
                                 .tool = amp_span_str(c->tool),
                                 .recipients = to,
                                 .scopes = scope};
    while (f.n_recipients < 3 && c->to[f.n_recipients]) {
        to[f.n_recipients] = amp_span_str(c->to[f.n_recipients]);
        f.n_recipients++;
    }
    while (f.n_scopes < 3 && c->scope[f.n_scopes]) {
        scope[f.n_scopes] = amp_span_str(c->scope[f.n_scopes]);
        f.n_scopes++;
    }
    return amp_access_decide(a, &f);
}

static void malformed(const char *rule)
{
    struct amp_access *a = amp_access_new(&err);
    TAP_OK(amp_access_add(a, amp_span_str(rule), &err) < 0 && err.status == AMP_CONFIG &&
               strcmp(err.code, "bad_access_rule") == 0 && amp_access_count(a) == 0,
           "refused: %s", rule);
    amp_access_free(a);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        struct amp_access *a = rules_of(cells[i].rules);
        struct amp_access_decision d = decide(a, &cells[i]);
        TAP_OK((d.effect == AMP_ACCESS_DENY) == cells[i].denied && d.rule == cells[i].rule, "%s",
               cells[i].name);
        /* With the default deny, only a rule that allows admits. */
        amp_access_set_default(a, AMP_ACCESS_DENY);
        d = decide(a, &cells[i]);
        TAP_OK((d.effect == AMP_ACCESS_DENY) == (cells[i].denied || !cells[i].rule),
               "%s, default deny", cells[i].name);
        amp_access_free(a);
    }
    malformed("[]");
    malformed("{}");
    malformed("{\"effect\":\"maybe\"}");
    malformed("{\"effect\":\"deny\",\"type\":1}");
    malformed("{\"effect\":\"deny\",\"type\":\"\"}");
    malformed("{\"effect\":\"deny\",\"sender\":\"a\\u0000b\"}");
    malformed("{\"effect\":\"deny\",\"who\":\"x\"}");
    malformed("{\"effect\":\"deny\"");
    return tap_done();
}
