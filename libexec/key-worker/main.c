/*
 * key-worker: verifies signatures with libcrypto (ECDSA P-256) and ssh-keygen (other keys). Reads
 * requests
 *     {"q":N,"type":"ecdsa-sha2-nistp256","key":BASE64,"value":BASE64,"data":BASE64}
 *     {"q":N,"type":TYPE,"key":BASE64,"value":BASE64,"namespace":TEXT,"text":BASE64}
 * and writes exactly one reply for each, in order:
 *     {"q":N,"valid":true|false}    {"q":N,"error":"…"}
 * data is what an SSHSIG signs; text is the signed text.
 */
#include <sodium.h>
#include <unistd.h>

#include <amp/json/lines.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "cli/cli.h"
#include "worker.h"

enum { REQUEST_MAX = 64 << 20 };

struct key_request {
    int64_t q;
    struct amp_span value;
    struct amp_span namespace;
    struct amp_pubkey key;
    struct amp_buf blob, data;
    bool p256;
};

/* The raw bytes of a member that is a text without escapes. */
static bool member_text(const struct amp_tape *t, const char *name, struct amp_span *out)
{
    uint32_t at = amp_tape_get(t, 0, amp_span_str(name));
    if (at == AMP_TOK_NONE || t->tok[at].type != AMP_JSON_STRING ||
        (t->tok[at].flags & AMP_TOK_ESCAPED))
        return false;
    *out = amp_tok_raw(t, at);
    return true;
}

/* Decodes base64 into an empty buffer. 1: malformed. */
static int base64_decode(struct amp_span text, struct amp_buf *out, struct amp_error *err)
{
    size_t n;
    amp_buf_reset(out);
    if (amp_buf_reserve(out, text.n / 4 * 3 + 3, err) < 0)
        return -1;
    if (sodium_base642bin((unsigned char *)out->data, out->cap - 1, text.p, text.n, NULL, &n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0)
        return 1;
    out->len = n;
    return 0;
}

/* 0: read; 1: the value is not base64, so the signature is not valid; -1: error. */
static int request_read(const struct amp_tape *t, struct key_request *r, struct amp_error *err)
{
    struct amp_span type, key, data;
    uint32_t q = amp_tape_get(t, 0, AMP_SPAN("q"));
    if (q == AMP_TOK_NONE || !amp_tok_int(t, q, &r->q) || !member_text(t, "type", &type) ||
        !member_text(t, "key", &key) || !member_text(t, "value", &r->value))
        return amp_fail(err, AMP_DATAERR, bad_request, "the request is malformed");
    int rc = base64_decode(key, &r->blob, err);
    if (rc == 1)
        amp_fail(err, AMP_DATAERR, bad_request, "the key is not base64");
    if (rc != 0 || amp_pubkey_from_blob(amp_buf_span(&r->blob), &r->key, err) < 0)
        return -1;
    if (!amp_span_is(type, r->key.type))
        return amp_fail(err, AMP_DATAERR, bad_request, "the key has another type");
    r->p256 = r->key.kind == AMP_PUBKEY_ECDSA_P256;
    r->namespace = (struct amp_span){"", 0};
    if (!member_text(t, r->p256 ? "data" : "text", &data) ||
        (!r->p256 && !member_text(t, "namespace", &r->namespace)))
        return amp_fail(err, AMP_DATAERR, bad_request, "the request is malformed");
    rc = base64_decode(data, &r->data, err);
    if (rc == 1)
        amp_fail(err, AMP_DATAERR, bad_request, "the text is not base64");
    if (rc != 0)
        return -1;
    return base64_decode(r->value, &r->blob, err);
}

static int request_verify(const struct amp_tape *t, struct key_request *r, struct amp_error *err)
{
    int rc = request_read(t, r, err);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    struct amp_span data = amp_buf_span(&r->data);
    return r->p256 ? p256_verify(&r->key, amp_buf_span(&r->blob), data, err)
                   : keygen_verify(&r->key, r->namespace, r->value, data, err);
}

static int request_answer(struct amp_tape *t, struct key_request *r, struct amp_span line,
                          struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_error why;
    AMP_BUF struct amp_buf out = {0};
    struct amp_jw w;
    if (amp_tape_scan(t, line.p, line.n, &fault) < 0)
        return amp_json_fail(err, AMP_DATAERR, AMP_CODE(bad_request), "the request", &fault);
    r->q = 0;
    int valid = request_verify(t, r, &why);
    amp_buf_init(&out, 4096);
    amp_jw_init(&w, &out);
    amp_jw_open(&w, '{');
    amp_jw_member_int(&w, "q", r->q);
    if (valid < 0)
        amp_jw_member_text(&w, "error", why.what);
    else
        amp_jw_member_bool(&w, "valid", valid == 1);
    amp_jw_close(&w, '}');
    if (amp_jw_end_line(&w, err) < 0 || amp_out(amp_buf_span(&out), err) < 0)
        return -1;
    return amp_out_flush(err);
}

static int worker_run(struct amp_command *c, struct amp_error *err)
{
    struct amp_lines in;
    struct amp_tape tape;
    struct key_request r = {0};
    int rc = 0;
    (void)c;
    amp_lines_init(&in, REQUEST_MAX);
    amp_tape_init(&tape, &(struct amp_json_limits){REQUEST_MAX, 8, 1000});
    amp_buf_init(&r.blob, REQUEST_MAX);
    amp_buf_init(&r.data, REQUEST_MAX);
    for (bool more = true; more && rc == 0;) {
        struct amp_line line;
        switch (amp_lines_next(&in, &line)) {
        case AMP_LINE:
            rc = request_answer(&tape, &r, line.bytes, err);
            break;
        case AMP_LINE_MORE:
            rc = amp_lines_fill(&in, STDIN_FILENO, err) == AMP_READ_FAILED ? -1 : 0;
            break;
        case AMP_LINE_TOO_LONG:
            rc = amp_fail(err, AMP_DATAERR, line_too_long, "a request is longer than 64 MiB");
            break;
        case AMP_LINE_END:
            more = false;
            break;
        }
    }
    amp_buf_release(&r.blob);
    amp_buf_release(&r.data);
    amp_tape_release(&tape);
    amp_lines_release(&in);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct amp_verb verbs[] = {
        {NULL, "", "requests on stdin, replies on stdout", NULL, worker_run},
        {0},
    };
    static const struct amp_verb *const tables[] = {verbs, NULL};
    static const int statuses[] = {0, 64, 65, 69, 70, 74, 75, 0};
    static const struct amp_tool tool = {.name = "key-worker",
                                         .doc = "verify signatures for the other tools",
                                         .verbs = tables,
                                         .statuses = statuses};
    return amp_cli_main(&tool, argc, argv);
}
