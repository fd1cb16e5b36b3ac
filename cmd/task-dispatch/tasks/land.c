/* task-dispatch land: verifies that work was approved, and moves a branch to exactly that. all.c
 * lands many, pr.c opens a pull request instead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/process/quote.h"
#include "base/words.h"
#include "cli/rows.h"
#include "land.h"
#include "people/story/story.h"
#include "work/confine/confinement.h"
#include "work/git/worktree.h"

#define LINE_MAX_BYTES 65536
#define TEST_MS        3600000

static const char *repo, *into, *bundle, *old, *test, *merged;
static bool no_ff, check, prune, by_note, json, all, follow, pull;
static int64_t test_ms = TEST_MS;
static struct amp_confine_cli walls;
static const char *const merged_words[] = {
    [LAND_BY_CHECK] = "check",   [LAND_BY_CLEAN] = "clean",  [LAND_BY_REVIEW] = "review",
    [LAND_BY_PERSON] = "person", [LAND_BY_NOBODY] = "never", NULL};

static const struct amp_opt tasks_land_opts[] = {
    AMP_OPT_REPO(repo),
    {0, "into", AMP_OPT_STRING, &into, "BRANCH",
     "the branch to move (default: that of the repository's main worktree)"},
    {0, "no-ff", AMP_OPT_FLAG, &no_ff, NULL,
     "merge the approved commit, unchanged, with a merge commit"},
    {0, "check", AMP_OPT_FLAG, &check, NULL, "verify and report only; move nothing"},
    {0, "old", AMP_OPT_STRING, &old, "OID",
     "with --check in a hook: the branch's old value, which COMMIT must contain"},
    {0, "prune", AMP_OPT_FLAG, &prune, NULL, "then remove the worktree of the task's branch"},
    {'a', "all", AMP_OPT_FLAG, &all, NULL,
     "land every task that is done, in the order of their approvals; send back what conflicts"},
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL,
     "with --all: go on, and land each task when it is approved"},
    {0, "pr", AMP_OPT_FLAG, &pull, NULL,
     "push the branch and open a pull request with gh or glab instead"},
    {0, "merged", AMP_OPT_CHOICE, &merged, "WORD",
     .doc = "who lets in a merge with a branch that has moved on", .choices = merged_words,
     .config = "land.merged"},
    {0, "test", AMP_OPT_STRING, &test, "COMMAND",
     .doc = "shell command that checks such a merge, confined", .config = "land.check"},
    {0, "test-timeout", AMP_OPT_DURATION, &test_ms, "TIME",
     .doc = "its time limit (default: 1h; 0: none)", .min = 0, .max = 86400000,
     .config = "land.check_timeout"},
    AMP_OPT_UNCONFINED(walls),
    AMP_OPT_CONFINE(walls),
    {0, "bundle", AMP_OPT_PATH, &bundle, "FILE",
     "verify by a bundle of export; - for standard input. No state directory is needed"},
    {0, "note", AMP_OPT_FLAG, &by_note, NULL,
     "verify by the bundle in the commit's note (" TASK_NOTES ")"},
    AMP_TOOL_OPT_KEY,
    {0, "json", AMP_OPT_FLAG, &json, NULL, "print one JSON object"},
    AMP_OPT_END,
};

/* ---- what is landed ---- */

static const char *last_commit(const struct amp_task *t)
{
    for (size_t i = t->n_parts; i-- > 0;)
        if (t->parts[i].state == AMP_QA_APPROVED)
            return t->parts[i].commit;
    return "";
}

static int state_verify(struct landing *l, const char *commit, struct amp_error *err)
{
    struct amp_task_policy policy;
    const struct amp_verify what = {
        .repo = l->repo, .commit = commit, .ids = l->person->ids, .policy = &policy};

    return task_policy(&policy, err) < 0 ? -1
                                         : amp_commit_verify(l->store, l->git, &what, &l->v, err);
}

/* Only the work of a task that is done lands, and only all of it. */
static int task_check(struct landing *l, struct amp_error *err)
{
    const struct amp_task *t = &l->task;

    if (t->state != AMP_TASK_DONE)
        return amp_fail(err, AMP_NO, not_done, "task %s is %s: only a task that is done lands",
                        t->id, amp_task_fsm.states[t->state].name);
    if (*l->v.subtask && t->n_parts && strcmp(l->v.subtask, t->parts[t->n_parts - 1].id) != 0)
        return amp_fail(err, AMP_NO, not_done,
                        "%.12s is the work of the subtask %s only: task-dispatch land %s lands all "
                        "of it",
                        l->v.commit, l->v.subtask, t->id);
    return 0;
}

