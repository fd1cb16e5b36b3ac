/* A finding as a sentence, and as a rejection record: a line of NDJSON. */
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>
#include <amp/protocol/protocol.h>

/* The start of s that has at most `most` bytes and ends between two characters. */
static struct amp_span head_of(struct amp_span s, size_t most)
{
    size_t n = most;
    if (s.n <= most)
        return s;
    while (n > 0 && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--;
    return (struct amp_span){s.p, n};
}

/* Appends the first `most` bytes of a text. */
static int part_add(struct amp_buf *out, const char *before, const char *text, size_t most,
                    struct amp_error *err)
{
    struct amp_span all = amp_span_str(text), s = head_of(all, most);
    return amp_buf_fmt(out, err, "%s%.*s%s", before, (int)s.n, s.p, s.n < all.n ? "…" : "");
}

int amp_finding_sentence(const struct amp_finding *f, bool document, struct amp_buf *out,
                         struct amp_error *err)
{
    size_t n = strlen(f->message);
    bool json = strcmp(f->rule, "json") == 0;
    bool asks = n > 0 && f->message[n - 1] == '?';
    if (part_add(out, "", f->message, 800, err) < 0)
        return -1;
    if (json && !document)
        amp_buf_fmt(out, NULL, ", at byte %llu", (unsigned long long)f->offset + 1);
    if (f->found[0])
        part_add(out, json ? ": " : asks ? " found " : "; found ", f->found, 300, NULL);
    if (f->expected[0])
        part_add(out, "; expected ", f->expected, 600, NULL);
    return 0;
}

void amp_finding_members(struct amp_jw *w, const struct amp_finding *f)
{
    amp_jw_member_text(w, "code", f->code);
    amp_jw_some_str(w, "seed_code", amp_span_str(f->seed_code));
    amp_jw_member_text(w, "field", f->field);
    amp_jw_member_text(w, "pointer", f->pointer);
    amp_jw_member_text(w, "message", f->message);
    amp_jw_some_str(w, "found", amp_span_str(f->found));
    amp_jw_some_str(w, "expected", amp_span_str(f->expected));
    amp_jw_member_text(w, "rule", f->rule);
    amp_jw_some_str(w, "schema_pointer", amp_span_str(f->schema_at));
    amp_jw_member_text(w, "severity", f->severity == AMP_SEV_ERROR ? "error" : "warning");
}

/* Writes a member, shortened to `most` bytes (at most AMP_RECORD_ID_MAX). */
static void member_shortened(struct amp_jw *w, const char *key, struct amp_span s, size_t most)
{
    char head[AMP_RECORD_ID_MAX + 4];
    struct amp_span kept = head_of(s, most);
    if (kept.n == s.n) {
        amp_jw_member_str(w, key, s);
        return;
    }
    memcpy(head, kept.p, kept.n);
    memcpy(head + kept.n, "…", sizeof "…");
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
    amp_jw_member_uint(&w, "line", at->line);
    amp_jw_member_uint(&w, "offset", at->offset + f->offset);
    amp_jw_member_text(&w, "protocol", amp_protocol_name(f->protocol));
    member_shortened(&w, "type", f->type, AMP_RECORD_TYPE_MAX);
    member_shortened(&w, "id", f->id, AMP_RECORD_ID_MAX);
    if (f->from.n > 0)
        member_shortened(&w, "from", f->from, AMP_RECORD_TYPE_MAX);
    if (f->key.n > 0)
        member_shortened(&w, "key", f->key, AMP_RECORD_TYPE_MAX);
    amp_finding_members(&w, f);
    if (f->output.n > 0)
        amp_jw_member_raw(&w, "output", f->output);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}
