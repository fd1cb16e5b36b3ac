/* Collects the proof of an approved subtask from the state. */
#include "people/proof/proof.h"

#include <stdio.h>
#include <string.h>

#include "message/delivery/ledger/ledger.h"
#include "people/proof/votes.h"

#define MEM_MAX ((size_t)256 << 20)

/* Appends the recorded message `id` with its recorded signature. */
static int line_collect(struct amp_store *s, const char *id, const char *sig, struct amp_buf *out,
                        char why[AMP_PROOF_WHY], struct amp_error *err)
{
    struct amp_message_rec rec;
    struct amp_span message;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, MEM_MAX);
    if (amp_message_find(s, amp_span_str(id), &mem, &rec, err) < 0)
        return -1;
    if (!*id || !rec.found || rec.line.n == 0) {
        snprintf(why, AMP_PROOF_WHY, "the message %.200s is no longer in the state directory", id);
        return 0;
    }
    return amp_line_message(rec.line, &message, err) < 0 ||
                   amp_signature_line(message, amp_span_str(sig), out, err) < 0
               ? -1
               : 1;
}

/* Whether the policy needs an operator's decision on this verdict. */
static int needs_decision(const struct amp_task *t, const struct amp_task_policy *policy,
                          struct amp_span verdict, bool *needed, struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    struct amp_view v;
    struct amp_reader *r = amp_reader_new(NULL, err);
    if (!r)
        return -1;
    int rc = amp_reader_line(r, verdict, &any, &v, NULL, NULL, err);
    bool read = rc > 0 && v.kind == AMP_KIND_VERDICT;
    *needed =
        policy->risk[t->risk].admin ||
        (read && v.body.verdict.confidence < policy->min_confidence) ||
        (read && v.body.verdict.decision != AMP_VERDICT_REJECTED && v.body.verdict.n_blocking > 0);
    amp_reader_free(r);
    return rc < 0 ? -1 : 0;
}

/* The votes of the decision, if several persons had to agree. */
static int votes_collect(struct amp_store *s, struct amp_proof *out, struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    AMP_BUF struct amp_buf mem = {0};
    struct amp_question_rec rec;
    struct amp_view v;
    char ref[AMP_QUESTION_KEY_MAX] = "";
    struct amp_span decision = amp_buf_span(&out->line[AMP_PROOF_decision]);
    if (decision.n == 0)
        return 0;
    struct amp_reader *r = amp_reader_new(NULL, err);
    if (!r)
        return -1;
    int rc = amp_reader_line(r, decision, &any, &v, NULL, NULL, err);
    if (rc > 0 && v.kind == AMP_KIND_DECISION)
        amp_span_copy(v.body.decision.ref, ref, sizeof ref);
    amp_reader_free(r);
    if (rc < 0 || !*ref)
        return rc < 0 ? -1 : 0;
    amp_buf_init(&mem, MEM_MAX);
    rc = amp_question_find(s, amp_span_str(ref), &mem, &rec, err);
    if (rc <= 0 || rec.need <= 1)
        return rc < 0 ? -1 : 0;
    out->needs_votes = rec.need;
    return amp_votes_collect(&rec, &out->line[AMP_PROOF_votes], err);
}

int amp_proof_collect(struct amp_store *s, const struct amp_task *t,
                      const struct amp_task_part *part, const struct amp_task_policy *policy,
                      struct amp_proof *out, char why[AMP_PROOF_WHY], struct amp_error *err)
{
    const struct {
        enum amp_proof_line line;
        const char *id, *sig;
    } from[] = {{AMP_PROOF_dispatch, part->dispatch_ref, ""},
                {AMP_PROOF_request, part->verdict_request, ""},
                {AMP_PROOF_result, part->verdict_for, part->result_sig},
                {AMP_PROOF_verdict, part->verdict_ref, part->verdict_sig}};
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        int rc = line_collect(s, from[i].id, from[i].sig, &out->line[from[i].line], why, err);
        if (rc <= 0)
            return rc;
    }
    snprintf(out->task, sizeof out->task, "%s", t->id);
    snprintf(out->subtask, sizeof out->subtask, "%s", part->id);
    snprintf(out->commit, sizeof out->commit, "%s", part->commit);
    snprintf(out->executor, sizeof out->executor, "%s", part->executor);
    return amp_buf_str(&out->line[AMP_PROOF_decision], part->decision, err) < 0 ||
                   votes_collect(s, out, err) < 0 ||
                   needs_decision(t, policy, amp_buf_span(&out->line[AMP_PROOF_verdict]),
                                  &out->needs_decision, err) < 0
               ? -1
               : 1;
}
