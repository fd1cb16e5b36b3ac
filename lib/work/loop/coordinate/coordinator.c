/* The state of a run: the store's turn, the queued lines, the known tasks, and the restoring of
 * what earlier runs left. */
#include "work/loop/coordinate/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/grow.h"
#include "people/question/record.h"
#include "work/loop/coordinate/cancel.h"
#include "work/task/suspend.h"

#define LINES_MAX ((size_t)256 << 20)

int amp_coordinator_begin(struct amp_coordinator *c, struct amp_error *err)
{
    if (c->turn)
        return 0;
    if (amp_store_begin(c->store, err) < 0)
        return -1;
    c->turn = true;
    return 0;
}

void amp_coordinator_pause(struct amp_coordinator *c)
{
    if (c->turn)
        amp_store_end(c->store);
    c->turn = false;
}

struct amp_known_task *amp_coordinator_know(struct amp_coordinator *c, struct amp_span id,
                                            bool open, struct amp_error *err)
{
    for (size_t i = 0; i < c->n_tasks; i++)
        if (amp_span_is(id, c->tasks[i].id)) {
            c->tasks[i].open = open;
            return &c->tasks[i];
        }
    if (amp_grow(&c->tasks, &c->cap_tasks, c->n_tasks, sizeof *c->tasks, err) < 0)
        return NULL;
    struct amp_known_task *k = &c->tasks[c->n_tasks];
    memset(k, 0, sizeof *k);
    if (!amp_span_copy(id, k->id, sizeof k->id)) {
        amp_fail(err, AMP_DATAERR, bad_task_id, "a task id that is too long");
        return NULL;
    }
    k->open = open;
    c->n_tasks++;
    return k;
}

int amp_coordinator_pass(struct amp_coordinator *c, struct amp_span line, struct amp_error *err)
{
    return amp_outq_add(&c->out, line, err) < 0 ? -1 : amp_outq_add(&c->out, AMP_SPAN("\n"), err);
}

int amp_coordinator_queue(struct amp_coordinator *c, struct amp_span line, struct amp_error *err)
{
    c->signed_line.max = c->out.buf.max;
    amp_buf_reset(&c->signed_line);
    return amp_identities_sign(c->opt->ids, line, &c->signed_line, err) < 0
               ? -1
               : amp_coordinator_pass(c, amp_buf_span(&c->signed_line), err);
}

/* New work of a task that people suspended is not sent. 1: it is held; 0: it is not. */
static int entry_hold(struct amp_coordinator *c, struct amp_span id, struct amp_span line,
                      struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    const struct amp_pause *by;
    struct amp_view v;
    if (!amp_span_starts(id, "task_dispatch-") && !amp_span_starts(id, "review_request-"))
        return 0;
    int held = amp_pause_look(&c->pauses, AMP_SPAN(""), AMP_SPAN(""), &by, err);
    if (held < 0 || c->pauses.now.n_v == 0)
        return held < 0 ? -1 : 0;
    int rc = amp_reader_line(c->own, line, &any, &v, NULL, NULL, err);
    if (rc < 0)
        return -1;
    by = amp_pauses_find(&c->pauses.now, rc ? v.task : AMP_SPAN(""), AMP_SPAN(""));
    if (!by)
        return 0;
    if (amp_grow(&c->held, &c->cap_held, c->n_held, sizeof *c->held, err) < 0)
        return -1;
    amp_span_copy(id, c->held[c->n_held++].id, sizeof c->held->id);
    char said[AMP_PAUSE_SAID_MAX];
    amp_pause_say(by, said);
    c->opt->warn("%.*s is not sent: %s", AMP_CLIP(id, 200), said);
    return 1;
}

/* Whether the line of an entry waits to be written. */
static bool is_queued(const struct amp_coordinator *c, struct amp_span id)
{
    for (size_t i = 0; i < c->n_emitted; i++)
        if (amp_span_is(id, c->emitted[i].id))
            return true;
    return false;
}

static int entry_adopt(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct amp_coordinator *c = ctx;
    return !amp_span_starts(e->id, AMP_CANCEL_NACK) || is_queued(c, e->id)
               ? 0
               : amp_coordinator_queue_entry(c, e->id, e->line, e->wants_ack, err);
}

int amp_coordinator_adopt(struct amp_coordinator *c, struct amp_error *err)
{
    return amp_store_outbox(c->store, c->opt->consumer, entry_adopt, c, err);
}

struct fresh {
    struct amp_coordinator *c;
    struct amp_buf lines; /* each with its LF; the ids are the last ones in c->adopted */
};

