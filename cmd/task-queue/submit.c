/*
 * task-queue submit: a filter that makes jobs of messages, one answer for each line. The lines
 * that have arrived share one batch and one sync of the store; the answers follow the sync.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/base/num.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/grow.h"
#include "desk.h"
#include "message/delivery/intake.h"
#include "shared/finding.h"
#include "shared/work/permit.h"
#include "shared/work/tool.h"
#include "work/aop/account/escalate.h"
#include "work/item/claim/submit.h"
#include "work/item/follow.h"
#include "json/record.h"

#define LINE_MAX_BYTES (1u << 20)
#define TEXT_MAX       ((size_t)1 << 30)
#define ANSWERS_MOST   4096 /* lines until the next sync */

static const char *type, *priority;
static bool again, no_queue;
static int64_t level;
static struct amp_list after;
static const char *on_failed;
static char follows[AMP_FOLLOW_MOST * AMP_QUEUE_ID_MAX];

static const struct amp_opt queue_submit_opts[] = {
    {0, "type", AMP_OPT_STRING, &type, "TYPE", "the type of agents (default: the message's)"},
    {0, "priority", AMP_OPT_STRING, &priority, "N", "-19 (first) to 20 (default: the message's)"},
    {0, "after", AMP_OPT_LIST, &after, "JOB", "start after this job has ended; may be repeated"},
    {0, "on-failed", AMP_OPT_STRING, &on_failed, "WORD",
     "when a job of --after did not do its work: fail (default), skip, start"},
    {0, "again", AMP_OPT_FLAG, &again, NULL, "also if there is an identical job, or was one"},
    {0, "no-queue", AMP_OPT_FLAG, &no_queue, NULL, "refuse what could not start at once"},
    AMP_TOOL_OPTS_PERMIT,
    AMP_OPT_END,
};

/* The answer to a line, given after the sync. */
struct reply {
    char id[AMP_QUEUE_ID_MAX]; /* of its job */
    bool ok, repeated;
    uint64_t line;
    size_t text, message, n_message; /* in texts: the members of a refusal, NUL-terminated (0:
                                        none); the message's id */
};

struct filter {
    struct queue_desk desk;
    struct amp_submitter to;
    struct amp_intake in;
    bool intake, batch;
    struct reply *reply;
    size_t n, cap;
    const struct amp_tool_person *person; /* of --again */
    struct amp_buf texts, line, mem, members;
    bool told; /* members has those of the first error of this line */
};

/* ---- the lines ---- */

/* Prints the error, and keeps what the answer has of it. */
static void finding_keep(void *ctx, const struct amp_finding *f, const struct amp_line_place *at)
{
    struct filter *t = ctx;
    struct amp_jw w;

    amp_finding_print_error(NULL, f, at);
    if (f->severity != AMP_SEV_ERROR || t->told)
        return;
    t->told = true;
    amp_jw_init(&w, &t->members);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "code", f->code);
    amp_jw_member_text(&w, "message", f->message);
    amp_jw_some_str(&w, "field", amp_span_str(f->field));
    amp_jw_some_str(&w, "expected", amp_span_str(f->expected));
    amp_jw_close(&w, '}');
}

static struct reply *reply_add(struct filter *f, const struct amp_view *v, struct amp_error *err)
{
    if (amp_grow(&f->reply, &f->cap, f->n, sizeof *f->reply, err) < 0)
        return NULL;
    struct reply *r = &f->reply[f->n];
    *r = (struct reply){.line = f->in.lines.number, .message = f->texts.len, .n_message = v->id.n};
    if (amp_buf_add(&f->texts, v->id.p, v->id.n, err) < 0)
        return NULL;
    f->n++;
    return r;
}

/* The code and the text of a refusal, as members of an object. */
static int refusal_note(struct filter *f, struct reply *r, struct amp_span members,
                        struct amp_error *err)
{
    r->text = f->texts.len;
    return amp_buf_add(&f->texts, members.p, members.n, err) < 0
               ? -1
               : amp_buf_add(&f->texts, "", 1, err);
}

