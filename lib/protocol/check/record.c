/* The rejection record: one finding as a line of NDJSON. */
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>
#include <amp/protocol/protocol.h>

void amp_finding_members(struct amp_jw *w, const struct amp_finding *f)
{
    amp_jw_member_text(w, "code", f->code);
    if (f->seed_code && f->seed_code[0])
        amp_jw_member_text(w, "seed_code", f->seed_code);
    amp_jw_member_text(w, "field", f->field);
    amp_jw_member_text(w, "pointer", f->pointer);
    amp_jw_member_text(w, "message", f->message);
    if (f->found[0])
        amp_jw_member_text(w, "found", f->found);
    if (f->expected[0])
        amp_jw_member_text(w, "expected", f->expected);
    amp_jw_member_text(w, "rule", f->rule);
    if (f->schema_at && f->schema_at[0])
        amp_jw_member_text(w, "schema_pointer", f->schema_at);
    amp_jw_member_text(w, "severity", f->severity == AMP_SEV_ERROR ? "error" : "warning");
}

/* Texts of any length in a record of a known one. */
static void shortened(struct amp_jw *w, const char *key, struct amp_span s, size_t most)
{
    char head[AMP_RECORD_ID_MAX + 4];
    size_t n = most;
    if (s.n <= most) {
        amp_jw_member_str(w, key, s);
        return;
    }
    while (n > 0 && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--;
    memcpy(head, s.p, n);
    memcpy(head + n, "…", sizeof "…");
    amp_jw_member_text(w, key, head);
}

int amp_finding_record(const struct amp_finding *f, const struct amp_line_place *at,
                       struct amp_buf *out, struct amp_error *err)
{
    char time[AMP_TIME_MAX];
    amp_time_format(at->now_ms, time);
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "time", time);
    amp_jw_member_text(&w, "tool", at->tool);
    if (at->file)
        amp_jw_member_text(&w, "file", at->file);
    amp_jw_key(&w, "line");
    amp_jw_uint(&w, at->line);
    amp_jw_key(&w, "offset");
    amp_jw_uint(&w, at->offset + f->offset);
    amp_jw_member_text(&w, "protocol", amp_protocol_name(f->protocol));
    shortened(&w, "type", f->type, AMP_RECORD_TYPE_MAX);
    shortened(&w, "id", f->id, AMP_RECORD_ID_MAX);
    amp_finding_members(&w, f);
    if (f->output.n > 0) {
        amp_jw_key(&w, "output");
        amp_jw_raw(&w, f->output);
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}
