/* The request loop of git-worker. One request at a time, in order; it ends with its input. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/json/lines.h>

#include "base/codes.h"
#include "worker.h"
#include "json/record.h"

#if defined(__SANITIZE_ADDRESS__)
/* The library leaks its match data if an expression does not match. */
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

/* The operations, and the texts that each needs. */
static const struct {
    const char *name;
    int (*run)(struct request *r);
    const char *needs[9];
    bool incoming; /* it reads only, and also the objects of a push in a pre-receive hook */
} ops[] = {
    {"info", op_info, {"repo"}},
    {"resolve", op_resolve, {"repo", "rev"}, true},
    {"look", op_look, {"repo", "rev"}, true},
    {"config", op_config, {"repo", "key"}},
    {"reflog", op_reflog, {"repo", "ref"}},
    {"refs", op_refs, {"repo"}},
    {"worktree_add", op_worktree_add, {"repo", "path"}},
    {"worktree_remove", op_worktree_remove, {"repo", "path"}},
    {"worktrees", op_worktrees, {"repo"}},
    {"worktree_lives", op_worktree_lives, {"repo"}},
    {"worktree_facts", op_worktree_facts, {"repo"}},
    {"worktree_include", op_worktree_include, {"repo", "path"}},
    {"worktree_repair", op_worktree_repair, {"repo"}},
    {"commit", op_commit, {"repo", "worktree", "name", "email", "message"}},
    {"rollback", op_rollback, {"repo", "branch", "commit", "name", "email"}},
    {"land_plan", op_land_plan, {"repo", "branch", "commit"}, true},
    {"land_move", op_land_move, {"repo", "branch", "from", "to", "name", "email", "message"}},
    {"keep", op_keep, {"repo", "worktree", "ref", "name", "email"}},
    {"note_write", op_note_write, {"repo", "rev", "ref", "name", "email", "message"}},
    {"note_read", op_note_read, {"repo", "rev", "ref"}, true},
    {"diff", op_diff, {"repo", "from"}},
    {"claims", op_claims, {"repo", "from", "to", "name", "email"}},
    {"snapshot_save", op_snapshot_save, {"repo", "ref", "path", "name", "email"}},
    {"snapshot_drop", op_snapshot_drop, {"repo", "ref"}},
    {"quarantine_make", op_quarantine_make, {"repo", "worktree", "path", "name", "email"}},
    {"quarantine_drop", op_quarantine_drop, {"repo", "path"}},
    {"quarantine_keep",
     op_quarantine_keep,
     {"repo", "path", "branch", "start", "name", "email", "keep"}},
    {"quarantine_take",
     op_quarantine_take,
     {"repo", "worktree", "path", "branch", "start", "name", "email", "keep"}},
};

#define IN(as, name) AMP_REC(as, struct request_in, #name, name)
static const struct amp_rec_field fields[] = {
    IN(INT, q),          IN(CSTR, agent),    IN(CSTR, base),    IN(CSTR, branch),
    IN(CSTR, commit),    IN(CSTR, email),    IN(CSTR, expect),  IN(CSTR, from),
    IN(CSTR, keep),      IN(CSTR, key),      IN(CSTR, message), IN(CSTR, name),
    IN(CSTR, oid),       IN(CSTR, op),       IN(CSTR, patch),   IN(CSTR, path),
    IN(CSTR, ref),       IN(CSTR, repo),     IN(CSTR, rev),     IN(CSTR, start),
    IN(CSTR, to),        IN(CSTR, worktree), IN(BOOL, force),   IN(BOOL, is_path),
    IN(BOOL, protected), IN(BOOL, release),  IN(INT, bytes),    IN(INT, object_bytes),
    IN(INT, objects),    IN(CSTR, role),     IN(CSTR, task),    IN(BOOL, no_sparse),
    IN(BOOL, merge),     IN(BOOL, files),    IN(BOOL, forward), IN(INT, tree_paths),
    IN(INT, tree_bytes), IN(BOOL, contents),
};
AMP_REC_TABLE(request_rec, "a request", struct request_in, fields);

static bool text_is_missing(const struct request *r, const char *key)
{
    for (size_t i = 0; i < request_rec.n; i++)
        if (strcmp(fields[i].key, key) == 0)
            return !*(const char *const *)((const char *)&r->in + fields[i].at);
    return true;
}

void reply_text(struct request *r, const char *key, const char *value)
{
    amp_jw_member_text(&r->out, key, value);
}

