/*
 * The sweep: what was not acknowledged in time. The escalation is composed first and then committed
 * together with the transition: the loser of a race drops its draft, and a crash leaves either both
 * or neither.
 */
#include "message/settle/sweep.h"
#include "message/settle/step.h"

static int overdue_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct amp_sweep *sw = ctx;
    /* One turn, so that a number which is taken for an answer leaves with it. */
    if (amp_store_begin(sw->store, err) < 0)
        return -1;
    int rc = amp_overdue_look(sw, id);
    amp_store_end(sw->store);
    return rc;
}

static void sweep_begin(struct amp_sweep *sw)
{
    amp_buf_init(&sw->line, 1 << 20);
    amp_buf_init(&sw->mem, AMP_RECORD_MAX);
    amp_buf_init(&sw->out, AMP_RECORD_MAX);
}

static void sweep_end(struct amp_sweep *sw)
{
    amp_reader_free(sw->reader);
    amp_buf_release(&sw->line);
    amp_buf_release(&sw->mem);
    amp_buf_release(&sw->out);
}

int amp_message_sweep(struct amp_store *s, int64_t now_ms, const struct amp_sweep_options *opt,
                      uint32_t *raised, struct amp_error *err)
{
    struct amp_sweep sw = {.store = s, .opt = opt, .now_ms = now_ms, .err = err};
    /* The index has the usual silence: what is due earlier by a shorter one is looked at too. */
    bool sooner = opt->silence_ms > 0 && opt->silence_ms < AMP_SILENCE_MS;
    int64_t ahead = sooner ? AMP_SILENCE_MS - opt->silence_ms : 0;
    sweep_begin(&sw);
    int rc = amp_store_due(s, AMP_MESSAGE_KIND, now_ms + ahead, overdue_fn, &sw, err);
    if (rc == 0 && raised)
        *raised = sw.raised;
    sweep_end(&sw);
    return rc;
}

int amp_message_sweep_one(struct amp_store *s, struct amp_span id, int64_t now_ms,
                          const struct amp_sweep_options *opt, struct amp_error *err)
{
    struct amp_sweep sw = {.store = s, .opt = opt, .now_ms = now_ms, .err = err};
    sweep_begin(&sw);
    int rc = amp_overdue_look(&sw, id);
    sweep_end(&sw);
    return rc;
}

struct earliest {
    int64_t silence_ms, due_ms;
};

/* By the order of the index, which has the usual silence: so much later a row may stand there. */
static int message_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct earliest *e = ctx;
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {0};
    int64_t later =
        e->silence_ms > 0 && e->silence_ms < AMP_SILENCE_MS ? AMP_SILENCE_MS - e->silence_ms : 0;
    if (e->due_ms > 0 && rec->due_ms - later >= e->due_ms)
        return 1;
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_message_parse(rec, &mem, &r, err) < 0)
        return -1;
    int64_t due = amp_record_due(&r, e->silence_ms);
    if (due > 0 && (e->due_ms == 0 || due < e->due_ms))
        e->due_ms = due;
    return 0;
}

int amp_message_next_due(struct amp_store *s, int64_t silence_ms, int64_t *due_ms,
                         struct amp_error *err)
{
    struct earliest e = {.silence_ms = silence_ms};
    if (silence_ms == AMP_SILENCE_MS)
        return amp_store_next_due(s, AMP_MESSAGE_KIND, due_ms, err);
    if (amp_store_due(s, AMP_MESSAGE_KIND, INT64_MAX, message_fn, &e, err) < 0)
        return -1;
    *due_ms = e.due_ms;
    return 0;
}
