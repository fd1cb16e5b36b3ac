/* Decides about the input of a coding agent's hook: the git commands of plain lines. */
#include "work/git/call/call.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "base/file/repository.h"
#include "work/git/call/plain.h"
#include "work/git/stopped.h"
#include "work/git/worktree.h"

/* The repository of a directory. */
struct call_repo {
    bool found;
    char head[256]; /* the full name of the branch; "" if detached */
    char common[PATH_MAX];
    struct amp_rule rule;
    struct amp_rule_caller caller;
};

static int refuse(struct amp_call_refusal *out, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse(struct amp_call_refusal *out, const char *code, const char *fmt, ...)
{
    va_list ap;
    snprintf(out->code, sizeof out->code, "%s", code);
    va_start(ap, fmt);
    vsnprintf(out->what, sizeof out->what, fmt, ap);
    va_end(ap);
    return 1;
}

/* Finds the repository from dir upwards, with the policy and the caller. 0 also if there is none.
 */
static int repo_find(const struct amp_call *c, const char *dir, struct call_repo *out,
                     struct amp_error *err)
{
    struct amp_repository r;
    memset(out, 0, sizeof *out);
    amp_rule_default(&out->rule);
    amp_rule_caller(c->agent ? c->agent : "", c->role, -1, &out->caller);
    if (amp_repository_find(dir, &r, err) < 0)
        return -1;
    if (!r.found)
        return 0;
    out->found = true;
    memcpy(out->common, r.common, sizeof out->common);
    amp_repository_text(r.gitdir, "HEAD", "ref: ", out->head, sizeof out->head);
    AMP_CLOSE int gitdir = open(r.gitdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AMP_CLOSE int common = open(r.common, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (gitdir < 0 || common < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", r.gitdir);
    amp_rule_caller(c->agent ? c->agent : "", c->role, gitdir, &out->caller);
    return amp_rule_load(&out->rule, common, err);
}

/* ---- git commands that move a branch ---- */

enum move {
    MOVES_HEAD,    /* the branch of HEAD */
    MOVES_PUSHED,  /* the branches that its operands push; without any, that of HEAD */
    MOVES_FETCHED, /* those behind a colon in its operands, and with `pull` that of HEAD */
    MOVES_NAMED,   /* the ref that is the first operand */
    MOVES_BRANCH,  /* `branch`: the operands with an option that moves, else the first one */
    MOVES_NEW,     /* the branch behind -b, -B, -c or -C */
};

static const struct {
    const char *verb;
    enum move move;
} verbs[] = {
    {"commit", MOVES_HEAD},   {"merge", MOVES_HEAD},       {"rebase", MOVES_HEAD},
    {"reset", MOVES_HEAD},    {"cherry-pick", MOVES_HEAD}, {"revert", MOVES_HEAD},
    {"am", MOVES_HEAD},       {"pull", MOVES_FETCHED},     {"fetch", MOVES_FETCHED},
    {"push", MOVES_PUSHED},   {"update-ref", MOVES_NAMED}, {"symbolic-ref", MOVES_NAMED},
    {"branch", MOVES_BRANCH}, {"checkout", MOVES_NEW},     {"switch", MOVES_NEW},
    {"worktree", MOVES_NEW},
};

struct look {
    struct call_repo repo;
    char head[512]; /* the branch of HEAD behind an earlier `checkout` or `switch` of the line */
    struct amp_call_refusal *out;
};

static int ref_check(struct look *l, const char *verb, const char *name)
{
    char ref[512];
    bool head = strcmp(name, "HEAD") == 0 || strcmp(name, "@") == 0;
    if (head)
        name = l->head;
    if (strchr(name, '*'))
        return refuse(l->out, AMP_CODE(branch_violation), "git %s: a pattern of branches", verb);
    snprintf(ref, sizeof ref, "%s%.400s", strncmp(name, "refs/", 5) == 0 ? "" : "refs/heads/",
             strncmp(name, "heads/", 6) == 0 ? name + 6 : name);
    enum amp_rule_verdict v =
        *name ? amp_rule_allows(&l->repo.rule, &l->repo.caller, amp_span_str(ref)) : AMP_RULE_ALLOW;
    if (!amp_rule_refused(v))
        return 0;
    return refuse(l->out, amp_rule_code(v), "git %s: %s%.200s: %s: refused to %s", verb,
                  head ? "HEAD is " : "", ref,
                  v == AMP_RULE_REFUSE        ? "protected branch"
                  : v == AMP_RULE_REFUSE_ROLE ? "no branch of its role"
                                              : "not the branch of its worktree",
                  l->repo.caller.name);
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, word) == 0)
            return true;
    return false;
}

/* ---- what a command moves; words[0] is the verb ---- */

static int pushed_check(struct look *l, char *const *words, bool fetched)
{
    static const char *const all[] = {"--all", "--mirror", "--branches", NULL};
    static const char *const valued[] = {"-o", "--push-option", "--repo", NULL};
    int operands = 0, rc = 0;
    for (size_t i = 1; words[i] && !rc; i++) {
        const char *colon = strrchr(words[i], ':');
        if (!fetched && is_one_of(words[i], all))
            return refuse(l->out, AMP_CODE(branch_violation), "git push %s: every branch",
                          words[i]);
        if (words[i][0] == '-') {
            i += is_one_of(words[i], valued) && words[i + 1];
            continue;
        }
        if (++operands == 1 || (fetched && !colon))
            continue;
        if (colon && !colon[1] && !fetched)
            return refuse(l->out, AMP_CODE(branch_violation), "git push :: every matching branch");
        rc = ref_check(l, words[0], colon ? colon + 1 : words[i] + (words[i][0] == '+'));
    }
    bool head = fetched ? strcmp(words[0], "pull") == 0 : operands < 2;
    return rc ? rc : head ? ref_check(l, words[0], "HEAD") : 0;
}

static int branch_check(struct look *l, char *const *words)
{
    static const char *const moving[] = {"-f", "-d",      "-D",       "-m",     "-M",     "-c",
                                         "-C", "--force", "--delete", "--move", "--copy", NULL};
    bool moves = false, options = false;
    int operands = 0, rc = 0;
    for (size_t i = 1; words[i]; i++) {
        moves |= is_one_of(words[i], moving);
        options |= words[i][0] == '-';
    }
    for (size_t i = 1; words[i] && !rc; i++)
        if (words[i][0] != '-' && (moves || (!options && operands++ == 0)))
            rc = ref_check(l, words[0], words[i]);
    return rc;
}

static int named_check(struct look *l, char *const *words)
{
    size_t i = 1;
    for (; words[i]; i++)
        if (strcmp(words[i], "-m") == 0 && words[i + 1])
            i++;
        else if (words[i][0] != '-')
            break;
    bool reads = words[i] && !words[i + 1] && strcmp(words[0], "symbolic-ref") == 0;
    int rc = words[i] && !reads ? ref_check(l, words[0], words[i]) : 0;
    if (!rc && words[i] && strcmp(words[i], "HEAD") == 0 && !reads)
        snprintf(l->head, sizeof l->head, "%.400s", words[i + 1] ? words[i + 1] : "");
    return rc;
}

/* Also notes which branch HEAD is after it. */
static int new_check(struct look *l, char *const *words)
{
    const char *to = NULL;
    bool made = false;
    for (size_t i = 1; words[i] && strcmp(words[i], "--") != 0; i++) {
        bool option = words[i][0] == '-' && words[i][1] && strchr("bBcC", words[i][1]);
        if (option && !made) {
            made = true;
            to = words[i][2] ? words[i] + 2 : words[i + 1];
        } else if (words[i][0] != '-' && !to) {
            to = words[i];
        }
    }
    if (!to || strcmp(words[0], "worktree") == 0)
        return made && to ? ref_check(l, words[0], to) : 0;
    snprintf(l->head, sizeof l->head, "%.400s", to);
    return made ? ref_check(l, words[0], to) : 0;
}

static int verb_check(struct look *l, char *const *words)
{
    bool commits = strcmp(words[0], "commit") == 0;
    for (size_t i = 1; words[i]; i++)
        if (strcmp(words[i], "--no-verify") == 0 || (commits && strncmp(words[i], "-n", 2) == 0))
            return refuse(l->out, AMP_CODE(guard_bypass),
                          "git %s: --no-verify skips the guard's hooks", words[0]);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(words[0], verbs[i].verb) == 0)
            switch (verbs[i].move) {
            case MOVES_HEAD:
                return ref_check(l, words[0], "HEAD");
            case MOVES_PUSHED:
                return pushed_check(l, words, false);
            case MOVES_FETCHED:
                return pushed_check(l, words, true);
            case MOVES_NAMED:
                return named_check(l, words);
            case MOVES_BRANCH:
                return branch_check(l, words);
            case MOVES_NEW:
                return new_check(l, words);
            }
    return 0;
}

/* Joins a directory of a word to *dir. */
static void dir_join(char dir[PATH_MAX], const char *to)
{
    char text[2 * PATH_MAX], path[PATH_MAX];
    snprintf(text, sizeof text, "%s/%.4095s", *to == '/' ? "" : dir, to);
    if (amp_path_canonical(text, path, NULL) == 0)
        memcpy(dir, path, PATH_MAX);
}

static int line_check(const struct amp_call *c, const struct amp_plain *line,
                      struct amp_call_refusal *out, struct amp_error *err)
{
    struct look l = {.out = out};
    char base[PATH_MAX], dir[PATH_MAX], seen[PATH_MAX] = "";
    int rc = 0;
    snprintf(base, sizeof base, "%s", c->cwd);
    if (line->moves)
        dir_join(base, line->v[0].words[1]);
    for (size_t i = 0; i < line->n && !rc; i++) {
        char *const *words = line->v[i].words;
        const char *slash = strrchr(*words, '/');
        if (strcmp(slash ? slash + 1 : *words, "git") != 0)
            continue;
        memcpy(dir, base, sizeof dir);
        for (words++; *words && **words == '-'; words++)
            if (strcmp(*words, "-C") == 0 && words[1])
                dir_join(dir, *++words);
        if (!*words)
            continue;
        if (strcmp(seen, dir) != 0) {
            if (repo_find(c, dir, &l.repo, err) < 0)
                return -1;
            memcpy(seen, dir, sizeof seen);
            snprintf(l.head, sizeof l.head, "%s", l.repo.head);
        }
        rc = l.repo.found ? verb_check(&l, words) : 0;
    }
    return rc;
}

/* ---- the input ---- */

int amp_call_suspended(const struct amp_call *c, struct amp_call_refusal *out,
                       struct amp_error *err)
{
    struct call_repo r;
    char why[300];
    if (!c->cwd || c->cwd[0] != '/')
        return amp_fail(err, AMP_DATAERR, call_malformed, "cwd is not an absolute path");
    if (repo_find(c, c->cwd, &r, err) < 0)
        return -1;
    if (!r.found)
        return 0;
    AMP_CLOSE int common = open(r.common, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (common < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", r.common);
    int rc = amp_stopped_is(common, r.caller.name, why, sizeof why, err);
    return rc > 0
               ? refuse(out, AMP_CODE(suspended), "%.100s is suspended by %s", r.caller.name, why)
               : rc;
}

int amp_call_input(const struct amp_call *c, struct amp_span json, struct amp_call_refusal *out,
                   struct amp_error *err)
{
    AMP_CALL_EVENT struct amp_call_event e = {0};
    AMP_PLAIN line = {0};
    char dir[PATH_MAX];
    struct amp_call call = *c;
    memset(out, 0, sizeof *out);
    if (amp_call_event_read(json, AMP_CLI_NONE, &e, err) < 0 || amp_plain_read(&e, &line, err) < 0)
        return -1;
    if (e.cwd.n) {
        if (!amp_span_copy(e.cwd, dir, sizeof dir))
            dir[0] = '\0';
        call.cwd = dir;
    }
    int rc = amp_call_suspended(&call, out, err);
    return rc ? rc : line_check(&call, &line, out, err);
}
