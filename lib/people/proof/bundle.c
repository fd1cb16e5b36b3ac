/* Writes, reads and verifies bundles. */
#include "people/proof/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/codes.h"
#include "people/question/operators/operators.h"
#include <amp/base/clock.h>
#include <amp/json/writer.h>

#define FORMAT      "amp-bundle-1"
#define COORDINATOR "coordinator"

/* ---- writing ---- */

struct signers {
    struct amp_jw *w;
    struct amp_span proofs; /* keys that occur in it are written */
    const char *own;
};

static int time_option(struct amp_buf *b, const char *name, int64_t s, struct amp_error *err)
{
    struct tm tm;
    char text[32];
    time_t at = (time_t)s;
    if (s == 0)
        return 0;
    if (!gmtime_r(&at, &tm) || strftime(text, sizeof text, "%Y%m%d%H%M%SZ", &tm) == 0)
        return amp_fail(err, AMP_INTERNAL, bad_time, "internal: a time that cannot be written");
    return amp_buf_fmt(b, err, ",%s=\"%s\"", name, text);
}

static int signer_write(void *ctx, const struct amp_trust_entry *e, struct amp_error *err)
{
    struct signers *s = ctx;
    AMP_BUF struct amp_buf line = {0};
    const char *fp = e->key->fingerprint;
    /* A revoked entry counts up to then. */
    int64_t until = e->valid_before_s;
    if (e->revoked_ms && (until == 0 || e->revoked_ms / 1000 < until))
        until = e->revoked_ms / 1000;
    if (strcmp(fp, s->own) != 0 && !memmem(s->proofs.p, s->proofs.n, fp, strlen(fp)))
        return 0;
    amp_buf_init(&line, 65536);
    if (amp_buf_fmt(&line, err,
                    "%.*s namespaces=\"amp," AMP_BUNDLE_NAMESPACE "," AMP_LANDING_NAMESPACE "\"",
                    (int)e->principals.n, e->principals.p) < 0 ||
        time_option(&line, "valid-after", e->valid_after_s, err) < 0 ||
        time_option(&line, "valid-before", until, err) < 0 || amp_buf_str(&line, " ", err) < 0 ||
        amp_pubkey_write(e->key, "", &line, err) < 0)
        return -1;
    amp_jw_str(s->w, amp_buf_span(&line));
    return 0;
}

static void proof_write(struct amp_jw *w, const struct amp_proof *p)
{
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "task", p->task);
    amp_jw_member_text(w, "subtask", p->subtask);
    amp_jw_member_text(w, "commit", p->commit);
    amp_jw_member_text(w, "approved", p->approved);
    amp_jw_member_text(w, "tree", p->tree);
    amp_jw_member_text(w, "executor_key", p->executor);
    amp_jw_member_bool(w, "needs_decision", p->needs_decision);
    if (p->needs_votes > 1)
        amp_jw_member_int(w, "needs_votes", p->needs_votes);
    for (int i = 0; i < AMP_PROOF_COUNT; i++)
        if (p->line[i].len > 0)
            amp_jw_member_str(w, amp_proof_line_names[i], amp_buf_span(&p->line[i]));
    amp_jw_close(w, '}');
}

/* Writes the object that is signed. */
static int content_write(struct amp_identities *ids, const struct amp_proof *const *proofs,
                         uint32_t n, const char *time, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf list = {0};
    struct amp_jw w;
    amp_buf_init(&list, AMP_BUNDLE_MAX);
    amp_jw_init(&w, &list);
    amp_jw_open(&w, '[');
    for (uint32_t i = 0; i < n; i++)
        proof_write(&w, proofs[i]);
    amp_jw_close(&w, ']');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    amp_jw_init(&w, out);
    struct signers s = {.w = &w,
                        .proofs = amp_buf_span(&list),
                        .own = amp_signer_public(amp_identities_signer(ids))->fingerprint};
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "format", FORMAT);
    amp_jw_member_text(&w, "created", time);
    amp_jw_member_raw(&w, "proofs", amp_buf_span(&list));
    amp_jw_member_open(&w, "signers", '[');
    if (amp_trust_each(amp_identities_trust(ids), signer_write, &s, err) < 0)
        return -1;
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

