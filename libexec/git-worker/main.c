/* The request loop of git-worker. One request at a time, in order; it ends with its input. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/json/lines.h>

#include "worker.h"

#if defined(__SANITIZE_ADDRESS__)
/* The library forgets its match data where an expression does not match. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libpcre2-8";
}
#endif

#define LINE_MAX_BYTES  (1u << 20)
#define REPLY_MAX_BYTES (32u << 20)
#define LOCK_WAITS      40
#define LOCK_WAIT_NS    (50 * 1000 * 1000)

static const struct {
    const char *name;
    int (*run)(struct request *r);
} ops[] = {
    {"info", op_info},
    {"resolve", op_resolve},
    {"tree", op_tree},
    {"config", op_config},
    {"reflog", op_reflog},
    {"refs", op_refs},
    {"worktree_add", op_worktree_add},
    {"worktree_remove", op_worktree_remove},
    {"worktrees", op_worktrees},
    {"commit", op_commit},
    {"rollback", op_rollback},
    {"keep", op_keep},
    {"diff", op_diff},
};

int request_text(struct request *r, const char *key, bool wanted, const char **out)
{
    uint32_t tok = amp_tape_get(r->tape, 0, amp_span_str(key));
    *out = NULL;
    if (tok == AMP_TOK_NONE || r->tape->tok[tok].type == AMP_JSON_NULL)
        return wanted ? amp_fail(r->err, AMP_INTERNAL, "bad_request", "\"%s\" is missing", key) : 0;
    AMP_BUF struct amp_buf arena = {0};
    amp_buf_init(&arena, LINE_MAX_BYTES);
    struct amp_span text;
    if (r->tape->tok[tok].type != AMP_JSON_STRING || r->n_texts == TEXTS_MAX)
        return amp_fail(r->err, AMP_INTERNAL, "bad_request", "\"%s\" is not text", key);
    if (amp_tok_text(r->tape, tok, &arena, &text, r->err))
        return -1;
    char *copy = amp_span_dup(text);
    if (!copy)
        return amp_fail_memory(r->err);
    if (strlen(copy) != text.n) {
        free(copy);
        return amp_fail(r->err, AMP_DATAERR, "bad_request", "\"%s\" holds a NUL", key);
    }
    r->texts[r->n_texts++] = copy;
    *out = copy;
    return 0;
}

bool request_flag(const struct request *r, const char *key)
{
    uint32_t tok = amp_tape_get(r->tape, 0, amp_span_str(key));
    return tok != AMP_TOK_NONE && r->tape->tok[tok].type == AMP_JSON_TRUE;
}

void reply_text(struct request *r, const char *key, const char *value)
{
    amp_jw_key(&r->out, key);
    amp_jw_str(&r->out, amp_span_str(value));
}

void reply_oid(struct request *r, const char *key, const git_oid *oid)
{
    char hex[GIT_OID_HEXSZ + 1] = "";
    if (oid)
        git_oid_tostr(hex, sizeof hex, oid);
    reply_text(r, key, hex);
}

int fail_git(struct request *r, int rc, enum amp_status status, const char *code, const char *doing)
{
    const git_error *e = git_error_last();
    const char *why = e && e->message ? e->message : "no reason given";
    if (open_refused())
        return amp_fail(r->err, AMP_DATAERR, "not_a_file", "%s: %s is not a regular file", doing,
                        open_refused());
    if (rc == GIT_EOWNER)
        return amp_fail(r->err, AMP_NOPERM, "repo_not_owned",
                        "%s: the repository belongs to another user; git config --global --add "
                        "safe.directory DIR allows it",
                        doing);
    if (strstr(why, "unsupported extension") || strstr(why, "repository version"))
        return amp_fail(r->err, AMP_DATAERR, "repo_unsupported",
                        "%s: the git library cannot read this kind of repository: %s", doing, why);
    if (rc == GIT_ELOCKED)
        return amp_fail(r->err, AMP_TEMPFAIL, "git_locked", "%s: %s", doing, why);
    return amp_fail(r->err, status, code, "%s: %s", doing, why);
}

/* Another git at work holds its locks for moments; one that crashed, for ever. An operation that
 * met a lock has taken back what it did, so it may be done again. */
