/* Composing new tasks: see new.h. */
#include "flow/new.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <amp/protocol/protocol.h>

#include "message/message.h"
#include "protocol/compose.h"
#include "task/task.h"

#define PARTS_MAX 512

static int bad(struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_DATAERR, "bad_task", "%s", what);
}

static const char *text_of(const json_t *task, const char *key)
{
    const char *s = json_string_value(json_object_get(task, key));
    return s ? s : "";
}

json_t *amp_new_read(struct amp_span text, struct amp_error *err)
{
    size_t i = 0;
    while (i < text.n && strchr(" \t\r\n", text.p[i]))
        i++;
    if (i == text.n || text.p[i] != '{')
        return amp_new_markdown(text, err);
    json_t *j = amp_json_load(text, err);
    if (j && !json_is_object(j)) {
        json_decref(j);
        bad(err, "a task is a JSON object");
        return NULL;
    }
    return j;
}

/* A repository, also a bare one, at exactly this directory. */
static int real_repo(json_t *task, struct amp_error *err)
{
    const char *repo = text_of(task, "repo");
    char real[PATH_MAX], inside[PATH_MAX + 8];
    struct stat sb;
    if (!realpath(*repo ? repo : ".", real))
        return amp_fail_errno(err, AMP_DATAERR, "%s", repo);
    snprintf(inside, sizeof inside, "%s/.git", real);
    if (stat(inside, &sb) < 0) {
        snprintf(inside, sizeof inside, "%s/HEAD", real);
        if (stat(inside, &sb) < 0)
            return amp_fail(err, AMP_DATAERR, "repo_not_git", "%s holds no git repository", real);
    }
    return json_object_set_new(task, "repo", json_string(real)) < 0
               ? bad(err, "the repository's path is not UTF-8")
               : 0;
}

static int check_branch(const json_t *task, const struct amp_new_options *opt,
                        struct amp_error *err)
{
    const char *branch = text_of(task, "branch");
    if (!*branch)
        return bad(err, "a task needs a branch to work on");
    if (amp_branch_is_protected(amp_span_str(branch), opt->protected_))
        return amp_fail(err, AMP_NOPERM, "branch_violation",
                        "%s is a protected branch; name another one", branch);
    return 0;
}

static int risk_of(const json_t *task, enum amp_risk *risk, struct amp_error *err)
{
    const char *word = text_of(task, "risk_level");
    *risk = AMP_RISK_MEDIUM;
    for (int i = AMP_RISK_LOW; i <= AMP_RISK_HIGH; i++)
        if (strcmp(word, amp_risk_name((enum amp_risk)i)) == 0) {
            *risk = (enum amp_risk)i;
            return 0;
        }
    return *word ? bad(err, "risk_level is low, medium or high") : 0;
}

/* A list of texts, or an empty one; what it returns is borrowed from the task. */
static json_t *texts_of(json_t *task, const char *key, struct amp_error *err)
{
    json_t *v = json_object_get(task, key);
    if (!v) {
        json_object_set_new(task, key, json_array());
        return json_object_get(task, key);
    }
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!json_is_string(json_array_get(v, i)))
            v = NULL;
    if (!json_is_array(v)) {
        amp_fail(err, AMP_DATAERR, "bad_task", "%s is a list of texts", key);
        return NULL;
    }
    return v;
}

struct parts {
    struct amp_dispatch_part v[PARTS_MAX];
    char id[PARTS_MAX][160];
    size_t n;
};

static int fill_parts(const json_t *task, const char *task_id, struct parts *p,
                      struct amp_error *err)
{
    const json_t *list = json_object_get(task, "subtasks");
    size_t n = json_array_size(list);
    if (list && !json_is_array(list))
        return bad(err, "subtasks is a list");
    if (n > PARTS_MAX)
        return bad(err, "at most 512 subtasks");
    p->n = n ? n : 1;
    for (size_t i = 0; i < p->n; i++) {
        const json_t *s = n ? json_array_get(list, i) : json_object_get(task, "description");
        const json_t *o = json_is_object(s) ? s : NULL;
        const char *given = o ? text_of(o, "subtask_id") : "";
        const char *words = o ? text_of(o, "description") : json_string_value(s);
        int len = *given ? snprintf(p->id[i], sizeof p->id[i], "%s", given)
                         : snprintf(p->id[i], sizeof p->id[i], "%s-S%zu", task_id, i + 1);
        if (!words || !*words)
            return bad(err, "a subtask has no description");
        if (len < 0 || (size_t)len >= sizeof p->id[i])
            return bad(err, "a subtask's id is too long");
        p->v[i] = (struct amp_dispatch_part){
            p->id[i], words, o ? json_integer_value(json_object_get(o, "estimated_lines")) : 0};
    }
    return 0;
}

