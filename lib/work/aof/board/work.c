/* One change of the router: its lock, its events, its transitions, and what follows its commit. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "work/aof/board/private.h"

int amp_aof_work_begin(struct amp_aof_router *r, struct amp_aof_work *w, struct amp_error *err)
{
    *w = (struct amp_aof_work){.r = r};
    amp_buf_init(&w->messages, 1 << 20);
    if (amp_aof_lock(&r->data, r->o.lock_timeout_ms, err) < 0)
        return -1;
    return amp_aof_change_init(&w->c, &r->data, r->o.actor, amp_now_ms(), err);
}

void amp_aof_work_end(struct amp_aof_work *w)
{
    if (w->r)
        amp_aof_unlock(&w->r->data);
    amp_aof_change_release(&w->c);
    amp_buf_release(&w->messages);
}

static int lines_emit(const struct amp_aof_options *o, struct amp_span lines,
                      int (*emit)(void *ctx, struct amp_span line, struct amp_error *err),
                      struct amp_error *err)
{
    while (lines.n > 0) {
        const char *lf = memchr(lines.p, '\n', lines.n);
        size_t n = lf ? (size_t)(lf - lines.p) + 1 : lines.n;
        if (emit(o->ctx, (struct amp_span){lines.p, n}, err) < 0)
            return -1;
        lines = (struct amp_span){lines.p + n, lines.n - n};
    }
    return 0;
}

int amp_aof_work_commit(struct amp_aof_work *w, struct amp_error *err)
{
    struct amp_aof_router *r = w->r;
    enum amp_aof_made made = amp_aof_commit(&w->c, err);
    /* The change of a killed writer may have had notifications. */
    bool notices = w->notices > 0 || r->data.recovered.len > 0;
    amp_aof_unlock(&r->data);
    w->cut = made == AMP_AOF_MADE_PART;
    if (made == AMP_AOF_MADE_FAILED ||
        lines_emit(&r->o, amp_buf_span(&r->data.recovered), r->o.emit, err) < 0)
        return -1;
    amp_buf_reset(&r->data.recovered);
    if (lines_emit(&r->o, amp_buf_span(&w->c.events), r->o.emit, err) < 0 ||
        lines_emit(&r->o, amp_buf_span(&w->messages), r->o.say, err) < 0)
        return -1;
    for (unsigned i = 0; i < w->n_alerts && r->o.alert; i++)
        r->o.alert(r->o.ctx, w->alerts[i].task, w->alerts[i].reason);
    return notices ? amp_aof_notices_send(r, err) : 0;
}

/* A name in a message that is refused may be as long as the message; its beginning identifies it.
 */
static void name_write(struct amp_jw *j, const char *key, struct amp_span name)
{
    enum { MOST = 4096 };
    static const char dots[] = "\xe2\x80\xa6";
    char cut[MOST + sizeof dots];
    size_t n = MOST;
    if (name.n > MOST) {
        while (n > 0 && ((unsigned char)name.p[n] & 0xc0) == 0x80)
            n--; /* a character stays whole */
        memcpy(cut, name.p, n);
        memcpy(cut + n, dots, sizeof dots);
        name = (struct amp_span){cut, n + sizeof dots - 1};
    }
    amp_jw_some_str(j, key, name);
}

int amp_aof_why_event(struct amp_aof_work *w, const char *type, struct amp_span task,
                      const struct amp_aof_why *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw j;
    amp_buf_init(&payload, 1 << 20);
    amp_jw_init(&j, &payload);
    amp_jw_open(&j, '{');
    amp_jw_some_str(&j, "reason", amp_span_str(why->reason));
    if (why->v) {
        name_write(&j, "messageType", why->v->type);
        name_write(&j, "messageId", why->v->id);
        name_write(&j, "fromAgent", why->v->from);
        if (why->v->n_to > 0)
            name_write(&j, "toAgent", why->v->to[0]);
    }
    amp_jw_some_str(&j, "field", amp_span_str(why->field));
    amp_jw_some_str(&j, "errors", amp_span_str(why->errors));
    amp_jw_close(&j, '}');
    return amp_jw_end(&j, err) < 0
               ? -1
               : amp_aof_event_add(&w->c, type, task, amp_buf_span(&payload), err);
}

/* ---- transitions ---- */

static uint32_t facts_of(const struct amp_aof_router *r, const struct amp_aof_task *t)
{
    return r->o.stops_at_review && !t->no_review ? AMP_AOF_TASK_IF_STOPS : 0;
}

/* The steps of an event: the statuses after the first one, and the effects of all. */
struct status_steps {
    uint8_t at[AMP_AOF_TASK_STATE_COUNT];
    unsigned n;
    uint32_t effects;
};

static bool is_barred(const struct amp_aof_router *r, const struct amp_aof_task *t, uint8_t to)
{
    return t->status == AMP_AOF_REVIEW &&
           (r->speaker || (to == AMP_AOF_DONE && !r->person && facts_of(r, t) != 0));
}

