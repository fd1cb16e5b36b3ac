/*
 * AOF/1 envelopes as text: bare JSON, or JSON behind the prefix. What only looks like JSON is left
 * alone unless AOF was asked for, so that other tools' texts pass in silence.
 */
#include "protocol/aof/text.h"

#include <stdio.h>
#include <string.h>

#include "protocol/spec.h"

#define PREFIX "AOF/1 "

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

void amp_aof_too_large(struct amp_json_fault *fault)
{
    fault->code = "payload_too_large";
    fault->offset = 0;
    snprintf(fault->what, sizeof fault->what, "the envelope has more than 10485760 bytes");
}

enum amp_aof_text amp_aof_text(struct amp_tape *t, struct amp_span text, bool pinned,
                               struct amp_span *json, struct amp_json_fault *fault)
{
    text = trim(text);
    size_t n = sizeof PREFIX - 1;
    bool prefixed = text.n >= n && memcmp(text.p, PREFIX, n) == 0;
    bool sure = prefixed || pinned;
    if (!prefixed && (text.n == 0 || !(text.p[0] == '{' || (pinned && text.p[0] == '['))))
        return AMP_AOF_NOT;
    *json = prefixed ? trim((struct amp_span){text.p + n, text.n - n}) : text;
    if (sure && text.n > AMP_AOF_BYTES_MAX) {
        amp_aof_too_large(fault);
        return AMP_AOF_BAD;
    }
    if (amp_tape_scan(t, json->p, json->n, fault) < 0)
        return sure ? AMP_AOF_BAD : AMP_AOF_NOT;
    if (!sure && !amp_spec_detects(&amp_spec_aof, t, 0))
        return AMP_AOF_NOT;
    if (text.n <= AMP_AOF_BYTES_MAX)
        return AMP_AOF_ENVELOPE;
    amp_aof_too_large(fault);
    return AMP_AOF_BAD;
}
