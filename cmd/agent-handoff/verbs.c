/* agent-handoff request, accept, reject, complete. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "cli/rows.h"
#include "handoff.h"
#include "message/protocol/compose/json.h"
#include "people/answer/person.h"
#include "shared/work/tool.h"

static const char *as, *to, *reason, *task, *context, *content_type, *id, *text, *data, *out_path;
static struct amp_list wanted;
static int64_t priority, timeout_ms = AMP_HANDOFF_TIMEOUT_MS, eta_ms;

#define AS_OPT                                                                                     \
    {                                                                                              \
        0, "as", AMP_OPT_STRING, &as, "NAME", "the agent (default: AMP_AGENT)", .values = "agent"  \
    }

static const struct amp_opt handoff_request_opts[] = {
    AS_OPT,
    {0, "to", AMP_OPT_STRING, &to, "NAME", "the agent to ask (default: one with the capabilities)",
     .values = "agent"},
    {0, "capability", AMP_OPT_LIST, &wanted, "NAME",
     "what the agent must be able to do; may be repeated", .values = "capability"},
    {0, "reason", AMP_OPT_STRING, &reason, "TEXT", "why the work is handed over"},
    {0, "task", AMP_OPT_STRING, &task, "TASK", "the task that is handed over", .values = "task"},
    {0, "context", AMP_OPT_PATH, &context, "FILE", "the context snapshot, - for stdin"},
    {0, "content-type", AMP_OPT_STRING, &content_type, "TYPE",
     "its type (default: application/json if it is JSON, else application/octet-stream)"},
    {0, "priority", AMP_OPT_INT, &priority, "N", "-19 (first) to 20 (default: 0)", .min = -19,
     .max = 20},
    {'t', "timeout", AMP_OPT_DURATION, &timeout_ms, "TIME",
     "how long each candidate may take to answer (default: 60s)", .min = AMP_HANDOFF_TIMEOUT_MIN,
     .max = AMP_HANDOFF_TIMEOUT_MOST},
    {0, "id", AMP_OPT_STRING, &id, "ID", "id of the request (default: a new one)"},
    AMP_OPT_END,
};
static const struct amp_opt handoff_accept_opts[] = {
    AS_OPT,
    {0, "context", AMP_OPT_PATH, &out_path, "FILE", "write the context snapshot to FILE"},
    {0, "text", AMP_OPT_STRING, &text, "TEXT", "what to say"},
    {0, "eta", AMP_OPT_DURATION, &eta_ms, "TIME", "when the work will be done", .min = 1,
     .max = INT64_C(14) * 86400000},
    AMP_OPT_END,
};
static const struct amp_opt handoff_reject_opts[] = {
    AS_OPT,
    {0, "reason", AMP_OPT_STRING, &reason, "TEXT", "why the agent does not take it"},
    AMP_OPT_END,
};
static const struct amp_opt handoff_complete_opts[] = {
    AS_OPT,
    {0, "text", AMP_OPT_STRING, &text, "TEXT", "what to say"},
    {0, "data", AMP_OPT_STRING, &data, "JSON", "members of the payload, as the protocol has them"},
    AMP_OPT_END,
};

/* A refusal is printed with its code. */
static int refusal_print(const struct amp_error *e)
{
    struct amp_error said = *e;
    if (e->status == AMP_NO)
        amp_fail_text(&said, e->status, e->code, "%s: %.400s", e->code, e->what);
    return amp_complain(&said);
}

/* An agent acts as itself only. */
static int agent_choose(struct amp_command *c, struct amp_error *err)
{
    const char *agent = getenv("AMP_AGENT");

    if (!as && agent && *agent)
        as = agent;
    if (!as)
        amp_die_usage("which agent? --as NAME, or the environment variable AMP_AGENT");
    if (strlen(as) > 200)
        amp_die_usage("--as takes a name of at most 200 bytes");
    return amp_person_or_self_recorded(c->state, amp_cli_name(), environ, as,
                                       "hand work over in an agent's name", err);
}

static int desk_open(struct handoff_desk *d, const struct amp_command *c, struct amp_error *err)
{
    char box[300];

    snprintf(box, sizeof box, "handoff.%s", as);
    return handoff_desk_open(d, c->store, box, as, err);
}

static int context_load(struct amp_buf *bytes, struct amp_error *err)
{
    struct amp_error why;

    if (amp_file_read_any(context, AMP_HANDOFF_CONTEXT_MAX, bytes, &why) < 0)
        return amp_code_is(why.code, file_too_large)
                   ? amp_fail(err, AMP_NO, payload_too_large, "%s is larger than %d bytes", context,
                              AMP_HANDOFF_CONTEXT_MAX)
                   : (*err = why, -1);
    if (!content_type)
        content_type = amp_handoff_context_is_json(amp_buf_span(bytes))
                           ? "application/json"
                           : "application/octet-stream";
    return 0;
}

static int request_check(struct amp_command *c, struct amp_error *err)
{
    if (!reason || !*reason)
        amp_die_usage("why? --reason TEXT");
    if (!to && wanted.n == 0)
        amp_die_usage("to whom? --to NAME, or --capability NAME");
    if (wanted.n > 64 || (id && (!*id || strlen(id) > AMP_HANDOFF_ID_MAX)))
        amp_die_usage("at most 64 capabilities, and an id of 1 to %d bytes", AMP_HANDOFF_ID_MAX);
    if (content_type && (!context || strlen(content_type) > 120))
        amp_die_usage("--content-type is that of --context, at most 120 bytes");
    return agent_choose(c, err);
}

