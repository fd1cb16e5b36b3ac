/*
 * send, reply and progress with a state directory: composed in the protocol of the message that
 * they answer, recorded, and given to their recipients by amp-route, with the state directory and
 * the routes of the user, or as lines into --out. The lines come from the outbox, so those of a
 * killed process leave when the next session begins; amp-route recognises what it has delivered
 * before.
 */
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "../mcp.h"
#include "base/codes.h"
#include "message/delivery/outbox.h"
#include "message/delivery/record/sequence.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/compose/say.h"
#include "message/protocol/delivery.h"
#include "people/question/record.h"
#include "work/attempt/reply/reply.h"
#include "work/git/repository/git.h"

#define ROUTE_MS      30000
#define GRACE_MS      2000
#define ANSWER_MAX    ((size_t)16 << 20)
#define FILES_MAX     ((size_t)8 << 20)
#define LOCK_AGAIN_MS 50
#define DEFAULT       "* => agents" /* the inbox, or the port, of each recipient */

/* ---- signatures ---- */

/* Chooses the speaker: the agent, or ROLE/AGENT in a protocol whose agents speak as a role. */
static void principal_choose(const struct mcp *m, const struct amp_view *v,
                             char out[AMP_PRINCIPAL_MAX])
{
    bool by_role = v->protocol != AMP_PROTO_NONE && amp_delivery_of(v->protocol)->acks_by_role;

    if (by_role && v->from.n && !amp_span_is(v->from, m->agent))
        snprintf(out, AMP_PRINCIPAL_MAX, "%.*s/%s", AMP_CLIP(v->from, 100), m->agent);
    else
        snprintf(out, AMP_PRINCIPAL_MAX, "%s", m->agent);
}

static int line_sign(struct mcp *m, struct amp_reader *reader, struct amp_span line,
                     struct amp_buf *out, struct amp_error *err)
{
    static const struct amp_check_options quick = {.heads = true};
    char principal[AMP_PRINCIPAL_MAX];
    struct amp_identities *ids = NULL;
    struct amp_view v;
    struct amp_identity_tool tool = {
        .state = m->state, .config = m->config, .principal = principal, .quiet = true};

    if (amp_reader_line(reader, line, &quick, &v, NULL, NULL, err) < 0)
        return -1;
    principal_choose(m, &v, principal);
    if (amp_identity_cli_open(m->identity, &tool, &ids, err) < 0)
        return -1;
    int rc = amp_identities_sign(ids, line, out, err) < 0 || amp_buf_str(out, "\n", err) < 0;
    amp_identities_close(ids);
    return rc ? -1 : 0;
}

static int lines_sign(struct mcp *m, struct amp_span lines, struct amp_buf *out,
                      struct amp_error *err)
{
    struct amp_reader *reader = amp_reader_new(NULL, err);
    int rc = reader ? 0 : -1;

    for (size_t at = 0; rc == 0 && at < lines.n;) {
        const char *p = lines.p + at, *end = memchr(p, '\n', lines.n - at);
        size_t n = end ? (size_t)(end - p) : lines.n - at;
        rc = line_sign(m, reader, (struct amp_span){p, n}, out, err);
        at += n + 1;
    }
    amp_reader_free(reader);
    return rc;
}

/* ---- amp-route ---- */

