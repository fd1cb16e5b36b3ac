/*
 * amp-ack send: the acknowledgements of the messages on stdin. With a state directory each one
 * stands in the ledger before it leaves.
 */
#include "pass.h"

#include <string.h>

#include <amp/base/clock.h>

#include "message/message.h"
#include "protocol/compose.h"

static const char *in_path = "-", *out_path = "-", *stage = "READ", *from, *note, *code,
                  *message = "refused";
static int64_t open_timeout_ms = 60000;
static bool every, retryable;

static const char *const stages[] = {"RECEIVED", "READ", "FULFILLED", "REJECTED", "FAILED", NULL};

const struct amp_opt send_opts[] = {
    {0, "stage", AMP_OPT_CHOICE, &stage, "STAGE", .doc = "what to say", .choices = stages},
    {0, "from", AMP_OPT_STRING, &from, "ROLE", .doc = "who says it; else the message's recipient"},
    {0, "note", AMP_OPT_STRING, &note, "TEXT", .doc = "a note for people"},
    {0, "code", AMP_OPT_STRING, &code, "CODE", .doc = "the code of a REJECTED or FAILED"},
    {0, "message", AMP_OPT_STRING, &message, "TEXT", .doc = "why it is REJECTED or FAILED"},
    {0, "retryable", AMP_OPT_FLAG, &retryable, NULL, .doc = "sending again may help"},
    {0, "every", AMP_OPT_FLAG, &every, NULL, .doc = "also messages that ask for none"},
    {'i', "in", AMP_OPT_PATH, &in_path, "PATH", .doc = "read from PATH"},
    {'o', "out", AMP_OPT_PATH, &out_path, "PATH", .doc = "write to PATH"},
    {0, "open-timeout", AMP_OPT_DURATION, &open_timeout_ms, "TIME",
     .doc = "how long to wait for a reader of --out"},
    AMP_OPT_END,
};

static enum amp_ack_stage stage_of(const char *word)
{
    for (int i = 0; stages[i]; i++)
        if (strcmp(word, stages[i]) == 0)
            return (enum amp_ack_stage)i;
    return AMP_STAGE_READ;
}

static int take(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    enum amp_ack_stage st = stage_of(stage);
    int64_t now = amp_now_ms();
    char by[128] = "system";
    struct amp_error e = {0};
    if (v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK || v->id.n == 0 ||
        !(v->needs_ack || every))
        return 0;
    AMP_BUF struct amp_buf line;
    amp_buf_init(&line, 1 << 20);
    if (from)
        snprintf(by, sizeof(by), "%s", from);
    else if (v->n_to > 0)
        amp_span_copy(v->to[0], by, sizeof(by));
    int rc = st == AMP_STAGE_REJECTED || st == AMP_STAGE_FAILED
                 ? amp_compose_nack(v, st, by, code ? code : "rejected", message, "send", retryable,
                                    now, &line, &e)
                 : amp_compose_ack(v, st, by, note, now, &line, &e);
    if (rc == 0 && p->store) {
        enum amp_store_outcome how;
        rc = amp_message_record(p->store, v, now, &how, &e);
        if (rc == 0)
            rc = amp_message_ack(p->store, v->id, st, by, amp_span_str(code ? code : ""), now, NULL,
                                 &e);
    }
    if (rc < 0 && e.status == AMP_NO)
        return pass_reject(p, v, &e, err);
    if (rc < 0) {
        *err = e;
        return -1;
    }
    line.len--; /* its LF */
    return pass_emit(p, amp_buf_span(&line), err);
}

int ack_send(int argc, char **argv)
{
    int status;
    if (argc > 0)
        amp_die_usage("'%s' is not expected", argv[0]);
    struct pass p = {
        .in_path = in_path, .out_path = out_path, .open_timeout_ms = open_timeout_ms, .take = take};
    p.store = ack_open_state(ACK_OPTIONAL, &status);
    return status ? status : pass_run(&p);
}
