/*
 * The sweep: what nobody acknowledged in time, and agents that fell silent. The escalation is
 * composed first and then committed together with the transition: whoever loses the race throws
 * its draft away, and a crash leaves either both or neither.
 */
#include <stdio.h>
#include <string.h>

#include "message/settle/step.h"
#include "message/settle/sweep.h"
#include "protocol/amp/amp.h"

static void escalation_emit(struct amp_sweep *sw, struct amp_store_change *change)
{
    change->actor = sw->opt->actor;
    change->emits = &sw->emit;
    change->n_emits = 1;
    sw->committed = true;
}

static int overdue_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct amp_sweep *sw = ctx;
    (void)rec;
    /* One turn, so that a number which is taken for an answer leaves with it. */
    sw->rc = amp_store_begin(sw->store, sw->err);
    if (sw->rc < 0)
        return 1;
    sw->rc = amp_overdue_look(sw, id);
    amp_store_end(sw->store);
    return sw->rc < 0;
}

/* What the sweep needs of an agent, and its record that a silence was reported. */
struct agent {
    struct amp_span task;
    int64_t last_seen, limit_ms;
};
static const struct amp_rec_field agent_fields[] = {
    AMP_REC(TEXT, struct agent, "task", task),
    AMP_REC(INT, struct agent, "last_seen", last_seen),
    AMP_REC(INT, struct agent, "limit_ms", limit_ms),
};
AMP_REC_TABLE(agent_rec, "an agent's record", struct agent, agent_fields);

struct silence {
    int64_t last_seen_ms;
    const char *escalation;
};
static const struct amp_rec_field silence_fields[] = {
    AMP_REC(INT, struct silence, "last_seen_ms", last_seen_ms),
    AMP_REC(CSTR, struct silence, "escalation", escalation),
};
AMP_REC_TABLE(silence_rec, "the record of a silence", struct silence, silence_fields);

static int silence_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                      struct amp_error *err)
{
    struct amp_sweep *sw = ctx;
    struct silence told;
    if (now->found) {
        if (amp_rec_parse(&silence_rec, now->json, &sw->out, &told, err) < 0)
            return -1;
        if (told.last_seen_ms >= sw->last_seen)
            return 1;
    }
    told = (struct silence){sw->last_seen, sw->id};
    amp_buf_reset(&sw->out);
    if (amp_rec_write(&silence_rec, &told, &sw->out, err) < 0)
        return -1;
    change->event = "heartbeat_timeout";
    change->to = "SILENT";
    change->json = amp_buf_span(&sw->out);
    escalation_emit(sw, change);
    return 0;
}

/* Reads one agent's record: 1 when it is silent for too long. */
static int agent_is_silent(struct amp_sweep *sw, struct amp_span json, struct amp_span *task)
{
    struct agent a;
    if (amp_rec_parse(&agent_rec, json, &sw->mem, &a, sw->err) < 0)
        return -1;
    *task = a.task;
    sw->last_seen = a.limit_ms > 0 ? 0 : a.last_seen; /* a limit: it is not at work */
    return sw->last_seen > 0 && sw->last_seen + sw->opt->silence_ms <= sw->now_ms;
}

