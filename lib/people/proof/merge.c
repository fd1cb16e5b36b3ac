/* Checks that a landing of approved work made a merge commit. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "people/proof/proof.h"

#define TEXT_MAX 65536

static bool is_made(const struct amp_landing *l, const struct amp_git_look *m,
                    const struct amp_git_look *approved)
{
    return m->parents == 2 && strcmp(m->parent[1], approved->commit) == 0 &&
           (l->merged.n > 0 || strcmp(m->tree, approved->tree) == 0) &&
           amp_span_is(l->from, m->parent[0]) && amp_span_is(l->to, m->commit) &&
           amp_span_is(l->commit, approved->commit);
}

/* Verifies the person's signature. NO: the code says why it does not count. */
static int signature_verify(struct amp_identities *ids, const struct amp_landing *l,
                            struct amp_error *err)
{
    char time[AMP_TIME_MAX];
    AMP_BUF struct amp_buf text = {0};
    struct amp_identity who;

    amp_time_format(l->at_ms, time);
    const struct amp_sig sig = {l->key, l->alg, amp_span_str(time), l->signature};
    if (l->signature.n == 0)
        return amp_fail(err, AMP_NO, unsigned, "nobody signed it");
    amp_buf_init(&text, TEXT_MAX);
    if (amp_landing_text(l, &text, err) < 0 ||
        amp_verifier_text(amp_identities_verifier(ids), AMP_LANDING_NAMESPACE, &sig,
                          amp_buf_span(&text), AMP_SPAN(""), 0, &who, err) < 0)
        return -1;
    return amp_identities_is_operator(ids, amp_span_str(who.key), who.time_ms)
               ? 0
               : amp_fail(err, AMP_NO, not_operator, "%s is not an operator", who.principal);
}

int amp_proof_merge(struct amp_identities *ids, const struct amp_landing *l,
                    const struct amp_git_look *merge, const struct amp_git_look *approved,
                    char why[AMP_PROOF_WHY], struct amp_error *err)
{
    struct amp_error no;

    if (!is_made(l, merge, approved)) {
        snprintf(why, AMP_PROOF_WHY, "no landing of %.12s made the merge %.12s", approved->commit,
                 merge->commit);
        return 0;
    }
    if (!ids || signature_verify(ids, l, &no) == 0)
        return 1;
    if (no.status != AMP_NO) {
        *err = no;
        return -1;
    }
    snprintf(why, AMP_PROOF_WHY, "the landing: %s: %.300s", no.code, no.what);
    return 0;
}
