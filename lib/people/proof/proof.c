/* Checks the proof that work was approved. */
#include "people/proof/proof.h"

#include <stdio.h>
#include <string.h>

#include "people/proof/votes.h"

#define LINE_MAX_BYTES ((size_t)256 << 20)

const char *const amp_proof_line_names[AMP_PROOF_COUNT] = {
#define X(name) [AMP_PROOF_##name] = #name,
    AMP_PROOF_LINES(X)
#undef X
};

void amp_proof_init(struct amp_proof *p)
{
    memset(p, 0, sizeof *p);
    for (int i = 0; i < AMP_PROOF_COUNT; i++)
        amp_buf_init(&p->line[i], LINE_MAX_BYTES);
}

void amp_proof_release(struct amp_proof *p)
{
    for (int i = 0; i < AMP_PROOF_COUNT; i++)
        amp_buf_release(&p->line[i]);
}

struct check {
    struct amp_identities *ids;
    const struct amp_proof *p;
    struct amp_reader *reader;
    struct amp_view v;
    char dispatch[256], request[256], result[256]; /* ids */
    char *why;
    struct amp_error *err;
};

static int check_fails(struct check *c, const char *what)
{
    snprintf(c->why, AMP_PROOF_WHY, "%s", what);
    return 0;
}

/* Views a line and compares its kind, task and sender. */
static int line_view(struct check *c, enum amp_proof_line which, enum amp_kind kind,
                     const char *from)
{
    static const struct amp_check_options any = {0};
    struct amp_span line = amp_buf_span(&c->p->line[which]);
    const char *name = amp_proof_line_names[which];
    if (line.n == 0) {
        snprintf(c->why, AMP_PROOF_WHY, "the %s is missing", name);
        return 0;
    }
    int rc = amp_reader_line(c->reader, line, &any, &c->v, NULL, NULL, c->err);
    if (rc < 0)
        return -1;
    if (rc > 0 && c->v.kind == kind && amp_span_is(c->v.task, c->p->task) &&
        amp_span_is(c->v.from, from))
        return 1;
    snprintf(c->why, AMP_PROOF_WHY, "the %s is not a valid message of task %.200s", name,
             c->p->task);
    return 0;
}

/* Verifies the signature of the viewed line; from empty: any sender. */
static int signature_check(struct check *c, enum amp_proof_line which, const char *from,
                           struct amp_identity *who)
{
    struct amp_error no;
    const char *name = amp_proof_line_names[which];
    const struct amp_sig sig = {c->v.sig.key, c->v.sig.alg, c->v.sig.time, c->v.sig.value};
    if (sig.key.n == 0) {
        snprintf(c->why, AMP_PROOF_WHY, "the %s was not signed (it came from a trusted input)",
                 name);
        return 0;
    }
    if (amp_verifier_message(amp_identities_verifier(c->ids), &sig, c->v.message,
                             amp_span_str(from), 0, who, &no) == 0)
        return 1;
    if (no.status != AMP_NO) {
        *c->err = no;
        return -1;
    }
    snprintf(c->why, AMP_PROOF_WHY, "the %s: %s: %.300s", name, no.code, no.what);
    return 0;
}

static bool context_has(const struct amp_view *v, const char *id)
{
    for (uint32_t i = 0; *id && i < v->context.n; i++)
        if (amp_span_is(v->context.v[i], id))
            return true;
    return false;
}

/* Whether the context names another message with this beginning, and not the id. */
static bool names_other(const struct amp_view *v, const char *id, const char *begin)
{
    bool other = false;
    for (uint32_t i = 0; i < v->context.n; i++)
        other |= amp_span_starts(v->context.v[i], begin);
    return other && !context_has(v, id);
}

static int dispatch_check(struct check *c)
{
    int rc = line_view(c, AMP_PROOF_dispatch, AMP_KIND_DISPATCH, "coordinator");
    if (rc <= 0)
        return rc;
    amp_span_copy(c->v.id, c->dispatch, sizeof c->dispatch);
    rc = line_view(c, AMP_PROOF_request, AMP_KIND_REVIEW, "coordinator");
    if (rc > 0)
        amp_span_copy(c->v.id, c->request, sizeof c->request);
    return rc;
}