static bool wait_for_lock(const struct amp_error *err, int *waits)
{
    const struct timespec moment = {0, LOCK_WAIT_NS};
    return strcmp(err->code, "git_locked") == 0 && (*waits)++ < LOCK_WAITS &&
           nanosleep(&moment, NULL) == 0;
}

static int dispatch(struct request *r)
{
    const char *op;
    if (request_text(r, "op", true, &op))
        return -1;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].name, op) == 0)
            return ops[i].run(r);
    return amp_fail(r->err, AMP_INTERNAL, "bad_request", "no operation \"%s\"", op);
}

static void begin_reply(struct request *r, struct amp_buf *reply, int64_t q, bool ok)
{
    amp_buf_reset(reply);
    amp_jw_init(&r->out, reply);
    amp_jw_open(&r->out, '{');
    amp_jw_key(&r->out, "q");
    amp_jw_int(&r->out, q);
    amp_jw_key(&r->out, "ok");
    amp_jw_bool(&r->out, ok);
}

/* One reply, whatever happened; -1 only when it cannot be written. */
static int answer(const struct amp_tape *tape, struct amp_buf *reply)
{
    struct amp_error err = {0}, late;
    struct request r = {.tape = tape, .err = &err};
    int64_t q = 0;
    uint32_t tok = amp_tape_get(tape, 0, AMP_SPAN("q"));
    if (tok != AMP_TOK_NONE)
        amp_tok_int(tape, tok, &q);
    int waits = 0, rc;
    do {
        begin_reply(&r, reply, q, true);
        git_error_clear();
        open_refused_clear();
        rc = dispatch(&r);
        amp_jw_close(&r.out, '}');
        if (amp_jw_end(&r.out, &late) && rc == 0) {
            err = late;
            rc = -1;
        }
        while (r.n_texts > 0)
            free(r.texts[--r.n_texts]);
    } while (rc && wait_for_lock(&err, &waits));
    if (rc) {
        begin_reply(&r, reply, q, false);
        amp_jw_key(&r.out, "status");
        amp_jw_int(&r.out, err.status);
        reply_text(&r, "code", err.code);
        reply_text(&r, "what", err.what);
        amp_jw_close(&r.out, '}');
        if (amp_jw_end(&r.out, &late))
            return -1;
    }
    return amp_buf_str(reply, "\n", &late) ||
                   amp_write_all(STDOUT_FILENO, amp_buf_span(reply), &late)
               ? -1
               : 0;
}

/* What nobody waits for any more is not done. Only a socket tells; a pipe's end is just the end of
 * the requests. */
static bool client_is_gone(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0 && (p.revents & POLLRDHUP);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts("git-worker " AMP_VERSION) < 0 ? AMP_IOERR : 0;
    struct amp_lines lines;
    struct amp_line line;
    struct amp_tape tape;
    struct amp_json_fault fault;
    AMP_BUF struct amp_buf reply = {0};
    if (git_libgit2_init() < 0)
        return AMP_INTERNAL;
    amp_lines_init(&lines, LINE_MAX_BYTES);
    amp_tape_init(&tape, NULL);
    amp_buf_init(&reply, REPLY_MAX_BYTES);
    int status = 0;
    for (bool go = true; go;) {
        switch (amp_lines_next(&lines, &line)) {
        case AMP_LINE:
            if (client_is_gone()) {
                go = false;
                break;
            }
            if (amp_tape_scan(&tape, line.bytes.p, line.bytes.n, &fault) == 0 &&
                tape.tok[0].type == AMP_JSON_OBJECT && answer(&tape, &reply) == 0)
                break;
            /* Without a number there is nothing to answer to; the client starts another one. */
            status = AMP_DATAERR;
            go = false;
            break;
        case AMP_LINE_MORE:
            if (amp_lines_fill(&lines, STDIN_FILENO, NULL) < 0) {
                status = AMP_IOERR;
                go = false;
            }
            break;
        case AMP_LINE_TOO_LONG:
            status = AMP_DATAERR;
            go = false;
            break;
        case AMP_LINE_END:
            go = false;
            break;
        }
    }
    amp_tape_release(&tape);
    amp_lines_release(&lines);
    git_libgit2_shutdown();
    return status;
}
