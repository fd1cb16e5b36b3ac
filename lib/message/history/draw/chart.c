/* Charts over time: the agents' work, the open messages, the time until an acknowledgement. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/history/draw/private.h"

enum { LEFT = 170, WIDE = 780, PAD = 24, ROW = 26, PLOT = 170, AGENTS_MOST = 40, LINES_MOST = 6 };

static double time_x(const struct amp_drawing *d, int64_t ms)
{
    double span = (double)(d->last_ms - d->first_ms);
    return LEFT + (span > 0 ? (double)(ms - d->first_ms) / span : 0.5) * WIDE;
}

/* The title and the axis of times. */
static int frame_draw(const struct amp_drawing *d, const char *title, double y, double height,
                      struct amp_buf *out, struct amp_error *err)
{
    if (draw_text(out, 16, y + 16, "h", "start", amp_span_str(title), 0, err) < 0)
        return -1;
    for (int i = 0; i <= 5; i++) {
        char text[32];
        double x = LEFT + i * WIDE / 5.0;
        draw_clock(d->first_ms + (d->last_ms - d->first_ms) * i / 5, d->last_ms - d->first_ms,
                   text);
        if (draw_line(out, x, y + 28, x, y + 28 + height, "g", err) < 0 ||
            draw_text(out, x, y + height + 46, "d", "middle", amp_span_str(text), 0, err) < 0)
            return -1;
    }
    return 0;
}

static int bar_draw(const struct amp_drawing *d, double y, int64_t from, int64_t to,
                    const char *class, struct amp_span a, struct amp_span b, struct amp_buf *out,
                    struct amp_error *err)
{
    char text[32];
    AMP_BUF struct amp_buf hint = {0};
    double x = time_x(d, from), w = time_x(d, to) - x;
    amp_buf_init(&hint, 4096);
    draw_duration((double)(to - from), text);
    if (amp_buf_add(&hint, a.p, a.n, err) < 0 || amp_buf_fmt(&hint, err, " ") < 0 ||
        amp_buf_add(&hint, b.p, b.n, err) < 0 || amp_buf_fmt(&hint, err, ", %s", text) < 0)
        return -1;
    return draw_rect(out, x, y, w < 2 ? 2 : w, ROW - 8, class, amp_buf_span(&hint), err);
}

struct gantt {
    struct draw_names agents, tasks;
    struct amp_buf bars;
    double y;
};

static int work_draw(struct amp_drawing *d, struct gantt *g, struct amp_span who, int64_t from,
                     int64_t to, struct amp_span task, struct amp_span type, bool failed,
                     struct amp_error *err)
{
    size_t agent, number;
    if (draw_name(&g->agents, who, &agent, err) < 0 || draw_name(&g->tasks, task, &number, err) < 0)
        return -1;
    const char look[] = {'s', failed ? 'x' : (char)('0' + number % LINES_MOST), '\0'};
    return bar_draw(d, g->y + 32 + (double)agent * ROW, from, to, look, type, task, &g->bars, err);
}

static bool is_running(const struct draw_row *r)
{
    return r->to.n >= 7 && memmem(r->to.p, r->to.n, "RUNNING", 7);
}

/* The time that an agent's record says it worked; a bar for each task. */
static int agents_draw(struct amp_drawing *d, struct gantt *g, struct amp_error *err)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct draw_row *r = &d->row[i], *end = NULL;
        if (r->what != AMP_HISTORY_STEP || !amp_span_is(r->kind, "agent") || !is_running(r) ||
            (r->from.n && amp_span_eq(r->from, r->to)))
            continue;
        for (size_t k = i + 1; k < d->n && !end; k++)
            if (d->row[k].what == AMP_HISTORY_STEP && amp_span_is(d->row[k].kind, "agent") &&
                amp_span_eq(d->row[k].id, r->id) && !is_running(&d->row[k]))
                end = &d->row[k];
        if (work_draw(d, g, r->id, r->at_ms, end ? end->at_ms : d->last_ms, r->task,
                      AMP_SPAN("works on"), end && memmem(end->to.p, end->to.n, "FAILED", 6),
                      err) < 0)
            return -1;
    }
    return 0;
}

