/*
 * amp-ack track: a pass-through that lets no message by before the ledger has it on disk. Messages
 * that need an acknowledgement get a deadline; acknowledgements that pass settle what they answer.
 */
#include "pass.h"

#include <string.h>

#include <amp/base/clock.h>

#include "message/message.h"

static const char *in_path = "-", *out_path = "-";
static int64_t open_timeout_ms = 60000;
static bool hold, resend;

const struct amp_opt track_opts[] = {
    {'i', "in", AMP_OPT_PATH, &in_path, "PATH",
     .doc = "read from PATH (a FIFO is opened without waiting)"},
    {'o', "out", AMP_OPT_PATH, &out_path, "PATH", .doc = "write to PATH"},
    {0, "hold", AMP_OPT_FLAG, &hold, NULL, .doc = "keep an input FIFO open: no end of file"},
    {0, "open-timeout", AMP_OPT_DURATION, &open_timeout_ms, "TIME",
     .doc = "how long to wait for a reader of --out"},
    {0, "resend", AMP_OPT_FLAG, &resend, NULL,
     .doc = "first pass on again what nobody acknowledged yet"},
    AMP_OPT_END,
};

static int acknowledge(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    struct amp_error e = {0};
    char by[128];
    bool late = false;
    amp_span_copy(v->from, by, sizeof(by));
    if (amp_message_ack(p->store, v->body.ack.ref, v->body.ack.stage, by, v->body.ack.code,
                        amp_now_ms(), &late, &e) == 0)
        return pass_emit(p, v->line, err);
    if (e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    /* It answers nothing that we know (or comes out of turn): worth a word, not worth losing. */
    amp_buf_fmt(&p->said, NULL, "an acknowledgement of %.*s: %s: %s\n",
                (int)(v->body.ack.ref.n < 200 ? v->body.ack.ref.n : 200), v->body.ack.ref.p, e.code,
                e.what);
    return pass_emit(p, v->line, err);
}

static int take(struct pass *p, const struct amp_view *v, struct amp_error *err)
{
    if (v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK)
        return acknowledge(p, v, err);
    if (v->id.n == 0)
        return pass_emit(p, v->line, err);
    enum amp_store_outcome how;
    struct amp_error e = {0};
    if (amp_message_record(p->store, v, amp_now_ms(), &how, &e) == 0)
        return pass_emit(p, v->line, err);
    if (e.status == AMP_NO)
        return pass_reject(p, v, &e, err);
    *err = e;
    return -1;
}

static int open_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct pass *p = ctx;
    struct amp_message_rec r;
    struct amp_error err;
    if (rec->due_ms == 0)
        return 0;
    AMP_BUF struct amp_buf mem;
    amp_buf_init(&mem, (size_t)256 << 20);
    if (amp_message_parse(rec, &mem, &r, &err) < 0 || pass_emit(p, r.line, &err) < 0) {
        amp_complain(&err);
        amp_status_note(err.status);
        return 1;
    }
    return 0;
}

static int begin(struct pass *p, struct amp_error *err)
{
    if (resend) {
        resend = false;
        return amp_store_each(p->store, "message", NULL, open_fn, p, err);
    }
    return 0;
}

int ack_track(int argc, char **argv)
{
    int status;
    if (argc > 0)
        amp_die_usage("'%s' is not expected", argv[0]);
    struct pass p = {.in_path = in_path,
                     .out_path = out_path,
                     .open_timeout_ms = open_timeout_ms,
                     .hold = hold,
                     .take = take,
                     .begin = begin};
    p.store = ack_open_state(ACK_MAKE, &status);
    return p.store ? pass_run(&p) : status;
}