static enum amp_aof_moved way_find(const struct amp_aof_router *r, const struct amp_aof_task *t,
                                   uint8_t event, struct status_steps *out)
{
    struct amp_fsm_result step = {.to = t->status};
    struct amp_error none;
    *out = (struct status_steps){0};
    do {
        uint8_t from = step.to;
        if (amp_fsm_step(&amp_aof_task_fsm, from, event, facts_of(r, t), &step, &none) < 0)
            return AMP_AOF_ILLEGAL;
        out->effects |= step.effects;
        if (step.to != from)
            out->at[out->n++] = step.to;
    } while ((step.effects & AMP_AOF_TASK_DO_GO_ON) && out->n < AMP_AOF_TASK_STATE_COUNT);
    if (out->n == 0)
        return AMP_AOF_SAME;
    return is_barred(r, t, out->at[out->n - 1]) ? AMP_AOF_BARRED : AMP_AOF_MOVED;
}

enum amp_aof_moved amp_aof_transition_of(const struct amp_aof_router *r,
                                         const struct amp_aof_task *t, uint8_t event)
{
    struct status_steps way;
    return way_find(r, t, event, &way);
}

uint8_t amp_aof_outcome_event(enum amp_aof_outcome o)
{
    static const uint8_t events[] = {
        [AMP_AOF_OUTCOME_NONE] = AMP_AOF_TASK_EV_READY,
        [AMP_AOF_OUTCOME_DONE] = AMP_AOF_TASK_EV_COMPLETE,
        [AMP_AOF_OUTCOME_BLOCKED] = AMP_AOF_TASK_EV_BLOCK,
        [AMP_AOF_OUTCOME_NEEDS_REVIEW] = AMP_AOF_TASK_EV_REVIEW,
        [AMP_AOF_OUTCOME_PARTIAL] = AMP_AOF_TASK_EV_REVIEW,
    };
    return events[o];
}

static int transitioned_add(struct amp_aof_work *w, const struct amp_aof_task *t, uint8_t from,
                            uint8_t to, struct amp_span reason, struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw j;
    amp_buf_init(&payload, 1 << 20);
    amp_jw_init(&j, &payload);
    amp_jw_open(&j, '{');
    amp_jw_member_text(&j, "from", amp_aof_status_name(from));
    amp_jw_member_text(&j, "to", amp_aof_status_name(to));
    amp_jw_some_str(&j, "reason", reason);
    amp_jw_close(&j, '}');
    return amp_jw_end(&j, err) < 0
               ? -1
               : amp_aof_event_add(&w->c, "task.transitioned", amp_span_str(t->id),
                                   amp_buf_span(&payload), err);
}

/* Adds what the last status of a transition means for the task, beside the transition. */
static int end_add(struct amp_aof_work *w, const struct amp_aof_task *t, uint8_t to,
                   struct amp_span reason, const char *outcome, struct amp_error *err)
{
    static const char *const types[AMP_AOF_TASK_STATE_COUNT] = {
        [AMP_AOF_DONE] = "task.completed",
        [AMP_AOF_CANCELLED] = "task.cancelled",
        [AMP_AOF_DEADLETTER] = "task.failed",
    };
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw j;
    if (!types[to])
        return 0;
    amp_buf_init(&payload, 1 << 20);
    amp_jw_init(&j, &payload);
    amp_jw_open(&j, '{');
    if (to == AMP_AOF_DONE)
        amp_jw_some_str(&j, "outcome", amp_span_str(outcome));
    else
        amp_jw_some_str(&j, "reason", reason);
    amp_jw_close(&j, '}');
    return amp_jw_end(&j, err) < 0 ? -1
                                   : amp_aof_event_add(&w->c, types[to], amp_span_str(t->id),
                                                       amp_buf_span(&payload), err);
}

static int lease_end_add(struct amp_aof_work *w, const struct amp_aof_task *t,
                         struct amp_span reason, struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw j;
    if (t->lease.n == 0)
        return 0;
    amp_buf_init(&payload, 1 << 20);
    amp_jw_init(&j, &payload);
    amp_jw_open(&j, '{');
    amp_jw_member_str(&j, "agent", t->lease);
    amp_jw_some_str(&j, "reason", reason);
    amp_jw_close(&j, '}');
    return amp_jw_end(&j, err) < 0
               ? -1
               : amp_aof_event_add(&w->c, w->expired ? "lease.expired" : "lease.released",
                                   amp_span_str(t->id), amp_buf_span(&payload), err);
}

int amp_aof_if_usable(int rc, const struct amp_error *why, struct amp_error *err)
{
    if (rc >= 0 || why->status == AMP_NO || why->status == AMP_DATAERR)
        return rc > 0;
    if (err)
        *err = *why;
    return -1;
}

static int run_read(struct amp_aof_router *r, const char *id, struct amp_buf *text,
                    struct amp_buf *mem, struct amp_aof_run *out, struct amp_error *err)
{
    char path[AMP_AOF_PATH_MAX];
    struct amp_error why;
    amp_aof_run_path(path, id, "run.json");
    int rc = amp_aof_get(&r->data, path, AMP_AOF_RUN_BYTES, text, &why);
    if (rc > 0 && (rc = amp_aof_run_read(amp_buf_span(text), mem, out, &why)) == 0)
        rc = amp_span_is(out->task, id);
    return amp_aof_if_usable(rc, &why, err);
}

