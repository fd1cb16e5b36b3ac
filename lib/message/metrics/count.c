/*
 * Counts events. All series are in one hash table by metric and labels. The series "other" of each
 * metric is created with the handle, so counting never fails: values without a series of their own
 * are counted there.
 */
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "message/metrics/series.h"
#include "message/protocol/routing.h"
#include "json/text.h"

#define SETS_MAX  1000
#define LABEL_MAX 100 /* bytes of a label's text, "…" not counted */

const struct amp_metric_spec amp_metric_specs[AMP_METRIC_N] = {
#define X(id, kind, name, unit, labels, code, help, source)                                        \
    {name, unit, labels, code, help, source, AMP_METRIC_##kind},
    AMP_METRICS_LIST(X)
#undef X
};

/* 0.001 to 300 seconds: from a line on a local disk to an agent that asks a person. */
static const double time_le[] = {.001, .0025, .005, .01, .025, .1,  .25,
                                 1,    2.5,   10,   20,  60,   120, 300};
static const char *const time_text[] = {"0.001", "0.0025", "0.005", "0.01", "0.025",
                                        "0.1",   "0.25",   "1.0",   "2.5",  "10.0",
                                        "20.0",  "60.0",   "120.0", "300.0"};
static const double count_le[] = {0, 1, 2, 3, 5, 8, 13};
static const char *const count_text[] = {"0.0", "1.0", "2.0", "3.0", "5.0", "8.0", "13.0"};
_Static_assert(sizeof(time_le) / sizeof(time_le[0]) == AMP_METRIC_BUCKETS, "all buckets");

const struct amp_metric_bounds *amp_metric_bounds(enum amp_metric which)
{
    static const struct amp_metric_bounds times = {AMP_METRIC_BUCKETS, time_le, time_text},
                                          counts = {7, count_le, count_text};
    switch (amp_metric_specs[which].kind) {
    case AMP_METRIC_TIMES:
        return &times;
    case AMP_METRIC_COUNTS:
        return &counts;
    default:
        return NULL;
    }
}

unsigned amp_metric_pairs(const struct amp_metric_series *s,
                          struct amp_metric_pair out[AMP_METRIC_LABELS])
{
    const char *names[] = {"protocol", "agent_id", "lane", amp_metric_specs[s->metric].code};
    const char *p = s->labels;
    unsigned n = 0;
    for (unsigned i = 0; i < AMP_METRIC_LABELS; i++) {
        struct amp_span value = amp_span_str(p);
        if (value.n > 0)
            out[n++] = (struct amp_metric_pair){names[i], value};
        p += value.n + 1;
    }
    return n;
}

/* Appends the text with its NUL: at most LABEL_MAX bytes, valid UTF-8, no control characters. */
static size_t label_put(char *dst, struct amp_span text)
{
    const unsigned char *p = (const unsigned char *)text.p;
    size_t at = 0, i = 0;
    while (i < text.n) {
        size_t len = p[i] < 0x80 ? 1 : amp_utf8_length(p + i, text.n - i);
        bool control = p[i] < 0x20 || p[i] == 0x7f || (len == 2 && p[i] == 0xc2 && p[i + 1] < 0xa0);
        if (at + (len ? len : 3) > LABEL_MAX) {
            memcpy(dst + at, "\xe2\x80\xa6", 3);
            at += 3;
            break;
        }
        if (control || len == 0) {
            memcpy(dst + at, "\xef\xbf\xbd", 3);
            at += 3;
        } else {
            memcpy(dst + at, p + i, len);
            at += len;
        }
        i += len ? len : 1;
    }
    dst[at] = 0;
    return at + 1;
}

#define LABELS_MAX (AMP_METRIC_LABELS * (LABEL_MAX + 8))

static uint32_t labels_put(const struct amp_metrics *m, enum amp_metric which,
                           const struct amp_metric_labels *l, char out[LABELS_MAX])
{
    static const struct amp_metric_labels none = {0};
    if (!l)
        l = &none;
    struct amp_span all[] = {amp_span_str(l->protocol), l->agent, amp_span_str(l->lane), l->code};
    size_t n = 0;
    for (unsigned i = 0; i < AMP_METRIC_LABELS; i++) {
        if (m->mask[which] & 1u << i)
            n += label_put(out + n, all[i]);
        else
            out[n++] = 0;
    }
    return (uint32_t)n;
}

static uint64_t hash_of(enum amp_metric which, const char *labels, uint32_t n)
{
    uint64_t h = 14695981039346656037u ^ (uint64_t)which;
    for (uint32_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)labels[i]) * 1099511628211u;
    return h ^ h >> 29;
}

static struct amp_metric_series *series_make(enum amp_metric which, uint64_t hash,
                                             const char *labels, uint32_t n)
{
    struct amp_metric_series *s = calloc(1, sizeof(*s) + n);
    if (!s)
        return NULL;
    s->metric = which;
    s->hash = hash;
    s->len = n;
    memcpy(s->labels, labels, n);
    return s;
}

static void series_list(struct amp_metrics *m, struct amp_metric_series *s)
{
    if (m->last[s->metric])
        m->last[s->metric]->next = s;
    else
        m->first[s->metric] = s;
    m->last[s->metric] = s;
}

