/* Makes a review_verdict from a reviewer's answer. Only the answer file is a verdict, or, with
 * --verdict-by-exit, the exit status. */
#include "work/loop/review/verdict.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "message/protocol/amp/compose.h"
#include "work/git/repository/patch.h"

static const char *member_text(const json_t *j, const char *key)
{
    return json_string_value(json_object_get(j, key));
}

static const json_t *result_for(const json_t *results, const char *criterion)
{
    size_t i;
    json_t *r;

    json_array_foreach (results, i, r)
        if (!strcmp(amp_json_str(r, "criterion"), criterion))
            return r;
    return NULL;
}

/* One entry for each criterion of the dispatch, in its order; "passed" is null if the reviewer did
 * not judge it. */
static json_t *criteria_results(const struct amp_judged *k, const json_t *answer)
{
    json_t *payload = json_object_get(k->dispatch, "payload"), *c, *all = json_array();
    const json_t *results = json_object_get(answer, "criteria_results");
    size_t i;

    json_array_foreach (json_object_get(payload, "acceptance_criteria"), i, c) {
        const json_t *r = result_for(k->checked, json_string_value(c));
        if (!r)
            r = result_for(results, json_string_value(c));
        json_t *passed = json_object_get(r, "passed");
        const char *evidence = member_text(r, "evidence");
        if (!evidence)
            evidence = r ? "" : "not judged by the reviewer";
        json_array_append_new(all, json_pack("{s:O, s:O, s:s}", "criterion", c, "passed",
                                             passed ? passed : json_null(), "evidence", evidence));
    }
    return all;
}

static json_t *issues_list(const json_t *answer)
{
    json_t *all = json_array(), *i;
    size_t n;

    json_array_foreach (json_object_get(answer, "issues"), n, i) {
        json_array_append_new(all,
                              json_pack("{s:s, s:s, s:I, s:s, s:s}", "severity",
                                        member_text(i, "severity"), "file", amp_json_str(i, "file"),
                                        "line", json_integer_value(json_object_get(i, "line")),
                                        "description", member_text(i, "description"),
                                        "suggested_fix", amp_json_str(i, "suggested_fix")));
    }
    return all;
}

/* The exit status as an answer (--verdict-by-exit). */
static json_t *exit_verdict(const struct amp_judged *k)
{
    json_t *payload = json_object_get(k->dispatch, "payload"), *c, *all = json_array();
    bool good = k->of.end == AMP_END_DONE;
    char line[300], what[sizeof k->of.why + sizeof line + 32];
    size_t i;

    amp_attempt_last_line(k->of.files.err, line, sizeof line);
    if (!*line)
        amp_attempt_last_line(k->of.files.out, line, sizeof line);
    if (strstr(k->of.why, line))
        *line = '\0';
    snprintf(what, sizeof what, "The review command: %s%s%s", k->of.why, *line ? ": " : "", line);
    json_array_foreach (json_object_get(payload, "acceptance_criteria"), i, c)
        json_array_append_new(all, json_pack("{s:O, s:o, s:s}", "criterion", c, "passed",
                                             good ? json_true() : json_null(), "evidence", what));
    json_t *answer = json_pack("{s:s, s:o, s:f}", "decision", good ? "approved" : "rejected",
                               "criteria_results", all, "confidence", 1.0);
    if (!good)
        json_object_set_new(answer, "issues",
                            json_pack("[{s:s, s:s, s:i, s:s}]", "severity", "major", "file", "",
                                      "line", 0, "description", what));
    return answer;
}

/* The rejection because of commands that failed. */
static json_t *failed_verdict(const struct amp_judged *k)
{
    json_t *issues = json_array(), *c;
    size_t i;

    json_array_foreach (k->checked, i, c) {
        if (json_is_true(json_object_get(c, "passed")))
            continue;
        json_t *what =
            json_sprintf("%s: %s", amp_json_str(c, "criterion"), amp_json_str(c, "evidence"));
        json_array_append_new(issues, json_pack("{s:s, s:s, s:i, s:o}", "severity", "major", "file",
                                                "", "line", 0, "description", what));
    }
    return json_pack("{s:s, s:[], s:f, s:o}", "decision", "rejected", "criteria_results",
                     "confidence", 1.0, "issues", issues);
}

/* *answer is owned by the caller, also after a failure. */
static int answer_read(const struct amp_judged *k, bool by_exit, json_t **answer,
                       struct amp_error *err)
{
    if (k->failed) {
        *answer = failed_verdict(k);
        return *answer ? 0 : amp_fail_memory(err);
    }
    if (amp_answer_read(&k->of.files, "verdict.json", answer, err) < 0) {
        if (err->status == AMP_DATAERR)
            err->status = AMP_NO;
        return -1;
    }
    if (*answer && k->of.end != AMP_END_DONE)
        return amp_fail(err, AMP_NO, no_verdict, "It wrote a verdict, but %s", k->of.why);
    if (!*answer && by_exit)
        *answer = exit_verdict(k);
    return *answer ? 0 : amp_fail(err, AMP_NO, no_verdict, "It gave no verdict: %s", k->of.why);
}

