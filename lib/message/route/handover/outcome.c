/*
 * The outcome that a command returns in its result file, $AMP_RESULT. The file is in a directory of
 * the message, STATE/run/.inbox/DIGEST, which stays until the answer and the READ of the message
 * are recorded. If the router was killed before, the next hand-over finds the file and carries it
 * out without running the command again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "message/delivery/record/record.h"
#include "message/protocol/answers.h"
#include "message/protocol/compose/json.h"
#include "message/route/handover/handover.h"
#include "work/agent/contract/contract.h"
#include "work/attempt/reply/reply.h"

#define SCHEMA "outcome.json"

int amp_outcome_prepare(struct amp_acks *a, const struct amp_inbox_msg *m,
                        struct amp_outcome_file *f, struct amp_error *err)
{
    char parent[PATH_MAX], digest[AMP_KEY_NAME_MAX];
    struct stat st;
    *f = (struct amp_outcome_file){0};
    if (!a || !a->spec)
        return 0; /* there is no way for an answer */
    if (!realpath(amp_store_dir(a->store), parent))
        return amp_fail_errno(err, AMP_IOERR, "%s", amp_store_dir(a->store));
    const struct amp_span parts[] = {a->o->agent, m->id};
    if (amp_key_digest(parts, 2, digest, err) < 0)
        return -1;
    const char *hex = strchr(digest, ':');
    int n = snprintf(f->dir, sizeof f->dir, "%s/run/.inbox/%s", parent, hex ? hex + 1 : digest);
    if (n < 0 || n >= (int)sizeof f->dir ||
        snprintf(f->path, sizeof f->path, "%s/result", f->dir) >= (int)sizeof f->path)
        return amp_fail(err, AMP_CONFIG, path_too_long, "%s is too long", parent);
    if (amp_mkdirs(f->dir, 0700, err) < 0)
        return -1;
    f->left = lstat(f->path, &st) == 0;
    return 0;
}

void amp_outcome_drop(struct amp_outcome_file *f)
{
    if (!f->dir[0])
        return;
    unlink(f->path);
    if (rmdir(f->dir) < 0 && errno == ENOTEMPTY) { /* the command left other files there */
        AMP_DIR DIR *d = amp_dir_open(AT_FDCWD, f->dir);
        for (struct dirent *e; d && (e = readdir(d));)
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                unlinkat(dirfd(d), e->d_name, 0);
        rmdir(f->dir);
    }
    f->dir[0] = '\0';
}

/* Reads the file; *out is NULL if there is none. */
static int file_read(const struct amp_outcome_file *f, json_t **out, struct amp_error *err)
{
    struct amp_attempt attempt = {0};
    snprintf(attempt.result, sizeof attempt.result, "%s", f->path);
    return amp_answer_read(&attempt, SCHEMA, out, err);
}

/* The sender of the answer: the agent, in a protocol of roles after the message's role. */
static int speaker_make(struct amp_acks *a, const struct amp_inbox_msg *m, char *out, size_t size,
                        struct amp_error *err)
{
    struct amp_check_options opt = {0};
    struct amp_view v;
    if (amp_reader_line(a->reader, m->line, &opt, &v, NULL, NULL, err) < 0)
        return -1;
    const struct amp_reply_terms *t = amp_answers_of(v.protocol)->replies;
    bool role = t && t->by_role && v.n_to > 0;
    snprintf(out, size, "%.*s%s%.*s", role ? (int)(v.to[0].n < 64 ? v.to[0].n : 64) : 0,
             role ? v.to[0].p : "", role ? "/" : "", AMP_CLIP(a->o->agent, AMP_INBOX_AGENT_MAX));
    return 0;
}

/* A command that failed cannot report success. */
static enum amp_reply_act act_of(const json_t *answer, bool failed)
{
    int act = amp_reply_act_find(amp_span_str(amp_json_str(answer, "outcome")));
    return failed || act < 0 ? AMP_REPLY_FAIL : (enum amp_reply_act)act;
}

static bool is_answered(const struct amp_error *e)
{
    return amp_code_is(e->code, already_completed) || amp_code_is(e->code, already_accepted) ||
           amp_code_is(e->code, refused_before);
}

static int answer_give(struct amp_acks *a, const struct amp_inbox_msg *m, const json_t *answer,
                       bool failed, bool again, struct amp_error *err)
{
    char by[AMP_REPLY_NAME_MAX], id[AMP_MSG_ID_MAX];
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    struct amp_span known;
    struct amp_reply_result out = {.line = {.max = AMP_REPLY_LINE_MAX}};
    const char *text = amp_json_str(answer, "text"), *code = amp_json_str(answer, "code");
    int64_t now = amp_now_ms();
    json_int_t eta = json_integer_value(json_object_get(answer, "eta_seconds"));
    if (speaker_make(a, m, by, sizeof by, err) < 0 ||
        amp_inbox_known_as(a->store, a->o->agent, m->id, &mem, &known, err) < 0)
        return -1;
    if (!amp_span_copy(known, id, sizeof id))
        return amp_fail(err, AMP_NO, unknown_ref, "the id of the message is too long");
    const struct amp_reply r = {.act = act_of(answer, failed),
                                .id = id,
                                .by = by,
                                .box = a->outbox,
                                .text = *text ? text : NULL,
                                .data = json_object_get(answer, "data"),
                                .code = *code ? code : NULL,
                                .retryable = json_is_true(json_object_get(answer, "retryable")),
                                .eta_ms = eta > 0 ? now + eta * 1000 : 0,
                                .taken = true,
                                .now_ms = now};
    int rc = amp_reply(a->store, &r, &out, err);
    amp_buf_release(&out.line);
    return rc < 0 && again && is_answered(err) ? 0 : rc;
}

int amp_outcome_answer(struct amp_acks *a, const struct amp_inbox_msg *m,
                       struct amp_outcome_file *f, bool failed, bool *answered,
                       struct amp_error *err)
{
    json_auto_t *answer = NULL;
    *answered = false;
    struct amp_error why;
    if (!f->dir[0])
        return 0;
    f->used = true;
    if (file_read(f, &answer, &why) < 0) {
        bool is_bad = why.status == AMP_DATAERR;
        return amp_fail_text(err, why.status, is_bad ? AMP_CODE(bad_answer) : why.code, "%s",
                             why.what);
    }
    f->used = answer != NULL;
    if (!answer)
        return 0;
    if (answer_give(a, m, answer, failed, f->left, err) < 0)
        return -1;
    *answered = true;
    return amp_inbox_read_and_say(a->store, a->o->agent, m->id, amp_now_ms(), NULL, a->outbox, err);
}
