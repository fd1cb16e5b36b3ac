/* The rejection record: one finding as a line of NDJSON. */
#include <amp/base/clock.h>
#include <amp/json/writer.h>
#include <amp/protocol/protocol.h>

static void member(struct amp_jw *w, const char *key, const char *text)
{
    amp_jw_key(w, key);
    amp_jw_str(w, amp_span_str(text));
}

void amp_finding_members(struct amp_jw *w, const struct amp_finding *f)
{
    member(w, "code", f->code);
    if (f->seed_code && f->seed_code[0])
        member(w, "seed_code", f->seed_code);
    member(w, "field", f->field);
    member(w, "pointer", f->pointer);
    member(w, "message", f->message);
    if (f->found[0])
        member(w, "found", f->found);
    if (f->expected[0])
        member(w, "expected", f->expected);
    member(w, "rule", f->rule);
    if (f->schema_at && f->schema_at[0])
        member(w, "schema_pointer", f->schema_at);
    member(w, "severity", f->severity == AMP_SEV_ERROR ? "error" : "warning");
}

int amp_finding_record(const struct amp_finding *f, const struct amp_line_place *at,
                       struct amp_buf *out, struct amp_error *err)
{
    char time[AMP_TIME_MAX];
    amp_time_format(at->now_ms, time);
    struct amp_jw w;
    size_t before = out->len;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    member(&w, "time", time);
    member(&w, "tool", at->tool);
    amp_jw_key(&w, "line");
    amp_jw_uint(&w, at->line);
    amp_jw_key(&w, "offset");
    amp_jw_uint(&w, at->offset + f->offset);
    member(&w, "protocol", amp_protocol_name(f->protocol));
    amp_jw_key(&w, "type");
    amp_jw_str(&w, f->type);
    amp_jw_key(&w, "id");
    amp_jw_str(&w, f->id);
    amp_finding_members(&w, f);
    if (f->output.n > 0) {
        amp_jw_key(&w, "output");
        amp_jw_raw(&w, f->output);
    }
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0 || amp_buf_str(out, "\n", err) < 0) {
        out->len = before;
        return -1;
    }
    return 0;
}
