/* The conflicts of a worker's loop: the commands that judge pairs of jobs, and the questions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "work/item/judge/exec/command.h"
#include "work/item/judge/private.h"
#include "json/record.h"

#define REQUEST_MAX ((size_t)1 << 20)
#define PAIRS_MOST  64    /* that one look carries out */
#define TRIAL_MS    1000  /* between looks while one start shows whether the command works again */
#define LATE_MS     10000 /* after its time limit a check is another worker's */

struct check {
    bool used;
    char running[AMP_QUEUE_ID_MAX], waiting[AMP_QUEUE_ID_MAX];
    struct amp_judge_run run;
};

struct amp_judge {
    struct amp_judge_options opt;
    struct amp_conflict_desk desk;
    struct check check[AMP_JUDGE_MOST];
    struct amp_breaker breaker;
    char *argv[AMP_JUDGE_ARGS_MAX + 1]; /* argv[0] NULL: there is no command */
    int64_t due_ms; /* the wall clock: a pair is to be looked at again; 0: none */
};

/* The words are of the settings; --conflict-exec wins. */
static void command_read(struct amp_judge *j)
{
    const struct amp_queue_settings *set = j->opt.set;
    size_t n = set->judge ? 0 : json_array_size(set->judge_list);

    for (size_t i = 0; set->judge && set->judge[i] && i < AMP_JUDGE_ARGS_MAX; i++)
        j->argv[i] = set->judge[i];
    for (size_t i = 0; i < n && i < AMP_JUDGE_ARGS_MAX; i++) {
        const char *word = json_string_value(json_array_get(set->judge_list, i));
        memcpy(&j->argv[i], &word, sizeof word); /* exec's type is not const */
    }
}

int amp_judge_open(struct amp_judge **out, struct amp_store *s, const struct amp_judge_options *o,
                   struct amp_error *err)
{
    struct amp_judge *j = calloc(1, sizeof *j);

    if (!j)
        return amp_fail_memory(err);
    j->opt = *o;
    j->desk = (struct amp_conflict_desk){.store = s,
                                         .actor = o->worker,
                                         .note = o->note,
                                         .stop = o->stop,
                                         .identify = o->identify,
                                         .identify_ctx = o->identify_ctx,
                                         .say = o->say,
                                         .say_ctx = o->say_ctx};
    j->breaker = (struct amp_breaker){.name = AMP_CONFLICT_BREAKER,
                                      .most = o->set->judge_failures,
                                      .pause_ms = o->set->judge_pause_ms,
                                      .limit_ms = o->set->judge_ms + LATE_MS,
                                      .actor = o->worker};
    command_read(j);
    *out = j;
    return 0;
}

/* ---- a check ---- */

static int pair_miss(struct amp_judge *j, const char *running, const char *waiting,
                     const char *code, const char *why, int64_t until_ms, struct amp_error *err)
{
    const struct amp_conflict set = {
        .code = amp_span_str(code), .reason = amp_span_str(why), .until_ms = until_ms};
    struct amp_conflict_step st = {.x = amp_span_str(running),
                                   .y = amp_span_str(waiting),
                                   .event = AMP_CONFLICT_EV_UNAVAILABLE,
                                   .set = &set,
                                   .worker = j->opt.worker};

    return amp_conflict_try(&j->desk, &st, err);
}

/* Without a judgement: a person is asked if the settings say so; else one after the other. */
static int pair_fall_back(struct amp_judge *j, struct amp_conflict_jobs *p, const char *code,
                          const char *why, int64_t until_ms, struct amp_error *err)
{
    char running[AMP_QUEUE_ID_MAX], waiting[AMP_QUEUE_ID_MAX];
    const struct amp_conflict set = {.code = amp_span_str(code), .reason = amp_span_str(why)};

    amp_span_copy(p->running.id, running, sizeof running);
    amp_span_copy(p->waiting.id, waiting, sizeof waiting);
    int rc = pair_miss(j, running, waiting, code, why, until_ms, err);
    if (rc <= 0 ||
        amp_queue_overlap(j->opt.set, p->running.type, p->waiting.type) != AMP_OVERLAP_ASK)
        return rc;
    return amp_conflict_ask(&j->desk, p, AMP_CONFLICT_EV_ASK, &set, err);
}

