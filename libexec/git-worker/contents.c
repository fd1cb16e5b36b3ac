/*
 * The guard's rules about the contents of commits (trailers, paths, sizes), for commits that this
 * program makes or takes over: git runs no hook for them. branch-guard checks them, so that the
 * rules exist once; it is started only where such a rule is set. It also finds what commits claim
 * about others (op claims), which refuses nothing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "work/git/paths/reserved.h"
#include "worker.h"

#define SAID_MAX   8192
#define TIME_MS    60000
#define GUARD_NAME "branch-guard"

static bool is_restricted(git_repository *repo, const struct amp_rule *rule)
{
    char path[PATH_MAX];
    if (rule->trailers[0] || rule->paths[0] || rule->max_file || rule->max_commit)
        return true;
    int n = snprintf(path, sizeof path, "%samp/" AMP_RESERVED_FILE, git_repository_commondir(repo));
    return n < 0 || (size_t)n >= sizeof path || access(path, F_OK) == 0;
}

/* "branch-guard: error: WHAT [CODE]" becomes an error. */
static int refuse_contents(struct request *r, char *said)
{
    static const char head[] = GUARD_NAME ": error: ";
    char code[64];
    char *line = strstr(said, head);
    if (!line)
        return amp_fail(r->err, AMP_NOPERM, guard_failed, GUARD_NAME " refused the commit");
    line += strlen(head);
    line[strcspn(line, "\n")] = '\0';
    snprintf(code, sizeof code, "%s", AMP_CODE(guard_failed));
    char *open_at = strrchr(line, '['), *end = open_at ? strchr(open_at, ']') : NULL;
    if (end && !end[1]) {
        amp_span_copy((struct amp_span){open_at + 1, (size_t)(end - open_at - 1)}, code,
                      sizeof code);
        *open_at = '\0';
    }
    return amp_fail_text(r->err, AMP_NOPERM, code, "%s", line);
}

int check_contents(struct request *r, git_repository *repo, const struct amp_rule *rule,
                   const char *agent, const git_oid *tip)
{
    char program[PATH_MAX], hex[GIT_OID_HEXSZ + 2], said[SAID_MAX + 1];
    char agent_var[256], task_var[512], dir_var[PATH_MAX + 16];
    struct amp_child child;
    struct amp_child_end end = {0};
    if (!agent || !is_restricted(repo, rule))
        return 0;
    if (amp_helper_path(GUARD_NAME, program, sizeof program, r->err) < 0)
        return -1;
    git_oid_tostr(hex, sizeof hex, tip);
    size_t n = strlen(hex);
    hex[n++] = '\n';
    AMP_CLOSE int in = memfd_create("amp-commits", MFD_CLOEXEC);
    AMP_CLOSE int out = memfd_create("amp-said", MFD_CLOEXEC);
    if (in < 0 || out < 0 || amp_write_all(in, (struct amp_span){hex, n}, r->err) < 0 ||
        lseek(in, 0, SEEK_SET) != 0)
        return amp_fail_errno(r->err, AMP_IOERR, "memfd");
    snprintf(agent_var, sizeof agent_var, "AMP_AGENT=%.128s", agent);
    snprintf(task_var, sizeof task_var, "AMP_TASK_ID=%.255s", r->in.task ? r->in.task : "");
    snprintf(dir_var, sizeof dir_var, "GIT_DIR=%s", git_repository_commondir(repo));
    const char *path = getenv("PATH");
    char path_var[8192];
    snprintf(path_var, sizeof path_var, "PATH=%.8000s",
             path ? path : "/usr/local/bin:/usr/bin:/bin");
    /* The guard's environment is not that of the agent. */
    const char *const env[] = {agent_var,
                               task_var,
                               dir_var,
                               path_var,
                               "LC_ALL=C",
                               "GIT_CONFIG_NOSYSTEM=1",
                               "GIT_CONFIG_GLOBAL=/dev/null",
                               NULL};
    const struct amp_child_spec spec = {
        .argv = (const char *const[]){program, "--contents", NULL},
        .envp = env,
        .cwd = git_repository_commondir(repo),
        .fd_in = in,
        .fd_out = -1,
        .fd_err = out,
        .dies_with_us = true,
    };
    if (amp_child_start(&spec, &child, r->err) < 0 ||
        amp_child_wait(&child, TIME_MS, 1000, NULL, &end, r->err) < 0)
        return -1;
    if (end.exited && end.exit_code == 0)
        return 0;
    ssize_t got = pread(out, said, SAID_MAX, 0);
    said[got > 0 ? got : 0] = '\0';
    return refuse_contents(r, said);
}

/* ---- the trailers of a commit of the tools ---- */

static bool has_trailer(const char *message, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = message; p; p = (p = strchr(p, '\n')) ? p + 1 : NULL)
        if (strncasecmp(p, name, n) == 0 && p[n] == ':')
            return true;
    return false;
}

