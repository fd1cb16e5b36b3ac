/* Signs and verifies the log's head. */
#include "message/delivery/sender/head.h"

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/identity/state.h"
#include "message/identity/verify.h"
#include "json/record.h"

/* A segment ends rarely, so the key is read each time. */
int amp_head_sign(const char *dir, struct amp_span text, struct amp_buf *sig, struct amp_error *err)
{
    __attribute__((cleanup(amp_auto_signer))) struct amp_signer *s = NULL;
    AMP_BUF struct amp_buf signed_ = {0};
    char value[AMP_SSHSIG_BASE64_MAX], time[AMP_TIME_MAX];
    struct amp_jw w;
    if (amp_state_signer(dir, AMP_HEAD_PRINCIPAL, &s, err) < 0)
        return -1;
    amp_time_format(amp_now_ms(), time);
    amp_buf_init(&signed_, 1024);
    if (amp_buf_fmt(&signed_, err, "%.*s%s\n", (int)text.n, text.p, time) < 0 ||
        amp_signer_sign(s, AMP_HEAD_NAMESPACE, amp_buf_span(&signed_), value, err) < 0)
        return -1;
    amp_jw_init(&w, sig);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "key", amp_signer_public(s)->fingerprint);
    amp_jw_member_text(&w, "alg", amp_signer_alg(s));
    amp_jw_member_text(&w, "time", time);
    amp_jw_member_text(&w, "value", value);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

/* Verifies a signature that amp_head_sign made: {"key","alg","time","value"}. ctx: a verifier. */
static int head_check(void *ctx, struct amp_span text, struct amp_span sig, struct amp_error *err)
{
    static const struct {
        const char *name;
        size_t at;
    } members[] = {{"key", offsetof(struct amp_sig, key)},
                   {"alg", offsetof(struct amp_sig, alg)},
                   {"time", offsetof(struct amp_sig, time)},
                   {"value", offsetof(struct amp_sig, value)}};
    AMP_TAPE struct amp_tape t = {0};
    AMP_BUF struct amp_buf mem = {0}, signed_ = {0};
    struct amp_sig s = {0};
    struct amp_identity who;
    amp_rec_tape(&t);
    if (amp_rec_scan(&t, sig, "a signature", err) < 0)
        return -1;
    amp_buf_init(&mem, sig.n + 1);
    if (amp_buf_reserve(&mem, sig.n, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        uint32_t tok = amp_tape_get(&t, 0, amp_span_str(members[i].name));
        struct amp_span *to = (struct amp_span *)((char *)&s + members[i].at);
        if (tok == AMP_TOK_NONE || t.tok[tok].type != AMP_JSON_STRING)
            return amp_fail(err, AMP_NO, bad_signature, "it has no %s", members[i].name);
        if (amp_tok_text(&t, tok, &mem, to, err) < 0)
            return -1;
    }
    amp_buf_init(&signed_, 1024);
    if (amp_buf_fmt(&signed_, err, "%.*s%.*s\n", (int)text.n, text.p, (int)s.time.n, s.time.p) < 0)
        return -1;
    /* A later rotation or revocation of the key does not matter: it is compared with that time. */
    return amp_verifier_text(ctx, AMP_HEAD_NAMESPACE, &s, amp_buf_span(&signed_),
                             AMP_SPAN(AMP_HEAD_PRINCIPAL), 0, &who, err);
}

int amp_head_verify(struct amp_store *s, struct amp_store_verify how, struct amp_store_verdict *out,
                    struct amp_error *err)
{
    AMP_CLEANUP(amp_auto_trust) struct amp_trust *trust = NULL;
    AMP_CLEANUP(amp_auto_verifier) struct amp_verifier *v = NULL;
    struct amp_verifier_options opt = {0};
    if (amp_state_trust(amp_store_dir(s), NULL, NULL, NULL, &trust, err) < 0)
        return -1;
    opt.trust = trust;
    if (amp_verifier_new(&opt, &v, err) < 0)
        return -1;
    how.check = head_check;
    how.ctx = v;
    return amp_store_verify(s, &how, out, err);
}
