/* task-dispatch submit, preempt, queue cancel: jobs enter the queue, and people end them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/base/num.h>
#include <amp/json/lines.h>
#include <amp/json/writer.h>

#include "../verbs.h"
#include "cli/config.h"
#include "flow/identity/person.h"
#include "flow/queue/queue.h"
#include "message/ledger/ledger.h"
#include "queue.h"

#define LINE_MAX_BYTES (32u << 20)

static const char *type, *priority;
static bool again;
static int64_t level;

const struct amp_opt queue_submit_opts[] = {
    {0, "type", AMP_OPT_STRING, &type, "TYPE", "the type of agents (default: the message's)"},
    {0, "priority", AMP_OPT_STRING, &priority, "N", "-19 (first) to 20 (default: the message's)"},
    {0, "again", AMP_OPT_FLAG, &again, NULL, "also if an identical job was done"},
    AMP_OPT_END,
};
const struct amp_opt queue_rank_opts[] = {
    {0, "priority", AMP_OPT_STRING, &priority, "N", "the new priority, -19 (first) to 20"},
    AMP_OPT_END,
};
const struct amp_opt queue_ask_opts[] = {
    AMP_OPT_END,
};

static int line_out(struct amp_jw *w, struct amp_buf *line, struct amp_error *err)
{
    amp_jw_close(w, '}');
    return amp_jw_end(w, err) < 0 || amp_buf_str(line, "\n", err) < 0
               ? -1
               : amp_out(amp_buf_span(line), err);
}

/* One line of the answer: accepted, or refused with its code. */
static int answer_out(struct amp_span message, const char *job, const struct amp_error *why,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    struct amp_jw w;

    amp_buf_init(&line, 65536);
    amp_jw_init(&w, &line);
    amp_jw_open(&w, '{');
    amp_jw_key(&w, "message");
    amp_jw_str(&w, message);
    amp_jw_key(&w, "accepted");
    amp_jw_bool(&w, !why);
    amp_jw_key(&w, why ? "code" : "job");
    amp_jw_str(&w, amp_span_str(why ? why->code : job));
    if (why) {
        amp_jw_key(&w, "reason");
        amp_jw_str(&w, amp_span_str(why->what));
    }
    return line_out(&w, &line, err);
}

static int job_submit(struct amp_store *s, const struct amp_view *v, struct amp_submission *sub,
                      struct amp_error *err)
{
    int64_t seq;

    if (amp_submission_of(sub, v, err) < 0)
        return -1;
    if (type)
        sub->job.type = amp_span_str(type);
    if (priority)
        sub->job.priority = level;
    if (!amp_id_is_safe(sub->job.type))
        return amp_fail(err, AMP_NO, "bad_value", "no type of agents: give --type");
    if (amp_queue_identity(sub->job.type, sub->job.scope, sub->job.digest, AMP_SPAN(""), sub->id,
                           err) < 0)
        return -1;
    sub->job.id = amp_span_str(sub->id);
    const struct amp_queue_submit q = {.job = &sub->job,
                                       .line = v->line,
                                       .again = again,
                                       .actor = amp_cli_name(),
                                       .now_ms = amp_now_ms()};
    return amp_message_record(s, v, q.now_ms, NULL, err) < 0 ||
                   amp_queue_submit(s, &q, &seq, NULL, NULL, err) < 0
               ? -1
               : 0;
}

/* 0: accepted or refused; -1: failure. */
static int line_take(struct amp_store *s, struct amp_reader *r, struct amp_span line, int *status,
                     struct amp_error *err)
{
    AMP_CLEANUP(amp_submission_release) struct amp_submission sub = {0};
    const struct amp_check_options how = {0};
    struct amp_view v = {0};
    struct amp_error why;

    amp_submission_init(&sub);
    int rc = amp_reader_line(r, line, &how, &v, NULL, NULL, err);
    if (rc < 0)
        return -1;
    if (rc == 0) {
        v.id = AMP_SPAN("");
        amp_fail(&why, AMP_NO, "validation_error", "the line is not a valid message");
    } else if (job_submit(s, &v, &sub, &why) == 0) {
        return amp_store_sync(s, err) < 0 ? -1 : answer_out(v.id, sub.id, NULL, err);
    }
    if (why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    *status = AMP_NO;
    return answer_out(v.id, "", &why, err);
}

int queue_submit(int argc, char **argv)
{
    struct amp_store *store = NULL;
    struct amp_error err;
    struct amp_reader *reader = NULL;
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;
    int status = AMP_OK;

    (void)argc, (void)argv;
    if (priority && amp_num_parse(amp_span_str(priority), AMP_QUEUE_HIGHEST, AMP_QUEUE_LOWEST,
                                  &level, &err) < 0)
        amp_die_usage("--priority %s: expected %d to %d", priority, AMP_QUEUE_HIGHEST,
                      AMP_QUEUE_LOWEST);
    amp_note_terminal(NULL);
    int rc = amp_flow_person_only(task_state, amp_cli_name(), environ, "submit work", &err) < 0 ||
                     task_open(&store, &err) < 0 || !(reader = amp_reader_new(NULL, &err))
                 ? -1
                 : 0;
    while (rc == 0 && (n = getline(&text, &cap, stdin)) > 0) {
        size_t len = (size_t)n - (text[n - 1] == '\n');
        if (len > 0)
            rc = line_take(store, reader, (struct amp_span){text, len}, &status, &err);
    }
    free(text);
    amp_reader_free(reader);
    amp_store_close(store);
    return rc < 0 ? amp_complain(&err) : status;
}

static int job_ask(uint8_t event, int argc, char **argv)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_store *store = NULL;
    struct amp_error err;
    int rc = 0;

    amp_buf_init(&mem, 64 << 20);
    if (argc == 0)
        amp_die_usage("no job: give its id");
    if (amp_flow_person_only(task_state, amp_cli_name(), environ, "end work", &err) < 0 ||
        task_open(&store, &err) < 0)
        return amp_complain(&err);
    for (int i = 0; i < argc && rc == 0; i++) {
        const struct amp_queue_step st = {.id = amp_span_str(argv[i]),
                                          .event = event,
                                          .priority = level,
                                          .by = amp_cli_login("operator"),
                                          .why = "asked by a person",
                                          .actor = amp_cli_name(),
                                          .now_ms = amp_now_ms()};
        rc = amp_queue_step(store, &st, &mem, NULL, &err);
    }
    if (rc == 0)
        rc = amp_store_sync(store, &err);
    amp_store_close(store);
    return rc < 0 ? amp_complain(&err) : AMP_OK;
}

int queue_preempt(int argc, char **argv)
{
    return job_ask(AMP_QUEUE_EV_PREEMPT, argc, argv);
}

int queue_rank(int argc, char **argv)
{
    if (!priority || amp_num_parse(amp_span_str(priority), AMP_QUEUE_HIGHEST, AMP_QUEUE_LOWEST,
                                   &level, NULL) < 0)
        amp_die_usage("--priority: expected %d to %d", AMP_QUEUE_HIGHEST, AMP_QUEUE_LOWEST);
    return job_ask(AMP_QUEUE_EV_RANK, argc, argv);
}

int queue_cancel(int argc, char **argv)
{
    return job_ask(AMP_QUEUE_EV_CANCEL, argc, argv);
}
