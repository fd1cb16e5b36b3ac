/* Which operation a message is an attempt at. */
#include "message/record/operation_key.h"

#include <string.h>

#include <amp/base/id.h>

#define KEY_MAX 700 /* a longer name of an operation is replaced by its digest */

/* The Runtime Protocol's events have no token. The same event sent again is told by its kind, its
 * conversation and the payload's bytes; outside of a conversation by its id. */
static int rtp_key_write(const struct amp_view *v, struct amp_buf *out, struct amp_error *err)
{
    char sum[AMP_SHA256_MAX];
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, v->line.n + v->from.n + v->id.n + 64);
    if ((v->kind != AMP_KIND_DISPATCH && !amp_span_is(v->type, "message")) || v->from.n == 0)
        return 0;
    bool talk = v->correlation.n > 0 && v->payload != AMP_TOK_NONE;
    const struct amp_span parts[] = {v->from, v->type, talk ? v->correlation : v->id,
                                     talk ? amp_tok_source(v->tape, v->payload)
                                          : (struct amp_span){"", 0}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (amp_buf_fmt(&text, err, "%zu\n", parts[i].n) < 0 ||
            (parts[i].n > 0 && amp_buf_add(&text, parts[i].p, parts[i].n, err) < 0))
            return -1;
    amp_sha256_hex(amp_buf_span(&text), sum);
    return amp_buf_fmt(out, err, "rtp\nsha256:%s", sum);
}

int amp_operation_key(const struct amp_view *v, struct amp_buf *out, struct amp_error *err)
{
    if (v->protocol == AMP_PROTO_RTP)
        return rtp_key_write(v, out, err);
    if (v->protocol != AMP_PROTO_SW4RM || v->from.n == 0 || amp_span_is(v->type, "ACKNOWLEDGEMENT"))
        return 0;
    bool has_token = v->token.n > 0;
    if (!has_token && !v->has_sequence)
        return 0;
    AMP_BUF struct amp_buf name = {0};
    amp_buf_init(&name, v->from.n + v->token.n + 64);
    /* A token does not begin with the LF that stands before a number. */
    if (amp_buf_add(&name, v->from.p, v->from.n, err) < 0 ||
        (has_token ? amp_buf_fmt(&name, err, "\n%.*s", (int)v->token.n, v->token.p)
                   : amp_buf_fmt(&name, err, "\n\n%lld", (long long)v->sequence)) < 0)
        return -1;
    bool plain = !memchr(v->from.p, '\n', v->from.n) &&
                 !(has_token && memchr(v->token.p, '\n', v->token.n)) &&
                 !memchr(v->from.p, '\0', v->from.n) &&
                 !(has_token && memchr(v->token.p, '\0', v->token.n));
    if (plain && name.len <= KEY_MAX)
        return amp_buf_add(out, name.data, name.len, err);
    /* Where a part has an LF the name alone could be read in two ways: its lengths go in too. */
    char sum[AMP_SHA256_MAX];
    if (amp_buf_fmt(&name, err, "\n%zu", v->from.n) < 0)
        return -1;
    amp_sha256_hex(amp_buf_span(&name), sum);
    return amp_buf_fmt(out, err, "sha256:%s", sum);
}