static int request_make(struct amp_judge *j, struct amp_conflict_jobs *p, struct amp_buf *out,
                        struct amp_error *err)
{
    char id[AMP_UUID_MAX], deadline[AMP_TIME_MAX];
    struct amp_jw w;

    amp_uuid4(id);
    amp_time_format(j->desk.now_ms + j->opt.set->judge_ms, deadline);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_int(&w, "version", 1);
    amp_jw_member_text(&w, "request", id);
    if (amp_conflict_jobs_put(p, j->desk.store, true, &w, err) < 0)
        return -1;
    amp_conflict_number(&w, "threshold", (int64_t)(j->opt.set->threshold * AMP_CONFLICT_PPM + 0.5));
    amp_jw_member_text(&w, "deadline", deadline);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

static void breaker_note(struct amp_judge *j, const struct amp_breaker_now *now)
{
    char until[AMP_TIME_MAX];

    if (now->state != AMP_BREAKER_OPEN)
        return;
    amp_time_format(now->until_ms, until);
    j->desk.note("conflict_exec: breaker_open: %lld failures in a row (%s); not started until %s",
                 (long long)now->failures, now->why, until);
}

/* A start that failed: the breaker counts it. */
static int check_fail(struct amp_judge *j, struct amp_conflict_jobs *p, const struct amp_error *why,
                      struct amp_error *err)
{
    struct amp_breaker_now now;
    char said[sizeof why->code + sizeof why->what + 4];

    snprintf(said, sizeof said, "%s: %s", why->code, why->what);
    j->desk.note("conflict_exec: %.*s and %.*s: %s", AMP_CLIP(p->waiting.id, 40),
                 AMP_CLIP(p->running.id, 40), said);
    if (amp_breaker_end(j->desk.store, &j->breaker, said, j->desk.now_ms, &now, err) < 0)
        return -1;
    breaker_note(j, &now);
    return pair_fall_back(j, p, why->code, why->what, j->desk.now_ms + j->opt.set->judge_pause_ms,
                          err);
}

static int check_start(struct amp_judge *j, struct check *c, struct amp_conflict_jobs *p,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf request = {0};
    struct amp_breaker_now now;
    struct amp_error why;
    int may = amp_breaker_try(j->desk.store, &j->breaker, j->desk.now_ms, &now, err);

    if (may < 0)
        return -1;
    if (!may) /* another worker has the trial */
        return pair_fall_back(j, p, AMP_CODE(breaker_open), now.why, j->desk.now_ms + TRIAL_MS,
                              err);
    amp_buf_init(&request, REQUEST_MAX);
    /* A crash must not make the next worker start it at once. */
    if (request_make(j, p, &request, err) < 0 || amp_store_sync(j->desk.store, err) < 0)
        return -1;
    if (amp_judge_run_start(&c->run, j->argv, amp_buf_span(&request), j->opt.set->judge_ms, &why) <
        0)
        return check_fail(j, p, &why, err);
    amp_span_copy(p->running.id, c->running, sizeof c->running);
    amp_span_copy(p->waiting.id, c->waiting, sizeof c->waiting);
    c->used = true;
    return 0;
}

/* 1: the command is not started now, and nothing is recorded but a question. */
static int breaker_refuses(struct amp_judge *j, struct amp_conflict_jobs *p, int *asked,
                           struct amp_error *err)
{
    struct amp_breaker_now now;
    int64_t again;

