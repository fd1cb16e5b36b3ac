/* SW4RM: the terms of delivery (§11, §18, §20, §21). */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "protocol/codes/meanings.h"
#include "protocol/sw4rm/answer.h"
#include "protocol/terms.h"

#define YEAR_MS INT64_C(31536000000)

/* SW4RM's word for a code of ours: it has a list of them (§21). The note says what it stands for.
 */
static const char *sw4rm_code(const struct amp_answer *a)
{
    static const char *const forbidden[] = {"rejected", "unsigned", "suspended"};
    const char *code = a->code && *a->code ? a->code : "rejected";
    for (const char *c = code; *c; c++)
        if (!isalpha((unsigned char)*c) && *c != '_')
            return code; /* somebody's own, which the list leaves room for */
    for (const struct amp_meaning *m = amp_meanings_sw4rm; m->code; m++)
        if (strcasecmp(m->code, code) == 0)
            return code;
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++)
        if (strcmp(forbidden[i], code) == 0)
            return "permission_denied";
    return a->retryable ? "agent_unavailable" : "validation_error";
}

static int refusal_write(const struct amp_answered *to, const struct amp_answer *a,
                         struct amp_buf *out, struct amp_error *err)
{
    const char *code = sw4rm_code(a), *said = a->note ? a->note : "";
    AMP_BUF struct amp_buf note = {0};
    amp_buf_init(&note, 1 << 16);
    if (a->code && strcasecmp(code, a->code) != 0 && amp_buf_fmt(&note, err, "%s: ", a->code) < 0)
        return -1;
    if (amp_buf_str(&note, said, err) < 0)
        return -1;
    return amp_sw4rm_nack(to, a->stage, amp_span_str(code), amp_buf_span(&note), a->by, a->now_ms,
                          out, err);
}

static bool is_answerable(const struct amp_view *of)
{
    return of->from.n > 0;
}

static int answer_write(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                        struct amp_error *err)
{
    if (!is_answerable(of))
        return amp_terms_record(of, a, out, err);
    struct amp_answered to = {.id = of->id,
                              .producer = of->from,
                              .correlation = of->correlation,
                              .sequence = a->sequence};
    struct amp_span note = amp_span_str(a->note);
    if (amp_stage_refuses(a->stage))
        return refusal_write(&to, a, out, err);
    return amp_sw4rm_ack(&to, a->stage, note, a->result, a->by, a->now_ms, out, err);
}

/* A TOOL_CALL says how long it may be at work (§18.2, §18.5.1). */
static int64_t call_ms(const struct amp_view *v)
{
    if (v->kind != AMP_KIND_TOOL_CALL)
        return 0;
    int64_t most = v->body.tool_call.timeout_ms, wall = v->body.tool_call.wall_ms;
    if (most <= 0 || (wall > 0 && wall < most))
        most = wall;
    return most > 0 && most <= YEAR_MS ? most : 0;
}

static void call_retries(const struct amp_view *of, struct amp_again_terms *out)
{
    if (of->kind != AMP_KIND_TOOL_CALL)
        return;
    static const char *const places[] = {"/execution_policy/retries",
                                         "/execution_policy/max_retries", "/policy/retries",
                                         "/policy/max_retries"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int64_t n;
        uint32_t tok = amp_tape_pointer(of->tape, of->payload, amp_span_str(places[i]));
        if (tok != AMP_TOK_NONE && amp_tok_int(of->tape, tok, &n) && n >= 0)
            out->most = n;
    }
}

static int attempt_edit(struct amp_edit *e, const struct amp_again *a)
{
    return amp_edit_text(e, 0, "message_id", amp_span_str(a->id)) < 0
               ? -1
               : amp_edit_int(e, 0, "retry_count", amp_attempt_after(e->v->attempt, UINT32_MAX));
}

static const char *const silent[] = {"ACKNOWLEDGEMENT", "HEARTBEAT", NULL};

const struct amp_terms amp_terms_sw4rm = {
    .acknowledges = true,
    .waits_for = AMP_STAGE_RECEIVED,
    .begins_read = true,
    .stages_follow = true,
    .expires_unread = true,
    .overdue_code = "tool_timeout",
    .tells = AMP_TELLS_NACK,
    .ack_timeout_ms = 10000,
    .silent = silent,
    .expiry_fails = true, /* §11 */
    .work_ms = call_ms,
    .not_holder = "permission_denied",
    .retries = {.base_ms = 1000, .cap_ms = 300000},
    .again = attempt_edit,
    .own_retries = call_retries,
    .numbering = AMP_NUMBERED_BY_PRODUCER,
    .answer = answer_write,
    .answers = is_answerable,
};
