/* Writes and verifies signed answers. */
#include "people/answer/text/signed.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"

#define FORMAT      "amp-answer/1"
#define NONCE_BYTES 16
#define LINE_WIDTH  64

int amp_question_digest(const struct amp_question *q, char out[AMP_QUESTION_DIGEST_MAX],
                        struct amp_error *err)
{
    unsigned char sum[32];
    char *text = json_dumps(q->message, JSON_COMPACT | JSON_SORT_KEYS);

    if (!text)
        return amp_fail_memory(err);
    crypto_generichash(sum, sizeof sum, (const unsigned char *)text, strlen(text), NULL, 0);
    free(text);
    sodium_bin2hex(out, AMP_QUESTION_DIGEST_MAX, sum, sizeof sum);
    return 0;
}

static int text_signed(struct amp_span time, struct amp_span answer, struct amp_buf *out,
                       struct amp_error *err)
{
    amp_buf_init(out, AMP_ANSWER_TEXT_MAX);
    return amp_buf_fmt(out, err, "%.*s\n", (int)time.n, time.p) < 0 ||
                   amp_buf_add(out, answer.p, answer.n, err) < 0
               ? -1
               : 0;
}

static int answer_write(const struct amp_signed_answer *a, const char *time, struct amp_buf *out,
                        struct amp_error *err)
{
    unsigned char nonce[NONCE_BYTES];
    char hex[2 * NONCE_BYTES + 1], expires[AMP_TIME_MAX];
    struct amp_jw w;

    if (sodium_init() < 0)
        return amp_fail(err, AMP_INTERNAL, no_random, "libsodium does not start");
    randombytes_buf(nonce, sizeof nonce);
    sodium_bin2hex(hex, sizeof hex, nonce, sizeof nonce);
    amp_time_format(a->expires_ms, expires);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "format", FORMAT);
    amp_jw_member_text(&w, "time", time);
    amp_jw_member_text(&w, "question", a->question);
    amp_jw_member_text(&w, "digest", a->digest);
    amp_jw_member_text(&w, "action", a->action);
    amp_jw_some_str(&w, "note", amp_span_str(a->note));
    amp_jw_member_text(&w, "expires", expires);
    amp_jw_member_text(&w, "nonce", hex);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

/* Appends the block. */
static int block_write(struct amp_span json, struct amp_buf *out, struct amp_error *err)
{
    size_t size = sodium_base64_ENCODED_LEN(json.n, sodium_base64_VARIANT_ORIGINAL);
    AMP_FREE char *text = malloc(size);

    if (!text)
        return amp_fail_memory(err);
    sodium_bin2base64(text, size, (const unsigned char *)json.p, json.n,
                      sodium_base64_VARIANT_ORIGINAL);
    size_t before = out->len, n = strlen(text);
    int rc = amp_buf_str(out, AMP_ANSWER_BEGIN "\n", err);
    for (size_t at = 0; rc == 0 && at < n; at += LINE_WIDTH)
        rc = amp_buf_fmt(out, err, "%.*s\n", LINE_WIDTH, text + at);
    if (rc == 0)
        rc = amp_buf_str(out, AMP_ANSWER_END "\n", err);
    if (rc < 0)
        out->len = before;
    return rc;
}

int amp_signed_answer_write(struct amp_signer *s, const struct amp_signed_answer *a,
                            struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf answer = {0}, text = {0}, json = {0};
    char time[AMP_TIME_MAX], value[AMP_SSHSIG_BASE64_MAX];
    struct amp_jw w;

    amp_buf_init(&answer, AMP_ANSWER_TEXT_MAX / 2);
    amp_buf_init(&json, AMP_ANSWER_TEXT_MAX / 2);
    amp_time_format(a->now_ms, time);
    if (answer_write(a, time, &answer, err) < 0 ||
        text_signed(amp_span_str(time), amp_buf_span(&answer), &text, err) < 0 ||
        amp_signer_sign(s, AMP_ANSWER_NAMESPACE, amp_buf_span(&text), value, err) < 0)
        return -1;
    amp_jw_init(&w, &json);
    amp_jw_open(&w, '{');
    amp_jw_member_open(&w, "sig", '{');
    amp_jw_member_text(&w, "key", amp_signer_public(s)->fingerprint);
    amp_jw_member_text(&w, "alg", amp_signer_alg(s));
    amp_jw_member_text(&w, "time", time);
    amp_jw_member_text(&w, "value", value);
    amp_jw_close(&w, '}');
    amp_jw_member_raw(&w, "answer", amp_buf_span(&answer));
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err) < 0 ? -1 : block_write(amp_buf_span(&json), out, err);
}

/* ---- reading ---- */

static int answer_fail(struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_DATAERR, bad_answer, "the signed answer: %s", what);
}