/* ---- the reviewer's own fixes ---- */

#define FIX_LINES_MAX 4 /* AMP/1.0: diff_lines < 5 */

static const json_t *claim_for(const json_t *claimed, const char *path)
{
    size_t i;
    json_t *f;

    json_array_foreach (claimed, i, f) {
        if (!strcmp(amp_json_str(f, "file"), path))
            return f;
    }
    return NULL;
}

static int out_of_range(struct amp_error *err, const char *path, const char *why)
{
    return amp_fail(err, AMP_NO, fix_out_of_range, "%s: %s", path, why);
}

/* Removes files that the reviewer's build created; only the named changes are committed. */
static int sweep_leftovers(const char *worktree, const struct amp_patch *p, const json_t *claimed,
                           struct amp_error *err)
{
    AMP_CLOSE int root = open(worktree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (root < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", worktree);
    for (uint32_t i = 0; i < p->n; i++) {
        const char *path = p->v[i].path, *slash = strrchr(path, '/');
        if (!p->v[i].created || claim_for(claimed, path))
            continue;
        char dir[PATH_MAX] = ".";
        if (slash)
            amp_span_copy((struct amp_span){path, (size_t)(slash - path)}, dir, sizeof dir);
        AMP_CLOSE int at = amp_open_beneath(root, dir, O_RDONLY | O_DIRECTORY, 0, err);
        if (at < 0 || unlinkat(at, slash ? slash + 1 : path, 0))
            return amp_fail_errno(err, AMP_IOERR, "cannot remove %s", path);
    }
    return 0;
}

static int fixes_measure(struct amp_judged *k, const struct amp_patch *p, const json_t *claimed,
                         struct amp_error *err)
{
    uint32_t named = 0;

    k->fixes = json_array();
    for (uint32_t i = 0; i < p->n; i++) {
        const struct amp_patch_file *f = &p->v[i];
        const json_t *c = claim_for(claimed, f->path);
        if (!c && f->created)
            continue;
        if (!c)
            return out_of_range(err, f->path, "changed, but not named in direct_fixes");
        if (f->binary || f->lines > FIX_LINES_MAX) {
            char why[128];
            snprintf(why, sizeof why, "%lld lines changed, %d are allowed", (long long)f->lines,
                     FIX_LINES_MAX);
            return out_of_range(err, f->path, f->binary ? "a binary file" : why);
        }
        const char *type = member_text(c, "change_type");
        if (type && !strcmp(type, "import"))
            type = "import_order";
        json_array_append_new(k->fixes, json_pack("{s:s, s:s, s:I}", "file", f->path, "change_type",
                                                  type, "diff_lines", (json_int_t)f->lines));
        named++;
    }
    if (!named || named < json_array_size(claimed))
        return amp_fail(err, AMP_NO, fix_out_of_range,
                        "direct_fixes names %zu file%s, of which %u changed",
                        json_array_size(claimed), json_array_size(claimed) == 1 ? "" : "s", named);
    return 0;
}

/* Moves the branch from the reviewed commit to the one with the fixes. In a repeated attempt the
 * branch may already be there: at a commit with the same fixes on the reviewed one. */
static int branch_advance(struct amp_worker *w, struct amp_judged *k, const char *email,
                          struct amp_error *err)
{
    struct amp_git_look there, mine;
    struct amp_error e;
    char ref[AMP_KEEP_REF_MAX];

    amp_git_keep_ref(w->opt->agent, amp_now_ms(), ref);
    const struct amp_git_rollback_spec spec = {k->of.repo,    k->of.branch, k->fixed, k->of.commit,
                                               w->opt->agent, email,        ref};
    int rc = amp_git_rollback(w->git, &spec, err);
    if (rc > 0)
        w->opt->note("%s: uncommitted changes in its worktree are kept as %s", k->of.branch, ref);
    if (rc >= 0)
        return 0;
    if (err->status == AMP_INTERRUPTED)
        return -1;
    if (amp_git_look(w->git, k->of.repo, k->of.branch, &there, &e) ||
        amp_git_look(w->git, k->of.repo, k->fixed, &mine, &e) || there.parents != 1 ||
        strcmp(there.parent[0], k->of.commit) || strcmp(there.tree, mine.tree))
        return amp_fail(err, AMP_NO, branch_moved,
                        "%s moved during the review: the fix was not applied", k->of.branch);
    snprintf(k->fixed, sizeof k->fixed, "%s", there.commit);
    return 0;
}

static int fixes_apply(struct amp_worker *w, struct amp_judged *k, const json_t *claimed,
                       struct amp_error *err)
{
    char path[1200], email[256], message[1024];
    struct amp_git_info info;
    struct amp_git_diff d;
    struct amp_patch p;

    if (amp_git_info(w->git, k->of.worktree, &info, err))
        return !amp_code_is(err->code, repo_not_git)
                   ? -1
                   : amp_fail(err, AMP_NO, fix_out_of_range, "the reviewer removed its worktree");
    if (strcmp(info.head, k->of.commit))
        return amp_fail(err, AMP_NO, fix_out_of_range,
                        "the reviewer made a commit; fixes must stay uncommitted");
    snprintf(path, sizeof path, "%s/fix.patch", k->of.files.dir);
    if (amp_git_diff(w->git, k->of.repo, k->of.worktree, w->opt->take.object_bytes, k->of.commit,
                     NULL, path, &d, err))
        return -1;
    amp_git_diff_release(&d);
    if (amp_patch_read(path, &p, err))
        return -1;
    amp_agent_email(w->opt->agent, email, sizeof email);
    snprintf(message, sizeof message, "Small fixes from the review of %s\n", k->of.subtask);
    const struct amp_git_commit_spec spec = {
        k->of.repo, k->of.worktree, w->opt->agent, email,
        message,    w->opt->agent,  k->of.task,    w->opt->take.object_bytes};
    int rc = fixes_measure(k, &p, claimed, err) ||
                     sweep_leftovers(k->of.worktree, &p, claimed, err) ||
                     amp_git_commit(w->git, &spec, k->fixed, err) < 0
                 ? -1
                 : branch_advance(w, k, email, err);
    amp_patch_release(&p);
    return rc;
}

/* ---- the verdict ---- */

#define FIRST_MAX 300

/* ctx: a text of FIRST_MAX bytes for the first error: its field, rule and message. */
static void on_finding(void *ctx, const struct amp_finding *f)
{
    char *first = ctx;
    if (f->severity == AMP_SEV_ERROR && !*first)
        snprintf(first, FIRST_MAX, "%s: %s: %s", f->field, f->rule, f->message);
}

static int verdict_compose(struct amp_worker *w, struct amp_judged *k, json_t *answer,
                           struct amp_buf *line, struct amp_error *err)
{
    const char *decision = member_text(answer, "decision");
    char id[256];
    const char *refs[] = {id, k->result_ref, k->dispatch_ref, NULL};
    json_t *payload =
        json_pack("{s:s, s:o, s:O}", "decision", decision, "criteria_results",
                  criteria_results(k, answer), "confidence", json_object_get(answer, "confidence"));
    json_auto_t *found = issues_list(answer);

    if (!payload)
        return amp_fail(err, AMP_NO, bad_answer, "The verdict cannot be written");
    if (json_array_size(found))
        json_object_set(payload, "issues", found);
    if (k->fixes)
        json_object_set(payload, "direct_fixes", k->fixes);
    if (member_text(answer, "architecture_notes"))
        json_object_set(payload, "architecture_notes",
                        json_object_get(answer, "architecture_notes"));
    amp_span_copy(k->of.v->id, id, sizeof id);
    const struct amp_envelope env = {
        .type = "review_verdict",
        .from = "reviewer",
        .to = "coordinator",
        .task_id = k->of.task,
        .now_ms = amp_now_ms(),
        .context_ref = refs,
    };
    if (amp_compose_message(&env, payload, line, NULL, err))
        return -1;
    /* The answer matches its schema, but the message may break other rules of the protocol. */
    struct amp_view mine;
    char first[FIRST_MAX] = "";
    const struct amp_check_options opt = {0};
    int ok = amp_reader_line(w->own_reader, (struct amp_span){line->data, line->len - 1}, &opt,
                             &mine, on_finding, first, err);
    if (ok == 0)
        return amp_fail(err, AMP_NO, bad_answer, "%s (in %s)", first, k->of.files.result);
    return ok < 0 ? -1 : 0;
}

int amp_judged_verdict(struct amp_worker *w, struct amp_judged *k, bool by_exit,
                       struct amp_buf *line, bool *approved, struct amp_error *err)
{
    json_auto_t *answer = NULL;

    if (answer_read(k, by_exit, &answer, err) < 0)
        return -1;
    const char *decision = member_text(answer, "decision");
    if (!strcmp(decision, "approved_with_fix") &&
        fixes_apply(w, k, json_object_get(answer, "direct_fixes"), err) < 0)
        return -1;
    if (verdict_compose(w, k, answer, line, err) < 0)
        return -1;
    *approved = strcmp(decision, "rejected") != 0;
    w->opt->progress("%s: %s: %s", k->of.task, k->of.subtask, decision);
    return 0;
}