static int refusal_compose(struct filter *f, const struct amp_error *why, struct amp_error *err)
{
    struct amp_jw w;

    amp_buf_reset(&f->members);
    amp_jw_init(&w, &f->members);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "code", why->code);
    amp_jw_member_text(&w, "message", why->what);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

/* Refusals by the state of the queue are not faults of the message: the error log has none. */
static bool is_of_queue(const char *code)
{
    static const char *const codes[] = {AMP_CODE(duplicate_job), AMP_CODE(type_full),
                                        AMP_CODE(scope_taken),   AMP_CODE(suspended),
                                        AMP_CODE(usage_limit),   AMP_CODE(follows)};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strcmp(code, codes[i]) == 0)
            return true;
    return false;
}

/* Submits work again of which there is a job, or was one: a person's override, which is signed
 * outside of the batch. */
static int again_submit(struct filter *f, struct amp_view *v, struct amp_submitted *said,
                        struct amp_error *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_submitter to = f->to;
    struct amp_queue_job job;
    char id[AMP_UUID_MAX], changed[128];

    if (f->batch)
        amp_store_end(f->desk.store);
    f->batch = false;
    amp_buf_init(&mem, AMP_REC_MAX);
    int found = amp_queue_read(f->desk.store, amp_span_str(said->id), &mem, &job, err);
    if (found < 0)
        return -1;
    snprintf(changed, sizeof changed, "the work of job %.32s runs again", said->id);
    const struct amp_tool_permit q = {
        .of = AMP_PERMIT_AGAIN, .job = amp_span_str(said->id), .changed = changed};
    if (amp_tool_permit_give(f->desk.store, f->person, &q, id, err) < 0 ||
        amp_store_begin(f->desk.store, err) < 0)
        return -1;
    f->batch = true;
    /* The record of a job that has ended is used again. */
    to.again = true;
    to.salt = found && !amp_queue_ended(job.state) ? id : NULL;
    return amp_submit(&to, v, said, why, err);
}

/* Gives a TASK of a session, and its job, another priority. */
static int priority_take(struct filter *f, const struct amp_view *v, struct amp_error *err)
{
    const struct amp_session_voice voice = {f->desk.store, amp_cli_name(), amp_now_ms()};
    struct reply *r = reply_add(f, v, err);
    struct amp_error why = {0};

    if (!r)
        return -1;
    int taken = amp_session_escalation_take(&voice, NULL, v, true, r->id, &why);
    if (taken > 0) {
        r->ok = true;
        return 0;
    }
    if (taken == 0)
        amp_fail(&why, AMP_NO, unknown_ref, "session %.*s has no TASK %.*s",
                 AMP_CLIP(v->session, 200), AMP_CLIP(v->task, 200));
    if (amp_fail_unless_no(err, &why) < 0)
        return -1;
    amp_status_note(AMP_NO);
    return amp_intake_refuse(&f->in, v, &why, err) < 0 || refusal_compose(f, &why, err) < 0
               ? -1
               : refusal_note(f, r, amp_buf_span(&f->members), err);
}

static int message_take(struct filter *f, struct amp_view *v, struct amp_error *err)
{
    if (amp_session_is_escalation(v))
        return priority_take(f, v, err);
    struct amp_submitted said;
    struct amp_error why;
    int rc = amp_submit(&f->to, v, &said, &why, err);

    if (rc == 0 && again && amp_code_is(why.code, duplicate_job))
        rc = again_submit(f, v, &said, &why, err);
    if (rc < 0)
        return -1;
    struct reply *r = reply_add(f, v, err);
    if (!r)
        return -1;
    r->ok = rc > 0;
    r->repeated = said.repeated;
    memcpy(r->id, said.id, sizeof r->id);
    if (rc > 0)
        return 0;
    amp_status_note(AMP_NO);
    if (is_of_queue(why.code))
        amp_refused(why.code, 1);
    else if (amp_intake_refuse(&f->in, v, &why, err) < 0)
        return -1;
    return refusal_compose(f, &why, err) < 0 ? -1
                                             : refusal_note(f, r, amp_buf_span(&f->members), err);
}