    *asked = 0;
    if (amp_breaker_read(j->desk.store, AMP_CONFLICT_BREAKER, &now, err) < 0)
        return -1;
    if (now.state == AMP_BREAKER_CLOSED || now.until_ms <= j->desk.now_ms ||
        now.until_ms - j->desk.now_ms > j->opt.set->judge_pause_ms + j->breaker.limit_ms)
        return 0;
    again = now.state == AMP_BREAKER_OPEN ? now.until_ms : j->desk.now_ms + TRIAL_MS;
    if (!j->due_ms || again < j->due_ms)
        j->due_ms = again;
    if (amp_queue_overlap(j->opt.set, p->running.type, p->waiting.type) == AMP_OVERLAP_ASK) {
        const struct amp_conflict set = {.code = AMP_CODE_SPAN(breaker_open),
                                         .reason = amp_span_str(now.why)};
        *asked = amp_conflict_ask(&j->desk, p, AMP_CONFLICT_EV_ASK, &set, err);
    }
    return *asked < 0 ? -1 : 1;
}

static struct check *check_free(struct amp_judge *j)
{
    for (int i = 0; i < AMP_JUDGE_MOST; i++)
        if (!j->check[i].used)
            return &j->check[i];
    return NULL;
}

static int check_begin(struct amp_judge *j, struct amp_conflict_jobs *p, struct amp_error *err)
{
    struct check *c = check_free(j);
    const struct amp_conflict set = {.until_ms = j->desk.now_ms + j->opt.set->judge_ms + LATE_MS,
                                     .running = p->running.id,
                                     .waiting = p->waiting.id,
                                     .overlap = amp_buf_span(&p->overlap)};
    struct amp_conflict_step st = {.x = p->running.id,
                                   .y = p->waiting.id,
                                   .event = AMP_CONFLICT_EV_CHECK,
                                   .set = &set,
                                   .worker = j->opt.worker};

    if (!c) /* the end of another check brings the next look */
        return 0;
    int asked, rc = breaker_refuses(j, p, &asked, err);
    if (rc != 0)
        return rc < 0 ? -1 : asked;
    rc = amp_conflict_try(&j->desk, &st, err);
    return rc > 0 ? check_start(j, c, p, err) : rc;
}

/* ---- the answer ---- */

static int answer_judge(struct amp_judge *j, struct amp_conflict_jobs *p, int64_t confidence,
                        struct amp_span reason, struct amp_error *err)
{
    const int64_t threshold = (int64_t)(j->opt.set->threshold * AMP_CONFLICT_PPM + 0.5);
    const struct amp_conflict set = {.confidence = confidence, .reason = reason};
    struct amp_breaker_now now;

    if (amp_breaker_end(j->desk.store, &j->breaker, NULL, j->desk.now_ms, &now, err) < 0)
        return -1;
    j->desk.note("conflict_exec: %.*s and %.*s: confidence %.6g (threshold %.6g): %.*s",
                 AMP_CLIP(p->waiting.id, 40), AMP_CLIP(p->running.id, 40),
                 (double)confidence / AMP_CONFLICT_PPM, j->opt.set->threshold,
                 AMP_CLIP(reason, 200));
    if (confidence < threshold)
        return amp_conflict_ask(&j->desk, p, AMP_CONFLICT_EV_UNSURE, &set, err);
    struct amp_conflict_step st = {.x = p->running.id,
                                   .y = p->waiting.id,
                                   .event = AMP_CONFLICT_EV_CONFIDENT,
                                   .set = &set,
                                   .worker = j->opt.worker};
    return amp_conflict_try(&j->desk, &st, err);
}

static int check_end(struct amp_judge *j, struct check *c, const struct amp_child_end *end,
                     struct amp_error *err)
{
    AMP_CLEANUP(amp_conflict_jobs_release) struct amp_conflict_jobs p = {0};
    AMP_BUF struct amp_buf reason = {0};
    struct amp_breaker_now now;
    struct amp_error why;
    int64_t confidence;

