/* The audit trail as one HTML file. */
#include "audit.h"

#include <inttypes.h>
#include <string.h>

#include <amp/base/clock.h>

static const char head[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>Decisions of people</title>\n"
    "<style>\n"
    "body { font: 15px/1.4 sans-serif; margin: 2em; color: #1b1b1b; background: #fff }\n"
    "h1 { font-size: 1.5em; margin: 0 0 .3em }\n"
    "dl { display: grid; grid-template-columns: max-content 1fr; gap: .2em 1em }\n"
    "dt { font-weight: bold }\n"
    "dd { margin: 0; overflow-wrap: anywhere }\n"
    "table { border-collapse: collapse; width: 100%; margin-top: 1.5em }\n"
    "caption { text-align: left; font-weight: bold; padding-bottom: .5em }\n"
    "th, td { border: 1px solid #bbb; padding: .3em .5em; text-align: left;\n"
    "         vertical-align: top; overflow-wrap: break-word }\n"
    "th { background: #eee; white-space: nowrap }\n"
    "td.time, td.key { font-family: monospace; font-size: .85em }\n"
    "td.time { white-space: nowrap }\n"
    "td.text { min-width: 14em }\n"
    "td.key { word-break: break-all; min-width: 12em }\n"
    "div.wide { overflow-x: auto }\n"
    ".bad { color: #a00; font-weight: bold }\n"
    ".good { color: #060 }\n"
    "@media print { body { margin: 0 } }\n"
    "</style>\n"
    "</head>\n"
    "<body>\n"
    "<h1>Decisions of people</h1>\n";

static const struct {
    int member;
    const char *head, *class;
} columns[] = {
    {AUDIT_AT, "Time", "time"},       {AUDIT_WHAT, "What", ""},
    {AUDIT_QUESTION, "Question", ""}, {AUDIT_TASK, "Task", ""},
    {AUDIT_REASON, "Reason", ""},     {AUDIT_RISK, "Risk", ""},
    {AUDIT_PERSON, "Who", ""},        {AUDIT_BY, "Known by", ""},
    {AUDIT_KEY, "Key", "key"},        {AUDIT_CHANNEL, "Through", ""},
    {AUDIT_SHOWN, "Shown", "key"},    {AUDIT_DECISION, "Decision", ""},
    {AUDIT_WHY, "Why", ""},           {AUDIT_CHANGED, "Effect", "text"},
    {AUDIT_CODE, "Code", ""},
};

/* Control characters, also C1 and those that change the direction of text, are replaced. */
static bool is_control(const unsigned char *p, size_t left)
{
    if (p[0] < ' ' || p[0] == 0x7f)
        return true;
    if (left > 1 && p[0] == 0xc2 && p[1] < 0xa0)
        return true;
    return left > 2 && p[0] == 0xe2 &&
           ((p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae))) ||
            (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
}

static size_t utf8_length(unsigned char c)
{
    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* Texts of the log are UTF-8; five characters have a meaning in HTML. */
static int escape(struct amp_span text, struct amp_buf *out, struct amp_error *err)
{
    for (size_t i = 0; i < text.n;) {
        const unsigned char *p = (const unsigned char *)text.p + i;
        size_t n = utf8_length(*p);
        const char *as = *p == '&'                   ? "&amp;"
                         : *p == '<'                 ? "&lt;"
                         : *p == '>'                 ? "&gt;"
                         : *p == '"'                 ? "&quot;"
                         : *p == '\''                ? "&#39;"
                         : is_control(p, text.n - i) ? "\xef\xbf\xbd"
                                                     : NULL;
        if (n > text.n - i)
            n = text.n - i;
        if (as ? amp_buf_str(out, as, err) < 0 : amp_buf_add(out, p, n, err) < 0)
            return -1;
        i += n;
    }
    return 0;
}

static int pair(struct amp_buf *out, const char *name, const char *class, struct amp_span value,
                struct amp_error *err)
{
    return amp_buf_fmt(out, err, "<dt>%s</dt><dd class=\"%s\">", name, class) < 0 ||
                   escape(value, out, err) < 0
               ? -1
               : amp_buf_str(out, "</dd>\n", err);
}

static int summary(const struct audit_list *l, const struct audit_verdict *v, const char *state,
                   struct amp_buf *out, struct amp_error *err)
{
    char now[AMP_TIME_MAX], text[200];

    amp_time_format(amp_now_ms(), now);
    snprintf(text, sizeof text, "%zu", l->n);
    if (amp_buf_str(out, "<dl>\n", err) < 0 ||
        pair(out, "State directory", "", amp_span_str(state), err) < 0 ||
        pair(out, "Made at", "", amp_span_str(now), err) < 0 ||
        pair(out, "Entries", "", amp_span_str(text), err) < 0)
        return -1;
    if (v->ran) {
        snprintf(text, sizeof text, "%" PRIu64 " valid, %" PRIu64 " not valid, %" PRIu64 " missing",
                 v->valid, v->invalid, v->unsigned_);
        if (pair(out, "Log", v->intact ? "good" : "bad", amp_span_str(v->log), err) < 0 ||
            pair(out, "Signatures", v->invalid ? "bad" : "good", amp_span_str(text), err) < 0)
            return -1;
    } else if (pair(out, "Verified", "", AMP_SPAN("no (--verify)"), err) < 0) {
        return -1;
    }
    return amp_buf_str(out, "</dl>\n", err);
}

static int row(const struct audit_list *l, const struct audit_entry *e,
               const struct audit_verdict *v, struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_str(out, "<tr>", err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if (amp_buf_fmt(out, err, "<td class=\"%s\">", columns[i].class) < 0 ||
            escape(audit_member(l, e, columns[i].member), out, err) < 0 ||
            amp_buf_str(out, "</td>", err) < 0)
            return -1;
    struct amp_span sig = audit_member(l, e, AUDIT_SIGNATURE);
    if (v->ran && (amp_buf_fmt(out, err, "<td class=\"%s\">",
                               sig.n == 0 || amp_span_is(sig, "valid") ? "good" : "bad") < 0 ||
                   escape(sig, out, err) < 0 || amp_buf_str(out, "</td>", err) < 0))
        return -1;
    return amp_buf_str(out, "</tr>\n", err);
}

int audit_html(const struct audit_list *l, const struct audit_verdict *v, const char *state,
               struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_str(out, head, err) < 0 || summary(l, v, state, out, err) < 0 ||
        amp_buf_str(out,
                    "<div class=\"wide\">\n<table>\n<caption>Questions, answers, "
                    "suspensions, landings and cancelled tasks</caption>\n<thead><tr>",
                    err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if (amp_buf_fmt(out, err, "<th scope=\"col\">%s</th>", columns[i].head) < 0)
            return -1;
    if ((v->ran && amp_buf_str(out, "<th scope=\"col\">Signature</th>", err) < 0) ||
        amp_buf_str(out, "</tr></thead>\n<tbody>\n", err) < 0)
        return -1;
    for (size_t i = 0; i < l->n; i++)
        if (row(l, &l->v[i], v, out, err) < 0)
            return -1;
    return amp_buf_str(out, "</tbody>\n</table>\n</div>\n</body>\n</html>\n", err);
}