/* By the id of a task. If the reviewer fixed something, the branch has the approved commit. */
static int by_task(struct landing *l, const char *id, struct amp_error *err)
{
    if (amp_task_load(l->store, amp_span_str(id), &l->task, NULL, err) < 0 ||
        task_check(l, err) < 0)
        return -1;
    snprintf(l->repo, sizeof l->repo, "%s", repo ? repo : l->task.repo);
    int rc = state_verify(l, last_commit(&l->task), err);
    if (rc == 0 || (rc < 0 && amp_code_is(err->code, unknown_revision))) {
        struct amp_verified first = l->v;
        int again = state_verify(l, l->task.branch, err);
        if (again == 0 && rc == 0)
            l->v = first;
        if (again >= 0 || rc < 0)
            rc = again;
    }
    if (rc > 0 && strcmp(l->v.task, l->task.id) != 0)
        return amp_fail(err, AMP_NO, not_done, "%s is at the work of %s: %.12s", l->task.branch,
                        l->v.task, l->v.commit);
    return rc;
}

static int by_commit(struct landing *l, const char *commit, struct amp_error *err)
{
    snprintf(l->repo, sizeof l->repo, "%s", repo ? repo : ".");
    l->by_commit = true;
    int rc = state_verify(l, commit, err);
    if (rc > 0 && amp_task_load(l->store, amp_span_str(l->v.task), &l->task, NULL, err) < 0)
        return -1;
    return rc > 0 && task_check(l, err) < 0 ? -1 : rc;
}

/* 1: verified; 0: not approved, and the reason was printed. */
static int work_find(struct landing *l, const char *name, struct amp_error *err)
{
    char id[AMP_TASK_ID_MAX];
    struct amp_error why;
    int rc;

    if (bundle || by_note) {
        const struct task_bundle how = {.repo = l->repo, .file = bundle, .note = by_note};
        snprintf(l->repo, sizeof l->repo, "%s", repo ? repo : ".");
        l->by_commit = true;
        return task_bundle_verify(l->git, &how, name, &l->v, err);
    }
    if (amp_story_find(l->store, name, id, &why) == 0)
        rc = by_task(l, id, err);
    else if (!amp_code_is(why.code, unknown_task))
        rc = (*err = why, -1);
    else
        rc = by_commit(l, name, err);
    if (rc < 0 && amp_code_is(err->code, unknown_revision) && amp_code_is(why.code, unknown_task))
        return amp_fail(err, AMP_NO, unknown_task,
                        "\"%.100s\" is neither a task of %s nor a commit", name, amp_tool_state);
    if (rc == 0)
        amp_warn("%.12s is not approved: %s", *l->v.commit ? l->v.commit : name, l->v.why);
    return rc;
}

/* ---- where it lands ---- */

static int branch_find(struct landing *l, struct amp_error *err)
{
    static const char heads[] = "refs/heads/";
    struct amp_git_info info;

    if (into) {
        size_t skip = strncmp(into, heads, sizeof heads - 1) == 0 ? sizeof heads - 1 : 0;
        if (strlen(into + skip) >= sizeof l->branch)
            return amp_fail(err, AMP_USAGE, bad_branch, "%.100s…: too long", into);
        snprintf(l->branch, sizeof l->branch, "%s", into + skip);
        return 0;
    }
    /* Use the main worktree's or the bare repository's HEAD, not the current linked worktree's. */
    if (amp_git_info(l->git, l->repo, &info, err) < 0 ||
        (info.linked && amp_git_info(l->git, info.common, &info, err) < 0))
        return -1;
    if (!*info.branch)
        return amp_fail(err, AMP_USAGE, no_branch,
                        "%s has no branch checked out: say which one moves with --into BRANCH",
                        l->repo);
    snprintf(l->branch, sizeof l->branch, "%s", info.branch);
    return 0;
}

static int landing_sign(void *ctx, struct amp_landing *rec, struct amp_error *err)
{
    struct landing *l = ctx;
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, LINE_MAX_BYTES);
    if (amp_landing_text(rec, &text, err) < 0)
        return -1;
    if (amp_tool_sign(l->person, AMP_LANDING_NAMESPACE, amp_buf_span(&text), &l->sig)) {
        rec->alg = amp_span_str(l->sig.alg);
        rec->key = amp_span_str(l->sig.key);
        rec->signature = amp_span_str(l->sig.value);
    }
    return 0;
}