/* Whether the last paragraph is one of trailers, to which a line can be added. */
static bool ends_with_trailers(const char *message)
{
    size_t n = strlen(message);
    while (n && message[n - 1] == '\n')
        n--;
    const char *blank = n ? memmem(message, n, "\n\n", 2) : NULL, *last = NULL;
    for (; blank; blank = memmem(blank + 1, n - (size_t)(blank + 1 - message), "\n\n", 2))
        last = blank + 2;
    for (const char *p = last; p && p < message + n;) {
        size_t line = strcspn(p, "\n"), word = strcspn(p, ": \n");
        if (!word || p[word] != ':' || word > line)
            return false;
        p += line + (p[line] == '\n');
    }
    return last;
}

int add_trailers(struct request *r, const struct amp_rule *rule, struct amp_buf *out)
{
    bool block = ends_with_trailers(r->in.message);
    size_t n = strlen(r->in.message);
    while (n && r->in.message[n - 1] == '\n')
        n--;
    if (amp_buf_add(out, r->in.message, n, r->err) < 0)
        return -1;
    for (int i = 0; rule->trailers[i]; i++) {
        const char *name = rule->trailers[i];
        const char *value = strcasecmp(name, "agent") == 0  ? r->in.agent
                            : strcasecmp(name, "task") == 0 ? r->in.task
                                                            : NULL;
        if (!value || !*value || has_trailer(r->in.message, name))
            continue;
        if (amp_buf_fmt(out, r->err, "%s%s: %s", block ? "\n" : "\n\n", name, value) < 0)
            return -1;
        block = true;
    }
    return amp_buf_str(out, "\n", r->err);
}

/* ---- what commits claim ---- */

#define CLAIMS_COMMITS 200
#define CLAIMS_MAX     32
#define AGENTS_DOMAIN  "@agents.invalid"

struct claims {
    struct request *r;
    char commit[GIT_OID_HEXSZ + 1];
    int n;
};

static void claim_reply(struct claims *c, const char *name, const char *value)
{
    char text[200];
    if (c->n++ >= CLAIMS_MAX)
        return;
    snprintf(text, sizeof text, "%.40s: %.120s", name, value);
    amp_jw_open(&c->r->out, '{');
    reply_text(c->r, "commit", c->commit);
    reply_text(c->r, "claim", text);
    amp_jw_close(&c->r->out, '}');
}

/* Another agent's address, as amp_agent_email makes it. */
static void person_claims(struct claims *c, const char *role, const git_signature *who)
{
    static const char domain[] = AGENTS_DOMAIN;
    size_t n = who && who->email ? strlen(who->email) : 0, tail = sizeof domain - 1;
    if (n > tail && strcmp(who->email + n - tail, domain) == 0 &&
        strcmp(who->email, c->r->in.email) != 0)
        claim_reply(c, role, who->email);
}

static void trailers_claim(struct claims *c, const char *message)
{
    static const char *const judged[] = {"reviewed-by", "approved-by", "acked-by"};
    git_message_trailer_array all = {0};
    if (git_message_trailers(&all, message) != 0)
        return;
    for (size_t i = 0; i < all.count; i++) {
        const char *key = all.trailers[i].key, *value = all.trailers[i].value;
        const char *own = strcasecmp(key, "agent") == 0  ? c->r->in.name
                          : strcasecmp(key, "task") == 0 ? c->r->in.task
                                                         : NULL;
        bool claims = own && strcmp(value, own) != 0;
        for (size_t k = 0; k < sizeof judged / sizeof *judged; k++)
            claims |= strcasecmp(key, judged[k]) == 0;
        if (claims)
            claim_reply(c, key, value);
    }
    git_message_trailer_array_free(&all);
}

/* The commits after `from`, up to `to`, along the first parents: others come from elsewhere. */
static int commits_walk(struct claims *c, git_revwalk *walk)
{
    git_oid oid, from, to;
    struct request *r = c->r;
    if (git_oid_fromstr(&from, r->in.from) != 0 || git_oid_fromstr(&to, r->in.to) != 0)
        return amp_fail(r->err, AMP_USAGE, bad_value, "from and to: expected ids of commits");
    git_revwalk_simplify_first_parent(walk);
    int rc = git_revwalk_push(walk, &to);
    if (rc == 0)
        rc = git_revwalk_hide(walk, &from);
    for (int i = 0; rc == 0 && i < CLAIMS_COMMITS && (rc = git_revwalk_next(&oid, walk)) == 0;
         i++) {
        CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
        if ((rc = git_commit_lookup(&commit, r->repo, &oid)) != 0)
            break;
        git_oid_tostr(c->commit, sizeof c->commit, &oid);
        person_claims(c, "author", git_commit_author(commit));
        person_claims(c, "committer", git_commit_committer(commit));
        trailers_claim(c, git_commit_message(commit));
    }
    return rc && rc != GIT_ITEROVER ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.to) : 0;
}

int op_claims(struct request *r)
{
    git_revwalk *walk = NULL;
    struct claims c = {.r = r};
    amp_jw_member_open(&r->out, "claims", '[');
    int rc = git_revwalk_new(&walk, r->repo);
    rc = rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.repo) : commits_walk(&c, walk);
    git_revwalk_free(walk);
    amp_jw_close(&r->out, ']');
    return rc;
}
