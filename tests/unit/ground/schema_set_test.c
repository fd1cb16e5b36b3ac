/* Schemas of one set: what they share, and that folding one leaves the others as they are. */
#include <string.h>

#include <amp/schema/output.h>
#include <amp/schema/schema.h>

#include "../tap.h"

static const struct {
    const char *uri, *text;
} documents[] = {
    {"t:/common", "{\"$defs\":{"
                  "\"id\":{\"type\":\"string\",\"pattern\":\"^[a-z]+$\"},"
                  "\"count\":{\"enum\":[1,2]},"
                  "\"part\":{\"$id\":\"t:/part\",\"$defs\":{\"x\":{\"type\":\"null\"}},"
                  "\"properties\":{\"x\":{\"$ref\":\"#/$defs/x\"}}},"
                  "\"tree\":{\"properties\":{\"id\":{\"$ref\":\"#/$defs/id\"},"
                  "\"next\":{\"$ref\":\"#/$defs/tree\"}}}}}"},
    {"t:/a", "{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{"
             "\"id\":{\"$ref\":\"common#/$defs/id\"},\"n\":{\"$ref\":\"common#/$defs/count\"}}}"},
    {"t:/b", "{\"type\":\"object\",\"properties\":{\"id\":{\"$ref\":\"common#/$defs/id\"},"
             "\"tree\":{\"$ref\":\"common#/$defs/tree\"},\"part\":{\"$ref\":\"t:/part\"}}}"},
    {"t:/c", "{\"$ref\":\"a\",\"properties\":{\"part\":{\"$ref\":\"common#/$defs/part\"}}}"},
    {"t:/dynamic", "{\"$dynamicAnchor\":\"me\",\"items\":{\"$dynamicRef\":\"#me\"}}"},
    {"t:/nowhere", "{\"$ref\":\"common#/$defs/missing\"}"},
    {"t:/broken", "{\"type\":5}"},
};

static int find(void *ctx, struct amp_span uri, struct amp_span *text)
{
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++)
        if (amp_span_is(uri, documents[i].uri)) {
            *text = amp_span_str(documents[i].text);
            return 0;
        }
    return -1;
}

static struct amp_schema_run *run;
static struct amp_tape tape;

static int check(const struct amp_schema *s, const char *line)
{
    struct amp_json_fault fault;
    struct amp_error err;
    if (!s || amp_tape_scan(&tape, line, strlen(line), &fault))
        return -2;
    return amp_schema_check(s, run, &tape, 0, &err);
}

static void count(void *ctx, const struct amp_violation *v)
{
    int *n = ctx;
    *n += v->schema_at.n > 0;
}

static int explain(struct amp_schema *s, const char *line)
{
    struct amp_json_fault fault;
    struct amp_error err;
    int n = 0;
    if (amp_tape_scan(&tape, line, strlen(line), &fault) || amp_schema_unfold(s, &err))
        return -2;
    return amp_schema_explain(s, run, &tape, 0, 0, count, &n, &err) == n ? n : -1;
}

static struct amp_schema_set *fresh(void)
{
    struct amp_error err;
    const struct amp_schema_options opt = {.resolve = find, .lasting = true, .formats = true};
    return amp_schema_set_new(&opt, &err);
}

static struct amp_schema *get(struct amp_schema_set *set, const char *uri)
{
    struct amp_error err;
    return amp_schema_set_get(set, amp_span_str(uri), &err);
}

/* In each order, and folded at once or only later, the verdicts are the same. */
static void shared(const char *const order[3], bool fold)
{
    struct amp_schema_set *set = fresh();
    struct amp_schema *s[128] = {0};
    for (int i = 0; i < 3; i++) {
        int name = order[i][strlen(order[i]) - 1];
        s[name] = get(set, order[i]);
        if (fold && s[name])
            amp_schema_fold(s[name]);
    }
    for (int round = 0; round < 3; round++) {
        TAP_INT(check(s['a'], "{\"id\":\"x\",\"n\":2}"), 1, "a holds");
        TAP_INT(check(s['a'], "{\"id\":\"x\",\"n\":3}"), 0, "a: an enum of another document");
        TAP_INT(check(s['b'], "{\"id\":\"x\",\"tree\":{\"next\":{\"next\":{\"id\":\"y\"}}}}"), 1,
                "b holds");
        TAP_INT(check(s['b'], "{\"tree\":{\"next\":{\"next\":{\"id\":\"Y\"}}}}"), 0,
                "b: a pattern below itself");
        TAP_INT(check(s['c'], "{\"id\":\"x\",\"part\":{\"x\":null}}"), 1, "c holds");
        TAP_INT(check(s['c'], "{\"id\":\"x\",\"part\":{\"x\":1}}"), 0,
                "c: a resource inside of another document");
        TAP_INT(explain(s['c'], "{\"n\":3,\"part\":{\"x\":1}}"), 3, "c: three violations");
        if (round)
            amp_schema_fold(s['c']);
        TAP_INT(explain(s['a'], "{\"id\":1,\"n\":3}"), 2, "a: two violations");
        amp_schema_fold(s['a']);
        amp_schema_fold(s['a']);
        TAP_INT(explain(s['b'], "{\"id\":1,\"part\":{\"x\":1}}"), 2, "b: two violations");
        amp_schema_fold(s['b']);
    }
    TAP_OK(s['a'] == get(set, "t:/a"), "the same schema, asked for again");
    amp_schema_set_free(set);
}

static void refused(const char *uri, const char *code)
{
    struct amp_error err = {0}, again = {0};
    struct amp_schema_set *set = fresh();
    TAP_OK(get(set, "t:/a") != NULL, "a good schema");
    TAP_OK(!amp_schema_set_get(set, amp_span_str(uri), &err), "%s is refused", uri);
    TAP_STR(err.code, code, uri);
    TAP_OK(!amp_schema_set_get(set, AMP_SPAN("t:/b"), &again), "nothing is compiled after it");
    TAP_STR(again.what, err.what, "and the first error is the reason");
    amp_schema_set_free(set);
}

int main(void)
{
    static const char *const orders[][3] = {
        {"t:/a", "t:/b", "t:/c"}, {"t:/c", "t:/b", "t:/a"}, {"t:/b", "t:/c", "t:/a"}};
    struct amp_error err;
    amp_tape_init(&tape, NULL);
    run = amp_schema_run_new(&err);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        shared(orders[i], false);
        shared(orders[i], true);
    }
    refused("t:/dynamic", "invalid_schema");
    refused("t:/nowhere", "unresolved_ref");
    refused("t:/broken", "invalid_schema");
    refused("t:/absent", "unresolved_ref");
    amp_schema_set_free(NULL);
    amp_schema_run_free(run);
    amp_tape_release(&tape);
    return tap_done();
}