void reply_flag(struct request *r, const char *key, bool value)
{
    amp_jw_member_bool(&r->out, key, value);
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
        return amp_fail(r->err, AMP_DATAERR, not_a_file, "%s: %s is not a regular file", doing,
                        open_refused());
    if (rc == GIT_EOWNER)
        return amp_fail(r->err, AMP_NOPERM, repo_not_owned,
                        "%s: the repository belongs to another user; git config --global --add "
                        "safe.directory DIR allows it",
                        doing);
    if (strstr(why, "unsupported extension") || strstr(why, "repository version"))
        return amp_fail(r->err, AMP_DATAERR, repo_unsupported,
                        "%s: the git library cannot read this kind of repository: %s", doing, why);
    if (rc == GIT_ELOCKED)
        return amp_fail(r->err, AMP_TEMPFAIL, git_locked, "%s: %s", doing, why);
    return amp_fail_text(r->err, status, code, "%s: %s", doing, why);
}

/* Another git holds its locks only for a moment, unless it crashed. An operation that met a lock
 * has undone its changes, so it can be repeated. */
static bool wait_for_lock(const struct amp_error *err, int *waits)
{
    const struct timespec moment = {0, LOCK_WAIT_NS};
    return amp_code_is(err->code, git_locked) && (*waits)++ < LOCK_WAITS &&
           nanosleep(&moment, NULL) == 0;
}

static int request_run(struct request *r)
{
    size_t i = 0, n = sizeof ops / sizeof *ops;
    while (i < n && r->in.op && strcmp(ops[i].name, r->in.op) != 0)
        i++;
    if (!r->in.op || i == n)
        return amp_fail(r->err, AMP_INTERNAL, bad_request, "unknown or missing \"op\"");
    for (const char *const *need = ops[i].needs; *need; need++)
        if (text_is_missing(r, *need))
            return amp_fail(r->err, AMP_INTERNAL, bad_request, "\"%s\" is missing", *need);
    open_guard(r->in.repo, r->in.worktree, r->in.path);
    if (open_repository(r, r->in.repo, &r->repo) < 0)
        return -1;
    int rc = ops[i].incoming ? incoming_add(r) : 0;
    if (rc == 0)
        rc = ops[i].run(r);
    git_repository_free(r->repo);
    return rc;
}

static void reply_begin(struct request *r, struct amp_buf *reply, bool ok)
{
    amp_buf_reset(reply);
    amp_jw_init(&r->out, reply);
    amp_jw_open(&r->out, '{');
    amp_jw_member_int(&r->out, "q", r->in.q);
    reply_flag(r, "ok", ok);
}

/* Carries out one request and writes its reply; -1 if that cannot be written. */
static int request_answer(const struct amp_tape *tape, struct amp_buf *reply)
{
    struct amp_error err = {0}, late;
    struct request r = {.err = &err};
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    int waits = 0, rc = amp_rec_read(&request_rec, tape, 0, &mem, &r.in, &err);
    bool valid = rc == 0;
    do {
        reply_begin(&r, reply, true);
        git_error_clear();
        open_refused_clear();
        rc = valid ? request_run(&r) : -1;
        amp_jw_close(&r.out, '}');
        if (amp_jw_end_line(&r.out, &late) < 0 && rc == 0) {
            err = late;
            rc = -1;
        }
    } while (rc && wait_for_lock(&err, &waits));
    if (rc) {
        reply_begin(&r, reply, false);
        amp_jw_member_int(&r.out, "status", err.status);
        reply_text(&r, "code", err.code);
        reply_text(&r, "what", err.what);
        amp_jw_close(&r.out, '}');
        if (amp_jw_end_line(&r.out, &late) < 0)
            return -1;
    }
    return amp_write_all(STDOUT_FILENO, amp_buf_span(reply), &late);
}

/* A request of a client that ended is not carried out. Only a socket shows this; on a pipe, a
 * hang-up is just the end of the requests. */
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
    open_init();
    amp_lines_init(&lines, LINE_MAX_BYTES);
    amp_tape_init(&tape, NULL);
    amp_buf_init(&reply, REPLY_MAX_BYTES);
    int status = -1;
    while (status < 0) {
        switch (amp_lines_next(&lines, &line)) {
        case AMP_LINE:
            if (client_is_gone())
                status = 0;
            else if (amp_tape_scan(&tape, line.bytes.p, line.bytes.n, &fault) ||
                     tape.tok[0].type != AMP_JSON_OBJECT || request_answer(&tape, &reply))
                status = AMP_DATAERR; /* no reply is possible; the client starts another worker */
            break;
        case AMP_LINE_MORE:
            if (amp_lines_fill(&lines, STDIN_FILENO, NULL) < 0)
                status = AMP_IOERR;
            break;
        case AMP_LINE_TOO_LONG:
            status = AMP_DATAERR;
            break;
        case AMP_LINE_END:
            status = 0;
            break;
        }
    }
    amp_tape_release(&tape);
    amp_lines_release(&lines);
    git_libgit2_shutdown();
    return status;
}