/* Decodes the block of a text into out. 1: there is one. */
static int block_read(struct amp_span text, struct amp_buf *out, struct amp_error *err)
{
    static const char begin[] = AMP_ANSWER_BEGIN, end[] = AMP_ANSWER_END;
    const char *from = text.n ? memmem(text.p, text.n, begin, sizeof begin - 1) : NULL;
    size_t n = 0;

    if (!from)
        return 0;
    from += sizeof begin - 1;
    size_t left = (size_t)(text.p + text.n - from);
    const char *to = memmem(from, left, end, sizeof end - 1);
    if (!to)
        return answer_fail(err, "its last line is missing");
    if (amp_buf_reserve(out, (size_t)(to - from), err) < 0)
        return -1;
    if (sodium_base642bin((unsigned char *)out->data, (size_t)(to - from), from,
                          (size_t)(to - from), " \t\r\n", &n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        n == 0)
        return answer_fail(err, "not base64");
    out->len = n;
    return 1;
}

/* The string member of an object in a tape, raw; false: there is none, or it has escapes. */
static bool member_text(const struct amp_tape *t, uint32_t at, struct amp_span name,
                        struct amp_span *out)
{
    uint32_t tok = amp_tape_get(t, at, name);

    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING)
        return false;
    *out = amp_tok_raw(t, tok);
    return !memchr(out->p, '\\', out->n);
}

struct parts {
    struct amp_sig sig;
    struct amp_span answer;
};

/* 1: the JSON is a signed answer; 0: it is something else. */
static int parts_read(struct amp_tape *t, struct amp_span json, struct parts *out,
                      struct amp_error *err)
{
    struct amp_json_fault fault;

    if (amp_tape_scan(t, json.p, json.n, &fault) < 0)
        return amp_json_fail(err, AMP_DATAERR, AMP_CODE(bad_answer), "the answer", &fault);
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return 0;
    uint32_t sig = amp_tape_get(t, 0, AMP_SPAN("sig"));
    uint32_t answer = amp_tape_get(t, 0, AMP_SPAN("answer"));
    if (sig == AMP_TOK_NONE)
        return 0;
    if (answer == AMP_TOK_NONE || t->tok[sig].type != AMP_JSON_OBJECT ||
        t->tok[answer].type != AMP_JSON_OBJECT ||
        !member_text(t, sig, AMP_SPAN("key"), &out->sig.key) ||
        !member_text(t, sig, AMP_SPAN("alg"), &out->sig.alg) ||
        !member_text(t, sig, AMP_SPAN("time"), &out->sig.time) ||
        !member_text(t, sig, AMP_SPAN("value"), &out->sig.value))
        return answer_fail(err, "it needs sig {key, alg, time, value} and answer");
    out->answer = amp_tok_source(t, answer);
    return 1;
}

/* The members of a verified answer. */
static int answer_check(const json_t *a, struct amp_span signed_at, int64_t now_ms,
                        struct amp_error *err)
{
    static const char *const needed[] = {"time",   "question", "digest",
                                         "action", "expires",  "nonce"};
    int64_t expires;
    const char *format = json_string_value(json_object_get(a, "format"));

    if (!format || strcmp(format, FORMAT) != 0)
        return answer_fail(err, "its format is not " FORMAT);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!json_is_string(json_object_get(a, needed[i])))
            return amp_fail(err, AMP_DATAERR, bad_answer, "the signed answer: %s is missing",
                            needed[i]);
    if (!amp_span_is(signed_at, json_string_value(json_object_get(a, "time"))) ||
        !amp_time_parse(amp_span_str(json_string_value(json_object_get(a, "expires"))), &expires))
        return answer_fail(err, "a malformed time");
    if (expires <= now_ms)
        return amp_fail(err, AMP_NO, answer_expired, "the signed answer has expired");
    return 0;
}

int amp_signed_answer_read(struct amp_identities *ids, struct amp_span text, int64_t now_ms,
                           json_t **answer, struct amp_identity *by, struct amp_error *err)
{
    AMP_BUF struct amp_buf json = {0}, said = {0};
    AMP_TAPE struct amp_tape tape = {0};
    struct parts p;

    amp_buf_init(&json, AMP_ANSWER_TEXT_MAX);
    amp_buf_init(&said, 0);
    amp_tape_init(&tape, NULL);
    int rc = block_read(text, &json, err);
    if (rc < 0)
        return -1;
    while (!rc && text.n && memchr(" \t\r\n", text.p[0], 4))
        text = (struct amp_span){text.p + 1, text.n - 1};
    if (!rc && (text.n == 0 || text.p[0] != '{'))
        return 0;
    int found = parts_read(&tape, rc ? amp_buf_span(&json) : text, &p, err);
    if (found <= 0)
        return found < 0 ? -1 : rc ? answer_fail(err, "it has no signature") : 0;
    if (!ids)
        return amp_fail(err, AMP_NO, unsigned,
                        "identities are off, so a signed answer cannot be verified");
    if (text_signed(p.sig.time, p.answer, &said, err) < 0 || amp_identities_refresh(ids, err) < 0 ||
        amp_verifier_text(amp_identities_verifier(ids), AMP_ANSWER_NAMESPACE, &p.sig,
                          amp_buf_span(&said), AMP_SPAN(""), now_ms, by, err) < 0)
        return -1;
    json_t *a = amp_json_load(p.answer, err);
    if (!a)
        return -1;
    if (answer_check(a, p.sig.time, now_ms, err) < 0) {
        json_decref(a);
        return -1;
    }
    *answer = a;
    return 1;
}