/* The constraints with the base among them, where the coordinator looks for it. */
static json_t *constraints_of(const json_t *task, struct amp_error *err)
{
    const json_t *c = json_object_get(task, "tech_constraints");
    if (c && !json_is_object(c)) {
        bad(err, "tech_constraints is an object");
        return NULL;
    }
    json_t *copy = c ? json_copy(json_object_get(task, "tech_constraints")) : json_object();
    if (*text_of(task, "base"))
        json_object_set(copy, "base", json_object_get(task, "base"));
    return copy;
}

struct found {
    struct amp_error *err;
};

static void first_error(void *ctx, const struct amp_finding *f)
{
    struct found *b = ctx;
    if (f->severity == AMP_SEV_ERROR && b->err && !*b->err->code)
        amp_fail(b->err, AMP_DATAERR, f->code, "%s: %s", f->field, f->message);
}

/* What we compose passes our own check; the ledger keeps it. */
static int check_and_record(struct amp_store *s, struct amp_span line, int64_t now_ms,
                            struct amp_error *err)
{
    struct amp_error first = {0};
    struct found f = {&first};
    struct amp_view v;
    const struct amp_check_options any = {.only = AMP_PROTO_AMP};
    enum amp_store_outcome outcome;
    struct amp_reader *r = amp_reader_new(NULL, err);
    if (!r)
        return -1;
    line.n--;
    int rc = amp_reader_line(r, line, &any, &v, first_error, &f, err);
    if (rc == 0 && err)
        *err = first;
    rc = rc > 0 ? 0 : -1;
    if (rc == 0 && s)
        rc = amp_message_record(s, &v, now_ms, &outcome, err) < 0 ? -1 : amp_store_sync(s, err);
    amp_reader_free(r);
    return rc;
}

static int compose(struct amp_store *s, json_t *task, const char *task_id,
                   const struct amp_new_options *opt, struct amp_buf *out, struct amp_error *err)
{
    struct parts parts;
    enum amp_risk risk;
    size_t at = out->len;
    json_t *criteria = texts_of(task, "acceptance_criteria", err);
    json_t *forbidden = criteria ? texts_of(task, "forbidden_actions", err) : NULL;
    if (!forbidden || risk_of(task, &risk, err) < 0 || fill_parts(task, task_id, &parts, err) < 0)
        return -1;
    json_t *constraints = constraints_of(task, err);
    if (!constraints)
        return -1;
    struct amp_dispatch_args a = {
        .from = "admin",
        .to = "coordinator",
        .task_id = task_id,
        .description = text_of(task, "description"),
        .repo = text_of(task, "repo"),
        .branch = text_of(task, "branch"),
        .parts = parts.v,
        .n_parts = parts.n,
        .criteria = criteria,
        .forbidden = forbidden,
        .constraints = constraints,
        .risk = risk,
        .ack_timeout_sec = opt->ack_timeout_sec,
        .now_ms = opt->now_ms,
    };
    int rc = amp_compose_dispatch(&a, out, NULL, err);
    json_decref(constraints);
    if (rc == 0)
        rc =
            check_and_record(s, (struct amp_span){out->data + at, out->len - at}, opt->now_ms, err);
    if (rc < 0)
        out->len = at;
    return rc;
}

int amp_new_compose(struct amp_store *s, json_t *task, const struct amp_new_options *opt,
                    struct amp_buf *out, char *task_id_out, struct amp_error *err)
{
    char id[AMP_TASK_ID_MAX] = "";
    const char *given = text_of(task, "task_id");
    if (!*text_of(task, "description"))
        return bad(err, "a task needs a description");
    if (json_array_size(json_object_get(task, "acceptance_criteria")) == 0)
        return amp_fail(err, AMP_DATAERR, "empty_acceptance_criteria",
                        "a task needs at least one acceptance criterion");
    if (real_repo(task, err) < 0 || check_branch(task, opt, err) < 0)
        return -1;
    if (!*given && !s)
        return bad(err, "without a state directory a task needs its id");
    if (!amp_span_copy(amp_span_str(given), id, sizeof id))
        return bad(err, "the task's id is too long");
    if (!*id && amp_task_new_id(s, opt->now_ms, id, err) < 0)
        return -1;
    if (compose(s, task, id, opt, out, err) < 0)
        return -1;
    if (task_id_out)
        memcpy(task_id_out, id, sizeof id);
    return 0;
}
