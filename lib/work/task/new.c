/* Checks and composes new tasks. */
#include "work/task/new.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <amp/protocol/protocol.h>

#include "base/codes.h"
#include "message/delivery/ledger/ledger.h"
#include "message/protocol/amp/compose.h"
#include "work/task/task.h"

#define PARTS_MAX 512

/* Records the invalid member; returns -1. */
static int at_member(struct amp_new_fault *at, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static int at_member(struct amp_new_fault *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(at->pointer, sizeof at->pointer, fmt, ap);
    va_end(ap);
    return -1;
}

/* Refuses the task because of the member: DATAERR bad_task. */
static int fail_at(struct amp_new_fault *at, const char *pointer, const char *what,
                   struct amp_error *err)
{
    amp_fail(err, AMP_DATAERR, bad_task, "%s", what);
    return at_member(at, "%s", pointer);
}

bool amp_new_is_repo(const char *dir)
{
    static const char *const marks[] = {".git", "HEAD"};
    char inside[PATH_MAX + 8];
    struct stat sb;
    for (size_t i = 0; i < 2; i++)
        if (snprintf(inside, sizeof inside, "%s/%s", dir, marks[i]) < (int)sizeof inside &&
            stat(inside, &sb) == 0)
            return true;
    return false;
}

static int real_repo(json_t *task, struct amp_new_fault *at, struct amp_error *err)
{
    const char *repo = amp_json_str(task, "repo");
    char real[PATH_MAX];
    const json_t *given = json_object_get(task, "repo");
    if (given && !json_is_string(given))
        return fail_at(at, "/repo", "expected a path as text", err);
    if (!realpath(*repo ? repo : ".", real)) {
        amp_fail_errno(err, AMP_DATAERR, "%s", repo);
        return at_member(at, "/repo");
    }
    if (!amp_new_is_repo(real)) {
        amp_fail(err, AMP_DATAERR, repo_not_git, "%s is not the top directory of a git repository",
                 real);
        return at_member(at, "/repo");
    }
    errno = 0;
    if (json_object_set_new(task, "repo", json_string(real)) == 0)
        return 0;
    return errno == ENOMEM ? amp_fail_memory(err)
                           : fail_at(at, "/repo", "the repository's path is not UTF-8", err);
}

static int check_branch(const json_t *task, const struct amp_new_options *opt,
                        struct amp_new_fault *at, struct amp_error *err)
{
    const char *branch = amp_json_str(task, "branch");
    if (!*branch)
        return fail_at(at, "/branch", "expected the name of a branch", err);
    if (!amp_branch_is_protected(amp_span_str(branch), opt->protected_))
        return 0;
    amp_fail(err, AMP_NOPERM, branch_violation,
             "\"%s\" is a protected branch: use another one, such as fix/NAME", branch);
    return at_member(at, "/branch");
}

/* Gives the task a branch of its own, named by its id. */
static int branch_give(json_t *task, const char *id, const struct amp_new_options *opt,
                       struct amp_new_fault *at, struct amp_error *err)
{
    return json_object_set_new(task, "branch", json_sprintf("task/%s", id)) < 0
               ? amp_fail_memory(err)
               : check_branch(task, opt, at, err);
}

/* Without this check a dispatch with a wrong base fails at its first attempt. */
static int check_base(const json_t *task, const struct amp_new_options *opt,
                      struct amp_new_fault *at, struct amp_error *err)
{
    const char *base = amp_json_str(task, "base"), *repo = amp_json_str(task, "repo");
    struct amp_error why;
    const json_t *given = json_object_get(task, "base");
    if (given && !json_is_string(given))
        return fail_at(at, "/base", "expected the name of a commit as text", err);
    if (!given || opt->find_commit(opt->ctx, repo, base, &why) == 0)
        return 0;
    if (why.status != AMP_NO && why.status != AMP_DATAERR) {
        *err = why;
        return -1;
    }
    amp_fail(err, AMP_DATAERR, bad_base,
             "\"%s\" is not a commit of %s: expected a branch, a tag or a commit", base, repo);
    return at_member(at, "/base");
}

static int risk_of(const json_t *task, enum amp_risk *risk, struct amp_new_fault *at,
                   struct amp_error *err)
{
    const json_t *given = json_object_get(task, "risk_level");
    const char *word = amp_json_str(task, "risk_level");
    *risk = AMP_RISK_MEDIUM;
    for (int i = AMP_RISK_LOW; i <= AMP_RISK_HIGH; i++)
        if (strcmp(word, amp_risk_name((enum amp_risk)i)) == 0) {
            *risk = (enum amp_risk)i;
            return 0;
        }
    return given ? fail_at(at, "/risk_level", "expected low, medium or high", err) : 0;
}

/* The member, a list of texts; an absent one is added empty. The result belongs to the task. */
static json_t *texts_of(json_t *task, const char *key, struct amp_new_fault *at,
                        struct amp_error *err)
{
    json_t *v = json_object_get(task, key);
    if (!v) {
        if (json_object_set_new(task, key, json_array()) < 0)
            amp_fail_memory(err);
        return json_object_get(task, key);
    }
    size_t i = 0;
    while (i < json_array_size(v) && json_is_string(json_array_get(v, i)))
        i++;
    if (json_is_array(v) && i == json_array_size(v))
        return v;
    amp_fail(err, AMP_DATAERR, bad_task, "expected %s",
             json_is_array(v) ? "a text" : "a list of texts");
    if (json_is_array(v))
        at_member(at, "/%s/%zu", key, i);
    else
        at_member(at, "/%s", key);
    return NULL;
}

struct parts {
    struct amp_dispatch_part v[PARTS_MAX];
    char id[PARTS_MAX][160];
    size_t n;
};

static int fill_part(const json_t *s, const char *task_id, struct parts *p, size_t i,
                     struct amp_error *err)
{
    const json_t *o = json_is_object(s) ? s : NULL;
    const char *given = o ? amp_json_str(o, "subtask_id") : "";
    const char *words = o ? amp_json_str(o, "description") : json_string_value(s);
    int len = *given ? snprintf(p->id[i], sizeof p->id[i], "%s", given)
                     : snprintf(p->id[i], sizeof p->id[i], "%s-S%zu", task_id, i + 1);
    if (!words || !*words)
        return amp_fail(err, AMP_DATAERR, bad_task,
                        "a subtask has no description: expected a text, or an object with one");
    if (len < 0 || (size_t)len >= sizeof p->id[i])
        return amp_fail(err, AMP_DATAERR, bad_task, "a subtask_id has at most %zu bytes",
                        sizeof p->id[i] - 1);
    p->v[i] = (struct amp_dispatch_part){
        p->id[i], words, o ? json_integer_value(json_object_get(o, "estimated_lines")) : 0};
    return 0;
}

static int fill_parts(const json_t *task, const char *task_id, struct parts *p,
                      struct amp_new_fault *at, struct amp_error *err)
{
    const json_t *list = json_object_get(task, "subtasks");
    size_t n = json_array_size(list);
    if (list && !json_is_array(list))
        return fail_at(at, "/subtasks", "expected a list of texts or objects", err);
    if (n > PARTS_MAX) {
        amp_fail(err, AMP_DATAERR, bad_task, "%zu subtasks: expected at most %d", n, PARTS_MAX);
        return at_member(at, "/subtasks");
    }
    p->n = n ? n : 1;
    for (size_t i = 0; i < p->n; i++)
        if (fill_part(n ? json_array_get(list, i) : json_object_get(task, "description"), task_id,
                      p, i, err) < 0)
            return at_member(at, "/subtasks/%zu", i);
    return 0;
}

/* A copy of the constraints with the base, which the coordinator reads from them, and the type of
 * the agents, which a pool reads. */
static json_t *constraints_of(const json_t *task, struct amp_new_fault *at, struct amp_error *err)
{
    json_t *c = json_object_get(task, "tech_constraints");
    if (c && !json_is_object(c)) {
        fail_at(at, "/tech_constraints", "expected an object", err);
        return NULL;
    }
    json_t *copy = c ? json_copy(c) : json_object();
    static const char *const added[] = {"base", "agent_type"};
    size_t n = 0;
    while (copy && n < sizeof added / sizeof *added &&
           (!*amp_json_str(task, added[n]) ||
            json_object_set(copy, added[n], json_object_get(task, added[n])) == 0))
        n++;
    if (n == sizeof added / sizeof *added)
        return copy;
    json_decref(copy);
    amp_fail_memory(err);
    return NULL;
}

struct found {
    struct amp_error *err;
    struct amp_new_fault *at;
};

/* Maps the pointer into the message to the task's member; the base is one of its constraints. */
static void first_error(void *ctx, const struct amp_finding *f)
{
    static const char payload[] = "/payload";
    struct found *b = ctx;
    const char *p = f->pointer;
    if (f->severity != AMP_SEV_ERROR || *b->err->code)
        return;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, 4096);
    if (amp_finding_sentence(f, true, &text, b->err) == 0)
        amp_fail_text(b->err, AMP_DATAERR, f->code, "%.*s", (int)text.len, text.data);
    if (strncmp(p, payload, sizeof payload - 1) == 0)
        p += sizeof payload - 1;
    at_member(b->at, "%s", strcmp(p, "/tech_constraints/base") == 0 ? "/base" : p);
}

