/* amp-ack status: the state of delivery of each message. */
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "cli/table.h"
#include "hitl/pause/pause.h"
#include "message/inbox/inbox.h"
#include "message/ledger/ledger.h"
#include "message/record/record.h"
#include "pass.h"

static bool json, all;
static const char *task;

const struct amp_opt status_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "print one JSON object per line"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL, .doc = "include messages that have ended"},
    {0, "task", AMP_OPT_STRING, &task, "GLOB", .doc = "only these tasks", .values = "task"},
    AMP_OPT_END,
};

struct listing {
    struct amp_table t;
    struct amp_buf mem;
    unsigned long count[AMP_DELIVERY_STATE_COUNT];
    int64_t now_ms;
};

/* Open: an acknowledgement or an outcome is missing. A message that needs none is settled when it
 * is sent. */
static bool is_open(const struct amp_message_rec *r)
{
    switch (r->state) {
    case AMP_DELIVERY_TIMED_OUT:
        return r->given_up.n == 0;
    case AMP_DELIVERY_RETRYING: /* the next attempt has a row of its own */
        return r->departed_ms == 0;
    case AMP_DELIVERY_REJECTED:
    case AMP_DELIVERY_FAILED:
        return false;
    default:
        return amp_record_due(r, AMP_SILENCE_MS) > 0;
    }
}

static void age_format(int64_t ms, char out[24])
{
    long long s = ms / 1000;
    if (s < 0)
        snprintf(out, 24, "in %llds", -s);
    else if (s < 120)
        snprintf(out, 24, "%llds", s);
    else if (s < 7200)
        snprintf(out, 24, "%lldm", s / 60);
    else
        snprintf(out, 24, "%lldh", s / 3600);
}

static void time_put(struct amp_jw *w, const char *key, int64_t ms)
{
    char t[AMP_TIME_MAX];
    if (ms == 0)
        return;
    amp_time_format(ms, t);
    amp_jw_member_text(w, key, t);
}

static int json_print(struct amp_span id, const struct amp_message_rec *r, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_jw w;
    amp_buf_init(&b, 1 << 20);
    amp_jw_init(&w, &b);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "msg_id", id);
    amp_jw_member_str(&w, "protocol", r->protocol);
    amp_jw_member_str(&w, "type", r->type);
    amp_jw_member_str(&w, "from", r->from);
    amp_jw_member_str(&w, "to", r->to);
    amp_jw_member_str(&w, "task_id", r->task);
    amp_jw_member_text(&w, "state", amp_delivery_fsm.states[r->state].name);
    amp_jw_some_str(&w, "origin", r->origin);
    amp_jw_some_str(&w, "next", r->next);
    amp_jw_some_str(&w, "given_up", r->given_up);
    time_put(&w, "sent", r->sent_ms);
    time_put(&w, "due", amp_record_due(r, AMP_SILENCE_MS));
    time_put(&w, "timed_out", r->timed_out_ms);
    if (r->attempt > 0)
        amp_jw_member_int(&w, "attempt", r->attempt);
    amp_jw_key(&w, "acks");
    amp_record_acks(r, &w);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&b), err);
}

static int row_add(struct listing *l, struct amp_span id, const struct amp_message_rec *r,
                   struct amp_error *err)
{
    char sent[24], due[24] = "", way[128];
    age_format(l->now_ms - r->sent_ms, sent);
    int64_t due_ms = amp_record_due(r, AMP_SILENCE_MS);
    if (due_ms > 0)
        age_format(l->now_ms - due_ms, due);
    snprintf(way, sizeof(way), "%.*s → %.*s", (int)(r->from.n < 48 ? r->from.n : 48), r->from.p,
             (int)(r->to.n < 48 ? r->to.n : 48), r->to.p);
    const struct amp_span cells[] = {id,
                                     amp_span_str(way),
                                     r->task,
                                     amp_span_str(amp_delivery_fsm.states[r->state].name),
                                     amp_span_str(sent),
                                     amp_span_str(due)};
    return amp_table_row(&l->t, cells, 6, err);
}

