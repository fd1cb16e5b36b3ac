/* amp-sign token: makes and checks tokens that are bound to a key (identity/access/token.h). */
#include <amp/base/id.h>
#include <amp/json/lines.h>
#include <amp/json/writer.h>
#include <inttypes.h>
#include <string.h>

#include "message/identity/access/token.h"
#include "message/identity/verify.h"
#include "sign.h"

static const char *audience = "amp", *issuer, *nonce, *sub, *holder;
static int64_t ttl_ms = 900000;
static bool once;

static const struct amp_opt token_make_opts[] = {
    SIGNER_OPTS,
    {0, "issuer", AMP_OPT_STRING, &issuer, "PRINCIPAL",
     .doc = "the issuer in the token (default: that of --as)"},
    {0, "audience", AMP_OPT_STRING, &audience, "NAME", .doc = "whom the token is for"},
    {0, "ttl", AMP_OPT_DURATION, &ttl_ms, "TIME", .doc = "how long the token is valid", .min = 1000,
     .max = (int64_t)366 * 86400000},
    {0, "nonce", AMP_OPT_STRING, &nonce, "TEXT", .doc = "the challenge that the token answers"},
    {0, "once", AMP_OPT_FLAG, &once, NULL, .doc = "the token admits one message"},
    AMP_OPT_END,
};
static const struct amp_opt token_check_opts[] = {
    {0, "audience", AMP_OPT_STRING, &audience, "NAME", .doc = "whom the token is for"},
    {0, "subject", AMP_OPT_STRING, &sub, "NAME", .doc = "the sender that it must admit"},
    {0, "holder", AMP_OPT_STRING, &holder, "KEY", .doc = "the key that it must be bound to"},
    {0, "nonce", AMP_OPT_STRING, &nonce, "TEXT", .doc = "the challenge that the token answers"},
    AMP_OPT_SKEW(opt.skew_ms),
    AMP_OPT_END,
};

/* ---- make ---- */

static int make_check(struct amp_command *c, struct amp_error *err)
{
    if (!issuer && !opt.principal)
        amp_die_usage("--issuer is required without --as");
    return signer_check(c, err);
}

static int verb_token_make(struct amp_command *c, struct amp_error *err)
{
    __attribute__((cleanup(amp_auto_signer))) struct amp_signer *s = NULL;
    AMP_BUF struct amp_buf out = {0};
    struct amp_pubkey bound;
    char jti[AMP_UUID_MAX];
    int64_t now = amp_now_ms();
    if (key_named(c->argv[1], &bound, err) < 0 || signer_open(&s, err) < 0)
        return -1;
    amp_uuid4(jti);
    const struct amp_pop t = {.iss = amp_span_str(issuer ? issuer : opt.principal),
                              .sub = amp_span_str(c->argv[0]),
                              .aud = amp_span_str(audience),
                              .jti = amp_span_str(jti),
                              .nonce = amp_span_str(nonce),
                              .cnf = amp_span_str(bound.fingerprint),
                              .iat_ms = now,
                              .exp_ms = now + ttl_ms + 999, /* rounded up */
                              .once = once};
    amp_buf_init(&out, AMP_TOKEN_MAX + 1);
    if (amp_pop_make(s, &t, &out, err) < 0 || amp_buf_str(&out, "\n", err) < 0)
        return -1;
    return amp_out(amp_buf_span(&out), err);
}

/* ---- check ---- */

static int claims_print(const struct amp_pop *t, const struct amp_identity *who,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_jw w;
    amp_buf_init(&out, 16 * AMP_TOKEN_MAX);
    amp_jw_init(&w, &out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "iss", t->iss);
    amp_jw_member_str(&w, "sub", t->sub);
    amp_jw_member_str(&w, "aud", t->aud);
    amp_jw_member_str(&w, "jti", t->jti);
    amp_jw_some_str(&w, "nonce", t->nonce);
    amp_jw_member_str(&w, "cnf", t->cnf);
    amp_jw_member_str(&w, "key", t->key);
    amp_jw_member_str(&w, "alg", t->alg);
    amp_jw_member_int(&w, "iat", t->iat_ms / 1000);
    amp_jw_member_int(&w, "exp", t->exp_ms / 1000);
    if (t->once)
        amp_jw_member_bool(&w, "once", true);
    amp_jw_member_text(&w, "issuer", who->principal);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&out), err);
}

/* A token that is refused is reported; the next line is read. */
static int token_check(struct amp_verifier *v, const struct amp_pop_use *use,
                       const struct amp_line *line, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_pop t;
    struct amp_identity who;
    struct amp_error why;
    amp_buf_init(&mem, AMP_TOKEN_MAX);
    if (amp_pop_read(line->bytes, &mem, &t, &why) == 0 &&
        amp_pop_check(v, line->bytes, &t, use, &who, &why) == 0)
        return claims_print(&t, &who, err);
    if (why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    amp_warn("line %" PRIu64 ": %s: %s", line->number, why.code, why.what);
    amp_refused(why.code, 1);
    amp_status_note(AMP_NO);
    return 0;
}

static int tokens_check(struct amp_verifier *v, const struct amp_pop_use *use,
                        struct amp_error *err)
{
    struct amp_lines lines;
    struct amp_line line;
    int rc = 0;
    amp_lines_init(&lines, AMP_TOKEN_MAX);
    for (enum amp_line_result got;
         rc == 0 && (got = amp_lines_next(&lines, &line)) != AMP_LINE_END;) {
        if (got == AMP_LINE_MORE)
            rc = amp_lines_fill(&lines, 0, err) == AMP_READ_FAILED ? -1 : 0;
        else
            rc = token_check(v, use, &line, err);
    }
    amp_lines_release(&lines);
    return rc;
}

static int verb_token_check(struct amp_command *c, struct amp_error *err)
{
    __attribute__((cleanup(amp_auto_trust))) struct amp_trust *trust = NULL;
    __attribute__((cleanup(amp_auto_verifier))) struct amp_verifier *v = NULL;
    struct amp_pubkey bound = {0};
    (void)c;
    if (trust_open(&trust, err) < 0 || (holder && key_named(holder, &bound, err) < 0))
        return -1;
    const struct amp_verifier_options how = {.trust = trust, .stop = &amp_stop};
    const struct amp_pop_use use = {.aud = amp_span_str(audience),
                                    .sub = amp_span_str(sub),
                                    .key = amp_span_str(bound.fingerprint),
                                    .nonce = amp_span_str(nonce),
                                    .now_ms = amp_now_ms(),
                                    .skew_ms = opt.skew_ms};
    return amp_verifier_new(&how, &v, err) < 0 ? -1 : tokens_check(v, &use, err);
}

const struct amp_verb token_verbs[] = {
    {"token make", "SUBJECT KEY", "admit the holder of a key for a time", token_make_opts,
     verb_token_make, .least = 2, .most = 2,
     .usage = "exactly one SUBJECT and one KEY are required", .check = make_check,
     .who = AMP_WHO_WITH("--as")},
    {"token check", "", "check the tokens on stdin and print their claims", token_check_opts,
     verb_token_check},
    {0},
};