/* Checks the composed message and records it in the ledger. */
static int check_and_record(struct amp_store *s, struct amp_span line, int64_t now_ms,
                            struct amp_new_fault *at, struct amp_error *err)
{
    struct amp_error first = {0};
    struct found f = {&first, at};
    struct amp_view v;
    const struct amp_check_options any = {0};
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

static int dispatch_compose(struct amp_store *s, json_t *task, const char *task_id,
                            const struct amp_new_options *opt, struct amp_buf *out,
                            struct amp_new_fault *at, struct amp_error *err)
{
    struct parts parts;
    enum amp_risk risk;
    size_t begin = out->len;
    json_t *criteria = texts_of(task, "acceptance_criteria", at, err);
    json_t *forbidden = criteria ? texts_of(task, "forbidden_actions", at, err) : NULL;
    if (!forbidden || risk_of(task, &risk, at, err) < 0 ||
        fill_parts(task, task_id, &parts, at, err) < 0)
        return -1;
    json_auto_t *constraints = constraints_of(task, at, err);
    if (!constraints)
        return -1;
    struct amp_dispatch_args a = {
        .from = "admin",
        .to = "coordinator",
        .task_id = task_id,
        .description = amp_json_str(task, "description"),
        .repo = amp_json_str(task, "repo"),
        .branch = amp_json_str(task, "branch"),
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
    if (rc == 0)
        rc = check_and_record(s, (struct amp_span){out->data + begin, out->len - begin},
                              opt->now_ms, at, err);
    if (rc < 0)
        out->len = begin;
    return rc;
}

int amp_new_compose(struct amp_store *s, json_t *task, const struct amp_new_options *opt,
                    struct amp_buf *out, struct amp_new_fault *at, struct amp_error *err)
{
    char id[AMP_TASK_ID_MAX] = "";
    const char *given = amp_json_str(task, "task_id");
    size_t begin = out->len;
    *at = (struct amp_new_fault){0};
    if (!*amp_json_str(task, "description"))
        return fail_at(at, "/description", "a description is required", err);
    const json_t *criteria = json_object_get(task, "acceptance_criteria");
    bool own_branch = !json_object_get(task, "branch");
    if ((!criteria || (json_is_array(criteria) && json_array_size(criteria) == 0)) &&
        json_object_set_new(task, "acceptance_criteria", json_pack("[s]", AMP_NEW_CRITERION)) < 0)
        return amp_fail_memory(err);
    if (real_repo(task, at, err) < 0 || (!own_branch && check_branch(task, opt, at, err) < 0) ||
        check_base(task, opt, at, err) < 0)
        return -1;
    if (json_object_get(task, "task_id") && !*given)
        return fail_at(at, "/task_id", "expected a text of the form T-YYYY-NNN", err);
    if (!*given && !s)
        return fail_at(at, "/task_id", "without a state directory --id is required", err);
    if (!amp_span_copy(amp_span_str(given), id, sizeof id))
        return fail_at(at, "/task_id", "too long: expected the form T-YYYY-NNN", err);
    if (!*id) {
        /* Checked with a placeholder id first, so that a refused task uses no id. */
        if ((own_branch && branch_give(task, "T-2000-001", opt, at, err) < 0) ||
            dispatch_compose(NULL, task, "T-2000-001", opt, out, at, err) < 0)
            return -1;
        out->len = begin;
        if (amp_task_new_id(s, opt->now_ms, id, err) < 0)
            return -1;
        if (json_object_set_new(task, "task_id", json_string(id)) < 0)
            return amp_fail_memory(err);
    }
    return own_branch && branch_give(task, id, opt, at, err) < 0
               ? -1
               : dispatch_compose(s, task, id, opt, out, at, err);
}