static int row_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                  struct amp_error *err)
{
    struct listing *l = ctx;
    struct amp_message_rec r;
    if (amp_message_parse(rec, &l->mem, &r, err) < 0)
        return -1;
    if (task && !amp_span_glob(r.task, amp_span_str(task)))
        return 0;
    l->count[r.state]++;
    if (!all && !is_open(&r))
        return 0;
    return json ? json_print(id, &r, err) : row_add(l, id, &r, err);
}

static int totals_print(struct listing *l, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 4096);
    for (int i = 0; i < AMP_DELIVERY_STATE_COUNT; i++)
        if (l->count[i] > 0 && amp_buf_fmt(&b, err, "%s%lu %s", b.len > 0 ? ", " : "", l->count[i],
                                           amp_delivery_fsm.states[i].name) < 0)
            return -1;
    if (amp_buf_str(&b, b.len > 0 ? "\n" : "no messages\n", err) < 0)
        return -1;
    return amp_out(amp_buf_span(&b), err);
}

/* The waiting messages of an agent, and whether the agent is busy. */
static int inbox_fn(void *ctx, const struct amp_inbox_info *i, struct amp_error *err)
{
    struct listing *l = ctx;
    AMP_BUF struct amp_buf b = {0};
    char old[24];
    amp_buf_init(&b, 4096);
    age_format(l->now_ms - i->oldest_ms, old);
    if (amp_buf_str(&b, "inbox of ", err) < 0 || amp_text_safe(i->agent, 48, &b, err) < 0 ||
        amp_buf_fmt(&b, err, ": %u of %u%s%s%s\n", i->waiting, i->bound,
                    i->waiting > 0 ? ", the oldest for " : "", i->waiting > 0 ? old : "",
                    i->until_ms > l->now_ms ? ", busy" : "") < 0)
        return -1;
    return amp_out(amp_buf_span(&b), err);
}

static int pauses_print(struct amp_store *s, struct amp_error *err)
{
    AMP_CLEANUP(amp_pauses_release) struct amp_pauses now = {0};
    AMP_BUF struct amp_buf b = {0};

    amp_pauses_init(&now);
    if (amp_pauses_read(s, &now, err) < 0)
        return -1;
    amp_buf_init(&b, 1u << 20);
    for (uint32_t i = 0; i < now.n_v; i++) {
        const struct amp_pause *p = &now.v[i];
        if (amp_buf_fmt(&b, err, "suspended by ") < 0 ||
            amp_text_safe(p->person, 48, &b, err) < 0 ||
            amp_buf_fmt(&b, err, ": %s%s", amp_pause_scope_name((int)p->scope),
                        p->name.n ? " " : "") < 0 ||
            amp_text_safe(p->name, 60, &b, err) < 0 || amp_buf_str(&b, "\n", err) < 0)
            return -1;
    }
    return amp_out(amp_buf_span(&b), err);
}

int ack_status(int argc, char **argv)
{
    static const char *const head[] = {"id", "from → to", "task", "state", "age", "overdue"};
    int status;
    ACK_STATE *s = ack_open_state(ACK_LOOK, &status);
    if (!s)
        return status;
    struct amp_error err;
    struct listing l = {.now_ms = amp_now_ms()};
    amp_table_init(&l.t, head, 6);
    amp_buf_init(&l.mem, (size_t)256 << 20);
    if (amp_store_each(s, AMP_MESSAGE_KIND, NULL, row_fn, &l, &err) < 0 ||
        (!json &&
         ((l.t.rows > 1 && amp_table_print(&l.t, &err) < 0) || totals_print(&l, &err) < 0 ||
          amp_inbox_infos(s, inbox_fn, &l, &err) < 0 || pauses_print(s, &err) < 0)))
        status = amp_complain(&err);
    amp_table_release(&l.t);
    amp_buf_release(&l.mem);
    return status;
}