    amp_conflict_jobs_init(&p);
    amp_buf_init(&reason, AMP_REC_MAX);
    j->desk.now_ms = amp_now_ms();
    int answered = amp_judge_run_answer(&c->run, end, &confidence, &reason, &why);
    amp_buf_release(&c->run.answer);
    c->used = false;
    int rc = amp_conflict_jobs_read(&p, j->desk.store, amp_span_str(c->running),
                                    amp_span_str(c->waiting), err);
    if (rc < 0)
        return -1;
    if (rc > 0)
        rc = answered < 0 ? check_fail(j, &p, &why, err)
                          : answer_judge(j, &p, confidence, amp_buf_span(&reason), err);
    else /* a job has ended: only the breaker learns from it */
        rc = amp_breaker_end(j->desk.store, &j->breaker, answered < 0 ? why.what : NULL,
                             j->desk.now_ms, &now, err);
    return rc < 0 || amp_store_sync(j->desk.store, err) < 0 ? -1 : 1;
}

int amp_judge_answers(struct amp_judge *j, struct amp_error *err)
{
    int decided = 0;

    for (int i = 0; i < AMP_JUDGE_MOST; i++) {
        struct amp_child_end end;
        if (!j->check[i].used)
            continue;
        int rc = amp_judge_run_look(&j->check[i].run, &end, err);
        if (rc > 0)
            rc = check_end(j, &j->check[i], &end, err);
        if (rc < 0)
            return -1;
        decided |= rc;
    }
    return decided;
}

/* ---- the loop ---- */

unsigned amp_judge_fds(const struct amp_judge *j, struct pollfd *fds)
{
    unsigned n = 0;

    for (int i = 0; i < AMP_JUDGE_MOST; i++) {
        const struct check *c = &j->check[i];
        if (!c->used)
            continue;
        fds[n++] = (struct pollfd){.fd = c->run.runner.child.pidfd, .events = POLLIN};
        if (c->run.fd >= 0)
            fds[n++] = (struct pollfd){.fd = c->run.fd, .events = POLLIN};
    }
    return n;
}

int64_t amp_judge_wait(const struct amp_judge *j)
{
    int64_t wait = -1;

    for (int i = 0; i < AMP_JUDGE_MOST; i++) {
        int64_t left = j->check[i].used ? amp_runner_wait(&j->check[i].run.runner) : -1;
        if (left >= 0 && (wait < 0 || left < wait))
            wait = left;
    }
    if (j->due_ms > 0) {
        int64_t left = j->due_ms - amp_now_ms();
        left = left > 0 ? left : 0;
        wait = wait < 0 || left < wait ? left : wait;
    }
    return wait;
}

bool amp_judge_is_due(const struct amp_judge *j)
{
    return j->due_ms > 0 && j->due_ms <= amp_now_ms();
}

struct pairs {
    char id[PAIRS_MOST][2][AMP_QUEUE_ID_MAX];
    uint32_t n;
    int64_t now_ms, due_ms;
};

static void pairs_add(struct pairs *p, const char *a, const char *b)
{
    if (p->n == PAIRS_MOST)
        return;
    memcpy(p->id[p->n][0], a, AMP_QUEUE_ID_MAX);
    memcpy(p->id[p->n++][1], b, AMP_QUEUE_ID_MAX);
}

static int on_pair(void *ctx, const struct amp_order_pair *p, struct amp_error *err)
{
    struct pairs *l = ctx;
    bool late = p->until_ms > 0 && p->until_ms <= l->now_ms;

    (void)err;
    if (p->until_ms > l->now_ms && (!l->due_ms || p->until_ms < l->due_ms))
        l->due_ms = p->until_ms;
    if (p->gone || p->state == AMP_CONFLICT_ASKED || (late && p->state != AMP_CONFLICT_UNJUDGED))
        pairs_add(l, p->a, p->b);
    return 0;
}

static int on_meet(void *ctx, struct amp_span waiting, struct amp_span running,
                   struct amp_error *err)
{
    struct pairs *l = ctx;