/* amp-route beside this program; else in PATH. */
static void route_find(char out[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    snprintf(out, PATH_MAX, "amp-route");
    if (n <= 0)
        return;
    self[n] = '\0';
    char beside[PATH_MAX + 16];
    snprintf(beside, sizeof beside, "%s/amp-route", dirname(self));
    if (strlen(beside) < PATH_MAX && access(beside, X_OK) == 0)
        memcpy(out, beside, strlen(beside) + 1);
}

/* The refusal in the router's answers. */
static int refusal_read(int fd, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    const struct amp_check_options any = {0};
    char path[48];
    struct amp_view v;

    amp_buf_init(&text, ANSWER_MAX);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct amp_reader *reader = amp_reader_new(NULL, err);
    if (!reader)
        return -1;
    amp_fail(err, AMP_NO, refused, "amp-route refused the message; its dead letter has the reason");
    if (amp_file_read(AT_FDCWD, path, ANSWER_MAX, &text, NULL) == 0)
        for (size_t at = 0; at < text.len;) {
            const char *p = text.data + at, *end = memchr(p, '\n', text.len - at);
            size_t n = end ? (size_t)(end - p) : text.len - at;
            at += n + 1;
            if (amp_reader_line(reader, (struct amp_span){p, n}, &any, &v, NULL, NULL, NULL) <= 0 ||
                (v.kind != AMP_KIND_NACK && v.kind != AMP_KIND_ACK) || !v.body.ack.code.n)
                continue;
            char code[48];
            amp_span_copy(v.body.ack.code, code, sizeof code);
            amp_fail_text(err, AMP_NO, code, "%.*s", AMP_CLIP(v.body.ack.note, 300));
        }
    amp_reader_free(reader);
    return -1;
}

static int memory_file(struct amp_span text, struct amp_error *err)
{
    int fd = memfd_create("amp-mcp", MFD_CLOEXEC);

    if (fd < 0)
        return amp_fail_errno(err, AMP_TEMPFAIL, "memfd_create");
    if (amp_write_all(fd, text, err) == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return amp_fail(err, AMP_TEMPFAIL, no_memory, "no memory for a message");
}

static int route_run(struct mcp *m, struct amp_span lines, struct amp_error *err)
{
    char program[PATH_MAX], lock[32];
    const char *argv[16 + 2 * 64];
    size_t n = 0;
    struct amp_child child;
    struct amp_child_end end;

    AMP_CLOSE int in = memory_file(lines, err);
    AMP_CLOSE int out = in < 0 ? -1 : memory_file(AMP_SPAN(""), err);
    if (in < 0 || out < 0)
        return -1;
    route_find(program);
    snprintf(lock, sizeof lock, "%lldms", (long long)m->lock_timeout_ms);
    argv[n++] = program;
    argv[n++] = "--state";
    argv[n++] = m->state;
    argv[n++] = "--identity";
    argv[n++] = m->identity->require;
    argv[n++] = "--lock-timeout";
    argv[n++] = lock;
    if (m->config) {
        argv[n++] = "--config";
        argv[n++] = m->config;
    }
    for (int i = 0; i < m->routes->n && i < 64; i++) {
        argv[n++] = "--route";
        argv[n++] = m->routes->v[i];
    }
    if (m->routes->n == 0) {
        argv[n++] = "--route";
        argv[n++] = DEFAULT;
    }
    argv[n] = NULL;
    const struct amp_child_spec spec = {
        .argv = argv, .fd_in = in, .fd_out = out, .fd_err = STDERR_FILENO, .dies_with_us = true};
    if (amp_child_start(&spec, &child, err) < 0)
        return -1;
    int64_t until = amp_mono_ms() + ROUTE_MS;
    mcp_serve_until(m, child.pidfd, until);
    int64_t left = until - amp_mono_ms();
    if (amp_child_wait(&child, left > 0 ? left : 1, GRACE_MS, &amp_stop, &end, err) < 0)
        return -1;
    if (end.exited && end.exit_code == 0)
        return 0;
    if (end.exited && end.exit_code == AMP_NO)
        return refusal_read(out, err);
    return amp_fail(err, AMP_TEMPFAIL, route_failed,
                    end.exited ? "amp-route ended with status %d" : "amp-route was ended (%d)",
                    end.exited ? end.exit_code : end.signal);
}

/* ---- --out ---- */

static int file_write(struct mcp *m, struct amp_span lines, struct amp_error *err)
{
    struct amp_outq q = {.fd = -1};
    int fd = -1;

    if (amp_output_open(m->out_path, m->open_timeout_ms, -1, &amp_stop, &fd, err) < 0 ||
        amp_outq_open(&q, fd, true, MCP_TEXT_MAX, err) < 0)
        return -1;
    int rc = amp_outq_add(&q, lines, err) < 0 ||
             amp_outq_drain(&q, m->open_timeout_ms, &amp_stop, err) < 0;
    amp_outq_close(&q);
    return rc ? -1 : 0;
}

/* Signs the lines (each with LF, unsigned) and gives them to amp-route, or writes them to --out.
 * NO: a recipient was refused; the code and the words are amp-route's, and the message is a dead
 * letter. Other failures: the lines did not leave. */
static int lines_emit(struct mcp *m, struct amp_span lines, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, MCP_TEXT_MAX);
    if (lines_sign(m, lines, &text, err) < 0)
        return -1;
    return m->out_path ? file_write(m, amp_buf_span(&text), err)
                       : route_run(m, amp_buf_span(&text), err);
}

/* ---- the outbox ---- */

/* The oldest open entry. */
struct oldest {
    struct amp_buf line;
    struct amp_store_entry_id id;
    bool found;
};

static int entry_keep(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct oldest *o = ctx;

    if (o->found)
        return 1;
    if (amp_buf_add(&o->line, e->line.p, e->line.n, err) < 0 ||
        amp_buf_str(&o->line, "\n", err) < 0)
        return -1;
    o->id = (struct amp_store_entry_id){.n = e->n, .index = e->index};
    o->found = true;
    return 0;
}

/* The lines leave one after the other. A refusal is of the newest, the caller's; a killed process
 * left the earlier ones. */
static int entries_send(struct mcp *m, struct oldest *o, struct amp_error *err)
{
    struct amp_error why = {0};

    for (;;) {
        o->found = false;
        amp_buf_reset(&o->line);
        if (amp_store_outbox(m->store, m->box, entry_keep, o, err) < 0)
            return -1;
        if (!o->found)
            break;
        struct amp_error e = {0};
        int rc = lines_emit(m, amp_buf_span(&o->line), &e);
        if (rc < 0 && e.status != AMP_NO) {
            *err = e;
            return -1;
        }
        if (why.code[0])
            mcp_log(m, NULL, MCP_WARNING, "an earlier message: %s: %s", why.code, why.what);
        why = rc < 0 ? e : (struct amp_error){0}; /* the router has it as a dead letter */
        if (amp_store_outbox_close(m->store, m->box, &o->id, 1, err) < 0)
            return -1;
    }
    if (amp_store_sync(m->store, err) < 0)
        return -1;
    if (!why.code[0])
        return 0;
    *err = why;
    return -1;
}

/* Gives the open entries of the outbox to their recipients, and closes them. The caller holds the
 * lock of the outbox's name. */
static int outbox_emit(struct mcp *m, struct amp_error *err)
{
    struct oldest o = {.found = false};

    if (amp_store_sync(m->store, err) < 0)
        return -1;
    amp_buf_init(&o.line, MCP_TEXT_MAX);
    int rc = entries_send(m, &o, err);
    amp_buf_release(&o.line);
    return rc;
}

/* The lock of the outbox's name. Another server of the same agent may have it; the session goes on
 * meanwhile. */
static enum mcp_step box_lock(struct mcp_call *call, int *lock, struct amp_error *err)
{
    struct mcp *m = call->m;
    int64_t now = amp_now_ms();

    if (mcp_store(m, err) < 0)
        return MCP_FAILED;
    if (amp_outbox_lock(m->store, m->box, 0, lock, err) == 0)
        return MCP_DONE;
    *lock = -1;
    if (!call->limit_ms)
        call->limit_ms = now + m->lock_timeout_ms;
    if (!amp_code_is(err->code, lock_timeout) || now >= call->limit_ms)
        return MCP_FAILED;
    snprintf(call->state, sizeof call->state, "waiting for another server of this agent");
    call->until_ms = now + LOCK_AGAIN_MS;
    return MCP_WAITS;
}

/* The lines that a killed server left in the outbox leave when the next session begins. */
void mcp_outbox_flush(struct mcp *m)
{
    static const struct mcp_call none = {0};
    struct oldest o = {.found = false};
    struct amp_error err;
    AMP_CLOSE int lock = -1;

    m->flush = false;
    if (!(m->where & MCP_STATE) || access(m->state, F_OK) != 0)
        return;
    amp_buf_init(&o.line, MCP_TEXT_MAX);
    int rc = mcp_store(m, &err);
    if (rc == 0)
        rc = amp_store_outbox(m->store, m->box, entry_keep, &o, &err);
    amp_buf_release(&o.line);
    /* With the lock, another server is sending it. */
    if (rc >= 0 && o.found && amp_outbox_lock(m->store, m->box, 0, &lock, &err) == 0) {
        m->emitting = &none;
        rc = outbox_emit(m, &err);
        m->emitting = NULL;
        m->stale = true;
    }
    if (rc < 0)
        mcp_log(m, NULL, MCP_WARNING, "a message of an earlier session did not leave: %s: %s",
                err.code, err.what);
}

/* ---- send ---- */

static int line_check(struct mcp *m, struct amp_span line, struct amp_error *err)
{
    const struct amp_check_options opt = {0};
    struct amp_view v;
    struct amp_error why = {0};
    struct amp_reader *reader = amp_reader_new(NULL, err);

    (void)m;
    if (!reader)
        return -1;
    int rc = amp_reader_line(reader, line, &opt, &v, NULL, &why, err);
    if (rc == 0) {
        *err = why;
        err->status = AMP_NO;
    }
    amp_reader_free(reader);
    return rc > 0 ? 0 : -1;
}

struct saying {
    struct mcp *m;
    struct amp_say say;
    struct amp_buf line;
    char id[AMP_UUID_MAX];
};

static int saying_compose(void *ctx, int64_t number, struct amp_store_emit *out,
                          struct amp_error *err)
{
    struct saying *s = ctx;

    s->say.sequence = number;
    amp_buf_reset(&s->line);
    if (amp_say_line(&s->say, &s->line, s->id, err) < 0 ||
        line_check(s->m, amp_buf_span(&s->line), err) < 0)
        return -1;
    *out =
        (struct amp_store_emit){.id = amp_span_str(s->id), .line = {s->line.data, s->line.len - 1}};
    return 0;
}

static enum mcp_step message_send(struct mcp_call *call, struct amp_error *err)
{
    struct mcp *m = call->m;
    AMP_CLOSE int lock = -1;
    struct saying s = {
        .m = m,
        .say =
            {
                .from = m->agent,
                .node = m->box,
                .to = amp_json_str(call->args, "to"),
                .subject = amp_json_str(call->args, "subject"),
                .routing = m->routing,
                .text = amp_json_str(call->args, "text"),
                .expects_reply = json_is_true(json_object_get(call->args, "expects_reply")),
                .now_ms = amp_now_ms(),
            },
    };

    if (strcmp(s.say.to, m->agent) == 0) {
        amp_fail(err, AMP_NO, bad_recipient, "an agent does not send to itself");
        return MCP_FAILED;
    }
    enum mcp_step how = box_lock(call, &lock, err);
    if (how != MCP_DONE)
        return how;
    amp_buf_init(&s.line, MCP_TEXT_MAX);
    /* The number and the line are one commit: a kill leaves no gap, and the next server sends it.
     */
    int rc = amp_sequence_emit(m->store, amp_span_str(m->box), m->box, saying_compose, &s, err);
    amp_buf_release(&s.line);
    if (rc < 0 || amp_store_sync(m->store, err) < 0) /* then it may not be recorded */
        return MCP_FAILED;
    rc = outbox_emit(m, err);
    if (rc < 0 && err->status == AMP_NO)
        return MCP_FAILED;
    call->result = json_pack("{s:s, s:s, s:b}", "id", s.id, "to", s.say.to, "delivered", rc == 0);
    if (rc < 0)
        snprintf(call->text, sizeof call->text,
                 "Message %s to %s is recorded, but did not leave yet (%s: %.150s). It leaves with "
                 "the next message or session: do not send it again.",
                 s.id, s.say.to, err->code, err->what);
    else
        snprintf(call->text, sizeof call->text, "Message %s was delivered to %s.", s.id, s.say.to);
    return call->result ? MCP_DONE : MCP_FAILED;
}

/* One message leaves after the other. */
static enum mcp_step in_turn(struct mcp_call *call,
                             enum mcp_step (*run)(struct mcp_call *call, struct amp_error *err),
                             struct amp_error *err)
{
    if (call->m->emitting == call) /* looked at while it leaves */
        return MCP_WAITS;
    if (!mcp_may_emit(call)) {
        snprintf(call->state, sizeof call->state, "waiting for the messages before it");
        return MCP_WAITS;
    }
    snprintf(call->state, sizeof call->state, "the message is on its way");
    call->m->emitting = call;
    enum mcp_step how = run(call, err);
    call->m->emitting = NULL;
    return how;
}

enum mcp_step mcp_send(struct mcp_call *call, struct amp_error *err)
{
    return in_turn(call, message_send, err);
}

/* ---- reply, progress ---- */

struct git_of {
    struct mcp *m;
    struct amp_git *git;
};

static struct amp_git *git_open(void *ctx, struct amp_error *err)
{
    struct git_of *g = ctx;

    if (!g->git && amp_git_open(NULL, &g->git, err) < 0)
        g->git = NULL;
    return g->git;
}

/* A message that asks a person is not an agent's to answer, whatever inbox it is in. */
static int question_refuse(struct mcp *m, const char *id, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_question_rec rec;
    char key[AMP_QUESTION_KEY_MAX];
    int found = 0;

    amp_buf_init(&mem, AMP_QUESTION_BYTES);
    for (int p = AMP_PROTO_NONE + 1; !found && p < AMP_PROTO_COUNT; p++) {
        amp_question_key((enum amp_protocol)p, amp_span_str(id), key);
        found = amp_question_find(m->store, amp_span_str(key), &mem, &rec, err);
    }
    if (found < 0)
        return -1;
    return found ? amp_fail(err, AMP_NOPERM, permission_denied,
                            "%.100s is a question for a person; an agent does not answer it", id)
                 : 0;
}

/* Files below the directory where the server was started, and not elsewhere: a coding agent may be
 * in a sandbox that the server is not in. */
struct named_files {
    struct amp_buf mem;
    struct amp_reply_file v[AMP_REPLY_FILES_MAX];
    uint32_t n;
};

static int files_read(const json_t *list, struct named_files *f, struct amp_error *err)
{
    char cwd[PATH_MAX];
    size_t i;
    json_t *e;
    AMP_CLOSE int root = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (root < 0 || !getcwd(cwd, sizeof cwd))
        return amp_fail_errno(err, AMP_IOERR, "the current directory");
    size_t n = strlen(cwd);
    /* The strings move while the buffer grows, so the files are read twice. */
    for (int pass = 0; pass < 2; pass++) {
        amp_buf_reset(&f->mem);
        f->n = 0;
        json_array_foreach (list, i, e) {
            const char *path = json_string_value(e);
            if (strncmp(path, cwd, n) == 0 && path[n] == '/')
                path += n + 1;
            if (f->n == AMP_REPLY_FILES_MAX || *path == '/')
                return amp_fail(err, AMP_NOPERM, permission_denied,
                                "%.300s: only files below %.300s", path, cwd);
            if (amp_reply_file_read_below(root, path, &f->mem, &f->v[f->n], err) < 0)
                return -1;
            f->n++;
        }
    }
    return 0;
}

static enum mcp_step answer_with(struct mcp_call *call, enum amp_reply_act act,
                                 struct named_files *files, struct amp_error *err)
{
    struct mcp *m = call->m;
    const json_t *eta = json_object_get(call->args, "eta_seconds");
    int64_t now = amp_now_ms();
    struct git_of git = {.m = m};
    struct amp_reply_result out = {.how = AMP_REPLY_COMPOSED};
    const json_t *percent = json_object_get(call->args, "percent");
    char id[AMP_MSG_ID_MAX];
    struct amp_reply r = {
        .act = act,
        .id = id,
        .by = m->agent,
        .box = m->box,
        .text = amp_json_str(call->args, "text"),
        .data = json_object_get(call->args, "data"),
        .has_percent = percent != NULL,
        .percent = json_number_value(percent),
        .retryable = json_is_true(json_object_get(call->args, "retryable")),
        .code = json_string_value(json_object_get(call->args, "code")),
        .now_ms = now,
        .eta_ms = eta ? now + json_integer_value(eta) * 1000 : 0,
        .git = git_open,
        .git_ctx = &git,
    };

    if (mcp_store(m, err) < 0 ||
        amp_reply_find(m->store, amp_json_str(call->args, "id"), id, err) < 0 ||
        question_refuse(m, id, err) < 0 ||
        files_read(json_object_get(call->args, "files"), files, err) < 0)
        return MCP_FAILED;
    r.files = files->v;
    r.n_files = files->n;
    mcp_inbox_seen(m, id);
    AMP_CLOSE int lock = -1;
    enum mcp_step how = box_lock(call, &lock, err);
    if (how != MCP_DONE)
        return how;
    amp_buf_init(&out.line, AMP_REPLY_LINE_MAX);
    int rc = amp_reply(m->store, &r, &out, err);
    if (git.git)
        amp_git_close(git.git);
    if (rc == 0)
        rc = outbox_emit(m, err);
    amp_buf_release(&out.line);
    if (rc < 0)
        return MCP_FAILED;
    call->result = json_pack("{s:s, s:s}", "answers", out.id, "outcome", amp_reply_act_name(act));
    return call->result ? MCP_DONE : MCP_FAILED;
}

static enum mcp_step answer_give(struct mcp_call *call, enum amp_reply_act act,
                                 struct amp_error *err)
{
    struct named_files files = {.n = 0};

    amp_buf_init(&files.mem, FILES_MAX);
    enum mcp_step how = answer_with(call, act, &files, err);
    amp_buf_release(&files.mem);
    return how;
}

static enum mcp_step outcome_give(struct mcp_call *call, struct amp_error *err)
{
    int act = amp_reply_act_find(amp_span_str(amp_json_str(call->args, "outcome")));

    return answer_give(call, act < 0 ? AMP_REPLY_REPLY : (enum amp_reply_act)act, err);
}

static enum mcp_step progress_give(struct mcp_call *call, struct amp_error *err)
{
    return answer_give(call, AMP_REPLY_PROGRESS, err);
}

enum mcp_step mcp_reply(struct mcp_call *call, struct amp_error *err)
{
    return in_turn(call, outcome_give, err);
}

enum mcp_step mcp_progress_say(struct mcp_call *call, struct amp_error *err)
{
    return in_turn(call, progress_give, err);
}
