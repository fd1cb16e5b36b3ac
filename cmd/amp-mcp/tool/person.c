/*
 * ask_human with a state directory: the question is recorded there, so that any channel of
 * hitl-prompt may answer it. Only the answer of a person is an answer: a fallback that decides
 * after a deadline is not, and neither is silence.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "../mcp.h"
#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "people/answer/ask/ask.h"

#define REASON "TASK_ESCALATION"
#define ACTOR  "amp-mcp"

struct person {
    struct amp_asking ask;
    const char *choices[9];
};

static enum mcp_step ask_free(struct mcp_call *call, enum mcp_step how)
{
    struct person *p = call->own;

    if (p)
        amp_asking_close(&p->ask);
    free(p);
    call->own = NULL;
    return how;
}

json_t *mcp_unanswered(const char *question, const char *why)
{
    return json_pack("{s:b, s:s, s:s}", "answered", 0, "question", question, "why", why);
}

static enum mcp_step unanswered(struct mcp_call *call, const char *why, struct amp_error *err)
{
    const struct person *p = call->own;

    call->result = mcp_unanswered(p->ask.id, why);
    snprintf(call->text, sizeof call->text,
             "No person answered: %s. This is not an approval: do not do what you asked about.",
             why);
    if (!call->result)
        amp_fail_memory(err);
    return ask_free(call, call->result ? MCP_DONE : MCP_FAILED);
}

static enum mcp_step answered(struct mcp_call *call, const struct amp_question_rec *r,
                              struct amp_error *err)
{
    const struct person *p = call->own;

    call->result = json_pack("{s:b, s:s, s:s%, s:s%, s:s%}", "answered", 1, "question", p->ask.id,
                             "decision", r->decision.p, r->decision.n, "note",
                             r->note.p ? r->note.p : "", r->note.n, "by",
                             r->operator.p ? r->operator.p : "", r->operator.n);
    if (!call->result)
        amp_fail_memory(err);
    return ask_free(call, call->result ? MCP_DONE : MCP_FAILED);
}

enum mcp_step mcp_ask_step(struct mcp_call *call, struct amp_error *err)
{
    struct person *p = call->own;
    AMP_BUF struct amp_buf mem = {0};
    struct amp_question_rec r;

    amp_buf_init(&mem, AMP_REC_MAX);
    for (;;) {
        switch (amp_asking_look(&p->ask, &mem, &r, err)) {
        case AMP_ASKING_FAILED:
            return ask_free(call, MCP_FAILED);
        case AMP_ASKING_ENDED:
            return unanswered(call, "the question has ended without a decision", err);
        case AMP_ASKING_DECIDED:
            if (r.policy.n)
                return unanswered(call, "a fallback applied after its deadline", err);
            return answered(call, &r, err);
        case AMP_ASKING_OPEN:
            break;
        }
        if (amp_now_ms() < call->until_ms)
            return MCP_WAITS;
        int rc =
            amp_asking_end(&p->ask, AMP_CODE(timed_out), "the agent does not wait any longer", err);
        if (rc < 0)
            return ask_free(call, MCP_FAILED);
        if (rc == 0)
            return unanswered(call, "no person decided in time", err);
    }
}

void mcp_ask_stop(struct mcp_call *call, const char *why)
{
    struct person *p = call->own;
    struct amp_error err;

    if (p && amp_asking_end(&p->ask, AMP_CODE(timed_out), why, &err) < 0)
        amp_complain(&err);
    ask_free(call, MCP_FAILED);
}

static int question_record(struct mcp_call *call, struct person *p, struct amp_error *err)
{
    struct mcp *m = call->m;
    AMP_BUF struct amp_buf context = {0};
    struct amp_identities *ids = NULL;
    const json_t *choices = json_object_get(call->args, "choices"), *c;
    size_t i;
    const struct amp_identity_tool tool = {
        .state = m->state, .config = m->config, .principal = m->agent, .quiet = true};

    amp_buf_init(&context, AMP_ASK_LINE_MAX);
    json_array_foreach (choices, i, c)
        if (i < sizeof p->choices / sizeof *p->choices - 1)
            p->choices[i] = json_string_value(c);
    json_auto_t *evidence = json_pack("{s:s, s:s}", "question",
                                      amp_json_str(call->args, "question"), "agent", m->agent);
    if (!evidence)
        return amp_fail_memory(err);
    amp_json_put(evidence, "details", amp_json_str(call->args, "details"));
    if (amp_json_dump(evidence, &context, err) < 0 ||
        amp_identity_cli_open(m->identity, &tool, &ids, err) < 0)
        return -1;
    const struct amp_ask ask = {.from = m->agent,
                                .reason = REASON,
                                .task = amp_json_str(call->args, "task_id"),
                                .context = amp_buf_span(&context),
                                .proposed = p->choices,
                                .until_ms = call->until_ms,
                                .ids = ids};
    int rc = amp_asking_record(&p->ask, &ask, err);
    amp_identities_close(ids);
    return rc;
}

enum mcp_step mcp_ask_start(struct mcp_call *call, struct amp_error *err)
{
    struct mcp *m = call->m;
    const json_t *limit = json_object_get(call->args, "timeout_seconds");

    call->until_ms = amp_now_ms() + (limit ? json_integer_value(limit) : MCP_ASK_SECONDS) * 1000;
    if (mcp_store(m, err) < 0)
        return MCP_FAILED;
    struct person *p = calloc(1, sizeof *p);
    call->own = p;
    if (!p) {
        amp_fail_memory(err);
        return MCP_FAILED;
    }
    if (amp_asking_open(&p->ask, m->store, ACTOR, &amp_stop, amp_note, err) < 0 ||
        question_record(call, p, err) < 0)
        return ask_free(call, MCP_FAILED);
    snprintf(call->state, sizeof call->state, "waiting for a person: question %s", p->ask.id);
    mcp_log(m, &call->to, MCP_INFO, "question %s waits for a person", p->ask.id);
    return mcp_ask_step(call, err);
}