/* ---- merges of contents ---- */

static int walls_choose(struct landing *l, struct amp_error *err)
{
    const struct amp_confinement_args args = AMP_CONFINEMENT_ARGS(walls);
    return amp_confinement_choose(&args, amp_note, &l->policy, &l->confine, err);
}

/* Finds who lets in a merge with a branch that has moved on. */
static int merges_settle(struct landing *l, struct amp_error *err)
{
    l->by = test ? LAND_BY_CHECK : all ? LAND_BY_CLEAN : LAND_BY_NOBODY;
    if (merged)
        l->by = (enum land_by)amp_word_find(merged_words, amp_span_str(merged));
    if (l->by == LAND_BY_CHECK && !test)
        amp_die_usage("--merged=check needs a command (--test, land.check in amp.json)");
    if (!test || !l->store || check)
        return 0;
    if (!realpath(amp_tool_state, l->dir))
        return amp_fail_errno(err, AMP_IOERR, "%s", amp_tool_state);
    return walls_choose(l, err);
}

/* A person who lands one task decides about it; of many each is asked about. */
static bool merge_is_allowed(const struct landing *l)
{
    if (!l->store || l->by_commit || *l->v.from)
        return false;
    return l->by == LAND_BY_CHECK || l->by == LAND_BY_CLEAN ||
           (l->by == LAND_BY_PERSON &&
            (!all ||
             (*l->task.merge_asked && amp_task_lists(l->task.decided, l->task.merge_asked))));
}

static int merge_judge(void *ctx, const struct amp_git_land *plan, struct amp_landing *rec,
                       struct amp_error *err)
{
    struct landing *l = ctx;
    const struct amp_land_check how = {.command = test,
                                       .limit_ms = test_ms,
                                       .policy = &l->policy,
                                       .confine = &l->confine,
                                       .state_dir = l->dir,
                                       .stop = &amp_stop};

    rec->merged = amp_span_str(merged_words[l->by]);
    if (l->by == LAND_BY_CLEAN)
        amp_note("%s: merged with %s at %.12s without a conflict; no command checks the merge "
                 "(land.check)",
                 l->v.task, l->branch, plan->from);
    if (!test || l->by == LAND_BY_CLEAN)
        return 0;
    amp_note("%s: checking its merge with %s at %.12s", l->v.task, l->branch, plan->from);
    if (amp_land_check_run(l->git, &how, l->repo, plan->to, &l->checked, err) < 0)
        return -1;
    rec->test = amp_span_str(test);
    rec->digest = amp_span_str(l->checked.digest);
    return l->checked.passed ? 0
                             : amp_fail(err, AMP_NO, check_failed,
                                        "the merge with %s at %.12s fails the check (%.100s): %s",
                                        l->branch, plan->from, test, l->checked.why);
}

/* ---- afterwards ---- */

struct holding {
    const char *branch;
    char path[PATH_MAX], agent[128];
};

static int worktree_look(void *ctx, const struct amp_git_worktree *w)
{
    struct holding *h = ctx;

    if (w->main || w->foreign || strcmp(w->branch, h->branch) != 0)
        return 0;
    snprintf(h->path, sizeof h->path, "%s", w->path);
    snprintf(h->agent, sizeof h->agent, "%s", w->agent);
    return 1;
}

static int worktree_remove(struct landing *l, const struct holding *h, struct amp_error *err)
{
    struct amp_binding b = {0};
    const struct amp_unbind_spec unbind = {
        .agent = h->agent, .repo = l->repo, .remove = true, .now_ms = l->task.updated_ms};

    if (*h->agent && amp_binding_get(l->store, h->agent, &b, err) < 0)
        return -1;
    if (b.rev && strcmp(b.worktree, h->path) == 0 && amp_binding_is_bound(&b))
        return amp_unbind(l->store, l->git, &unbind, &b, err);
    return amp_git_worktree_remove(l->git, l->repo, h->path, false, err) < 0 ? -1 : 0;
}