static int entry_see(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct fresh *f = ctx;
    struct amp_coordinator *c = f->c;
    for (size_t i = 0; i < c->n_adopted; i++)
        if (amp_span_is(e->id, c->adopted[i].id))
            return 0;
    if (amp_grow(&c->adopted, &c->cap_adopted, c->n_adopted, sizeof *c->adopted, err) < 0)
        return -1;
    amp_span_copy(e->id, c->adopted[c->n_adopted++].id, sizeof c->adopted->id);
    return amp_buf_add(&f->lines, e->line.p, e->line.n, err) < 0
               ? -1
               : amp_buf_str(&f->lines, "\n", err);
}

/* Tells whether the task still waits for this dispatch or question: it was neither cancelled nor
 * sent again. */
static int dispatch_counts(struct amp_coordinator *c, const struct amp_view *v, bool *counts,
                           struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    bool found = false;
    if (amp_task_load(c->store, v->task, &t, &found, err) < 0)
        return -1;
    const struct amp_task_part *p = found ? amp_task_turn(&t) : NULL;
    char id[AMP_MSG_ID_MAX];
    *counts = p && amp_task_is_open(t.state) && amp_span_copy(v->id, id, sizeof id) &&
              (strcmp(id, p->dispatch_ref) == 0 || amp_task_waits_for(&t, id));
    return 0;
}

static int line_adopt(struct amp_coordinator *c, const char *id, struct amp_span line,
                      struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    struct amp_view v;
    bool counts;
    int rc = amp_reader_line(c->own, line, &any, &v, NULL, NULL, err);
    if (rc <= 0)
        return rc;
    if (dispatch_counts(c, &v, &counts, err) < 0)
        return -1;
    if (!counts)
        return amp_store_outbox_acked(c->store, amp_span_str(id), err);
    if (!amp_coordinator_know(c, v.task, true, err))
        return -1;
    c->seen = true;
    return amp_coordinator_record(c, line, amp_now_ms(), err) < 0
               ? -1
               : amp_coordinator_queue_entry(c, amp_span_str(id), line, v.kind == AMP_KIND_DISPATCH,
                                             err);
}

int amp_coordinator_adopt_new(struct amp_coordinator *c, struct amp_error *err)
{
    struct fresh f = {.c = c, .lines = {.max = LINES_MAX}};
    size_t n = c->n_adopted;
    int rc = amp_store_outbox(c->store, AMP_CREATE_CONSUMER, entry_see, &f, err);
    const char *p = f.lines.data, *end;
    if (rc == 0 && n < c->n_adopted)
        rc = amp_coordinator_begin(c, err);
    for (; rc == 0 && n < c->n_adopted; n++, p = end + 1) {
        end = memchr(p, '\n', (size_t)(f.lines.data + f.lines.len - p));
        rc = line_adopt(c, c->adopted[n].id, (struct amp_span){p, (size_t)(end - p)}, err);
    }
    if (rc == 0 && c->turn && f.lines.len > 0)
        rc = amp_coordinator_commit(c, err);
    amp_buf_release(&f.lines);
    return rc;
}

struct release {
    struct amp_coordinator *c;
    struct amp_held_entry *v;
    size_t n;
};

static int entry_release(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    const struct release *r = ctx;
    for (size_t i = 0; i < r->n; i++)
        if (amp_span_is(e->id, r->v[i].id))
            return amp_coordinator_queue_entry(r->c, e->id, e->line, e->wants_ack, err);
    return 0;
}

int amp_coordinator_release(struct amp_coordinator *c, struct amp_error *err)
{
    struct release r = {c, c->held, c->n_held};
    if (c->n_held == 0)
        return 0;
    c->held = NULL;
    c->n_held = c->cap_held = 0;
    int rc = amp_store_outbox(c->store, c->opt->consumer, entry_release, &r, err);
    if (rc == 0)
        rc = amp_store_outbox(c->store, AMP_CREATE_CONSUMER, entry_release, &r, err);
    free(r.v);
    return rc;
}

int amp_coordinator_queue_entry(struct amp_coordinator *c, struct amp_span id, struct amp_span line,
                                bool wants_ack, struct amp_error *err)
{
    int held = entry_hold(c, id, line, err);
    if (held)
        return held < 0 ? -1 : 0;
    if (amp_grow(&c->emitted, &c->cap_emitted, c->n_emitted, sizeof *c->emitted, err) < 0 ||
        amp_coordinator_queue(c, line, err) < 0)
        return -1;
    struct amp_emitted *s = &c->emitted[c->n_emitted];
    s->mark = c->out.added;
    c->n_emitted += !wants_ack && amp_span_copy(id, s->id, sizeof s->id);
    return 0;
}

