/* The table of routes, and the worker that evaluates its jq predicates. */
#include "message/route/rules/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/port/helper.h"

/* One table; the index of a rule is its bit in a parcel's `hit`. */
struct table {
    struct rule v[RULES_MAX];
    uint32_t n;
    const char *filters[RULES_MAX + 1];
    int n_filters;
    struct amp_helper *jq; /* or NULL */
};

struct amp_rules {
    bool all;
    int64_t limit_ms;
    const volatile int *stop;
    struct table *now, *next; /* next: being built */
    uint32_t era;
};

static void table_free(struct table *t)
{
    if (!t)
        return;
    amp_helper_free(t->jq);
    for (uint32_t i = 0; i < t->n; i++) {
        amp_predicate_free(t->v[i].predicate);
        free(t->v[i].text);
    }
    free(t);
}

int amp_rules_new(bool all, int64_t limit_ms, const volatile int *stop, struct amp_rules **out,
                  struct amp_error *err)
{
    struct amp_rules *r = calloc(1, sizeof(*r));
    if (!r)
        return amp_fail_memory(err);
    *r = (struct amp_rules){.all = all, .limit_ms = limit_ms, .stop = stop};
    if (!(r->now = calloc(1, sizeof(*r->now)))) {
        free(r);
        return amp_fail_memory(err);
    }
    *out = r;
    return 0;
}

void amp_rules_free(struct amp_rules *r)
{
    if (!r)
        return;
    table_free(r->now);
    table_free(r->next);
    free(r);
}

int amp_rules_begin(struct amp_rules *r, struct amp_error *err)
{
    table_free(r->next);
    r->next = calloc(1, sizeof(*r->next));
    return r->next ? 0 : amp_fail_memory(err);
}

int amp_rules_add(struct amp_rules *r, struct amp_span predicate, struct rule **out,
                  struct amp_error *err)
{
    struct table *t = r->next;
    if (t->n == RULES_MAX)
        return amp_fail(err, AMP_USAGE, too_many, "more than %d routes", RULES_MAX);
    struct rule *rule = &t->v[t->n];
    if (amp_predicate_parse(predicate, &rule->predicate, err) < 0)
        return -1;
    t->n++;
    rule->text = amp_span_dup(predicate);
    if (!rule->text)
        return amp_fail_memory(err);
    *out = rule;
    return 0;
}

static int worker_start(struct amp_rules *r, struct table *t, struct amp_error *err)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const char *expr = amp_predicate_jq(t->v[i].predicate);
        t->v[i].filter = -1;
        if (!expr)
            continue;
        t->v[i].filter = t->n_filters;
        t->filters[t->n_filters++] = expr;
    }
    if (t->n_filters == 0)
        return 0;
    struct amp_helper_options opt = {
        .name = "jq-worker", .args = t->filters, .limit_ms = r->limit_ms, .stop = r->stop};
    if (amp_helper_new(&opt, &t->jq, err) < 0)
        return -1;
    return amp_helper_probe(t->jq, err);
}

int amp_rules_start(struct amp_rules *r, struct amp_error *err)
{
    if (worker_start(r, r->next, err) < 0)
        return -1;
    table_free(r->now);
    r->now = r->next;
    r->next = NULL;
    r->era++;
    return 0;
}

uint32_t amp_rules_era(const struct amp_rules *r)
{
    return r->era;
}

uint32_t amp_rules_n(const struct amp_rules *r)
{
    return r->now->n;
}

const struct rule *amp_rules_at(const struct amp_rules *r, uint32_t i)
{
    return &r->now->v[i];
}

bool amp_rules_hold(const struct parcel *j, uint32_t i)
{
    return j->hit[i / 64] >> (i % 64) & 1;
}

const struct rule *amp_rules_next(const struct amp_rules *r, const struct parcel *j, uint32_t *i)
{
    while (*i < r->now->n) {
        uint32_t at = (*i)++;
        if (!amp_rules_hold(j, at))
            continue;
        if (!r->all)
            *i = r->now->n;
        return &r->now->v[at];
    }
    return NULL;
}

static void hit_set(struct parcel *j, uint32_t rule)
{
    j->hit[rule / 64] |= 1ull << (rule % 64);
}