/* A worktree that cannot be removed without a loss stays: the work has landed in any case. */
static void worktree_prune(struct landing *l)
{
    struct holding h = {.branch = l->task.branch};
    struct amp_error why;
    char tip[AMP_OID_MAX];

    if (amp_git_worktrees(l->git, l->repo, worktree_look, &h, &why) < 0 ||
        (*h.path && amp_git_resolve(l->git, l->repo, h.branch, tip, &why) < 0)) {
        amp_warn("the worktree was not removed: %s", why.what);
        return;
    }
    if (!*h.path)
        amp_note("no worktree has the branch %s", h.branch);
    else if (strcmp(tip, l->v.commit) != 0)
        amp_warn("%s: kept: its branch %s has commits after the approved one", h.path, h.branch);
    else if (worktree_remove(l, &h, &why) < 0)
        amp_warn("%s: kept: %s", h.path, why.what);
    else
        amp_note("removed the worktree %s; its branch %s stays", h.path, h.branch);
}

static int result_print(const struct landing *l, const struct amp_git_land *p,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    struct amp_jw w;

    if (!json) {
        if (p->already)
            amp_note("%s has %.12s already%s", l->branch, l->v.commit,
                     check ? "" : ": nothing to move");
        else
            amp_note("%s %s from %.12s to %.12s: task %s%s%s", l->branch,
                     check ? "can move" : "moved", p->from, check ? l->v.commit : p->to, l->v.task,
                     p->merged ? ", merged" : "",
                     *p->worktree && !check ? ", with its worktree" : "");
        return 0;
    }
    amp_buf_init(&line, LINE_MAX_BYTES);
    amp_jw_init(&w, &line);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "task", l->v.task);
    amp_jw_member_text(&w, "repo", l->repo);
    amp_jw_member_text(&w, "branch", l->branch);
    amp_jw_member_bool(&w, "landed", !check);
    amp_jw_member_bool(&w, "already", p->already);
    amp_jw_member_text(&w, "from", p->from);
    amp_jw_member_text(&w, "to", p->to);
    amp_jw_member_text(&w, "commit", l->v.commit);
    amp_jw_member_text(&w, "tree", l->v.tree);
    if (p->merged)
        amp_jw_member_bool(&w, "merged", true);
    amp_jw_some_str(&w, "output_sha256", amp_span_str(l->checked.digest));
    amp_jw_some_str(&w, "worktree", amp_span_str(p->worktree));
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&line), err);
}

/* Names and descriptions are others' texts: they are quoted, since the command is there to be
 * copied into a shell. */
static int review_command(const struct landing *l, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_task *t = &l->task;
    AMP_BUF struct amp_buf what = {0};
    size_t n = strnlen(t->description, 60);

    while (n && ((unsigned char)t->description[n] & 0xC0) == 0x80)
        n--;
    amp_buf_init(&what, LINE_MAX_BYTES);
    return amp_buf_fmt(&what, err, "Merge %s into this branch: %.*s", l->branch, (int)n,
                       t->description) < 0 ||
                   amp_buf_str(out, "task-dispatch new --state ", err) < 0 ||
                   amp_shell_quote(amp_span_str(amp_tool_state), out, err) < 0 ||
                   amp_buf_str(out, " --repo ", err) < 0 ||
                   amp_shell_quote(amp_span_str(l->repo), out, err) < 0 ||
                   amp_buf_str(out, " --branch ", err) < 0 ||
                   amp_shell_quote(amp_span_str(t->branch), out, err) < 0 ||
                   amp_buf_str(out, " --description ", err) < 0 ||
                   amp_shell_quote(amp_buf_span(&what), out, err) < 0
               ? -1
               : amp_buf_fmt(out, err, " --criterion 'the work of %s is unchanged'", t->id);
}

/* Prints how the work gets to a new review, if the refusal says that it needs one. */
static void way_print(const struct landing *l, const struct amp_error *err)
{
    AMP_BUF struct amp_buf command = {0};
    struct amp_error why;

    amp_buf_init(&command, LINE_MAX_BYTES);
    if (amp_code_is(err->code, target_moved) && l->task.id && *l->task.id &&
        review_command(l, &command, &why) == 0)
        amp_note("to have it reviewed on top of %s: %.*s", l->branch, (int)command.len,
                 command.data);
    else if (amp_code_is(err->code, merge_conflict))
        for (const char *p = l->plan.conflicts; *p; p += strcspn(p, "\n") + 1)
            amp_note("%.*s", (int)strcspn(p, "\n"), p);
    else if (amp_code_is(err->code, worktree_dirty))
        amp_note("commit or stash the changes there, or land into another branch (--into)");
}