int amp_coordinator_commit(struct amp_coordinator *c, struct amp_error *err)
{
    amp_coordinator_pause(c);
    if (amp_store_sync(c->store, err) < 0)
        return -1;
    for (size_t i = 0; i < c->n_tasks; i++)
        if (c->tasks[i].dirty) {
            if (amp_task_file(c->store, amp_span_str(c->tasks[i].id), err) < 0)
                return -1;
            c->tasks[i].dirty = false;
        }
    return 0;
}

static int line_restore(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct amp_coordinator *c = ctx;
    c->seen = true;
    return amp_coordinator_queue_entry(c, e->id, e->line, e->wants_ack, err);
}

int amp_coordinator_suspend(struct amp_coordinator *c, struct amp_span task, const char *ref,
                            const char *type, int64_t now_ms, struct amp_error *err)
{
    const struct amp_suspend a = {.task_id = task,
                                  .ref = amp_span_str(ref),
                                  .type = type,
                                  .triggered_by = "coordinator",
                                  .level = AMP_LEVEL_CRITICAL,
                                  .by = c->opt->consumer,
                                  .say = c->opt->warn,
                                  .now_ms = now_ms};
    return amp_suspend_task(c->store, &a, err);
}

/* Suspends the agents of a suspended task; lifts the suspensions of one without open escalations.
 */
static int agents_restore(struct amp_coordinator *c, const struct amp_task *t, struct amp_span id,
                          struct amp_error *err)
{
    int64_t now_ms = amp_now_ms();
    if (amp_task_is_suspended(t))
        return amp_coordinator_suspend(c, id, t->suspended.ref, t->suspended.type, now_ms, err);
    return json_array_size(t->open) ? 0
                                    : amp_task_lift_agents(c->store, id, AMP_SPAN(""), now_ms, err);
}

int amp_coordinator_revoke(struct amp_coordinator *c, struct amp_span task, struct amp_span ref,
                           struct amp_span note, int64_t now_ms, struct amp_error *err)
{
    char why[256];
    struct amp_error no;
    amp_span_copy(note, why, sizeof why);
    const struct amp_revocation r = {.ref = ref,
                                     .task = task,
                                     .type = AMP_SPAN("unknown"),
                                     .severity = amp_span_str(amp_level_name(AMP_LEVEL_WARNING)),
                                     .why = why,
                                     .by = c->opt->consumer,
                                     .now_ms = now_ms};
    if (amp_question_revoke(c->store, &r, &no) < 0 && no.status != AMP_NO) {
        *err = no;
        return -1;
    }
    return amp_task_lift_agents(c->store, task, ref, now_ms, err);
}

/* A process that was killed after the step of a withdrawal did not end the question. */
static int withdrawals_restore(struct amp_coordinator *c, const struct amp_task *t,
                               struct amp_span id, struct amp_error *err)
{
    for (size_t i = 0; i < json_array_size(t->withdrawn); i++) {
        const char *ref = json_string_value(json_array_get(t->withdrawn, i));
        if (ref && amp_coordinator_revoke(c, id, amp_span_str(ref), AMP_SPAN("by its agent"),
                                          amp_now_ms(), err) < 0)
            return -1;
    }
    return 0;
}

static int task_restore(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                        struct amp_error *err)
{
    struct amp_coordinator *c = ctx;
    AMP_TASK struct amp_task t = {0};
    if (amp_span_is(id, AMP_TASK_NONE)) /* of a former version */
        return 0;
    if (amp_task_read(&t, rec, id, err) < 0)
        return -1;
    bool open = amp_task_is_open(t.state);
    struct amp_known_task *k = amp_coordinator_know(c, id, open, err);
    if (!k)
        return -1;
    k->parked = t.state == AMP_TASK_INCOMPLETE;
    k->dirty = !amp_task_file_after(c->store, id, t.updated_ms);
    c->seen |= open && t.n_parts > 0;
    if (open && withdrawals_restore(c, &t, id, err) < 0)
        return -1;
    return open ? agents_restore(c, &t, id, err) : 0;
}

/* --- recorded decisions --- */

/* The decisions of people that no coordinator has carried out: their lines were written where no
 * coordinator reads them, or the process that had to write them did not run. */
struct decided {
    struct amp_coordinator *c;
    struct amp_buf lines; /* each with its LF */
};

