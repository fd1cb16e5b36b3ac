/* Reads security events. */
#include "message/delivery/history/security.h"

#include <string.h>

#include "base/codes.h"

const char *const amp_security_kinds[] = {
#define X(name) #name,
    AMP_SECURITY_KINDS(X)
#undef X
        NULL,
};

/* A code that ends with "_" stands for all codes that begin with it. */
static const struct {
    const char *code;
    enum amp_security_kind kind;
} codes[] = {
    {AMP_CODE(bad_sender), AMP_SECURITY_sender},
    {AMP_CODE(role_mismatch), AMP_SECURITY_sender},
    {AMP_CODE(unproven_claim), AMP_SECURITY_sender},
    {AMP_CODE(permission_denied), AMP_SECURITY_person},
    {AMP_CODE(unsigned), AMP_SECURITY_signature},
    {AMP_CODE(bad_signature), AMP_SECURITY_signature},
    {AMP_CODE(bad_signature_time), AMP_SECURITY_signature},
    {AMP_CODE(unknown_key), AMP_SECURITY_key},
    {"key_", AMP_SECURITY_key},
    {"access_", AMP_SECURITY_access},
    {"token_", AMP_SECURITY_token},
    {"unsigned_network", AMP_SECURITY_network},
    {"egress_", AMP_SECURITY_network},
    {AMP_CODE(confinement_unavailable), AMP_SECURITY_confinement},
    {AMP_CODE(not_confined), AMP_SECURITY_confinement},
    {AMP_CODE(quarantine_refused), AMP_SECURITY_confinement},
    {AMP_CODE(quarantine_limit), AMP_SECURITY_confinement},
    {AMP_CODE(branch_violation), AMP_SECURITY_confinement},
    {AMP_CODE(path_reserved), AMP_SECURITY_confinement},
    {AMP_CODE(log_tampered), AMP_SECURITY_log},
    {AMP_CODE(log_damaged), AMP_SECURITY_log},
};

/* The kind of a code; AMP_SECURITY_COUNT: it is not of a security event. */
static enum amp_security_kind security_kind_of(struct amp_span code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct amp_span c = amp_span_str(codes[i].code);
        bool group = c.p[c.n - 1] == '_';
        if (code.n >= c.n && memcmp(code.p, c.p, c.n) == 0 && (group || code.n == c.n))
            return codes[i].kind;
    }
    return AMP_SECURITY_COUNT;
}

void amp_security_init(struct amp_security_reader *r)
{
    amp_tape_init(&r->tape, NULL);
    amp_buf_init(&r->mem, (size_t)64 << 20);
}

void amp_security_release(struct amp_security_reader *r)
{
    amp_tape_release(&r->tape);
    amp_buf_release(&r->mem);
}

/* 1: scanned; 0: it is not JSON. */
static int line_scan(struct amp_security_reader *r, struct amp_span line, struct amp_error *err)
{
    struct amp_json_fault fault;
    amp_buf_reset(&r->mem);
    if (amp_tape_scan(&r->tape, line.p, line.n, &fault) < 0)
        return amp_json_fault_is_memory(&fault) ? amp_fail_memory(err) : 0;
    return amp_buf_reserve(&r->mem, line.n, err) < 0 ? -1 : 1;
}

static int member_read(struct amp_security_reader *r, uint32_t object, const char *name,
                       struct amp_span *out, struct amp_error *err)
{
    uint32_t tok = amp_tape_get(&r->tape, object, amp_span_str(name));
    *out = (struct amp_span){"", 0};
    if (tok == AMP_TOK_NONE || r->tape.tok[tok].type != AMP_JSON_STRING)
        return 0;
    return amp_tok_text(&r->tape, tok, &r->mem, out, err);
}

int amp_security_record(struct amp_security_reader *r, struct amp_span line,
                        struct amp_security_event *out, struct amp_error *err)
{
    struct amp_security_event e = {.kind = AMP_SECURITY_COUNT};
    int rc = line_scan(r, line, err);
    if (rc <= 0)
        return rc;
    if (member_read(r, 0, "code", &e.code, err) < 0)
        return -1;
    e.kind = security_kind_of(e.code);
    if (e.kind == AMP_SECURITY_COUNT)
        return 0;
    if (member_read(r, 0, "time", &e.at, err) < 0 || member_read(r, 0, "tool", &e.tool, err) < 0 ||
        member_read(r, 0, "from", &e.from, err) < 0 || member_read(r, 0, "key", &e.key, err) < 0 ||
        member_read(r, 0, "protocol", &e.protocol, err) < 0 ||
        member_read(r, 0, "type", &e.type, err) < 0 || member_read(r, 0, "id", &e.id, err) < 0 ||
        member_read(r, 0, "message", &e.what, err) < 0)
        return -1;
    *out = e;
    return 1;
}

static bool frame_has(struct amp_span frame, const char *text)
{
    size_t n = frame.n < 200 ? frame.n : 200;
    return memmem(frame.p, n, text, strlen(text)) != NULL;
}

int amp_security_frame(struct amp_security_reader *r, struct amp_span frame,
                       struct amp_security_event *out, struct amp_error *err)
{
    struct amp_security_event e = {.kind = AMP_SECURITY_COUNT};
    struct amp_span key;
    /* Members near the start of a frame: the others are not parsed. */
    if (frame_has(frame, ",\"log\":\"repair\""))
        e.kind = AMP_SECURITY_log;
    else if (frame_has(frame, ",\"key\":\"override.") || frame_has(frame, ",\"key\":\"approval."))
        e.kind = AMP_SECURITY_override;
    else
        return 0;
    int rc = line_scan(r, frame, err);
    if (rc <= 0)
        return rc;
    if (member_read(r, 0, "at", &e.at, err) < 0 || member_read(r, 0, "actor", &e.tool, err) < 0)
        return -1;
    if (e.kind == AMP_SECURITY_log) {
        e.code = AMP_CODE_SPAN(log_repaired);
        rc = member_read(r, 0, "note", &e.what, err);
    } else {
        if (member_read(r, 0, "key", &key, err) < 0 || member_read(r, 0, "event", &e.what, err) < 0)
            return -1;
        const char *dot = memchr(key.p, '.', key.n);
        size_t kind = dot ? (size_t)(dot - key.p) : key.n;
        e.code = (struct amp_span){key.p, kind};
        e.id = dot ? (struct amp_span){dot + 1, key.n - kind - 1} : (struct amp_span){"", 0};
        uint32_t state = amp_tape_get(&r->tape, 0, AMP_SPAN("state"));
        if (state != AMP_TOK_NONE && r->tape.tok[state].type == AMP_JSON_OBJECT)
            rc = member_read(r, state, "by", &e.from, err);
    }
    if (rc < 0)
        return -1;
    *out = e;
    return 1;
}