int land_one(struct landing *l, const char *name, struct amp_error *err)
{
    l->checked = (struct amp_land_checked){0};
    int rc = work_find(l, name, err);
    if (rc <= 0 || branch_find(l, err) < 0)
        return rc <= 0 ? rc : -1;
    if (pull)
        return land_pull(l, err);
    bool known = l->store != NULL;
    const struct amp_land how = {
        .repo = l->repo,
        .branch = l->branch,
        .task = l->v.task,
        .commit = l->v.commit,
        .tree = l->v.tree,
        .base = known && *l->task.base ? l->task.base : NULL,
        .title = known ? l->task.description : NULL,
        .old = old,
        .merge_branch = *l->v.from ? l->v.branch : NULL,
        .merge_from = l->v.from,
        .forward = check && l->by_commit,
        .merge = no_ff,
        .check = check,
        .contents = merge_is_allowed(l),
        .judge = merge_judge,
        .lock_timeout_ms = amp_tool_lock_timeout,
        .who = {.person = amp_span_str(l->person->name),
                .by = amp_span_str(l->person->by),
                .key = amp_span_str(l->person->key)},
        .sign = landing_sign,
        .ctx = l,
    };
    if (amp_land(l->store, l->git, &how, &l->plan, err) < 0 || result_print(l, &l->plan, err) < 0)
        return -1;
    if (prune)
        worktree_prune(l);
    return 1;
}

static int land_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (all ? c->argc != 0 : c->argc != 1)
        amp_die_usage(all ? "--all excludes a TASK or COMMIT"
                          : "land needs one TASK or COMMIT (task-dispatch list shows the tasks), "
                            "or --all");
    if (all && (bundle || by_note || check || pull || no_ff))
        amp_die_usage("--all excludes --bundle, --note, --check, --pr and --no-ff");
    if (follow && !all)
        amp_die_usage("--follow needs --all");
    if (pull && (bundle || by_note || check || prune || no_ff))
        amp_die_usage("--pr excludes --bundle, --note, --check, --prune and --no-ff");
    if (bundle && by_note)
        amp_die_usage("--bundle and --note exclude each other");
    /* git refuses changes of references there; this program would not notice. */
    if (!check && getenv("GIT_QUARANTINE_PATH"))
        amp_die_usage("in a pre-receive hook nothing can be landed: use --check, and git moves the "
                      "branch");
    if (no_ff && (bundle || by_note))
        amp_die_usage("--no-ff needs the state directory, which records what it made");
    if (old && !check)
        amp_die_usage("--old needs --check");
    if (prune && (bundle || by_note || check))
        amp_die_usage("--prune needs the state directory and excludes --check");
    if (bundle || by_note)
        c->opens = AMP_TOOL_OPENS_PERSON;
    else if (check)
        c->opens = AMP_TOOL_OPENS_PERSON | AMP_OPENS_READ;
    /* The account of a server's hook looks only, and need not be an operator. */
    if (check)
        c->opens |= AMP_TOOL_OPENS_ANYONE;
    return 0;
}

static int tasks_land(struct amp_command *c, struct amp_error *err)
{
    struct landing *l = calloc(1, sizeof *l);

    if (!l)
        return amp_fail_memory(err);
    l->store = c->store;
    l->person = c->own;
    amp_signals_install();
    int rc = amp_git_open(NULL, &l->git, err);
    if (rc == 0)
        rc = merges_settle(l, err);
    if (rc == 0 && all) {
        enum amp_status end = AMP_OK;
        rc = land_all(l, follow, &end, err);
        amp_status_note(end);
        rc = rc < 0 ? -1 : 1;
    } else if (rc == 0) {
        rc = land_one(l, c->argv[0], err);
    }
    int status = rc < 0 ? amp_complain(err) : rc ? AMP_OK : AMP_NO;
    if (rc < 0 && !all)
        way_print(l, err);
    amp_confine_policy_release(&l->policy);
    amp_git_close(l->git);
    amp_task_release(&l->task);
    free(l);
    return status;
}

const struct amp_verb land_verbs[] = {
    {"land", "[TASK|COMMIT]", "merge approved work", tasks_land_opts, tasks_land,
     .check = land_check, .opens = AMP_OPENS_FOUND | AMP_TOOL_OPENS_PERSON, .act = "land work",
     .most = 1, .finds_state = true, .values = "task", .who = AMP_WHO_PERSON},
    {0},
};