static bool has_bars(const struct draw_names *agents, size_t n, struct amp_span who)
{
    for (size_t i = 0; i < n; i++)
        if (amp_span_eq(agents->v[i], who))
            return true;
    return false;
}

/* For other recipients: from a message's being read to its end. */
static int messages_draw(struct amp_drawing *d, struct gantt *g, struct amp_error *err)
{
    size_t n = g->agents.n;
    for (size_t i = 0; i < d->n_delivery; i++) {
        const struct draw_delivery *m = &d->delivery[i];
        int64_t from = m->read_ms ? m->read_ms : m->sent_ms;
        if (!m->recipient.n || has_bars(&g->agents, n, m->recipient))
            continue;
        if (work_draw(d, g, m->recipient, from, m->end_ms ? m->end_ms : from,
                      m->task.n ? m->task : m->correlation, m->type, draw_failed(m), err) < 0)
            return -1;
    }
    return 0;
}

int draw_gantt(struct amp_drawing *d, double y, struct amp_buf *out, struct draw_size *size,
               struct amp_error *err)
{
    struct gantt g = {.agents.most = AGENTS_MOST, .y = y};
    amp_buf_init(&g.bars, (size_t)64 << 20);
    int rc = draw_deliveries(d, err);
    if (rc == 0)
        rc = agents_draw(d, &g, err);
    if (rc == 0)
        rc = messages_draw(d, &g, err);
    double height = (g.agents.n ? (double)g.agents.n : 1) * ROW + 4;
    if (rc == 0)
        rc = frame_draw(d, "Work of the agents, by task", y, height, out, err);
    for (size_t i = 0; rc == 0 && i < g.agents.n; i++)
        rc = draw_text(out, LEFT - 10, y + 46 + (double)i * ROW, "", "end", g.agents.v[i], 22, err);
    if (rc == 0)
        rc = amp_buf_add(out, g.bars.data ? g.bars.data : "", g.bars.len, err);
    if (rc == 0 && !g.agents.n)
        rc = draw_text(out, LEFT + 10, y + 46, "d", "start", AMP_SPAN("nothing to draw"), 0, err);
    *size = (struct draw_size){LEFT + WIDE + PAD + 20, height + 56};
    free(g.agents.v);
    free(g.tasks.v);
    amp_buf_release(&g.bars);
    return rc;
}

/* ---- open messages ---- */

struct change {
    int64_t at_ms;
    size_t who;
    int by;
};