static int line_refuse(struct filter *f, const struct amp_view *v, struct amp_error *err)
{
    struct reply *r = reply_add(f, v, err);

    amp_status_note(AMP_NO);
    return r ? refusal_note(f, r, amp_buf_span(&f->members), err) : -1;
}

static void batch_end(struct filter *f)
{
    if (f->batch)
        amp_store_end(f->desk.store);
    f->batch = false;
    if (f->in.units)
        amp_units_settled(f->in.units);
}

/* Takes the lines that were read, up to the limit. A batch may give up its turn after many changes,
 * so with --no-queue each message has its own. 1: there may be more; 0; -1. */
static int lines_take(struct filter *f, struct amp_error *err)
{
    struct amp_view v;
    int got = AMP_INTAKE_NONE;

    while (f->n < ANSWERS_MOST) {
        f->told = false;
        amp_buf_reset(&f->members);
        got = amp_intake_next(&f->in, &v, err);
        if (got <= 0)
            break;
        if (!f->batch && amp_store_begin(f->desk.store, err) < 0)
            return -1;
        f->batch = true;
        amp_store_unit(f->desk.store);
        if ((got == AMP_INTAKE_MESSAGE ? message_take(f, &v, err) : line_refuse(f, &v, err)) < 0)
            return -1;
        if (no_queue)
            batch_end(f);
    }
    return got < 0 ? -1 : got > 0;
}

/* ---- the answers ---- */

static int place_print(struct filter *f, struct amp_jw *w, const struct reply *r,
                       struct amp_error *err)
{
    struct amp_order_place place = {0};
    struct amp_queue_job job;
    int found = amp_queue_read(f->desk.store, amp_span_str(r->id), &f->mem, &job, err);
    int waits =
        found <= 0 ? found : amp_order_place(f->desk.order, job.id, amp_now_ms(), &place, err);

    if (waits < 0)
        return -1;
    if (!found) /* it ended and was forgotten meanwhile */
        return 0;
    amp_jw_member_text(w, "state", amp_queue_fsm.states[job.state].name);
    amp_jw_member_str(w, "type", job.type);
    amp_jw_member_int(w, "priority", job.priority);
    if (waits && place.position)
        amp_jw_member_uint(w, "position", place.position);
    enum amp_waits why = waits ? queue_desk_waits(&f->desk, job.type, &place) : AMP_WAITS_TURN;
    amp_jw_key(w, "reason");
    if (why == AMP_WAITS_TURN)
        amp_jw_null(w);
    else
        amp_jw_str(w, amp_span_str(amp_waits_name(why)));
    amp_jw_some_str(w, "behind", place.behind);
    amp_jw_some_str(w, "task", job.task);
    return 0;
}

static int reply_print(struct filter *f, const struct reply *r, struct amp_error *err)
{
    struct amp_jw w;

    amp_buf_reset(&f->line);
    amp_jw_init(&w, &f->line);
    amp_jw_open(&w, '{');
    amp_jw_member_bool(&w, "ok", r->ok);
    amp_jw_member_uint(&w, "line", r->line);
    amp_jw_some_str(&w, "id", amp_span_str(r->id));
    if (r->ok && place_print(f, &w, r, err) < 0)
        return -1;
    if (r->repeated)
        amp_jw_member_bool(&w, "repeated", true);
    amp_jw_some_str(&w, "message_id", (struct amp_span){f->texts.data + r->message, r->n_message});
    if (r->ok)
        amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    /* The members of the refusal follow, with the closing bracket. */
    if (!r->ok && (amp_buf_str(&f->line, ",", err) < 0 ||
                   amp_buf_str(&f->line, f->texts.data + r->text + 1, err) < 0))
        return -1;
    return amp_buf_str(&f->line, "\n", err) < 0 ? -1 : amp_out(amp_buf_span(&f->line), err);
}

static int replies_print(struct filter *f, struct amp_error *err)
{
    batch_end(f);
    if (f->n == 0)
        return 0;
    if (amp_store_sync(f->desk.store, err) < 0 || queue_desk_look(&f->desk, err) < 0)
        return -1;
    for (size_t i = 0; i < f->n; i++)
        if (reply_print(f, &f->reply[i], err) < 0)
            return -1;
    f->n = 0;
    amp_buf_reset(&f->texts);
    return amp_out_flush(err);
}