    (void)err;
    amp_span_copy(running, l->id[l->n][0], AMP_QUEUE_ID_MAX);
    amp_span_copy(waiting, l->id[l->n][1], AMP_QUEUE_ID_MAX);
    return ++l->n == PAIRS_MOST;
}

/* The settings of their types let them run side by side. */
static int pair_allow(struct amp_judge *j, const struct amp_conflict_jobs *p, struct amp_error *err)
{
    const struct amp_conflict set = {.running = p->running.id,
                                     .waiting = p->waiting.id,
                                     .overlap = amp_buf_span(&p->overlap),
                                     .decision = AMP_SPAN("parallel"),
                                     .person = AMP_SPAN("policy"),
                                     .by = AMP_SPAN("policy"),
                                     .why = AMP_SPAN("queue.types")};
    struct amp_conflict_step st = {
        .x = p->running.id, .y = p->waiting.id, .event = AMP_CONFLICT_EV_ALLOW, .set = &set};

    return amp_conflict_try(&j->desk, &st, err);
}

static int pair_meet(struct amp_judge *j, const char *running, const char *waiting,
                     struct amp_error *err)
{
    AMP_CLEANUP(amp_conflict_jobs_release) struct amp_conflict_jobs p = {0};
    static const struct amp_conflict none;

    amp_conflict_jobs_init(&p);
    int rc = amp_conflict_jobs_read(&p, j->desk.store, amp_span_str(running), amp_span_str(waiting),
                                    err);
    if (rc <= 0)
        return rc;
    if (p.running.state == AMP_QUEUE_PREEMPTING) /* it makes room anyway */
        return 0;
    enum amp_overlap how = amp_queue_overlap(j->opt.set, p.running.type, p.waiting.type);
    if (how == AMP_OVERLAP_PARALLEL)
        return pair_allow(j, &p, err);
    if (j->argv[0])
        return check_begin(j, &p, err);
    return how == AMP_OVERLAP_ASK ? amp_conflict_ask(&j->desk, &p, AMP_CONFLICT_EV_ASK, &none, err)
                                  : 0;
}

static int pairs_meet(struct amp_judge *j, struct amp_order *o, const struct amp_span *types,
                      uint32_t n_types, struct amp_error *err)
{
    const struct amp_order_want want = {
        .types = types, .n_types = n_types, .now_ms = j->desk.now_ms};
    struct pairs l = {.n = 0};
    int decided = 0;

    if ((!j->argv[0] && !j->opt.set->overlaps) || n_types == 0)
        return 0;
    if (amp_order_meets(o, &want, PAIRS_MOST, on_meet, &l, err) < 0)
        return -1;
    for (uint32_t i = 0; i < l.n; i++) {
        int rc = pair_meet(j, l.id[i][0], l.id[i][1], err);
        if (rc < 0)
            return -1;
        decided |= rc;
    }
    return decided;
}

int amp_judge_look(struct amp_judge *j, struct amp_order *o, const struct amp_span *types,
                   uint32_t n_types, struct amp_error *err)
{
    struct pairs l = {.n = 0};
    int decided = 0;

    l.now_ms = j->desk.now_ms = amp_now_ms();
    if (amp_order_pairs(o, on_pair, &l, err) < 0)
        return -1;
    j->due_ms = l.due_ms;
    for (uint32_t i = 0; i < l.n; i++) {
        int rc =
            amp_conflict_tend(&j->desk, amp_span_str(l.id[i][0]), amp_span_str(l.id[i][1]), err);
        if (rc < 0)
            return -1;
        decided |= rc;
    }
    int rc = pairs_meet(j, o, types, n_types, err);
    if (rc < 0 || ((decided | rc) && amp_store_sync(j->desk.store, err) < 0))
        return -1;
    return decided | rc;
}

/* Its checks are another worker's. */
void amp_judge_close(struct amp_judge *j)
{
    struct amp_error e;

    if (!j)
        return;
    j->desk.now_ms = amp_now_ms();
    for (int i = 0; i < AMP_JUDGE_MOST; i++) {
        struct check *c = &j->check[i];
        if (!c->used)
            continue;
        amp_judge_run_stop(&c->run);
        if (pair_miss(j, c->running, c->waiting, AMP_CODE(worker_ended), "the worker ended", 0,
                      &e) > 0)
            amp_store_sync(j->desk.store, &e);
    }
    free(j);
}