static bool table_grow(struct amp_metrics *m)
{
    uint32_t n = m->slots ? 2 * m->slots : 64;
    struct amp_metric_series **slot = calloc(n, sizeof(struct amp_metric_series *));
    if (!slot)
        return false;
    for (uint32_t i = 0; i < m->slots; i++) {
        struct amp_metric_series *s = m->slot[i];
        uint32_t at = s ? (uint32_t)(s->hash & (n - 1)) : 0;
        while (s && slot[at])
            at = (at + 1) & (n - 1);
        if (s)
            slot[at] = s;
    }
    free(m->slot);
    m->slot = slot;
    m->slots = n;
    return true;
}

static struct amp_metric_series *series_other(struct amp_metrics *m, enum amp_metric which)
{
    struct amp_metric_series *s = m->other[which];
    if (s->len == 0) { /* its first value */
        s->len = 1;
        series_list(m, s);
    }
    amp_metrics_add(m, AMP_METRIC_OTHER_SETS, NULL, 1);
    return s;
}

static struct amp_metric_series *series_find(struct amp_metrics *m, enum amp_metric which,
                                             const struct amp_metric_labels *l)
{
    char labels[LABELS_MAX];
    uint32_t n = labels_put(m, which, l, labels);
    uint64_t hash = hash_of(which, labels, n);
    if (m->used * 2 >= m->slots && !table_grow(m))
        return series_other(m, which);
    uint32_t at = (uint32_t)(hash & (m->slots - 1));
    for (struct amp_metric_series *s; (s = m->slot[at]) != NULL; at = (at + 1) & (m->slots - 1))
        if (s->hash == hash && s->metric == which && s->len == n &&
            memcmp(s->labels, labels, n) == 0)
            return s;
    if (m->sets[which] >= (uint64_t)m->o.sets_max)
        return series_other(m, which);
    struct amp_metric_series *s = series_make(which, hash, labels, n);
    if (!s)
        return series_other(m, which);
    m->slot[at] = s;
    m->used++;
    m->sets[which]++;
    series_list(m, s);
    return s;
}

void amp_metrics_add(struct amp_metrics *m, enum amp_metric which,
                     const struct amp_metric_labels *l, uint64_t n)
{
    if (m && amp_metric_specs[which].kind == AMP_METRIC_COUNTER)
        series_find(m, which, l)->count += n;
}

void amp_metrics_set(struct amp_metrics *m, enum amp_metric which,
                     const struct amp_metric_labels *l, double value)
{
    if (m && amp_metric_specs[which].kind == AMP_METRIC_GAUGE)
        series_find(m, which, l)->value = value;
}

void amp_metrics_observe(struct amp_metrics *m, enum amp_metric which,
                         const struct amp_metric_labels *l, double value)
{
    const struct amp_metric_bounds *b = m ? amp_metric_bounds(which) : NULL;
    if (!b)
        return;
    struct amp_metric_series *s = series_find(m, which, l);
    unsigned i = 0;
    value = value < 0 ? 0 : value; /* the clock was set back */
    while (i < b->n && value > b->le[i])
        i++;
    s->times.bucket[i == b->n ? AMP_METRIC_BUCKETS : i]++;
    s->times.sum += value;
}

void amp_metrics_tool(struct amp_metrics *m, const struct amp_view *v)
{
    struct amp_metric_labels l = {.agent = v->from};
    const char *frame = m ? amp_routing_of(v->protocol)->tool_frame : NULL;
    if (!frame || !amp_span_is(v->type, frame))
        return;
    amp_metrics_add(m, AMP_METRIC_TOOL_FRAMES, &l, 1);
    if (v->payload != AMP_TOK_NONE)
        amp_metrics_add(m, AMP_METRIC_TOOL_BYTES, &l, amp_tok_source(v->tape, v->payload).n);
}

void amp_metrics_free(struct amp_metrics *m)
{
    for (uint32_t i = 0; i < m->slots; i++)
        free(m->slot[i]);
    for (int i = 0; i < AMP_METRIC_N; i++)
        free(m->other[i]);
    free(m->slot);
    free(m->path);
    free(m->tool);
    free(m);
}

/* In "other", the agent and the row's own label are "other"; the few protocols and lanes are left
 * out. */
static bool others_make(struct amp_metrics *m)
{
    static const char *const letters = "palc";
    char labels[LABELS_MAX];
    for (unsigned i = 0; i < AMP_METRIC_N; i++) {
        const char *has = amp_metric_specs[i].labels;
        for (unsigned k = 0; k < AMP_METRIC_LABELS; k++)
            if (strchr(has, letters[k]))
                m->mask[i] |= (uint8_t)(1u << k);
        struct amp_metric_labels l = {.agent = AMP_SPAN("other"), .code = AMP_SPAN("other")};
        if (!(m->mask[i] & (1u << 1 | 1u << 3)))
            l.protocol = l.lane = "other";
        uint32_t n = labels_put(m, (enum amp_metric)i, &l, labels);
        m->other[i] = series_make((enum amp_metric)i, 0, labels, n);
        if (!m->other[i])
            return false;
        m->other[i]->len = 0;
    }
    return true;
}

struct amp_metrics *amp_metrics_make(const struct amp_metrics_options *o)
{
    struct amp_metrics *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->o = *o;
    m->q.fd = -1;
    m->o.sets_max = o->sets_max > 0 ? o->sets_max : SETS_MAX;
    m->started_ms = amp_now_ms();
    m->path = amp_span_dup(amp_span_str(o->path));
    m->tool = amp_span_dup(amp_span_str(o->tool ? o->tool : ""));
    m->due_ms = o->interval_ms > 0 ? amp_mono_ms() + o->interval_ms : INT64_MAX;
    if (!m->path || !m->tool || !others_make(m)) {
        amp_metrics_free(m);
        return NULL;
    }
    return m;
}