int amp_aof_run_load(struct amp_aof_router *r, const char *id, struct amp_buf *mem,
                     struct amp_aof_run *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, AMP_AOF_RUN_BYTES + 1);
    return run_read(r, id, &text, mem, out, err);
}

int amp_aof_run_end(struct amp_aof_work *w, const char *id, const char *expired,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0}, mem = {0}, out = {0};
    char path[AMP_AOF_PATH_MAX];
    struct amp_aof_run run;
    amp_buf_init(&text, AMP_AOF_RUN_BYTES + 1);
    amp_buf_init(&mem, AMP_AOF_RUN_BYTES * 2);
    amp_buf_init(&out, AMP_AOF_RUN_BYTES * 8); /* a control character becomes six bytes */
    int rc = run_read(w->r, id, &text, &mem, &run, err);
    if (rc <= 0 || (!expired && strcmp(run.status, "running") != 0))
        return rc < 0 ? -1 : 0;
    run.status = expired ? "failed" : "completed";
    if (expired) {
        run.reason = expired;
        run.expired_ms = w->c.now_ms;
    } else {
        run.ended_ms = w->c.now_ms;
    }
    amp_aof_run_path(path, id, "run.json");
    return amp_aof_run_write(&run, amp_buf_span(&text), &out, err) < 0
               ? -1
               : amp_aof_put(&w->c, path, amp_buf_span(&out), err);
}

int amp_aof_invalid_event(struct amp_aof_work *w, const char *id, const struct amp_error *why,
                          struct amp_error *err)
{
    const struct amp_aof_why what = {.reason = why->code, .errors = why->what};
    return amp_aof_why_event(w, "task.validation.failed", amp_span_str(id), &what, err);
}

int amp_aof_transition(struct amp_aof_work *w, const struct amp_aof_task *t, uint8_t event,
                       struct amp_span reason, const char *outcome, enum amp_aof_moved *moved,
                       struct amp_error *err)
{
    struct amp_aof_set set[8];
    char time[AMP_TIME_MAX], expires[AMP_TIME_MAX];
    struct status_steps way;
    unsigned n = 0;
    *moved = way_find(w->r, t, event, &way);
    if (*moved != AMP_AOF_MOVED)
        return 0;
    uint8_t from = t->status, to = way.at[way.n - 1];
    /* The first step: if a person has moved the task by then, nothing else is done. */
    if (amp_aof_move(&w->c, t->id, from, to, err) < 0)
        return -1;
    amp_time_format(w->c.now_ms, time);
    set[n++] = (struct amp_aof_set){"status", amp_span_str(amp_aof_status_name(to))};
    set[n++] = (struct amp_aof_set){"updatedAt", amp_span_str(time)};
    set[n++] = (struct amp_aof_set){"lastTransitionAt", amp_span_str(time)};
    if (way.effects & AMP_AOF_TASK_DO_FREE)
        set[n++] = (struct amp_aof_set){.path = "lease"};
    if (way.effects & AMP_AOF_TASK_DO_LEASE) {
        if (amp_aof_run_begin(w, t, err) < 0)
            return -1;
        amp_time_format(w->c.now_ms + w->lease->lease_ms, expires);
        set[n++] = (struct amp_aof_set){"lease.agent", amp_span_str(w->agent)};
        set[n++] = (struct amp_aof_set){"lease.acquiredAt", amp_span_str(time)};
        set[n++] = (struct amp_aof_set){"lease.expiresAt", amp_span_str(expires)};
        set[n++] = (struct amp_aof_set){"lease.renewCount", AMP_SPAN("0")};
    }
    if ((way.effects & AMP_AOF_TASK_DO_END) && amp_aof_run_end(w, t->id, NULL, err) < 0)
        return -1;
    if (amp_aof_edit(&w->c, t->id, to, set, n, AMP_SPAN(""), err) < 0)
        return -1;
    for (unsigned i = 0; i < way.n; from = way.at[i++])
        if (transitioned_add(w, t, from, way.at[i], reason, err) < 0)
            return -1;
    if (end_add(w, t, to, reason, outcome, err) < 0 ||
        ((way.effects & AMP_AOF_TASK_DO_FREE) && lease_end_add(w, t, reason, err) < 0))
        return -1;
    const struct amp_aof_notice notice = {
        .kind = way.effects & AMP_AOF_TASK_DO_NOTIFY ? amp_aof_status_name(to) : NULL,
        .task = t->id,
        .agent = amp_aof_owner(t),
        .status = amp_aof_status_name(to),
        .reason = reason};
    /* A question about the old status is settled. */
    bool asked = t->status == AMP_AOF_REVIEW || t->status == AMP_AOF_BLOCKED;
    return notice.kind || asked ? amp_aof_notice_add(w, &notice, err) : 0;
}

void amp_aof_run_path(char out[AMP_AOF_PATH_MAX], const char *id, const char *name)
{
    snprintf(out, AMP_AOF_PATH_MAX, "runs/%s/%s", id, name);
}
