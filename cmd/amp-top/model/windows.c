/* The lists that are windows over the index: messages and deadlines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/delivery/cursor/cursors.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/record/record.h"
#include "people/question/escalation.h"
#include "people/question/record.h"
#include "read.h"
#include "work/agent/record.h"
#include "work/git/binding.h"

#define SOON 64 /* deadlines of each kind */

/* ---- messages ---- */

static int message_put(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct top_source *src = ctx;
    struct amp_message_rec r;
    struct top_draft d;
    if (amp_message_parse(rec, &src->mem, &r, err) < 0)
        return -1;
    enum top_tone tone = r.state == AMP_DELIVERY_TIMED_OUT  ? TOP_BAD
                         : r.state == AMP_DELIVERY_RETRYING ? TOP_WARN
                         : r.state == AMP_DELIVERY_READ     ? TOP_INFO
                                                            : TOP_PLAIN;
    top_draft_begin(&d, rec->key->text, r.task);
    top_draft_text(&d, 0, (uint8_t)tone, rec->state);
    top_draft_text(&d, 1, TOP_STRONG, r.type);
    top_draft_text(&d, 2, TOP_PLAIN, r.from);
    top_draft_text(&d, 3, TOP_PLAIN, r.to);
    top_draft_text(&d, 4, TOP_DIM, r.task);
    top_draft_number(&d, 5, TOP_DIM, TOP_AGE, r.sent_ms, 0);
    top_draft_number(&d, 6, TOP_PLAIN, TOP_UNTIL, rec->due_ms, 0);
    top_draft_text(&d, 7, TOP_DIM, id);
    d.hidden[0] = rec->due_ms;
    return top_draft_end(&d, &src->m->list[TOP_MESSAGES], true, err);
}

/* The place of a row in the order of the index; mem keeps its key. */
static void place_of(const struct top_row *r, char mem[AMP_KEY_MAX], struct amp_store_window *w)
{
    int n = snprintf(mem, AMP_KEY_MAX, "%s", r->key);
    w->due_ms = r->hidden[0];
    w->key = (struct amp_span){mem, (size_t)n < AMP_KEY_MAX ? (size_t)n : AMP_KEY_MAX - 1};
}

static void rows_reverse(struct top_list *l)
{
    for (size_t i = 0; i + 1 < l->n - i; i++) {
        struct top_row r = l->v[i];
        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = r;
    }
}

static int window_fill(struct top_source *src, const struct amp_store_window *w, uint64_t first,
                       struct amp_error *err)
{
    struct top_list *l = &src->m->list[TOP_MESSAGES];
    top_list_clear(l);
    if (amp_store_due_window(src->store, w, message_put, src, err) < 0)
        return -1;
    if (w->before)
        rows_reverse(l);
    /* Counting from the end needs the number of rows that there are. */
    l->first = !w->before ? first : first + 1 > l->n ? first + 1 - l->n : 0;
    return 0;
}

static int state_count(void *ctx, struct amp_span kind, struct amp_span state, uint64_t n,
                       struct amp_error *err)
{
    uint64_t *sum = ctx;
    (void)kind;
    (void)state;
    (void)err;
    *sum += n;
    return 0;
}

int top_messages_read(struct top_source *src, struct amp_error *err)
{
    struct top_list *l = &src->m->list[TOP_MESSAGES];
    struct amp_store_window w = {.kind = AMP_MESSAGE_KIND, .most = TOP_WINDOW};
    char mem[AMP_KEY_MAX];
    uint64_t first = l->first;

    l->window = true;
    src->m->dead = 0;
    if (amp_store_count_due(src->store, AMP_MESSAGE_KIND, &l->total, err) < 0 ||
        amp_store_tally(src->store, AMP_DEAD_KIND, state_count, &src->m->dead, err) < 0)
        return -1;
    src->m->open = l->total;
    if (first > 0 && l->n > 0 && first < l->total) {
        /* A place before the first row, so that it is in the window again. */
        place_of(&l->v[0], mem, &w);
        w.key.n--;
    } else {
        first = 0;
    }
    return window_fill(src, &w, first, err);
}

int top_source_window(struct top_source *src, enum top_pane p, uint64_t row, struct amp_error *err)
{
    struct top_list *l = &src->m->list[p];
    struct amp_store_window w = {.kind = AMP_MESSAGE_KIND, .most = TOP_WINDOW};
    char mem[AMP_KEY_MAX];

    if (p != TOP_MESSAGES || !l->window || l->total == 0)
        return 0;
    if (row >= l->total)
        row = l->total - 1;
    if (row >= l->first && row < l->first + l->n)
        return 0;
    if (row < TOP_WINDOW / 2)
        return window_fill(src, &w, 0, err);
    if (row + TOP_WINDOW / 2 >= l->total) {
        w.before = true;
        w.due_ms = INT64_MAX;
        return window_fill(src, &w, l->total - 1, err);
    }
    /* Near the window: from its middle on, so that the rows around the new one are there. */
    size_t middle = l->n / 2;
    if (l->n > 0 && row >= l->first + l->n && row < l->first + l->n + TOP_WINDOW / 2) {
        uint64_t first = l->first + middle + 1;
        place_of(&l->v[middle], mem, &w);
        return window_fill(src, &w, first, err);
    }
    if (l->n > 0 && row < l->first && row + TOP_WINDOW / 2 >= l->first) {
        uint64_t last = l->first + middle - 1;
        w.before = true;
        place_of(&l->v[middle], mem, &w);
        return window_fill(src, &w, last, err);
    }
    /* Far away: counted from the end that is nearer. */
    if (row < l->total / 2) {
        w.skip = row - TOP_WINDOW / 2;
        return window_fill(src, &w, w.skip, err);
    }
    w.before = true;
    w.due_ms = INT64_MAX;
    w.skip = l->total - 1 - row - TOP_WINDOW / 2;
    return window_fill(src, &w, l->total - 1 - w.skip, err);
}

