/* amp-ack accept, progress, complete, fail, reply: answers to a message, in its protocol. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/num.h>

#include "../pass.h"
#include "base/codes.h"
#include "message/delivery/outbox.h"
#include "message/protocol/compose/json.h"
#include "work/attempt/reply/reply.h"
#include "work/git/repository/git.h"

static const char *text, *data, *code;
static struct amp_list files;
static bool retryable, late;
static int64_t eta_ms;

#define ANSWER_OPTS                                                                                \
    AMP_OPT_ROW(0, "text", AMP_OPT_STRING, &text, "TEXT",                                          \
                "what to say (\"-\": read from standard input)"),                                  \
        AMP_OPT_ROW(0, "data", AMP_OPT_STRING, &data, "JSON",                                      \
                    "members of the payload (\"-\": read from standard input)"),                   \
        AMP_OPT_ROW(0, "file", AMP_OPT_LIST, &files, "PATH",                                       \
                    "a file that the answer names, with its hash and size"),                       \
        AMP_OPT_ROW(0, "late", AMP_OPT_FLAG, &late, NULL, "answer also a message that timed out"), \
        PASS_OUT_OPT, PASS_OPEN_OPT
#define ETA_OPT                                                                                    \
    AMP_OPT_ROW(0, "eta", AMP_OPT_DURATION, &eta_ms, "TIME", "when the work will be done",         \
                .min = 1, .max = INT64_C(14) * 86400000)

static const struct amp_opt accept_opts[] = {ANSWER_OPTS, ETA_OPT, AMP_OPT_END};
static const struct amp_opt progress_opts[] = {ANSWER_OPTS, ETA_OPT, AMP_OPT_END};
static const struct amp_opt complete_opts[] = {ANSWER_OPTS, AMP_OPT_END};
static const struct amp_opt reply_opts[] = {ANSWER_OPTS, AMP_OPT_END};
static const struct amp_opt fail_opts[] = {
    ANSWER_OPTS,
    {0, "code", AMP_OPT_STRING, &code, "CODE", .doc = "code or class of the failure"},
    {0, "retryable", AMP_OPT_FLAG, &retryable, NULL, .doc = "sending it again may succeed"},
    AMP_OPT_END,
};

struct answer {
    struct amp_store *store;
    struct amp_git *git;
    struct amp_buf input, files_mem;
    struct amp_reply_file file[AMP_REPLY_FILES_MAX];
    json_t *data;
    int lock;
    char box[AMP_REPLY_NAME_MAX];
};

static struct amp_git *git_open(void *ctx, struct amp_error *err)
{
    struct answer *a = ctx;
    const struct amp_git_options opt = {.stop = &amp_stop};
    return a->git || amp_git_open(&opt, &a->git, err) == 0 ? a->git : NULL;
}

/* An agent answers as itself only. */
static const char *speaker_of(struct amp_error *err)
{
    const char *agent = getenv("AMP_AGENT");
    const char *by = ack_as ? ack_as : agent && *agent ? agent : NULL;
    if (!by)
        amp_die_usage("who answers? --as NAME, or the environment variable AMP_AGENT");
    return ack_person_or_self(by, "answer a message in an agent's name", err) < 0 ? NULL : by;
}

static int input_read(struct answer *a, const char **value, struct amp_error *err)
{
    if (!*value || strcmp(*value, "-") != 0)
        return 0;
    amp_note_terminal("-");
    if (amp_file_read_any("-", AMP_REPLY_TEXT_MAX, &a->input, err) < 0)
        return -1;
    while (a->input.len > 0 && a->input.data[a->input.len - 1] == '\n')
        a->input.len--;
    if (amp_buf_add(&a->input, "", 1, err) < 0)
        return -1;
    *value = a->input.data;
    return 0;
}

static int data_read(struct answer *a, struct amp_error *err)
{
    if (!data)
        return 0;
    struct amp_span json = amp_span_str(data);
    if (json.n > AMP_REPLY_TEXT_MAX)
        return amp_fail(err, AMP_NO, bad_value, "--data is longer than %d bytes",
                        AMP_REPLY_TEXT_MAX);
    if (!(a->data = amp_json_load(json, err)))
        return -1;
    return json_is_object(a->data)
               ? 0
               : amp_fail(err, AMP_DATAERR, invalid_json, "--data is not a JSON object");
}

/* The strings move while the buffer grows, so the files are read twice. */
static int files_read(struct answer *a, struct amp_error *err)
{
    if (files.n > AMP_REPLY_FILES_MAX)
        return amp_fail(err, AMP_NO, bad_file, "more than %d files", AMP_REPLY_FILES_MAX);
    for (int pass = 0; pass < 2; pass++) {
        amp_buf_reset(&a->files_mem);
        for (int i = 0; i < files.n; i++)
            if (amp_reply_file_read(files.v[i], &a->files_mem, &a->file[i], err) < 0)
                return -1;
    }
    return 0;
}

static int lock_take(struct answer *a, const char *by, struct amp_error *err)
{
    const char *slash = strrchr(by, '/');
    snprintf(a->box, sizeof a->box, "reply.%.200s", slash ? slash + 1 : by);
    return amp_outbox_lock(a->store, a->box, ack_lock_timeout_ms, &a->lock, err);
}

