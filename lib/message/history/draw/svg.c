/* A small writer of SVG, and the style of all drawings: light, and dark where the reader asks. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "message/history/draw/private.h"
#include "json/text.h"

const char draw_style[] =
    ":root{color-scheme:light dark;--bg:#ffffff;--fg:#1d2733;--dim:#5d6b7a;--line:#d5dce4;"
    "--card:#f6f8fa;--c0:#2f6fde;--c1:#1a8754;--c2:#b3580a;--c3:#8a3fc7;--c4:#0b7d90;--c5:#a8325e;"
    "--bad:#c9302c;--good:#1a8754;--warn:#a86500}"
    "@media(prefers-color-scheme:dark){:root{--bg:#12171d;--fg:#dde4ec;--dim:#93a1b0;"
    "--line:#2c3743;--card:#1a2129;--c0:#6ba1ff;--c1:#4cc38a;--c2:#f0a35c;--c3:#c291f5;"
    "--c4:#4cc0d2;--c5:#ef7fa8;--bad:#ff7b72;--good:#4cc38a;--warn:#e3b341}}"
    "svg{font:13px system-ui,-apple-system,'Segoe UI',sans-serif}"
    "text{fill:var(--fg)}.d{fill:var(--dim);font-size:12px}.h{font-weight:600;font-size:14px}"
    ".b{fill:var(--bg)}.k{fill:var(--card);stroke:var(--line)}"
    ".g{stroke:var(--line);stroke-width:1}.l{stroke:var(--line);stroke-dasharray:3 4}"
    ".a0{stroke:var(--c0);stroke-width:1.6}.a1{stroke:var(--good);stroke-width:1.6;"
    "stroke-dasharray:5 3}.a2{stroke:var(--bad);stroke-width:1.6}"
    ".p0{fill:var(--c0)}.p1{fill:var(--good)}.p2{fill:var(--bad)}"
    ".n{fill:var(--card);stroke:var(--line)}"
    ".s0{fill:var(--c0)}.s1{fill:var(--c1)}.s2{fill:var(--c2)}.s3{fill:var(--c3)}"
    ".s4{fill:var(--c4)}.s5{fill:var(--c5)}.sx{fill:var(--bad)}"
    ".t0{stroke:var(--c0)}.t1{stroke:var(--c1)}.t2{stroke:var(--c2)}.t3{stroke:var(--c3)}"
    ".t4{stroke:var(--c4)}.t5{stroke:var(--c5)}.t{fill:none;stroke-width:1.8}";

int draw_escape(struct amp_span text, unsigned most, struct amp_buf *out, struct amp_error *err)
{
    const unsigned char *p = (const unsigned char *)text.p;
    unsigned n = 0;
    for (size_t i = 0; i < text.n; n++) {
        size_t len = amp_utf8_length(p + i, text.n - i);
        if (most && n == most)
            return amp_buf_str(out, "…", err);
        int rc;
        bool turns = len == 3 && p[i] == 0xe2 &&
                     ((p[i + 1] == 0x80 && p[i + 2] >= 0xaa && p[i + 2] <= 0xae) ||
                      (p[i + 1] == 0x81 && p[i + 2] >= 0xa6 && p[i + 2] <= 0xa9));
        if (len == 0 || p[i] < 0x20 || p[i] == 0x7f || turns ||
            (len == 2 && p[i] == 0xc2 && p[i + 1] < 0xa0) ||
            (len == 3 && p[i] == 0xef && p[i + 1] == 0xbf && p[i + 2] >= 0xbe))
            rc = amp_buf_str(out, "\xef\xbf\xbd", err);
        else if (strchr("&<>\"'", p[i]))
            rc = amp_buf_fmt(out, err, "&#%u;", p[i]);
        else
            rc = amp_buf_add(out, p + i, len, err);
        if (rc < 0)
            return -1;
        i += len ? len : 1;
    }
    return 0;
}

int draw_text(struct amp_buf *out, double x, double y, const char *class, const char *anchor,
              struct amp_span text, unsigned most, struct amp_error *err)
{
    if (amp_buf_fmt(out, err, "<text x=\"%.1f\" y=\"%.1f\"", x, y) < 0 ||
        (*class && amp_buf_fmt(out, err, " class=\"%s\"", class) < 0) ||
        (strcmp(anchor, "start") != 0 &&
         amp_buf_fmt(out, err, " text-anchor=\"%s\"", anchor) < 0) ||
        amp_buf_str(out, ">", err) < 0 || draw_escape(text, most, out, err) < 0)
        return -1;
    return amp_buf_str(out, "</text>", err);
}

int draw_line(struct amp_buf *out, double x1, double y1, double x2, double y2, const char *class,
              struct amp_error *err)
{
    return amp_buf_fmt(out, err,
                       "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>", x1,
                       y1, x2, y2, class);
}

int draw_rect(struct amp_buf *out, double x, double y, double w, double h, const char *class,
              struct amp_span hint, struct amp_error *err)
{
    if (amp_buf_fmt(out, err,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"3\" "
                    "class=\"%s\"",
                    x, y, w, h, class) < 0)
        return -1;
    if (!hint.n)
        return amp_buf_str(out, "/>", err);
    return amp_buf_str(out, "><title>", err) < 0 || draw_escape(hint, 200, out, err) < 0
               ? -1
               : amp_buf_str(out, "</title></rect>", err);
}

void draw_moment(int64_t ms, char out[32])
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    if (!localtime_r(&s, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm))
        snprintf(out, 32, "-");
}

void draw_clock(int64_t ms, int64_t span_ms, char out[32])
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    bool days = span_ms > (int64_t)2 * 86400000;
    if (!localtime_r(&s, &tm) ||
        !(days ? strftime(out, 32, "%d %b %H:%M", &tm) : strftime(out, 32, "%H:%M:%S", &tm)))
        snprintf(out, 32, "-");
    else if (span_ms < 60000)
        snprintf(out + strlen(out), 8, ".%0*d", span_ms < 5000 ? 3 : 1,
                 (int)(ms % 1000) / (span_ms < 5000 ? 1 : 100));
}

void draw_duration(double ms, char out[32])
{
    if (ms < 1000)
        snprintf(out, 32, "%.0f ms", ms);
    else if (ms < 120000)
        snprintf(out, 32, "%.1f s", ms / 1000);
    else if (ms < 7200000)
        snprintf(out, 32, "%.0f min", ms / 60000);
    else
        snprintf(out, 32, "%.1f h", ms / 3600000);
}

int draw_svg(struct amp_drawing *d, const enum draw_part *parts, size_t n, bool root,
             struct amp_span title, struct amp_buf *out, struct amp_error *err)
{
    static int (*const draw[DRAW_PARTS])(struct amp_drawing *, double, struct amp_buf *,
                                         struct draw_size *, struct amp_error *) = {
        draw_sequence, draw_gantt, draw_depth, draw_latency};
    AMP_BUF struct amp_buf body = {0};
    double y = root ? 40 : 4, width = 320;
    amp_buf_init(&body, (size_t)256 << 20);
    for (size_t i = 0; i < n; i++) {
        struct draw_size size = {0, 0};
        if (draw[parts[i]](d, y, &body, &size, err) < 0)
            return -1;
        if (size.width > width)
            width = size.width;
        y += size.height + (i + 1 < n ? 24 : 0);
    }
    if (amp_buf_fmt(out, err,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                    "width=\"%.0f\" height=\"%.0f\" role=\"img\">",
                    width, y + 8, width, y + 8) < 0)
        return -1;
    if (root && (amp_buf_fmt(out, err,
                             "<style>%s</style><rect width=\"100%%\" height=\"100%%\" "
                             "class=\"b\"/>",
                             draw_style) < 0 ||
                 draw_text(out, 16, 26, "h", "start", title, 100, err) < 0))
        return -1;
    if (amp_buf_add(out, body.data ? body.data : "", body.len, err) < 0)
        return -1;
    return amp_buf_str(out, "</svg>\n", err);
}

int amp_drawing_svg(struct amp_drawing *d, bool conversation, struct amp_span title,
                    struct amp_buf *out, struct amp_error *err)
{
    static const enum draw_part sequence[] = {DRAW_SEQUENCE},
                                charts[] = {DRAW_GANTT, DRAW_DEPTH, DRAW_LATENCY};
    return conversation ? draw_svg(d, sequence, 1, true, title, out, err)
                        : draw_svg(d, charts, 3, true, title, out, err);
}
