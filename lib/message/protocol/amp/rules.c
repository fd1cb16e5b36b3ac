/*
 * AMP/1.0: the rules that a schema cannot express. Each rule is a function that reads only the
 * view; the table has the kinds for which it runs. Rules also run on lines that violate their
 * schema, so any field may be missing.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/codes.h"
#include "message/protocol/amp/amp.h"
#include "message/protocol/spec.h"

uint32_t amp_amp_check_in_state(const struct amp_tape *t, uint32_t checks, const char *state)
{
    if (checks == AMP_TOK_NONE || t->tok[checks].type != AMP_JSON_OBJECT)
        return AMP_TOK_NONE;
    for (uint32_t k = checks + 1; k < t->tok[checks].next; k = t->tok[k + 1].next)
        if (amp_tok_is(t, k + 1, amp_span_str(state)) &&
            !amp_tok_is(t, k, AMP_SPAN("last_updated")))
            return k;
    return AMP_TOK_NONE;
}

uint32_t amp_amp_failed_check(const struct amp_view *v)
{
    const char *at = v->kind == AMP_KIND_REVIEW ? "/payload/ci_status" : "/checks";
    return amp_amp_check_in_state(v->tape, amp_tape_pointer(v->tape, 0, amp_span_str(at)),
                                  "failed");
}

/* {type}-{task_id}-{digits} */
static void id_check(struct amp_check *c)
{
    const struct amp_view *v = c->v;
    if (v->id.n == 0 || v->type.n == 0 || v->task.n == 0)
        return;
    struct amp_span rest = v->id;
    const struct amp_span part[] = {v->type, v->task};
    const char *const name[] = {"type", "task_id"};
    for (int i = 0; i < 2; i++) {
        if (rest.n <= part[i].n || memcmp(rest.p, part[i].p, part[i].n) != 0 ||
            rest.p[part[i].n] != '-') {
            amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(bad_msg_id), "msg_id", "/msg_id",
                           "{type}-{task_id}-{number}", "does not match %s %s", name[i],
                           amp_check_text(c, part[i], 60));
            return;
        }
        rest.p += part[i].n + 1;
        rest.n -= part[i].n + 1;
    }
    for (size_t i = 0; i < rest.n; i++)
        if (rest.p[i] < '0' || rest.p[i] > '9')
            rest.n = 0;
    if (rest.n == 0)
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(bad_msg_id), "msg_id", "/msg_id",
                       "{type}-{task_id}-{number}", "does not end with a number");
}

static void timeout_check(struct amp_check *c)
{
    if (c->v->has_ack_timeout && !c->v->needs_ack)
        amp_check_rule(c, AMP_SEV_WARNING, AMP_CODE(ack_timeout_ignored), "ack_timeout",
                       "/ack_timeout_sec", "no ack_timeout_sec without requires_ack",
                       "has no effect: requires_ack is false");
}

/* The reason why git refuses the name of a branch (git-check-ref-format); NULL: it accepts it. */
static const char *branch_fault(struct amp_span b)
{
    if (b.p[0] == '-')
        return "starts with a dash";
    if (b.p[0] == '/' || b.p[b.n - 1] == '/' || b.p[b.n - 1] == '.')
        return "starts or ends with a slash or ends with a dot";
    if (amp_span_is(b, "@") || amp_span_is(b, "HEAD"))
        return "is reserved by git";
    for (size_t i = 0; i < b.n; i++) {
        unsigned char ch = (unsigned char)b.p[i];
        char next = i + 1 < b.n ? b.p[i + 1] : '/';
        if (ch <= ' ' || ch == 127 || strchr("~^:?*[\\", ch))
            return "contains a character that git refuses";
        if ((ch == '.' && next == '.') || (ch == '/' && (next == '/' || next == '.')) ||
            (ch == '@' && next == '{') || (i == 0 && ch == '.'))
            return "contains a sequence that git refuses";
        if (next == '/' && i >= 4 && memcmp(b.p + i - 4, ".lock", 5) == 0)
            return "has a part that ends with .lock";
    }
    return NULL;
}

static void branch_check(struct amp_check *c)
{
    struct amp_span b = c->v->body.dispatch.branch;
    if (b.n == 0)
        return;
    if (amp_branch_is_protected(b, c->opt->protected_)) {
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(branch_violation), "branch", "/payload/branch",
                       "a branch that is not protected", "is a protected branch");
        return;
    }
    const char *fault = branch_fault(b);
    if (fault)
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(bad_value), "branch", "/payload/branch",
                       "a branch name that git accepts", "%s", fault);
}

static void subtasks_check(struct amp_check *c)
{
    const struct amp_subtask *s = c->v->body.dispatch.subtasks;
    uint32_t n = c->v->body.dispatch.n_subtasks;
    /* The comparison takes quadratic time. */
    enum { MOST = 1000 };
    if (n > MOST) {
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(bad_value), "subtask_ids", "/payload/subtasks",
                       "at most 1000 subtasks", "has %u subtasks", n);
        return;
    }
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = 0; j < i; j++) {
            if (s[i].id.n == 0 || !amp_span_eq(s[i].id, s[j].id))
                continue;
            char at[64];
            snprintf(at, sizeof at, "/payload/subtasks/%u/subtask_id", i);
            amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(bad_value), "subtask_ids", at, "a unique id",
                           "is also the id of subtask %u", j + 1);
            return;
        }
}

