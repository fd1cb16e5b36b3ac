/* The decisions of people that are recorded, but that no coordinator has carried out: the line was
 * written where no coordinator reads it, or the process that had to write it did not run. */
#include <string.h>

#include <amp/base/clock.h>

#include "flow/coordinate/coordinator.h"
#include "hitl/record.h"

#define LINES_MAX ((size_t)256 << 20)

struct decided {
    struct amp_coordinator *c;
    struct amp_buf lines; /* each with its LF */
};

/* Whether the task still waits for the decision. A decision that it does not list any more, because
 * its list is full, was carried out. */
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
    if (!q.line.n || !amp_span_copy(key, ref, sizeof ref) || q.about.kind != AMP_SUBJECT_TASK ||
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

int amp_coordinator_decided(struct amp_coordinator *c, struct amp_error *err)
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