static int handoff_request(struct amp_command *c, struct amp_error *err)
{
    struct handoff_desk d = HANDOFF_DESK;
    char made[AMP_HANDOFF_ID_MAX + 1];
    AMP_BUF struct amp_buf bytes = {.max = AMP_HANDOFF_CONTEXT_MAX + 1};

    int rc = desk_open(&d, c, err);
    if (rc == 0 && context)
        rc = context_load(&bytes, err);
    if (rc == 0) {
        const struct amp_handoff_request r = {
            .from = as,
            .to = to,
            .reason = reason,
            .task = task,
            .wanted = wanted.v,
            .n_wanted = (uint32_t)wanted.n,
            .context = context ? (struct amp_span){bytes.data ? bytes.data : "", bytes.len}
                               : (struct amp_span){0},
            .content_type = content_type,
            .priority = priority,
            .timeout_ms = timeout_ms,
            .id = id};
        rc = amp_handoffs_request(&d.h, &r, made, err);
    }
    if (rc == 0)
        rc = handoff_desk_finish(&d, err);
    handoff_desk_close(&d);
    if (rc < 0)
        return refusal_print(err);
    amp_note("handoff %s", made);
    return AMP_OK;
}

/* ---- answers ---- */

static json_t *members; /* of --data */

/* The snapshot is written before the acceptance: whoever accepted can go on. */
static int context_save(struct handoff_desk *d, const char *of, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = (size_t)256 << 20};
    AMP_BUF struct amp_buf bytes = {.max = AMP_HANDOFF_CONTEXT_MAX + 1};
    struct amp_handoff r;

    int found = amp_handoff_find(d->h.store, amp_span_str(of), &mem, &r, err);
    if (found <= 0 || !out_path)
        return found < 0 ? -1 : 0;
    if (r.state != AMP_HANDOFF_PENDING || !amp_span_is(r.to, as))
        return 0; /* the step refuses it */
    if (r.digest.n == 0)
        return amp_fail(err, AMP_NO, no_context, "the handoff %s has no context snapshot", of);
    return amp_handoff_context_read(d->h.store, &r, &bytes, err) < 0
               ? -1
               : amp_file_write_atomic(AT_FDCWD, out_path, 0600,
                                       (struct amp_span){bytes.data ? bytes.data : "", bytes.len},
                                       err);
}

static int answer_check(struct amp_command *c, struct amp_error *err)
{
    if (data && (!(members = amp_json_load(amp_span_str(data), err)) || !json_is_object(members)))
        amp_die_usage("--data takes a JSON object");
    return agent_choose(c, err);
}

static int answer_give(enum amp_reply_act act, struct amp_command *c, struct amp_error *err)
{
    struct handoff_desk d = HANDOFF_DESK;
    char of[AMP_HANDOFF_ID_MAX + 1];

    int rc = desk_open(&d, c, err);
    if (rc == 0)
        rc = amp_handoffs_find(c->store, c->argv[0], of, err);
    if (rc == 0 && act == AMP_REPLY_ACCEPT)
        rc = context_save(&d, of, err);
    if (rc == 0) {
        const struct amp_reply_said said = {.act = act,
                                            .by = as,
                                            .text = act == AMP_REPLY_FAIL ? reason : text,
                                            .data = members,
                                            .eta_ms = eta_ms > 0 ? d.h.now_ms + eta_ms : 0};
        rc = amp_handoffs_answer(&d.h, amp_span_str(of), &said, err);
    }
    /* The lines that a killed process left are written also after a refusal. */
    struct amp_error late;
    if (d.out.fd >= 0 && d.box.store && handoff_desk_finish(&d, &late) < 0 && rc == 0) {
        *err = late;
        rc = -1;
    }
    handoff_desk_close(&d);
    json_decref(members);
    return rc < 0 ? refusal_print(err) : AMP_OK;
}

static int handoff_accept(struct amp_command *c, struct amp_error *err)
{
    return answer_give(AMP_REPLY_ACCEPT, c, err);
}

static int reject_check(struct amp_command *c, struct amp_error *err)
{
    if (!reason || !*reason)
        amp_die_usage("why? --reason TEXT");
    return agent_choose(c, err);
}

static int handoff_reject(struct amp_command *c, struct amp_error *err)
{
    return answer_give(AMP_REPLY_FAIL, c, err);
}

static int handoff_complete(struct amp_command *c, struct amp_error *err)
{
    return answer_give(AMP_REPLY_COMPLETE, c, err);
}

const struct amp_verb handoff_verbs[] = {
    {"request", "", "ask another agent to take work over", handoff_request_opts, handoff_request,
     .check = request_check, .opens = AMP_OPENS_MADE, .signals = true, .finds_state = true,
     .who = AMP_WHO_SELF},
    {"accept", "ID", "take the work of a handoff over", handoff_accept_opts, handoff_accept,
     .check = agent_choose, .opens = AMP_OPENS_MADE, .signals = true, .least = 1, .most = 1,
     .usage = "one handoff is needed", .finds_state = true, .values = "handoff",
     .who = AMP_WHO_SELF},
    {"reject", "ID", "decline a handoff", handoff_reject_opts, handoff_reject,
     .check = reject_check, .opens = AMP_OPENS_MADE, .signals = true, .least = 1, .most = 1,
     .usage = "one handoff is needed", .finds_state = true, .values = "handoff",
     .who = AMP_WHO_SELF},
    {"complete", "ID", "report that a handoff is done", handoff_complete_opts, handoff_complete,
     .check = answer_check, .opens = AMP_OPENS_MADE, .signals = true, .least = 1, .most = 1,
     .usage = "one handoff is needed", .finds_state = true, .values = "handoff",
     .who = AMP_WHO_SELF},
    {0},
};
