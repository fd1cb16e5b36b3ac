/* amp-ack dead: what could not be delivered, for a person to look at and to send again. */
#include "message/dead.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "pass.h"
#include "table.h"

#define REQUEUE_NAME "amp-ack.dead"

static bool json, every, all;
static const char *code, *task, *out_path = "-";
static int64_t open_timeout_ms = 60000;

const struct amp_opt dead_list_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "one record a line"},
    {0, "code", AMP_OPT_STRING, &code, "CODE", .doc = "only these"},
    {0, "task", AMP_OPT_STRING, &task, "GLOB", .doc = "only of these tasks"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL, .doc = "also those that were sent again"},
    AMP_OPT_END,
};
const struct amp_opt dead_show_opts[] = {AMP_OPT_END};
const struct amp_opt dead_requeue_opts[] = {
    {0, "every", AMP_OPT_FLAG, &every, NULL, .doc = "all letters (that --code and --task allow)"},
    {0, "code", AMP_OPT_STRING, &code, "CODE", .doc = "only these"},
    {0, "task", AMP_OPT_STRING, &task, "GLOB", .doc = "only of these tasks"},
    {'o', "out", AMP_OPT_PATH, &out_path, "PATH", .doc = "write to PATH"},
    {0, "open-timeout", AMP_OPT_DURATION, &open_timeout_ms, "TIME",
     .doc = "how long to wait for a reader of --out"},
    AMP_OPT_END,
};

static bool wanted(const struct amp_dead_letter *d)
{
    return (!code || strcmp(code, d->code) == 0) &&
           (!task || amp_span_glob(d->task, amp_span_str(task)));
}

struct listing {
    struct table t;
    struct amp_error err;
    int rc;
};

static int list_fn(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                   struct amp_span record)
{
    struct listing *l = ctx;
    char when[AMP_TIME_MAX], tries[16];
    if (!wanted(d))
        return 0;
    if (json) {
        l->rc = amp_out(record, &l->err);
        if (l->rc == 0)
            l->rc = amp_out(AMP_SPAN("\n"), &l->err);
        return l->rc < 0;
    }
    amp_time_format(d->failed_ms, when);
    snprintf(tries, sizeof(tries), "%lld", (long long)d->attempts);
    const struct amp_span cells[] = {id,
                                     amp_span_str(d->code),
                                     amp_span_str(d->retryable ? "temporary" : "permanent"),
                                     amp_span_str(when),
                                     amp_span_str(tries),
                                     amp_span_str(d->route)};
    l->rc = table_row(&l->t, cells, 6, &l->err);
    return l->rc < 0;
}

int ack_dead_list(int argc, char **argv)
{
    static const char *const head[] = {"id", "code", "class", "failed", "attempts", "route"};
    int status;
    if (argc > 0)
        amp_die_usage("'%s' is not expected", argv[0]);
    struct amp_store *s = ack_open_state(ACK_EXISTING, &status);
    if (!s)
        return status;
    struct listing l = {.rc = 0};
    table_init(&l.t, head, 6);
    if (amp_dead_each(s, all, list_fn, &l, &l.err) < 0 || l.rc < 0 ||
        (!json && table_print(&l.t, &l.err) < 0))
        status = amp_complain(&l.err);
    table_release(&l.t);
    amp_store_close(s);
    return status;
}

int ack_dead_show(int argc, char **argv)
{
    int status;
    struct amp_error err = {0};
    if (argc == 0)
        amp_die_usage("which one? (amp-ack dead list names them)");
    struct amp_store *s = ack_open_state(ACK_EXISTING, &status);
    for (int i = 0; s && i < argc; i++) {
        struct amp_store_rec rec;
        if (amp_store_get(s, "dead", amp_span_str(argv[i]), &rec, &err) < 0) {
            status = amp_complain(&err);
        } else if (!rec.found) {
            amp_warn("there is no dead letter %s", argv[i]);
            amp_status_note(AMP_NO);
        } else if (amp_out(rec.json, &err) < 0 || amp_out(AMP_SPAN("\n"), &err) < 0) {
            status = amp_complain(&err);
        }
    }
    amp_store_close(s);
    return status;
}

struct requeue {
    struct amp_store *s;
    struct amp_error *err;
    int rc;
};

static int requeue_one(struct amp_store *s, struct amp_span id, struct amp_error *err)
{
    struct amp_error e = {0};
    if (amp_dead_requeue(s, id, REQUEUE_NAME, amp_now_ms(), &e) == 0)
        return 0;
    if (e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    amp_warn("%.*s: %s", (int)id.n, id.p, e.what);
    amp_status_note(AMP_NO);
    return 0;
}

static int requeue_fn(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                      struct amp_span record)
{
    struct requeue *rq = ctx;
    if (!wanted(d))
        return 0;
    rq->rc = requeue_one(rq->s, id, rq->err);
    return rq->rc < 0;
}

static int requeue(struct amp_store *s, int argc, char **argv, struct amp_error *err)
{
    struct amp_outq q;
    AMP_CLOSE int lock = -1;
    struct requeue rq = {.s = s, .err = err};
    if (ack_open_output(out_path, open_timeout_ms, &q, err) < 0)
        return -1;
    int rc = ack_outbox_lock(s, REQUEUE_NAME, &lock, err);
    for (int i = 0; rc == 0 && i < argc; i++)
        rc = requeue_one(s, amp_span_str(argv[i]), err);
    if (rc == 0 && every) {
        rc = amp_dead_each(s, false, requeue_fn, &rq, err);
        if (rc == 0)
            rc = rq.rc;
    }
    if (rc == 0)
        rc = ack_outbox_emit(s, REQUEUE_NAME, &q, err);
    amp_outq_close(&q);
    return rc;
}

int ack_dead_requeue(int argc, char **argv)
{
    int status;
    struct amp_error err = {0};
    if ((argc == 0) == !every)
        amp_die_usage("name the letters, or give --every");
    amp_signals_install();
    struct amp_store *s = ack_open_state(ACK_EXISTING, &status);
    if (!s)
        return status;
    if (requeue(s, argc, argv, &err) < 0)
        status = amp_complain(&err);
    amp_store_close(s);
    return status;
}
