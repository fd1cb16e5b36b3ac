/* One HTML page with the drawings and a table. It has no scripts and loads nothing; its policy
 * (CSP) forbids both, for the case that a text got through. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "message/history/draw/private.h"

enum { ROWS_MOST = 500 };

static const char style[] =
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}"
    "main{max-width:1080px;margin:0 auto;padding:28px 20px 60px}h1{font-size:22px;margin:0 0 2px;"
    "overflow-wrap:anywhere}h2{font-size:16px;margin:34px 0 10px}.sub{color:var(--dim);margin:0}"
    ".tiles{display:flex;flex-wrap:wrap;gap:12px;margin:20px 0 8px}.tile{background:var(--card);"
    "border:1px solid var(--line);border-radius:10px;padding:10px 16px;min-width:120px}"
    ".tile b{display:block;font-size:22px;font-weight:650}.tile span{color:var(--dim);"
    "font-size:13px}.fig{overflow-x:auto;background:var(--card);border:1px solid var(--line);"
    "border-radius:10px;padding:12px}.fig svg{display:block}.fig .k,.fig .n{fill:var(--bg)}"
    ".wide svg{width:100%;min-width:720px;height:auto}"
    "table{border-collapse:collapse;width:100%;font-size:13px}th{text-align:left;"
    "color:var(--dim);font-weight:600}th,td{padding:4px 10px 4px 0;border-bottom:1px solid "
    "var(--line);vertical-align:top;white-space:nowrap}td:last-child{white-space:normal;min-width:"
    "220px;"
    "overflow-wrap:anywhere}td:first-child{"
    "font-variant-numeric:tabular-nums}.bad{color:var(--bad)}.good{color:var(--good)}"
    ".warn{color:var(--warn)}";

static int tile_write(const char *name, uint64_t n, struct amp_buf *out, struct amp_error *err)
{
    return amp_buf_fmt(out, err, "<div class=\"tile\"><b>%" PRIu64 "</b><span>%s</span></div>", n,
                       name);
}

static int tiles_write(struct amp_drawing *d, struct amp_buf *out, struct amp_error *err)
{
    uint64_t done = 0, failed = 0, dead = 0;
    for (size_t i = 0; i < d->n_delivery; i++) {
        done += amp_span_is(d->delivery[i].state, "FULFILLED") ||
                amp_span_is(d->delivery[i].state, "READ");
        failed += draw_failed(&d->delivery[i]);
    }
    for (size_t i = 0; i < d->n; i++)
        dead += amp_span_is(d->row[i].kind, "dead") && !d->row[i].from.n;
    return amp_buf_str(out, "<div class=\"tiles\">", err) < 0 ||
                   tile_write("messages", d->n_delivery, out, err) < 0 ||
                   tile_write("read or done", done, out, err) < 0 ||
                   tile_write("failed or late", failed, out, err) < 0 ||
                   tile_write("dead letters", dead, out, err) < 0 ||
                   tile_write("entries", d->n + d->left_out, out, err) < 0
               ? -1
               : amp_buf_str(out, "</div>", err);
}

static int figure_write(struct amp_drawing *d, const char *title, enum draw_part part,
                        struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_fmt(out, err, "<h2>%s</h2><div class=\"fig%s\">", title,
                    part == DRAW_SEQUENCE ? "" : " wide") < 0 ||
        draw_svg(d, &part, 1, false, (struct amp_span){"", 0}, out, err) < 0)
        return -1;
    return amp_buf_str(out, "</div>", err);
}

static int cell_write(struct amp_span text, const char *class, struct amp_buf *out,
                      struct amp_error *err)
{
    return amp_buf_fmt(out, err, *class ? "<td class=\"%s\">" : "<td>", class) < 0 ||
                   draw_escape(text, 120, out, err) < 0
               ? -1
               : amp_buf_str(out, "</td>", err);
}

static bool is_bookkeeping(const struct draw_row *r)
{
    return r->what == AMP_HISTORY_LEFT || amp_span_is(r->kind, "route") ||
           amp_span_is(r->kind, "log") ||
           (r->what == AMP_HISTORY_STEP && amp_span_eq(r->from, r->to));
}

static int row_write(const struct draw_row *r, struct amp_buf *out, struct amp_error *err)
{
    char at[32];
    AMP_BUF struct amp_buf change = {0};
    amp_buf_init(&change, 4096);
    draw_moment(r->at_ms, at);
    const char *look = amp_span_is(r->to, "FAILED") || amp_span_is(r->to, "REJECTED") ||
                               amp_span_is(r->kind, "dead") || amp_span_is(r->kind, "refused")
                           ? "bad"
                       : amp_span_is(r->to, "TIMED_OUT") || amp_span_is(r->kind, "escalation")
                           ? "warn"
                       : amp_span_is(r->to, "FULFILLED") || amp_span_is(r->to, "APPROVED") ? "good"
                                                                                           : "";
    if ((r->from.n && (amp_buf_add(&change, r->from.p, r->from.n, err) < 0 ||
                       amp_buf_str(&change, " → ", err) < 0)) ||
        amp_buf_add(&change, r->to.p, r->to.n, err) < 0)
        return -1;
    return amp_buf_str(out, "<tr>", err) < 0 || cell_write(amp_span_str(at), "", out, err) < 0 ||
                   cell_write(r->actor, "", out, err) < 0 ||
                   cell_write(r->kind, "", out, err) < 0 ||
                   cell_write(r->event, "", out, err) < 0 ||
                   cell_write(amp_buf_span(&change), look, out, err) < 0 ||
                   cell_write(r->type.n ? r->type : r->code, "", out, err) < 0 ||
                   cell_write(r->task, "", out, err) < 0 || cell_write(r->id, "", out, err) < 0
               ? -1
               : amp_buf_str(out, "</tr>\n", err);
}

static int table_write(const struct amp_drawing *d, struct amp_buf *out, struct amp_error *err)
{
    size_t shown = 0, all = 0;
    for (size_t i = 0; i < d->n; i++)
        all += !is_bookkeeping(&d->row[i]);
    if (amp_buf_fmt(out, err,
                    "<h2>Entries</h2>%s%s<div class=\"fig\"><table><thead><tr><th>time</th>"
                    "<th>actor</th><th>kind</th><th>event</th><th>state</th><th>type</th>"
                    "<th>task</th><th>id</th></tr></thead><tbody>\n",
                    all > ROWS_MOST ? "<p class=\"sub\">The first 500 entries.</p>" : "",
                    d->left_out ? "<p class=\"sub\">Later entries are left out (--limit).</p>"
                                : "") < 0)
        return -1;
    for (size_t i = 0; i < d->n && shown < ROWS_MOST; i++) {
        if (is_bookkeeping(&d->row[i]))
            continue;
        shown++;
        if (row_write(&d->row[i], out, err) < 0)
            return -1;
    }
    return amp_buf_str(out, "</tbody></table></div>", err);
}

int amp_drawing_html(struct amp_drawing *d, bool conversation, struct amp_span title,
                     struct amp_buf *out, struct amp_error *err)
{
    char from[32] = "", to[32] = "";
    if (draw_deliveries(d, err) < 0)
        return -1;
    if (d->n) {
        draw_moment(d->first_ms, from);
        draw_moment(d->last_ms, to);
    }
    if (amp_buf_str(out,
                    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                    "<title>",
                    err) < 0 ||
        draw_escape(title, 100, out, err) < 0 ||
        amp_buf_fmt(out, err, "</title><style>%s%s</style></head><body><main><h1>", draw_style,
                    style) < 0 ||
        draw_escape(title, 200, out, err) < 0 ||
        amp_buf_fmt(out, err, "</h1><p class=\"sub\">%s%s%s</p>", d->n ? from : "no entries",
                    d->n ? " – " : "", to) < 0 ||
        tiles_write(d, out, err) < 0)
        return -1;
    if (conversation && figure_write(d, "Sequence", DRAW_SEQUENCE, out, err) < 0)
        return -1;
    return figure_write(d, "Agents", DRAW_GANTT, out, err) < 0 ||
                   figure_write(d, "Lanes", DRAW_DEPTH, out, err) < 0 ||
                   figure_write(d, "Latency", DRAW_LATENCY, out, err) < 0 ||
                   table_write(d, out, err) < 0
               ? -1
               : amp_buf_str(out, "</main></body></html>\n", err);
}