int amp_bundle_write(struct amp_identities *ids, const struct amp_proof *const *proofs, uint32_t n,
                     int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf content = {0};
    char value[AMP_SSHSIG_BASE64_MAX], time[AMP_TIME_MAX];
    struct amp_signer *signer = amp_identities_signer(ids);
    struct amp_jw w;
    amp_buf_init(&content, AMP_BUNDLE_MAX);
    amp_time_format(now_ms, time);
    if (content_write(ids, proofs, n, time, &content, err) < 0 ||
        amp_signer_sign(signer, AMP_BUNDLE_NAMESPACE, amp_buf_span(&content), value, err) < 0)
        return -1;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_open(&w, "sig", '{');
    amp_jw_member_text(&w, "key", amp_signer_public(signer)->fingerprint);
    amp_jw_member_text(&w, "alg", amp_signer_alg(signer));
    amp_jw_member_text(&w, "time", time);
    amp_jw_member_text(&w, "value", value);
    amp_jw_close(&w, '}');
    amp_jw_member_raw(&w, "bundle", amp_buf_span(&content));
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

/* ---- reading ---- */

static int bundle_fail(struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_DATAERR, bad_bundle, "not a bundle: %s", what);
}

/* Reads the text of a member; a missing one is refused unless it is optional. */
static int text_read(const struct amp_tape *t, uint32_t object, const char *key, bool optional,
                     struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf arena = {0};
    struct amp_span text;
    char what[80];
    uint32_t tok = amp_tape_get(t, object, amp_span_str(key));
    if (tok == AMP_TOK_NONE && optional)
        return 0;
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING ||
        (t->tok[tok].flags & AMP_TOK_NUL)) {
        snprintf(what, sizeof what, "%s is not a text", key);
        return bundle_fail(err, what);
    }
    amp_buf_init(&arena, AMP_BUNDLE_MAX);
    return amp_tok_text(t, tok, &arena, &text, err) < 0 ? -1
                                                        : amp_buf_add(out, text.p, text.n, err);
}

static int chars_read(const struct amp_tape *t, uint32_t object, const char *key, char *out,
                      size_t size, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, size);
    if (text_read(t, object, key, false, &text, err) < 0)
        return amp_code_is(err->code, buffer_full) ? bundle_fail(err, "a text is too long") : -1;
    return amp_span_copy(amp_buf_span(&text), out, size) ? 0
                                                         : bundle_fail(err, "a text is too long");
}

static int proof_read(const struct amp_tape *t, uint32_t object, struct amp_proof *p,
                      struct amp_error *err)
{
    uint32_t needs = amp_tape_get(t, object, AMP_SPAN("needs_decision"));
    amp_proof_init(p);
    if (chars_read(t, object, "task", p->task, sizeof p->task, err) < 0 ||
        chars_read(t, object, "subtask", p->subtask, sizeof p->subtask, err) < 0 ||
        chars_read(t, object, "commit", p->commit, sizeof p->commit, err) < 0 ||
        chars_read(t, object, "approved", p->approved, sizeof p->approved, err) < 0 ||
        chars_read(t, object, "tree", p->tree, sizeof p->tree, err) < 0 ||
        chars_read(t, object, "executor_key", p->executor, sizeof p->executor, err) < 0)
        return -1;
    if (needs == AMP_TOK_NONE ||
        (t->tok[needs].type != AMP_JSON_TRUE && t->tok[needs].type != AMP_JSON_FALSE))
        return bundle_fail(err, "needs_decision is neither true nor false");
    p->needs_decision = t->tok[needs].type == AMP_JSON_TRUE;
    uint32_t votes = amp_tape_get(t, object, AMP_SPAN("needs_votes"));
    if (votes != AMP_TOK_NONE && (!amp_tok_int(t, votes, &p->needs_votes) || p->needs_votes < 2 ||
                                  p->needs_votes > AMP_APPROVALS_NEED_MAX))
        return bundle_fail(err, "needs_votes is not a number from 2 to 16");
    for (int i = 0; i < AMP_PROOF_COUNT; i++)
        if (text_read(t, object, amp_proof_line_names[i], i >= AMP_PROOF_decision, &p->line[i],
                      err) < 0)
            return -1;
    return 0;
}