void amp_rules_match(const struct amp_rules *r, struct parcel *j, const struct amp_view *v)
{
    const struct table *t = r->now;
    memset(j->hit, 0, sizeof(j->hit));
    j->era = r->era;
    j->stage = PARCEL_DECIDED;
    j->ask_from = t->n;
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->v[i].filter >= 0) {
            if (j->ask_from == t->n)
                j->ask_from = i;
            j->stage = PARCEL_ASK;
        } else if (amp_predicate_match(t->v[i].predicate, v)) {
            hit_set(j, i);
            if (!r->all)
                return;
        }
    }
}

/* jq rules from this index on do not count: a native rule before them holds. */
static uint32_t ask_until(const struct amp_rules *r, const struct parcel *j)
{
    const struct table *t = r->now;
    if (r->all)
        return t->n;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->v[i].filter < 0 && amp_rules_hold(j, i))
            return i;
    return t->n;
}

enum amp_rules_asked amp_rules_ask(struct amp_rules *r, struct parcel *j)
{
    const struct table *t = r->now;
    AMP_BUF struct amp_buf b = {0};
    struct amp_jw w;
    amp_buf_init(&b, (size_t)40 << 20);
    amp_jw_init(&w, &b);
    amp_jw_member_open(&w, "f", '[');
    for (uint32_t i = j->ask_from, end = ask_until(r, j); i < end; i++)
        if (t->v[i].filter >= 0)
            amp_jw_int(&w, t->v[i].filter);
    amp_jw_close(&w, ']');
    amp_jw_member_raw(&w, "m", j->text ? amp_span_str(j->text) : (struct amp_span){j->line, j->n});
    struct amp_error err;
    int rc = amp_jw_end(&w, &err);
    if (rc == 0)
        rc = amp_helper_ask(t->jq, (uintptr_t)j, amp_buf_span(&b), &err);
    if (rc < 0) {
        j->stage = PARCEL_DECIDED;
        amp_parcel_refuse(j, AMP_CODE(predicate_error), err.what, "jq", false);
    } else if (rc == AMP_HELPER_ASKED) {
        j->stage = PARCEL_ASKED;
    }
    return rc == AMP_HELPER_FULL ? AMP_RULES_LATER : AMP_RULES_ASKED;
}

static void parcel_fail(struct parcel *j, struct amp_span what)
{
    char why[sizeof(j->why)];
    snprintf(why, sizeof(why), "%.*s", AMP_CLIP(what, 150));
    amp_parcel_refuse(j, AMP_CODE(predicate_error), why, "jq", false);
}

/* Sets the rules that the list of results has as true; a text is the error of its predicate. */
static void results_read(const struct amp_rules *r, struct parcel *j, struct amp_tape *t,
                         uint32_t list)
{
    uint32_t tok = list + 1;
    for (uint32_t i = j->ask_from, end = ask_until(r, j); i < end && !j->refused; i++) {
        if (r->now->v[i].filter < 0)
            continue;
        if (tok >= t->tok[list].next) {
            parcel_fail(j, AMP_SPAN("an answer is missing"));
        } else if (t->tok[tok].type == AMP_JSON_STRING) {
            parcel_fail(j, amp_tok_raw(t, tok));
        } else if (t->tok[tok].type == AMP_JSON_TRUE) {
            hit_set(j, i);
            if (!r->all)
                return;
        }
        tok = tok < t->n ? t->tok[tok].next : tok;
    }
}

static void answer_read(const struct amp_rules *r, struct parcel *j, struct amp_span answer)
{
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    uint32_t list = AMP_TOK_NONE;
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, answer.p, answer.n, &fault) == 0)
        list = amp_tape_get(&t, 0, AMP_SPAN("r"));
    if (list == AMP_TOK_NONE)
        parcel_fail(j, AMP_SPAN("no answer"));
    else
        results_read(r, j, &t, list);
}

static void answer_take(void *ctx, uint64_t tag, struct amp_span answer,
                        const struct amp_error *why)
{
    const struct amp_rules *r = ctx;
    struct parcel *j = (struct parcel *)(uintptr_t)tag;
    if (why)
        parcel_fail(j, amp_span_str(why->what));
    else
        answer_read(r, j, answer);
    j->stage = PARCEL_DECIDED;
}

int amp_rules_step(struct amp_rules *r, struct amp_error *err)
{
    return r->now->jq ? amp_helper_step(r->now->jq, answer_take, r, err) : 0;
}

void amp_rules_watch(const struct amp_rules *r, struct pollfd *fds, int *timeout_ms)
{
    fds[0] = fds[1] = (struct pollfd){.fd = -1};
    if (r->now->jq)
        amp_helper_watch(r->now->jq, fds, timeout_ms);
}