static int change_order(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

static int lines_draw(const struct amp_drawing *d, const struct change *v, size_t n, size_t who,
                      double top, long most, struct amp_buf *out, struct amp_error *err)
{
    long now = 0;
    double last = -1;
    if (amp_buf_fmt(out, err, "<path class=\"t t%zu\" d=\"M%d %.1f", who, LEFT, top + PLOT) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (v[i].who != who)
            continue;
        now += v[i].by;
        double x = time_x(d, v[i].at_ms), h = top + PLOT - (double)now / (double)most * PLOT;
        /* Steps that are narrower than a pixel are not visible. */
        if (amp_buf_fmt(out, err, x - last < 0.3 ? "V%.1f" : "H%.1fV%.1f", x - last < 0.3 ? h : x,
                        h) < 0)
            return -1;
        last = x;
    }
    return amp_buf_fmt(out, err, "H%d\"/>", LEFT + WIDE);
}

static int scale_draw(double top, double most, bool time, struct amp_buf *out,
                      struct amp_error *err)
{
    for (int i = 0; i <= 2; i++) {
        char text[32];
        double y = top + PLOT - i * PLOT / 2.0;
        if (time)
            draw_duration(most * i / 2, text);
        else
            snprintf(text, sizeof text, "%.4g", most * i / 2);
        if (draw_line(out, LEFT, y, LEFT + WIDE, y, "g", err) < 0 ||
            draw_text(out, LEFT - 10, y + 4, "d", "end", amp_span_str(text), 0, err) < 0)
            return -1;
    }
    return 0;
}

static int legend_draw(const struct draw_names *names, double y, struct amp_buf *out,
                       struct amp_error *err)
{
    for (size_t i = 0; i < names->n; i++) {
        const char look[] = {'s', (char)('0' + i), '\0'};
        double x = LEFT + (double)i * 130;
        if (draw_rect(out, x, y - 9, 10, 10, look, (struct amp_span){"", 0}, err) < 0 ||
            draw_text(out, x + 16, y, "d", "start", names->v[i], 15, err) < 0)
            return -1;
    }
    return 0;
}

int draw_depth(struct amp_drawing *d, double y, struct amp_buf *out, struct draw_size *size,
               struct amp_error *err)
{
    struct draw_names lanes = {.most = LINES_MOST};
    long now[LINES_MOST] = {0}, most = 1;
    size_t n = 0;
    int rc = draw_deliveries(d, err);
    AMP_FREE struct change *v = calloc(2 * d->n_delivery + 1, sizeof *v);
    if (!v)
        return amp_fail_memory(err);
    for (size_t i = 0; rc == 0 && i < d->n_delivery; i++) {
        const struct draw_delivery *m = &d->delivery[i];
        size_t who;
        int64_t end = m->read_ms ? m->read_ms : m->end_ms ? m->end_ms : m->acked_ms;
        rc = draw_name(&lanes, m->recipient, &who, err);
        v[n++] = (struct change){m->sent_ms, who, 1};
        if (end)
            v[n++] = (struct change){end, who, -1};
    }
    qsort(v, n, sizeof *v, change_order);
    for (size_t i = 0; i < n; i++) {
        now[v[i].who] += v[i].by;
        if (now[v[i].who] > most)
            most = now[v[i].who];
    }
    if (rc == 0)
        rc = frame_draw(d, "Depth of the lanes: messages that wait for a recipient", y, PLOT, out,
                        err);
    if (rc == 0)
        rc = scale_draw(y + 28, (double)most, false, out, err);
    for (size_t i = 0; rc == 0 && i < lanes.n; i++)
        rc = lines_draw(d, v, n, i, y + 28, most, out, err);
    if (rc == 0)
        rc = legend_draw(&lanes, y + PLOT + 68, out, err);
    *size = (struct draw_size){LEFT + WIDE + PAD + 20, PLOT + 80};
    free(lanes.v);
    return rc;
}

static int number_order(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

int draw_latency(struct amp_drawing *d, double y, struct amp_buf *out, struct draw_size *size,
                 struct amp_error *err)
{
    struct draw_names lanes = {.most = LINES_MOST};
    size_t n = 0;
    char half[32], tail[32], text[160];
    int rc = draw_deliveries(d, err);
    AMP_FREE double *ms = calloc(d->n_delivery + 1, sizeof *ms);
    if (!ms)
        return amp_fail_memory(err);
    for (size_t i = 0; i < d->n_delivery; i++)
        if (d->delivery[i].acked_ms)
            ms[n++] = (double)(d->delivery[i].acked_ms - d->delivery[i].sent_ms);
    qsort(ms, n, sizeof *ms, number_order);
    double most = n && ms[n - 1] > 0 ? ms[n - 1] : 1;
    draw_duration(n ? ms[n / 2] : 0, half);
    draw_duration(n ? ms[(n - 1) * 99 / 100] : 0, tail);
    if (n)
        snprintf(text, sizeof text,
                 "Time until the first acknowledgement: median %s, 99th percentile %s", half, tail);
    else
        snprintf(text, sizeof text, "Time until the first acknowledgement: none yet");
    if (rc == 0)
        rc = frame_draw(d, text, y, PLOT, out, err);
    if (rc == 0)
        rc = scale_draw(y + 28, most, true, out, err);
    for (size_t i = 0; rc == 0 && i < d->n_delivery; i++) {
        const struct draw_delivery *m = &d->delivery[i];
        size_t who;
        if ((rc = draw_name(&lanes, m->recipient, &who, err)) == 0 && m->acked_ms)
            rc = amp_buf_fmt(
                out, err, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" class=\"s%c\"/>",
                time_x(d, m->sent_ms),
                y + 28 + PLOT -
                    (m->acked_ms > m->sent_ms ? (double)(m->acked_ms - m->sent_ms) : 0) / most *
                        PLOT,
                draw_failed(m) ? 'x' : (char)('0' + who));
    }
    if (rc == 0)
        rc = legend_draw(&lanes, y + PLOT + 68, out, err);
    *size = (struct draw_size){LEFT + WIDE + PAD + 20, PLOT + 80};
    free(lanes.v);
    return rc;
}
