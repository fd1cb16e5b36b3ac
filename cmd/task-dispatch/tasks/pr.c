/*
 * task-dispatch land --pr: pushes the approved commit to the task's branch of the remote, and opens
 * a pull request with gh, or a merge request with glab. No shell is involved, and the text is on
 * the command's standard input.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/process/runner.h"
#include "flow/proof/bundle.h"
#include "land.h"

#define BODY_MAX 60000 /* a larger proof is left out: GitHub takes 65,536 characters */

/* Text of others as a code block: nobody is mentioned, and nothing is rendered. */
static int quote_add(struct amp_buf *b, const char *text, struct amp_error *err)
{
    do {
        size_t n = strcspn(text, "\r\n");
        if (amp_buf_fmt(b, err, "    %.*s\n", (int)n, text) < 0)
            return -1;
        text += n;
        text += *text != '\0';
    } while (*text);
    return 0;
}

static int verdict_add(const struct landing *l, struct amp_buf *b, struct amp_error *err)
{
    const struct amp_verified *v = &l->v;
    const struct amp_task *t = &l->task;
    const char *word = t->n_parts ? t->parts[t->n_parts - 1].verdict : "";
    const struct {
        const char *name, *value;
    } rows[] = {{"Verdict", word},
                {"Reviewer", v->who.reviewer},
                {"Executor", v->who.executor},
                {"Operator", v->who.operator_},
                {"Approved commit", v->approved},
                {"Tree", v->tree},
                {"Message", v->verdict}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (*rows[i].value && amp_buf_fmt(b, err, "- %s: `%s`\n", rows[i].name, rows[i].value) < 0)
            return -1;
    return 0;
}

static int proof_add(const struct landing *l, struct amp_buf *b, struct amp_error *err)
{
    AMP_BUF struct amp_buf proof = {.max = AMP_BUNDLE_MAX};

    if (task_bundle_text(l->store, l->git, l->repo, l->task.id, &proof, err) < 0)
        return -1;
    if (b->len + proof.len > BODY_MAX)
        return amp_buf_fmt(b, err,
                           "\nThe proof is too long for this text: `task-dispatch export %s`.\n",
                           l->task.id);
    return amp_buf_fmt(b, err,
                       "\nThe proof, for `task-dispatch verify --bundle FILE --allowed-signers "
                       "FILE %s`:\n\n```json\n%s\n```\n",
                       l->v.commit, proof.data);
}

static int body_make(const struct landing *l, struct amp_buf *b, struct amp_error *err)
{
    return amp_buf_fmt(b, err, "Task %s:\n\n", l->task.id) < 0 ||
                   quote_add(b, l->task.description, err) < 0 || amp_buf_str(b, "\n", err) < 0 ||
                   verdict_add(l, b, err) < 0 || proof_add(l, b, err) < 0
               ? -1
               : 0;
}

static int command_run(const struct landing *l, const char *const *argv, struct amp_span input,
                       struct amp_error *err)
{
    const struct amp_child_spec spec = {.argv = argv,
                                        .cwd = l->repo,
                                        .fd_out = STDOUT_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .keep_group = true};
    struct amp_runner run;
    struct amp_child_end end;

    if (amp_runner_start(&run, &spec, input, -1, 2000, err) < 0 ||
        amp_runner_finish(&run, &amp_stop, &end, err) < 0)
        return -1;
    return end.exited && end.exit_code == 0
               ? 0
               : amp_fail(err, AMP_NO, command_refused, "%s %s ended with %d", argv[0], argv[1],
                          end.exited ? end.exit_code : 128 + end.signal);
}

static int remote_find(const struct landing *l, char remote[256], bool *gitlab,
                       struct amp_error *err)
{
    char key[300], url[2048] = "";
    int rc = amp_git_config(l->git, l->repo, "remote.pushDefault", false, remote, 256, err);

    if (rc > 0)
        snprintf(remote, 256, "origin");
    snprintf(key, sizeof key, "remote.%s.url", remote);
    if (rc < 0 || (rc = amp_git_config(l->git, l->repo, key, false, url, sizeof url, err)) < 0)
        return -1;
    *gitlab = strstr(url, "gitlab") != NULL;
    return rc == 0 ? 0
                   : amp_fail(err, AMP_USAGE, bad_value, "%s has no remote %s to push to", l->repo,
                              remote);
}

/* glab reads a description from its arguments only; a request to the API has all of it as JSON. */
static int gitlab_open(const struct landing *l, const char *title, const struct amp_buf *body,
                       struct amp_error *err)
{
    static const char *const argv[] = {
        "glab", "api",      "projects/:fullpath/merge_requests", "--method",
        "POST", "--header", "Content-Type: application/json",    "--input",
        "-",    NULL};
    AMP_BUF struct amp_buf json = {.max = 4 * BODY_MAX};
    struct amp_jw w;

    amp_jw_init(&w, &json);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "source_branch", l->task.branch);
    amp_jw_member_text(&w, "target_branch", l->branch);
    amp_jw_member_text(&w, "title", title);
    amp_jw_member_str(&w, "description", amp_buf_span(body));
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err) < 0 ? -1 : command_run(l, argv, amp_buf_span(&json), err);
}

static int github_open(const struct landing *l, const char *title, const struct amp_buf *body,
                       struct amp_error *err)
{
    char named[300], head[300], base[300];
    const char *const argv[] = {"gh", "pr", "create", head, base, named, "--body-file=-", NULL};

    snprintf(named, sizeof named, "--title=%s", title);
    snprintf(head, sizeof head, "--head=%s", l->task.branch);
    snprintf(base, sizeof base, "--base=%s", l->branch);
    return command_run(l, argv, amp_buf_span(body), err);
}

int land_pull(struct landing *l, struct amp_error *err)
{
    AMP_BUF struct amp_buf body = {.max = 2 * BODY_MAX}, title = {.max = 256};
    char remote[256], what[AMP_OID_MAX + 300], first[128];
    bool gitlab;

    if (strlen(l->task.branch) > 255 || strcmp(l->task.branch, l->branch) == 0)
        return amp_fail(err, AMP_USAGE, bad_branch, "%.100s: a pull request is from another branch",
                        l->task.branch);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(l->task.description, "\r\n"),
             l->task.description);
    snprintf(what, sizeof what, "%s:refs/heads/%s", l->v.commit, l->task.branch);
    if (remote_find(l, remote, &gitlab, err) < 0 ||
        amp_text_safe(amp_span_str(first), 72, &title, err) < 0 || body_make(l, &body, err) < 0)
        return -1;
    const char *const push[] = {"git", "push", "--", remote, what, NULL};
    if (command_run(l, push, AMP_SPAN(""), err) < 0 ||
        (gitlab ? gitlab_open : github_open)(l, title.data, &body, err) < 0)
        return -1;
    return 1;
}
