/* A graph for dot(1): the states of the tasks, and who sent what to whom. */
#include <stdlib.h>

#include "message/history/draw/private.h"

#include "base/grow.h"

struct edge {
    struct amp_span group, from, to, label;
    size_t n, first; /* how often; its place in the order */
};
struct edges {
    struct edge *v;
    size_t n, cap;
};

static int edge_add(struct edges *e, struct edge x, struct amp_error *err)
{
    for (size_t i = 0; i < e->n; i++)
        if (amp_span_eq(e->v[i].group, x.group) && amp_span_eq(e->v[i].from, x.from) &&
            amp_span_eq(e->v[i].to, x.to) && amp_span_eq(e->v[i].label, x.label)) {
            e->v[i].n++;
            return 0;
        }
    if (amp_grow(&e->v, &e->cap, e->n, sizeof *e->v, err) < 0)
        return -1;
    x.n = 1;
    x.first = e->n + 1;
    e->v[e->n++] = x;
    return 0;
}

/* A quoted string of the DOT language. */
static int quoted(struct amp_span text, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf safe = {0};
    amp_buf_init(&safe, 1 << 16);
    for (size_t i = 0; i < text.n && i < 200; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '"' || c == '\\') {
            if (amp_buf_add(&safe, "\\", 1, err) < 0)
                return -1;
        }
        if (amp_buf_add(&safe, c < 0x20 || c == 0x7f ? "?" : text.p + i, 1, err) < 0)
            return -1;
    }
    return amp_buf_str(out, "\"", err) < 0 ||
                   amp_buf_add(out, safe.data ? safe.data : "", safe.len, err) < 0
               ? -1
               : amp_buf_str(out, "\"", err);
}

/* A node's name: unique by its group. */
static int node(struct amp_span group, struct amp_span name, struct amp_buf *out,
                struct amp_error *err)
{
    AMP_BUF struct amp_buf both = {0};
    amp_buf_init(&both, 1 << 16);
    if (amp_buf_add(&both, group.p, group.n, err) < 0 || amp_buf_add(&both, "/", 1, err) < 0 ||
        amp_buf_add(&both, name.p, name.n, err) < 0)
        return -1;
    return quoted(amp_buf_span(&both), out, err);
}

static int edges_write(const struct edges *e, const char *look, struct amp_buf *out,
                       struct amp_error *err)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct edge *x = &e->v[i];
        AMP_BUF struct amp_buf label = {0};
        amp_buf_init(&label, 4096);
        if (amp_buf_fmt(&label, err, "%zu ", x->first) < 0 ||
            amp_buf_add(&label, x->label.p, x->label.n, err) < 0 ||
            (x->n > 1 && amp_buf_fmt(&label, err, " ×%zu", x->n) < 0))
            return -1;
        if (amp_buf_str(out, "    ", err) < 0 || node(x->group, x->from, out, err) < 0 ||
            amp_buf_str(out, " [label=", err) < 0 || quoted(x->from, out, err) < 0 ||
            amp_buf_str(out, "];\n    ", err) < 0 || node(x->group, x->to, out, err) < 0 ||
            amp_buf_str(out, " [label=", err) < 0 || quoted(x->to, out, err) < 0 ||
            amp_buf_str(out, "];\n    ", err) < 0 || node(x->group, x->from, out, err) < 0 ||
            amp_buf_str(out, " -> ", err) < 0 || node(x->group, x->to, out, err) < 0 ||
            amp_buf_str(out, " [label=", err) < 0 || quoted(amp_buf_span(&label), out, err) < 0 ||
            amp_buf_fmt(out, err, "%s];\n", look) < 0)
            return -1;
    }
    return 0;
}

static int rows_take(struct amp_drawing *d, struct edges *states, struct edges *talk,
                     struct amp_error *err)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct draw_row *r = &d->row[i];
        if (r->what == AMP_HISTORY_STEP && amp_span_is(r->kind, "task") && r->to.n &&
            edge_add(states,
                     (struct edge){.group = r->id,
                                   .from = r->from.n ? r->from : AMP_SPAN("(new)"),
                                   .to = r->to,
                                   .label = r->event},
                     err) < 0)
            return -1;
    }
    for (size_t i = 0; i < d->n_delivery; i++) {
        const struct draw_delivery *m = &d->delivery[i];
        if (edge_add(talk,
                     (struct edge){.group = AMP_SPAN("who"),
                                   .from = m->sender.n ? m->sender : AMP_SPAN("unknown"),
                                   .to = m->recipient.n ? m->recipient : AMP_SPAN("unknown"),
                                   .label = m->type},
                     err) < 0)
            return -1;
    }
    return 0;
}

int amp_drawing_dot(struct amp_drawing *d, struct amp_buf *out, struct amp_error *err)
{
    struct edges states = {0}, talk = {0};
    int rc = draw_deliveries(d, err);
    if (rc == 0)
        rc = rows_take(d, &states, &talk, err);
    if (rc == 0)
        rc = amp_buf_str(out,
                         "digraph history {\n  rankdir=LR;\n  node [shape=box, style=rounded, "
                         "fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", "
                         "fontsize=10];\n  subgraph cluster_tasks {\n    label=\"tasks\";\n",
                         err);
    if (rc == 0)
        rc = edges_write(&states, "", out, err);
    if (rc == 0)
        rc = amp_buf_str(out, "  }\n  subgraph cluster_messages {\n    label=\"messages\";\n", err);
    if (rc == 0)
        rc = edges_write(&talk, ", style=dashed", out, err);
    if (rc == 0)
        rc = amp_buf_str(out, "  }\n}\n", err);
    free(states.v);
    free(talk.v);
    return rc;
}
