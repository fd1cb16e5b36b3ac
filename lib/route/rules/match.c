/*
 * Which rules hold. Native predicates are decided while the message is in view; a jq predicate is
 * put to the worker, and until its answer came the messages behind wait too: what goes to one port
 * keeps its order.
 */
#include "route/router/router.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

static bool hit(const struct job *j, uint32_t rule)
{
    return j->hit[rule / 64] >> (rule % 64) & 1;
}

static void set_hit(struct job *j, uint32_t rule)
{
    j->hit[rule / 64] |= 1ull << (rule % 64);
}

int amp_match_start(struct router *r, struct amp_error *err)
{
    for (uint32_t i = 0; i < r->n_rules; i++) {
        const char *expr = amp_predicate_jq(r->rules[i].predicate);
        r->rules[i].filter = -1;
        if (!expr)
            continue;
        r->rules[i].filter = r->n_filters;
        r->filters[r->n_filters++] = expr;
    }
    if (r->n_filters == 0)
        return 0;
    struct amp_helper_options opt = {.name = "jq-worker",
                                     .args = r->filters,
                                     .limit_ms = r->predicate_limit_ms,
                                     .stop = r->stop};
    if (amp_helper_new(&opt, &r->jq, err) < 0)
        return -1;
    return amp_helper_probe(r->jq, err);
}

void amp_match_view(struct router *r, struct job *j, const struct amp_view *v)
{
    j->stage = JOB_DECIDED;
    j->ask_from = r->n_rules;
    j->era = r->era;
    for (uint32_t i = 0; i < r->n_rules; i++) {
        if (r->rules[i].filter >= 0) {
            if (j->ask_from == r->n_rules)
                j->ask_from = i;
            j->stage = JOB_ASK;
        } else if (amp_predicate_match(r->rules[i].predicate, v)) {
            set_hit(j, i);
            if (!r->all)
                return;
        }
    }
}

/* The jq rules that matter for a job: those before the first native one that holds. */
static uint32_t ask_until(const struct router *r, const struct job *j)
{
    if (r->all)
        return r->n_rules;
    for (uint32_t i = 0; i < r->n_rules; i++)
        if (r->rules[i].filter < 0 && hit(j, i))
            return i;
    return r->n_rules;
}

/* 0 asked, 1 not now, -1 failure of ours. */
static int ask(struct router *r, struct job *j)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_jw w;
    amp_buf_init(&b, (size_t)40 << 20);
    amp_jw_init(&w, &b);
    amp_jw_key(&w, "f");
    amp_jw_open(&w, '[');
    for (uint32_t i = j->ask_from, end = ask_until(r, j); i < end; i++)
        if (r->rules[i].filter >= 0)
            amp_jw_int(&w, r->rules[i].filter);
    amp_jw_close(&w, ']');
    amp_jw_key(&w, "m");
    amp_jw_raw(&w, j->text ? amp_span_str(j->text) : (struct amp_span){j->line, j->n});
    struct amp_error err;
    int rc = amp_jw_end(&w, &err);
    if (rc == 0)
        rc = amp_helper_ask(r->jq, (uintptr_t)j, amp_buf_span(&b), &err);
    if (rc < 0) {
        j->stage = JOB_DECIDED;
        amp_route_job_refuse(j, "predicate_error", err.what, "jq", false);
        return 0;
    }
    if (rc == 0)
        j->stage = JOB_ASKED;
    return rc;
}

static void fail_job(struct job *j, const char *what, size_t n)
{
    char why[sizeof(j->why)];
    snprintf(why, sizeof(why), "%.*s", (int)(n < 150 ? n : 150), what);
    amp_route_job_refuse(j, "predicate_error", why, "jq", false);
}

static void read_answer(struct router *r, struct job *j, struct amp_span answer)
{
    struct amp_tape t;
    struct amp_json_fault fault;
    amp_tape_init(&t, NULL);
    uint32_t list = AMP_TOK_NONE;
    if (amp_tape_scan(&t, answer.p, answer.n, &fault) == 0)
        list = amp_tape_get(&t, 0, AMP_SPAN("r"));
    if (list == AMP_TOK_NONE) {
        fail_job(j, "no answer", 9);
    } else {
        uint32_t tok = list + 1;
        for (uint32_t i = j->ask_from, end = ask_until(r, j); i < end && !j->refused; i++) {
            if (r->rules[i].filter < 0)
                continue;
            if (tok >= t.tok[list].next) {
                fail_job(j, "an answer is missing", 20);
            } else if (t.tok[tok].type == AMP_JSON_STRING) {
                struct amp_span s = amp_tok_raw(&t, tok);
                fail_job(j, s.p, s.n);
            } else if (t.tok[tok].type == AMP_JSON_TRUE) {
                set_hit(j, i);
                if (!r->all)
                    break;
            }
            tok = tok < t.n ? t.tok[tok].next : tok;
        }
    }
    amp_tape_release(&t);
}

static void replied(void *ctx, uint64_t tag, struct amp_span answer, const struct amp_error *why)
{
    struct router *r = ctx;
    struct job *j = (struct job *)(uintptr_t)tag;
    if (why)
        fail_job(j, why->what, strlen(why->what));
    else
        read_answer(r, j, answer);
    j->stage = JOB_DECIDED;
}

int amp_match_again(struct router *r, struct job *j, struct amp_error *err)
{
    struct amp_view v;
    struct amp_check_options opt = {0};
    memset(j->hit, 0, sizeof(j->hit));
    if (amp_reader_line(r->again, amp_route_job_whole(j), &opt, &v, NULL, NULL, err) < 0)
        return -1;
    amp_match_view(r, j, &v);
    if (j->address.kids || j->address.mark || j->address.nobody)
        return 0;
    return amp_recipients_look(r, j, &v, err) < 0 ? -1 : 0;
}

void amp_match_add(struct router *r, struct job *j)
{
    struct amp_error err;
    /* It waited while the rules changed. */
    if (j->era != r->era && !j->refused && amp_match_again(r, j, &err) < 0)
        amp_route_break(r, &err);

    if (r->last)
        r->last->next = j;
    else
        r->first = j;
    r->last = j;
    r->n_undecided++;
}

void amp_match_add_all(struct router *r, struct job *j)
{
    for (struct job *next; j; j = next) {
        next = j->next;
        j->next = NULL;
        amp_match_add(r, j);
    }
}

void amp_match_step(struct router *r)
{
    struct amp_error err;
    for (struct job *j = r->first; j; j = j->next)
        if (j->stage == JOB_ASK && ask(r, j) == 1)
            break;
    if (r->jq && amp_helper_step(r->jq, replied, r, &err) < 0) {
        amp_route_break(r, &err);
        return;
    }
    amp_outlets_charge(r);
    while (r->first && r->first->stage == JOB_DECIDED && !r->broken) {
        struct job *j = r->first;
        if (amp_route_job_holds(r, j)) {
            if (!r->held_ms)
                r->held_ms = amp_mono_ms();
            return;
        }
        r->held_ms = 0;
        r->first = j->next;
        if (!r->first)
            r->last = NULL;
        r->n_undecided--;
        j->next = NULL;
        amp_route_job_dispatch(r, j);
    }
}