/* ---- the loop ---- */

static bool input_waits(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static int filter_run(struct filter *f, struct amp_error *err)
{
    while (true) {
        int more = lines_take(f, err);
        if (more < 0)
            return -1;
        if ((more || f->in.lines.eof || !input_waits()) && replies_print(f, err) < 0)
            return -1;
        if (more)
            continue;
        if (f->in.lines.eof)
            return 0;
        if (amp_lines_fill(&f->in.lines, STDIN_FILENO, err) == AMP_READ_FAILED && errno != EINTR)
            return -1;
    }
}

static int filter_open(struct filter *f, struct amp_store *s, struct amp_error *err)
{
    if (queue_desk_open(&f->desk, s, err) < 0 ||
        amp_intake_init(&f->in, f->desk.store, amp_cli_name(), err) < 0 ||
        amp_intake_resume(&f->in, "task-queue.submit", amp_input_is_trusted(NULL), err) < 0)
        return -1;
    f->intake = true;
    f->in.say = finding_keep;
    f->in.say_ctx = f;
    f->to = (struct amp_submitter){.store = f->desk.store,
                                   .order = f->desk.order,
                                   .type = type,
                                   .priority = priority ? &level : NULL,
                                   .by = amp_cli_login("operator"),
                                   .follows = follows,
                                   .on_failed = on_failed,
                                   .no_queue = no_queue,
                                   .actor = amp_cli_name()};
    return 0;
}

static void follows_read(void)
{
    size_t n = 0;

    if (after.n > AMP_FOLLOW_MOST)
        amp_die_usage("--after: at most %d jobs", AMP_FOLLOW_MOST);
    for (int i = 0; i < after.n; i++) {
        if (strlen(after.v[i]) >= AMP_QUEUE_ID_MAX || !amp_id_is_safe(amp_span_str(after.v[i])))
            amp_die_usage("--after: \"%s\" is not the id of a job", after.v[i]);
        n += (size_t)snprintf(follows + n, sizeof follows - n, "%s%s", i ? " " : "", after.v[i]);
    }
}

static int submit_check(struct amp_command *c, struct amp_error *err)
{
    if (priority &&
        amp_num_parse(amp_span_str(priority), AMP_QUEUE_HIGHEST, AMP_QUEUE_LOWEST, &level, err) < 0)
        amp_die_usage("--priority %s: expected %d to %d", priority, AMP_QUEUE_HIGHEST,
                      AMP_QUEUE_LOWEST);
    if (on_failed && amp_follow_else(amp_span_str(on_failed)) < 0)
        amp_die_usage("--on-failed %s: expected fail, skip or start", on_failed);
    follows_read();
    if (again)
        c->opens |= AMP_TOOL_OPENS_PERSON;
    return again ? amp_tool_why_check("run a job again", amp_tool_why, err) : 0;
}

static int queue_submit(struct amp_command *c, struct amp_error *err)
{
    struct filter f = {.texts = {.max = TEXT_MAX},
                       .line = {.max = LINE_MAX_BYTES},
                       .members = {.max = LINE_MAX_BYTES},
                       .mem = {.max = AMP_REC_MAX},
                       .person = c->own};

    amp_note_terminal(NULL);
    int rc = filter_open(&f, c->store, err);
    if (rc == 0)
        rc = filter_run(&f, err);
    batch_end(&f);
    if (f.intake)
        amp_intake_release(&f.in);
    queue_desk_close(&f.desk);
    free(f.reply);
    amp_buf_release(&f.texts);
    amp_buf_release(&f.line);
    amp_buf_release(&f.members);
    amp_buf_release(&f.mem);
    return rc;
}

const struct amp_verb queue_submit_verbs[] = {
    {"submit", "", "put the work that messages on stdin ask for into the queue", queue_submit_opts,
     queue_submit, .check = submit_check, .opens = AMP_OPENS_MADE, .act = "submit work",
     .finds_state = true, .group = "The queue", .who = AMP_WHO_PERSON},
    {0},
};
