/*
 * AOF/1 envelopes as text: bare JSON, or JSON behind the prefix. What only looks like JSON is left
 * alone unless AOF was asked for, so that other tools' texts pass in silence.
 */
#include "protocol/aof/text.h"

#include <stdio.h>
#include <string.h>

/* The most bytes of an envelope, prefix included. */
#define BYTES_MOST ((size_t)10 * 1024 * 1024)

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct amp_span trim(struct amp_span s)
{
    while (s.n > 0 && blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

bool amp_aof_too_large(struct amp_span text, struct amp_json_fault *fault)
{
    if (text.n <= BYTES_MOST)
        return false;
    fault->code = "payload_too_large";
    fault->offset = 0;
    snprintf(fault->what, sizeof fault->what, "the envelope has more than %zu bytes", BYTES_MOST);
    return true;
}

enum amp_detected amp_aof_detect(const struct amp_tape *t, uint32_t object)
{
    uint32_t tok = amp_tape_get(t, object, AMP_SPAN("protocol"));
    if (tok == AMP_TOK_NONE)
        return AMP_DETECT_NEVER;
    return amp_tok_is(t, tok, AMP_SPAN("aof")) ? AMP_DETECT_YES : AMP_DETECT_NO;
}

enum amp_text_is amp_aof_unwrap(struct amp_tape *t, struct amp_span text, bool pinned,
                                struct amp_span *json, struct amp_json_fault *fault)
{
    text = trim(text);
    size_t n = sizeof AMP_AOF_PREFIX - 1;
    bool prefixed = text.n >= n && memcmp(text.p, AMP_AOF_PREFIX, n) == 0;
    bool sure = prefixed || pinned;
    if (!prefixed && (text.n == 0 || !(text.p[0] == '{' || (pinned && text.p[0] == '['))))
        return AMP_TEXT_OTHER;
    *json = prefixed ? trim((struct amp_span){text.p + n, text.n - n}) : text;
    if (sure && amp_aof_too_large(text, fault))
        return AMP_TEXT_BAD;
    if (amp_tape_scan(t, json->p, json->n, fault) < 0)
        return sure ? AMP_TEXT_BAD : AMP_TEXT_OTHER;
    if (!sure && amp_aof_detect(t, 0) < AMP_DETECT_YES)
        return AMP_TEXT_OTHER;
    return amp_aof_too_large(text, fault) ? AMP_TEXT_BAD : AMP_TEXT_ENVELOPE;
}