/* The output is opened first: without it nothing is composed. */
static int answer_send(struct answer *a, const struct amp_reply *r, struct amp_error *err)
{
    struct amp_reply_result out = {.line = {.max = AMP_REPLY_LINE_MAX}};
    struct amp_outq q;
    if (ack_open_output(&q, err) < 0)
        return -1;
    int rc = amp_reply(a->store, r, &out, err);
    amp_buf_release(&out.line);
    if (rc == 0 && out.how == AMP_REPLY_REPEATED)
        amp_note("the answer to %s was composed before, and is written now", out.id);
    if (rc == 0)
        rc = ack_outbox_emit(a->store, a->box, out.principal, &q, err);
    amp_outq_close(&q);
    return rc;
}

static int answer_give(struct answer *a, struct amp_reply *r, const char *percent,
                       struct amp_error *err)
{
    if (text && data && strcmp(text, "-") == 0 && strcmp(data, "-") == 0)
        amp_die_usage("only one of --text and --data can be \"-\"");
    if (percent && amp_num_real(amp_span_str(percent), 0, 100, &r->percent, err) < 0)
        amp_die_usage("'%s' is not a percentage (0 to 100)", percent);
    if (input_read(a, &text, err) < 0 || input_read(a, &data, err) < 0 || data_read(a, err) < 0 ||
        files_read(a, err) < 0 || lock_take(a, r->by, err) < 0)
        return -1;
    r->box = a->box;
    r->text = text;
    r->data = a->data;
    r->files = a->file;
    r->n_files = (uint32_t)files.n;
    r->has_percent = percent != NULL;
    r->code = code;
    r->retryable = retryable;
    r->late = late;
    r->now_ms = amp_now_ms();
    r->eta_ms = eta_ms > 0 ? r->now_ms + eta_ms : 0;
    r->git = git_open;
    r->git_ctx = a;
    return answer_send(a, r, err);
}

/* A refusal is printed with its code. */
static int refusal_print(const struct amp_error *e)
{
    struct amp_error said = *e;
    if (e->status == AMP_NO)
        amp_fail_text(&said, e->status, e->code, "%s: %.400s", e->code, e->what);
    return amp_complain(&said);
}

static const char *speaker;

static int answer_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    return (speaker = speaker_of(err)) ? 0 : -1;
}

static int answer_run(struct amp_command *c, enum amp_reply_act act, struct amp_error *err)
{
    struct amp_reply r = {.act = act, .id = c->argv[0], .by = speaker};
    struct answer a = {.store = c->store,
                       .lock = -1,
                       .input = {.max = AMP_REPLY_TEXT_MAX + 2},
                       .files_mem = {.max = (size_t)8 << 20}};
    int rc = answer_give(&a, &r, c->argc > 1 ? c->argv[1] : NULL, err);
    amp_git_close(a.git);
    if (a.lock >= 0)
        close(a.lock);
    amp_buf_release(&a.input);
    amp_buf_release(&a.files_mem);
    json_decref(a.data);
    return rc < 0 ? refusal_print(err) : 0;
}

static int ack_accept(struct amp_command *c, struct amp_error *err)
{
    return answer_run(c, AMP_REPLY_ACCEPT, err);
}

static int ack_progress(struct amp_command *c, struct amp_error *err)
{
    return answer_run(c, AMP_REPLY_PROGRESS, err);
}

static int ack_complete(struct amp_command *c, struct amp_error *err)
{
    return answer_run(c, AMP_REPLY_COMPLETE, err);
}

static int ack_fail(struct amp_command *c, struct amp_error *err)
{
    return answer_run(c, AMP_REPLY_FAIL, err);
}

static int ack_reply(struct amp_command *c, struct amp_error *err)
{
    return answer_run(c, AMP_REPLY_REPLY, err);
}

const struct amp_verb reply_verbs[] = {
    {"accept", "ID", "accept the work that a message asks for", accept_opts, ack_accept,
     .check = answer_check, .opens = AMP_OPENS_FOUND, .signals = true, .least = 1, .most = 1,
     .usage = "one message is needed: amp-ack accept ID", .finds_state = true, .group = "Answering",
     .who = AMP_WHO_SELF},
    {"progress", "ID [PERCENT]", "report how far the work is", progress_opts, ack_progress,
     .check = answer_check, .opens = AMP_OPENS_FOUND, .signals = true, .least = 1, .most = 2,
     .usage = "one message is needed: amp-ack progress ID", .finds_state = true,
     .who = AMP_WHO_SELF},
    {"complete", "ID", "report that the work is done", complete_opts, ack_complete,
     .check = answer_check, .opens = AMP_OPENS_FOUND, .signals = true, .least = 1, .most = 1,
     .usage = "one message is needed: amp-ack complete ID", .finds_state = true,
     .who = AMP_WHO_SELF},
    {"fail", "ID", "refuse a message, or report that its work failed", fail_opts, ack_fail,
     .check = answer_check, .opens = AMP_OPENS_FOUND, .signals = true, .least = 1, .most = 1,
     .usage = "one message is needed: amp-ack fail ID", .finds_state = true, .who = AMP_WHO_SELF},
    {"reply", "ID", "answer a message that expects a reply", reply_opts, ack_reply,
     .check = answer_check, .opens = AMP_OPENS_FOUND, .signals = true, .least = 1, .most = 1,
     .usage = "one message is needed: amp-ack reply ID", .finds_state = true, .who = AMP_WHO_SELF},
    {0},
};