static int result_check(struct check *c, struct amp_identity *by)
{
    int rc = line_view(c, AMP_PROOF_result, AMP_KIND_RESULT, "executor");
    if (rc <= 0 || (rc = signature_check(c, AMP_PROOF_result, "executor", by)) <= 0)
        return rc;
    if (strcmp(by->key, c->p->executor) != 0)
        return check_fails(c,
                           "the result is signed by another key than that to which the dispatch is "
                           "bound");
    if (!amp_span_is(c->v.body.result.subtask, c->p->subtask) ||
        !amp_span_is(c->v.body.result.commit, c->p->commit))
        return check_fails(c, "the result is about another subtask or commit");
    if (names_other(&c->v, c->dispatch, "task_dispatch-"))
        return check_fails(c, "the result answers another dispatch");
    amp_span_copy(c->v.id, c->result, sizeof c->result);
    return 1;
}

static int verdict_check(struct check *c, const struct amp_identity *executor,
                         struct amp_identity *by)
{
    int rc = line_view(c, AMP_PROOF_verdict, AMP_KIND_VERDICT, "reviewer");
    if (rc <= 0 || (rc = signature_check(c, AMP_PROOF_verdict, "reviewer", by)) <= 0)
        return rc;
    if (strcmp(by->key, executor->key) == 0)
        return check_fails(c, "the verdict and the result are signed by the same key");
    if (amp_identities_is_named(c->ids, by, executor->principal))
        return check_fails(c, "the verdict is signed by another key of the executor");
    if (!context_has(&c->v, c->request) && !context_has(&c->v, c->result))
        return check_fails(c, "the verdict is about another result");
    return 1;
}

/* The view is that of the decision. */
static int votes_check(struct check *c)
{
    AMP_BUF struct amp_buf texts = {0};
    struct amp_votes_of of = {.word = AMP_DO_RESUME};
    uint32_t n;
    if (c->p->needs_votes <= 1)
        return 1;
    size_t task = c->v.task.n;
    amp_buf_init(&texts, LINE_MAX_BYTES);
    /* The view ends with the next line that is read. */
    if (amp_buf_add(&texts, c->v.task.p, task, c->err) < 0 ||
        amp_buf_add(&texts, c->v.body.decision.ref.p, c->v.body.decision.ref.n, c->err) < 0)
        return -1;
    of.task = (struct amp_span){texts.data, task};
    of.ref = (struct amp_span){texts.data + task, texts.len - task};
    if (amp_votes_verify(c->ids, c->reader, amp_buf_span(&c->p->line[AMP_PROOF_votes]), &of, &n,
                         c->err) < 0)
        return -1;
    if (n >= c->p->needs_votes)
        return 1;
    snprintf(c->why, AMP_PROOF_WHY, "%u of the %lld operators who had to agree signed it", n,
             (long long)c->p->needs_votes);
    return 0;
}

static int decision_check(struct check *c, struct amp_identity *by)
{
    if (c->p->line[AMP_PROOF_decision].len == 0)
        return c->p->needs_decision
                   ? check_fails(c, "an operator's decision was needed and is missing")
                   : 1;
    int rc = line_view(c, AMP_PROOF_decision, AMP_KIND_DECISION, "admin");
    if (rc <= 0 || (rc = signature_check(c, AMP_PROOF_decision, "", by)) <= 0)
        return rc;
    if (!amp_identities_is_operator(c->ids, amp_span_str(by->key), by->time_ms))
        return check_fails(c, "the decision is not signed by an operator");
    return c->v.body.decision.word == AMP_DO_RESUME
               ? votes_check(c)
               : check_fails(c, "the decision does not approve the work");
}

int amp_proof_check(struct amp_identities *ids, const struct amp_proof *p,
                    struct amp_proof_who *who, char why[AMP_PROOF_WHY], struct amp_error *err)
{
    struct amp_identity executor = {0}, reviewer = {0}, decider = {0};
    struct check c = {.ids = ids, .p = p, .why = why, .err = err};
    if (!(c.reader = amp_reader_new(NULL, err)))
        return -1;
    int rc = dispatch_check(&c);
    if (rc > 0)
        rc = result_check(&c, &executor);
    if (rc > 0)
        rc = verdict_check(&c, &executor, &reviewer);
    if (rc > 0)
        rc = decision_check(&c, &decider);
    amp_reader_free(c.reader);
    snprintf(who->executor, sizeof who->executor, "%s", executor.principal);
    snprintf(who->reviewer, sizeof who->reviewer, "%s", reviewer.principal);
    snprintf(who->operator_, sizeof who->operator_, "%s", decider.principal);
    return rc;
}
