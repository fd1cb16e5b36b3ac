/* Counts the persons who signed a decision. */
#include "people/proof/votes.h"

#include <string.h>

int amp_votes_collect(const struct amp_question_rec *rec, struct amp_buf *out,
                      struct amp_error *err)
{
    const struct amp_vote *last = NULL;

    for (uint32_t i = 0; i < rec->n_votes; i++)
        if (!last || rec->votes[i].at_ms >= last->at_ms)
            last = &rec->votes[i];
    for (uint32_t i = 0; i < rec->n_votes; i++) {
        const struct amp_vote *v = &rec->votes[i];
        if (v->against == last->against && amp_span_eq(v->digest, last->digest) &&
            (amp_buf_add(out, v->line.p, v->line.n, err) < 0 || amp_buf_str(out, "\n", err) < 0))
            return -1;
    }
    return 0;
}

struct voters {
    struct amp_identity v[AMP_APPROVALS_NEED_MAX];
    uint32_t n;
};

static bool is_new(const struct voters *all, const struct amp_identity *who)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (strcmp(all->v[i].key, who->key) == 0 ||
            strcmp(all->v[i].principal, who->principal) == 0)
            return false;
    return all->n < AMP_APPROVALS_NEED_MAX;
}

static bool is_vote(const struct amp_view *v, const struct amp_votes_of *of)
{
    return v->kind == AMP_KIND_DECISION && amp_span_eq(v->task, of->task) &&
           amp_span_eq(v->body.decision.ref, of->ref) && v->body.decision.word == of->word;
}

enum amp_known_by amp_votes_by(const struct amp_question_rec *rec, const struct amp_view *v)
{
    const struct amp_span sig = v->sig.value;

    for (uint32_t i = 0; rec && sig.n > 0 && i < rec->n_votes; i++)
        if (memmem(rec->votes[i].line.p, rec->votes[i].line.n, sig.p, sig.n))
            return amp_known_by_find(rec->votes[i].by);
    /* An answer that decided alone is not a vote. */
    return rec && sig.n > 0 && amp_span_eq(rec->key, v->sig.key) ? amp_known_by_find(rec->method)
                                                                 : AMP_KNOWN_BY_COUNT;
}

static int vote_verify(struct amp_identities *ids, struct amp_reader *reader, struct amp_span line,
                       const struct amp_votes_of *of, struct voters *all, struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    struct amp_identity who;
    struct amp_error no;
    struct amp_view v;
    int rc = amp_reader_line(reader, line, &any, &v, NULL, NULL, err);

    if (rc <= 0 || !is_vote(&v, of) || v.sig.key.n == 0)
        return rc < 0 ? -1 : 0;
    const struct amp_sig sig = {v.sig.key, v.sig.alg, v.sig.time, v.sig.value};
    if (amp_verifier_message(amp_identities_verifier(ids), &sig, v.message, AMP_SPAN(""), 0, &who,
                             &no) < 0) {
        if (no.status == AMP_NO)
            return 0;
        *err = no;
        return -1;
    }
    if (amp_identities_is_operator(ids, amp_span_str(who.key), who.time_ms) &&
        amp_operators_signed(of->operators, of->matter, who.principal, who.local,
                             amp_votes_by(of->record, &v), &no) &&
        is_new(all, &who))
        all->v[all->n++] = who;
    return 0;
}

int amp_votes_verify(struct amp_identities *ids, struct amp_reader *reader, struct amp_span lines,
                     const struct amp_votes_of *of, uint32_t *n, struct amp_error *err)
{
    struct voters all = {.n = 0};

    while (lines.n > 0) {
        const char *end = memchr(lines.p, '\n', lines.n);
        size_t len = end ? (size_t)(end - lines.p) : lines.n;
        if (len > 0 && vote_verify(ids, reader, (struct amp_span){lines.p, len}, of, &all, err) < 0)
            return -1;
        len += end != NULL;
        lines.p += len;
        lines.n -= len;
    }
    *n = all.n;
    return 0;
}