static int agent_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct amp_sweep *sw = ctx;
    struct amp_span task;
    char what[512], seen[AMP_TIME_MAX], task_text[128];
    if (rec->due_ms == 0)
        return 0; /* it is not at work: nobody waits for it */
    sw->rc = -1;
    int silent = agent_is_silent(sw, rec->json, &task);
    if (silent <= 0) {
        sw->rc = silent;
        return silent < 0;
    }
    amp_span_copy(task, task_text, sizeof(task_text));
    amp_time_format(sw->last_seen, seen);
    snprintf(what, sizeof(what),
             "Agent %.*s, at work on %s, gave no sign of life for %lld min: last seen at %s",
             (int)id.n, id.p, task_text, (long long)(sw->opt->silence_ms / 60000), seen);
    const char *affected[] = {NULL};
    const char *suggested[] = {"Look whether the agent's process is alive",
                               "Dispatch the task again", "Terminate the task", NULL};
    /* Which protocol's task an agent works on its record does not say; AMP's have a form of their
     * own. */
    struct amp_span protocol = amp_is_task_id(task) ? AMP_SPAN("amp") : AMP_SPAN("");
    if (amp_tell_person(sw, "heartbeat_timeout", sw->opt->severity, protocol, task, what, affected,
                        suggested) < 0)
        return 1;
    enum amp_store_outcome how;
    if (amp_store_update(sw->store, "silence", id, NULL, silence_fn, sw, &how, sw->err) < 0)
        return 1;
    sw->raised += sw->committed;
    if (sw->committed)
        amp_step_count(sw, AMP_SPAN("heartbeat_timeout"));
    sw->rc = 0;
    return 0;
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
    if (rc == 0)
        rc = sw.rc;
    if (rc == 0 && opt->silence_ms > 0) {
        rc = amp_store_each(s, "agent", NULL, agent_fn, &sw, err);
        if (rc == 0)
            rc = sw.rc;
    }
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
    struct amp_store *store;
    int64_t silence_ms, due_ms;
    struct amp_error *err;
    int rc;
};

/* Whether the silence since that sign of life was told already. */
static bool silence_told(struct amp_store *s, struct amp_span agent, int64_t seen)
{
    struct amp_store_rec rec;
    struct silence told;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_RECORD_MAX);
    return amp_store_get(s, "silence", agent, &rec, NULL) == 0 && rec.found &&
           amp_rec_parse(&silence_rec, rec.json, &mem, &told, NULL) == 0 &&
           told.last_seen_ms >= seen;
}

static int earliest_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct earliest *e = ctx;
    struct agent a;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_rec_parse(&agent_rec, rec->json, &mem, &a, NULL) == 0 && rec->due_ms > 0 &&
        a.limit_ms == 0 && a.last_seen > 0 &&
        (e->due_ms == 0 || a.last_seen + e->silence_ms < e->due_ms) &&
        !silence_told(e->store, id, a.last_seen))
        e->due_ms = a.last_seen + e->silence_ms;
    return 0;
}

/* By the order of the index, which has the usual silence: so much later a row may stand there. */
static int message_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct earliest *e = ctx;
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {0};
    int64_t later =
        e->silence_ms > 0 && e->silence_ms < AMP_SILENCE_MS ? AMP_SILENCE_MS - e->silence_ms : 0;
    (void)id;
    if (e->due_ms > 0 && rec->due_ms - later >= e->due_ms)
        return 1;
    amp_buf_init(&mem, AMP_RECORD_MAX);
    e->rc = amp_message_parse(rec, &mem, &r, e->err);
    if (e->rc < 0)
        return 1;
    int64_t due = amp_record_due(&r, e->silence_ms);
    if (due > 0 && (e->due_ms == 0 || due < e->due_ms))
        e->due_ms = due;
    return 0;
}

static int message_due(struct earliest *e)
{
    if (e->silence_ms == AMP_SILENCE_MS)
        return amp_store_next_due(e->store, AMP_MESSAGE_KIND, &e->due_ms, e->err);
    return amp_store_due(e->store, AMP_MESSAGE_KIND, INT64_MAX, message_fn, e, e->err) < 0 ? -1
                                                                                           : e->rc;
}

int amp_message_next_due(struct amp_store *s, int64_t silence_ms, int64_t *due_ms,
                         struct amp_error *err)
{
    struct earliest e = {.store = s, .silence_ms = silence_ms, .err = err};
    if (message_due(&e) < 0)
        return -1;
    if (silence_ms > 0 && amp_store_each(s, "agent", NULL, earliest_fn, &e, err) < 0)
        return -1;
    *due_ms = e.due_ms;
    return 0;
}