static void criteria_check(struct amp_check *c)
{
    const struct amp_spans *list = &c->v->body.dispatch.criteria;
    const struct amp_tape *t = c->v->tape;
    uint32_t blank = 0;
    while (blank < list->n && !amp_check_blank(list->v[blank]))
        blank++;
    if (blank == list->n)
        return;
    /* The view's list has only the strings of the array. */
    uint32_t array = amp_tape_pointer(t, 0, AMP_SPAN("/payload/acceptance_criteria"));
    uint32_t at = array + 1;
    for (; t->tok[at].type != AMP_JSON_STRING || blank > 0; at = t->tok[at].next)
        blank -= t->tok[at].type == AMP_JSON_STRING;
    amp_check_token(c, AMP_SEV_ERROR, AMP_CODE(empty_acceptance_criteria), "criteria", at,
                    "a criterion that is not empty", "says nothing");
}

static bool file_exists(const char *dir, const char *name)
{
    char path[4096];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0;
}

static void repo_check(struct amp_check *c)
{
    struct amp_span r = c->v->body.dispatch.repo;
    char dir[4096];
    struct stat st;
    const char *fault = NULL;
    if (!c->opt->check_repo || r.n == 0)
        return;
    if (memchr(r.p, '\0', r.n) || !amp_span_copy(r, dir, sizeof dir))
        fault = "is not a path";
    else if (stat(dir, &st) < 0)
        fault = "does not exist";
    else if (!S_ISDIR(st.st_mode))
        fault = "is not a directory";
    else if (!file_exists(dir, ".git") &&
             !(file_exists(dir, "HEAD") && file_exists(dir, "objects") && file_exists(dir, "refs")))
        fault = "is not a git repository";
    if (fault)
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(repo_not_git), "repo", "/payload/repo",
                       "the path of a git repository", "%s", fault);
}

static void ci_check(struct amp_check *c)
{
    uint32_t failed = amp_amp_failed_check(c->v);
    if (failed != AMP_TOK_NONE)
        amp_check_token(c, AMP_SEV_ERROR, AMP_CODE(ci_failed), "ci_red", failed + 1,
                        "no failed check; send a new task_dispatch instead",
                        "a failed check prevents the review");
}

static bool contains_nocase(struct amp_span text, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.n; i++)
        if (strncasecmp(text.p + i, word, n) == 0)
            return true;
    return false;
}

static void lock_note_check(struct amp_check *c)
{
    if (c->v->body.review.reject_count < 2 ||
        contains_nocase(c->v->body.review.notes, "lock is approaching"))
        return;
    amp_check_rule(c, AMP_SEV_WARNING, AMP_CODE(lock_note_missing), "lock_note",
                   "/payload/coordinator_notes", "a note that says \"Lock is approaching\"",
                   "does not warn the reviewer after %lld rejections in a row",
                   (long long)c->v->body.review.reject_count);
}

static void verdict_check(struct amp_check *c)
{
    const struct amp_body *b = &c->v->body;
    const char *fault = NULL;
    bool all_passed = b->verdict.n_criteria > 0;
    bool one_failed = false;
    for (uint32_t i = 0; i < b->verdict.n_criteria; i++) {
        all_passed = all_passed && b->verdict.criteria[i].passed == AMP_TRI_TRUE;
        one_failed = one_failed || b->verdict.criteria[i].passed == AMP_TRI_FALSE;
    }
    switch (b->verdict.decision) {
    case AMP_VERDICT_APPROVED:
        if (one_failed)
            fault = "but a criterion has not passed";
        else if (b->verdict.n_fixes > 0)
            fault = "but direct_fixes are listed; use approved_with_fix";
        /* fall through */
    case AMP_VERDICT_APPROVED_WITH_FIX:
        if (!fault && b->verdict.n_blocking > 0)
            fault = "but a blocking issue is listed";
        break;
    case AMP_VERDICT_REJECTED:
        if (all_passed && b->verdict.n_issues > 0 && b->verdict.n_blocking == 0)
            fault = "but every criterion passed and no issue blocks";
        else if (b->verdict.n_fixes > 0)
            fault = "but direct_fixes are listed; use approved_with_fix";
        break;
    }
    if (fault)
        amp_check_rule(c, AMP_SEV_WARNING, AMP_CODE(inconsistent_verdict), "consistent_verdict",
                       "/payload/decision", "a decision that matches the criteria and issues",
                       "is %s %s", amp_verdict_name(b->verdict.decision), fault);
}

#define KIND(k)  (1u << AMP_KIND_##k)
#define MESSAGES (KIND(DISPATCH) | KIND(RESULT) | KIND(REVIEW) | KIND(VERDICT) | KIND(ESCALATION))

static const struct {
    void (*run)(struct amp_check *c);
    unsigned kinds;
} rules[] = {
    {id_check, MESSAGES},
    {timeout_check, MESSAGES},
    {branch_check, KIND(DISPATCH)},
    {subtasks_check, KIND(DISPATCH)},
    {criteria_check, KIND(DISPATCH)},
    {repo_check, KIND(DISPATCH)},
    {ci_check, KIND(REVIEW)},
    {lock_note_check, KIND(REVIEW)},
    {verdict_check, KIND(VERDICT)},
};

void amp_amp_rules(struct amp_check *c)
{
    for (unsigned i = 0; i < AMP_SPEC_COUNT(rules); i++)
        if (rules[i].kinds & (1u << c->v->kind))
            rules[i].run(c);
}
