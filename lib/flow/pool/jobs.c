/* Claimed jobs and their ends. */
#include "flow/pool/jobs.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "protocol/compose/json.h"
#include "queue/scope.h"

static bool scope_one(const struct amp_span *v, uint32_t n, char *out, size_t size)
{
    *out = '\0';
    return n == 1 && !memchr(v->p, '*', v->n) && amp_span_copy(*v, out, size);
}

/* What the last attempt left: {"agent":…,"keeps":true}. */
static int data_read(struct amp_pool_job *out, const struct amp_queue_job *job,
                     struct amp_error *err)
{
    if (!job->data.n)
        return 0;
    json_auto_t *data = amp_json_load(job->data, err);
    if (!data)
        return -1;
    snprintf(out->agent, sizeof out->agent, "%s", amp_json_str(data, "agent"));
    out->again = json_is_true(json_object_get(data, "keeps"));
    amp_span_copy(job->session, out->session, sizeof out->session);
    return 0;
}

int amp_pool_job_read(struct amp_pool_job *out, const struct amp_queue_job *job,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_scope scope = {0};

    amp_buf_init(&mem, 1 << 20);
    *out = (struct amp_pool_job){
        .priority = job->priority, .attempts = job->attempts, .losses = job->losses};
    amp_span_copy(job->id, out->id, sizeof out->id);
    amp_span_copy(job->message, out->msg_id, sizeof out->msg_id);
    amp_span_copy(job->task, out->task, sizeof out->task);
    amp_span_copy(job->type, out->type, sizeof out->type);
    if (amp_scope_parse(job->scope, &mem, &scope, err) < 0 || data_read(out, job, err) < 0)
        return -1;
    if (!scope_one(scope.repos, scope.n_repos, out->repo, sizeof out->repo) ||
        out->repo[0] != '/' ||
        !scope_one(scope.branches, scope.n_branches, out->branch, sizeof out->branch))
        out->repo[0] = out->branch[0] = '\0';
    return 0;
}

static uint8_t end_event(const struct amp_pool_outcome *out, bool asked)
{
    switch (out->end) {
    case AMP_POOL_DONE:
        return AMP_QUEUE_EV_DONE;
    case AMP_POOL_FAILED:
        return asked && strcmp(out->code, "forced_preemption") == 0 ? AMP_QUEUE_EV_FORCE
                                                                    : AMP_QUEUE_EV_FAIL;
    case AMP_POOL_PARKED:
        return AMP_QUEUE_EV_PARK;
    default:
        return asked ? AMP_QUEUE_EV_YIELD : AMP_QUEUE_EV_RELEASE;
    }
}

int amp_pool_job_end(struct amp_queue_worker *q, const struct amp_pool_job *job,
                     const struct amp_pool_outcome *out, const struct amp_worker_left *left,
                     const char *agent, const char *worker, bool asked, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    char data[256];
    bool goes_on = out->end == AMP_POOL_PARKED || out->end == AMP_POOL_AGAIN;
    struct amp_queue_step st = {
        .id = amp_span_str(job->id),
        .worker = worker,
        .why = *out->why ? out->why : NULL,
        .code = *out->code ? out->code : NULL,
        .until_ms = out->until_ms,
        .tokens_in = left->usage.input_tokens,
        .tokens_out = left->usage.output_tokens,
        .micros = left->usage.cost_micros,
        .actor = worker,
        .now_ms = amp_now_ms(),
    };

    amp_buf_init(&mem, AMP_REC_MAX);
    if (goes_on && agent) {
        snprintf(data, sizeof data, "{\"agent\":\"%s\",\"keeps\":%s}", agent,
                 out->keeps ? "true" : "false");
        st.data = amp_span_str(data);
        st.worktree = amp_span_str(*left->worktree ? left->worktree : "-");
        st.session = amp_span_str(*left->session ? left->session : "-");
    }
    /* Another process may have asked for its place since the last look, or nobody has. */
    for (int other = 0;; other = 1) {
        st.event = end_event(out, asked != (other == 1));
        if (amp_queue_worker_step(q, &st, &mem, NULL, err) == 0)
            return 0;
        if (strcmp(err->code, "claim_lost") == 0 || strcmp(err->code, "unknown_job") == 0)
            return 1;
        if (other || strcmp(err->code, "illegal_transition") != 0)
            return -1;
    }
}