/* Tells whether the task still waits for the decision. A decision that it does not list any more,
 * because its list is full, was carried out. */
static bool is_waiting(const struct amp_task *t, const char *ref)
{
    return amp_task_is_open(t->state) &&
           (amp_task_waits_for(t, ref) || (json_array_size(t->decided) < AMP_TASK_DECIDED_MAX &&
                                           !amp_task_lists(t->decided, ref)));
}

static int question_look(void *ctx, struct amp_span key, const struct amp_store_rec *rec,
                         struct amp_error *err)
{
    struct decided *d = ctx;
    AMP_TASK struct amp_task t = {0};
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_question_rec q;
    char ref[AMP_MSG_ID_MAX];
    bool found = false;

    if (amp_question_rec_read(rec->json, &mem, &q, err) < 0)
        return -1;
    if (!q.line.n || !amp_span_copy(key, ref, sizeof ref) || q.about.kind != AMP_ABOUT_TASK ||
        amp_span_is(q.task, AMP_TASK_NONE))
        return 0;
    if (amp_task_load(d->c->store, q.task, &t, &found, err) < 0)
        return -1;
    if (!found || !is_waiting(&t, ref))
        return 0;
    return amp_buf_add(&d->lines, q.line.p, q.line.n, err) < 0 ? -1
                                                               : amp_buf_str(&d->lines, "\n", err);
}

/* A decision that does not count any more, such as that of a key that was revoked, opens its
 * question again. */
static int decision_refuse(struct amp_coordinator *c, const struct amp_view *v,
                           const struct amp_error *why, struct amp_error *err)
{
    const struct amp_refusal r = {.ref = v->body.decision.ref,
                                  .task = v->task,
                                  .code = amp_span_str(why->code),
                                  .why = amp_span_str(why->what),
                                  .by = c->opt->consumer,
                                  .at_ms = amp_now_ms()};
    bool reopened;

    c->opt->warn("%.*s: the recorded decision was refused: %s: %s; the question is open again",
                 AMP_CLIP(v->task, 100), why->code, why->what);
    return amp_question_reopen(c->store, &r, &reopened, err);
}

static int line_take(struct amp_coordinator *c, struct amp_reader *reader, struct amp_span line,
                     struct amp_error *err)
{
    static const struct amp_coordinate_input state = {
        .path = "the state directory", .role = "admin", .trusted = true};
    static const struct amp_check_options any = {0};
    struct amp_said said;
    struct amp_error why;
    struct amp_view v;
    int rc = amp_reader_line(reader, line, &any, &v, NULL, NULL, err);

    if (rc <= 0 || v.kind != AMP_KIND_DECISION || !amp_coordinator_is_ours(&v))
        return rc < 0 ? -1 : 0;
    rc = amp_coordinator_hears(c, &state, &v, &said, &why, err);
    if (rc <= 0)
        return rc < 0 ? -1 : decision_refuse(c, &v, &why, err);
    c->said = &said;
    rc = amp_coordinator_take(c, &v, NULL, NULL, err);
    c->said = NULL;
    return rc;
}

/* Takes the decisions of the state directory that open tasks still wait for, as if they were read
 * from an input of the admin. */
static int decisions_take(struct amp_coordinator *c, struct amp_error *err)
{
    struct decided d = {.c = c, .lines = {.max = LINES_MAX}};
    struct amp_reader *reader = NULL;
    int rc =
        amp_store_each(c->store, AMP_ESCALATION_KIND,
                       amp_escalation_fsm.states[AMP_ESC_DECIDED].name, question_look, &d, err);

    if (rc == 0 && d.lines.len > 0 && !(reader = amp_reader_new(NULL, err)))
        rc = -1;
    for (const char *p = d.lines.data, *end; rc == 0 && p && p < d.lines.data + d.lines.len;
         p = end + 1) {
        end = memchr(p, '\n', (size_t)(d.lines.data + d.lines.len - p));
        rc = line_take(c, reader, (struct amp_span){p, (size_t)(end - p)}, err);
    }
    amp_reader_free(reader);
    amp_buf_release(&d.lines);
    return rc;
}

int amp_coordinator_restore(struct amp_coordinator *c, struct amp_error *err)
{
    if (amp_store_each(c->store, AMP_TASK_KIND, NULL, task_restore, c, err) < 0 ||
        amp_store_outbox(c->store, c->opt->consumer, line_restore, c, err) < 0 ||
        amp_coordinator_adopt_new(c, err) < 0 || decisions_take(c, err) < 0)
        return -1;
    return amp_coordinator_commit(c, err);
}