/* ---- deadlines ---- */

static const struct {
    const char *kind, *what;
} soon[] = {
    {AMP_MESSAGE_KIND, "acknowledgement"},
    {AMP_ESCALATION_KIND, "question"},
    {AMP_AGENT_KIND, "agent"},
    {AMP_BINDING_KIND, "worktree"},
    {AMP_INBOX_BUFFERS, "inbox"},
    {AMP_CURSOR_KIND, "cursor"},
};

/* A kind with more records than that is read through the index of deadlines, which is slow if most
 * deadlines are of another kind. */
#define FEW 4096

struct soon_reading {
    struct top_source *src;
    const char *what;
    uint64_t n[sizeof soon / sizeof *soon]; /* records of each kind */
    uint64_t due;                           /* records with a deadline */
};

static int deadline_put(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                        struct amp_error *err)
{
    struct soon_reading *r = ctx;
    struct top_draft d;
    char key[600], state[64];

    if (rec->due_ms <= 0)
        return 0;
    r->due++;
    top_lower(rec->state, state, sizeof state);
    bool late = rec->due_ms <= r->src->m->now_ms;
    snprintf(key, sizeof key, "%s %.*s", r->what, AMP_CLIP(id, 500));
    top_draft_begin(&d, amp_span_str(key), id);
    top_draft_number(&d, 0, late ? TOP_BAD : TOP_PLAIN, TOP_UNTIL, rec->due_ms, 0);
    top_draft_text(&d, 1, TOP_STRONG, amp_span_str(r->what));
    top_draft_text(&d, 2, TOP_DIM, amp_span_str(state));
    top_draft_text(&d, 3, TOP_PLAIN, id);
    d.hidden[0] = rec->due_ms;
    return top_draft_end(&d, &r->src->m->list[TOP_DEADLINES], true, err);
}

static int earlier_first(const void *a, const void *b)
{
    int64_t x = ((const struct top_row *)a)->hidden[0], y = ((const struct top_row *)b)->hidden[0];
    return x < y ? -1 : x > y;
}

static int kind_count(void *ctx, struct amp_span kind, struct amp_span state, uint64_t n,
                      struct amp_error *err)
{
    struct soon_reading *r = ctx;
    (void)state;
    (void)err;
    for (size_t i = 0; i < sizeof soon / sizeof *soon; i++)
        if (amp_span_is(kind, soon[i].kind))
            r->n[i] += n;
    return 0;
}

/* The nearest deadlines of a kind. *total: how many it has. */
static int kind_read(struct soon_reading *r, size_t i, uint64_t *total, struct amp_error *err)
{
    struct amp_store *s = r->src->store;
    struct top_list *l = &r->src->m->list[TOP_DEADLINES];
    const struct amp_store_window w = {.kind = soon[i].kind, .most = SOON};
    size_t before = l->n;

    r->what = soon[i].what;
    r->due = 0;
    if (i == 0) { /* messages are counted with their list */
        *total = r->src->m->open;
        return *total ? amp_store_due_window(s, &w, deadline_put, r, err) : 0;
    }
    if (r->n[i] > FEW)
        return amp_store_due_window(s, &w, deadline_put, r, err) < 0
                   ? -1
                   : amp_store_count_due(s, soon[i].kind, total, err);
    if (r->n[i] && amp_store_each(s, soon[i].kind, NULL, deadline_put, r, err) < 0)
        return -1;
    *total = r->due;
    if (l->n > before + SOON) {
        qsort(l->v + before, l->n - before, sizeof *l->v, earlier_first);
        top_list_cut(l, before + SOON);
    }
    return 0;
}

int top_deadlines_read(struct top_source *src, struct amp_error *err)
{
    struct top_list *l = &src->m->list[TOP_DEADLINES];
    struct soon_reading r = {.src = src};
    uint64_t total = 0, n;

    top_list_clear(l);
    if (amp_store_tally(src->store, NULL, kind_count, &r, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof soon / sizeof *soon; i++) {
        if (kind_read(&r, i, &n, err) < 0)
            return -1;
        total += n;
    }
    if (l->n)
        qsort(l->v, l->n, sizeof *l->v, earlier_first);
    l->total = total;
    l->more = total > l->n;
    return 0;
}
