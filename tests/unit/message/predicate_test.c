/* Predicates: what parses, what does not, and what a glob takes. */
#include "../tap.h"
#include "message/route/rules/predicate.h"

static struct amp_span to[] = {{"executor", 8}, {"reviewer", 8}};
static const struct amp_view view = {
    .protocol = AMP_PROTO_AMP,
    .kind = AMP_KIND_DISPATCH,
    .type = {"task_dispatch", 13},
    .id = {"a,b", 3},
    .from = {"coordinator", 11},
    .task = {"T-2026-044", 10},
    .correlation = {"flow-7", 6},
    .node = {"vps", 3},
    .has_sequence = true,
    .to = to,
    .n_to = 2,
    .priority = -5,
};

static void holds(const char *text, int want)
{
    struct amp_predicate *p;
    struct amp_error err;
    int got = amp_predicate_parse(amp_span_str(text), &p, &err);
    if (got == 0) {
        got = amp_predicate_match(p, &view);
        amp_predicate_free(p);
    } else if (strcmp(err.code, "bad_predicate") != 0 || err.status != AMP_USAGE) {
        got = -2;
    }
    TAP_INT(got, want, text);
}

static void splits(const char *text, const char *left, const char *right)
{
    struct amp_span p, port;
    struct amp_error err;
    if (amp_route_split(amp_span_str(text), &p, &port, &err) < 0) {
        TAP_OK(!left && strcmp(err.code, "bad_route") == 0, "%s", text);
        return;
    }
    TAP_OK(left && amp_span_is(p, left) && amp_span_is(port, right), "%s", text);
}

int main(void)
{
    holds("*", 1);
    holds(" * ", 1);
    holds("to=executor", 1);
    holds("correlation=flow-*", 1);
    holds("correlation=flow", 0);
    holds("source=vps|mbp", 1);
    holds("source=mbp", 0);
    holds("to=reviewer", 1);
    holds("to=admin", 0);
    holds("to!=admin", 1);
    holds("to!=executor", 0);
    holds("to=*", 1);
    holds("to=admin|rev*", 1);
    holds("to!=admin|rev*", 0);
    holds("from=coord*,type=task_?ispatch", 1);
    holds("from = coord* , type = x", 0);
    holds("id=a\\,b", 1);
    holds("id=a", 0);
    holds("task=T-2026-*", 1);
    holds("kind=dispatch", 1);
    holds("protocol=amp", 1);
    holds("priority=-5", 1);
    holds("priority=0", 0);
    holds("severity=*", 0);
    holds("severity!=*", 1);
    holds("decision!=rejected", 1);
    holds("", -1);
    holds("to", -1);
    holds("=x", -1);
    holds("!=x", -1);
    holds("to=", -1);
    holds("to=a|", -1);
    holds("to=a,", -1);
    holds(",to=a", -1);
    holds("TO=a", -1);
    holds("jq:", -1);

    splits("to=a => stdout", "to=a", "stdout");
    splits("to=a=>stdout", "to=a", "stdout");
    splits("jq:\"=>\" | . => file:x y ", "jq:\"=>\" | .", "file:x y");
    splits("to=a", NULL, NULL);
    splits("to=a =>", NULL, NULL);
    splits("", NULL, NULL);

    struct amp_predicate *p;
    TAP_INT(amp_predicate_parse(AMP_SPAN("jq: .a == 1 "), &p, NULL), 0, "a jq predicate");
    TAP_STR(amp_predicate_jq(p), ".a == 1", "its expression");
    amp_predicate_free(p);
    return tap_done();
}