static int content_read(const struct amp_tape *t, uint32_t content, struct amp_bundle *b,
                        struct amp_error *err)
{
    char format[32], created[sizeof b->time];
    uint32_t list = amp_tape_get(t, content, AMP_SPAN("proofs"));
    uint32_t keys = amp_tape_get(t, content, AMP_SPAN("signers"));
    if (chars_read(t, content, "format", format, sizeof format, err) < 0 ||
        chars_read(t, content, "created", created, sizeof created, err) < 0)
        return -1;
    if (strcmp(format, FORMAT) != 0)
        return bundle_fail(err, "an unknown format");
    if (strcmp(created, b->time) != 0)
        return bundle_fail(err, "the signature has another time than the bundle");
    if (list == AMP_TOK_NONE || t->tok[list].type != AMP_JSON_ARRAY || t->tok[list].count == 0 ||
        t->tok[list].count > AMP_BUNDLE_PROOFS || keys == AMP_TOK_NONE ||
        t->tok[keys].type != AMP_JSON_ARRAY)
        return bundle_fail(err, "it has no proofs, too many, or no signers");
    if (!(b->proofs = calloc(t->tok[list].count, sizeof *b->proofs)))
        return amp_fail_memory(err);
    for (uint32_t i = list + 1; i < t->tok[list].next; i = t->tok[i].next)
        if (proof_read(t, i, &b->proofs[b->n++], err) < 0)
            return -1;
    for (uint32_t i = keys + 1; i < t->tok[keys].next; i = t->tok[i].next) {
        AMP_BUF struct amp_buf arena = {0};
        struct amp_span text;
        amp_buf_init(&arena, 65536);
        if (t->tok[i].type != AMP_JSON_STRING)
            return bundle_fail(err, "a signer is not a text");
        if (amp_tok_text(t, i, &arena, &text, err) < 0)
            return -1;
        if (memchr(text.p, '\n', text.n))
            return bundle_fail(err, "a signer has several lines");
        if (amp_buf_add(&b->signers, text.p, text.n, err) < 0 ||
            amp_buf_str(&b->signers, "\n", err) < 0)
            return -1;
    }
    return 0;
}

int amp_bundle_read(struct amp_span text, struct amp_bundle *out, struct amp_error *err)
{
    static const struct amp_json_limits limits = {
        .max_bytes = AMP_BUNDLE_MAX, .max_depth = 16, .max_tokens = 100000};
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape t = {0};
    *out = (struct amp_bundle){0};
    amp_buf_init(&out->value, AMP_SSHSIG_BASE64_MAX);
    amp_buf_init(&out->signers, 1 << 20);
    amp_tape_init(&t, &limits);
    if (amp_tape_scan(&t, text.p, text.n, &fault) < 0)
        return amp_json_fail(err, AMP_DATAERR, AMP_CODE(bad_bundle), "not a bundle", &fault);
    if (t.tok[0].type != AMP_JSON_OBJECT)
        return bundle_fail(err, "not an object");
    uint32_t sig = amp_tape_get(&t, 0, AMP_SPAN("sig"));
    uint32_t content = amp_tape_get(&t, 0, AMP_SPAN("bundle"));
    if (sig == AMP_TOK_NONE || t.tok[sig].type != AMP_JSON_OBJECT || content == AMP_TOK_NONE ||
        t.tok[content].type != AMP_JSON_OBJECT)
        return bundle_fail(err, "sig or bundle is missing");
    out->signed_ = amp_tok_source(&t, content);
    return chars_read(&t, sig, "key", out->key, sizeof out->key, err) < 0 ||
                   chars_read(&t, sig, "alg", out->alg, sizeof out->alg, err) < 0 ||
                   chars_read(&t, sig, "time", out->time, sizeof out->time, err) < 0 ||
                   text_read(&t, sig, "value", false, &out->value, err) < 0
               ? -1
               : content_read(&t, content, out, err);
}

void amp_bundle_release(struct amp_bundle *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        amp_proof_release(&b->proofs[i]);
    free(b->proofs);
    amp_buf_release(&b->value);
    amp_buf_release(&b->signers);
}

/* ---- verifying ---- */

int amp_bundle_check(struct amp_identities *ids, const struct amp_bundle *b,
                     struct amp_proof_who *who, char why[AMP_PROOF_WHY], struct amp_error *err)
{
    struct amp_identity by;
    struct amp_error no;
    const struct amp_sig sig = {amp_span_str(b->key), amp_span_str(b->alg), amp_span_str(b->time),
                                amp_buf_span(&b->value)};
    if (amp_verifier_text(amp_identities_verifier(ids), AMP_BUNDLE_NAMESPACE, &sig, b->signed_,
                          AMP_SPAN(COORDINATOR), 0, &by, &no) < 0) {
        if (no.status != AMP_NO) {
            *err = no;
            return -1;
        }
        snprintf(why, AMP_PROOF_WHY, "the bundle: %s: %.300s", no.code, no.what);
        return 0;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        int rc = amp_proof_check(ids, &b->proofs[i], &who[i], why, err);
        if (rc <= 0)
            return rc;
    }
    return 1;
}
