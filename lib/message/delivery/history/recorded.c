/* Reading in pages: filling a page only reads the log. */
#include "message/delivery/history/recorded.h"
#include "message/delivery/history/set.h"
#include "message/store/history/history.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/num.h>

#include "base/codes.h"
#include "message/delivery/cursor/cursors.h"
#include "message/delivery/record/record.h"

#define PAGE_BYTES ((size_t)8 << 20)
#define PAGE_ITEMS 16384
#define SEEN_MOST  ((size_t)1 << 23) /* lines that are remembered, in 128 MiB */

struct item {
    uint64_t n;
    int64_t at_ms;
    size_t line, size, id, id_size; /* in the page's text */
    bool copy;                      /* a router's: the ledger may have it too */
};

struct amp_recorded {
    struct amp_store *store;
    uint64_t next, to;               /* frames of the next page */
    struct amp_buf text, mem, parts; /* parts: of a key */
    struct item *items;
    uint32_t n, at;
    bool full;
    struct amp_history_set seen;
};

/* Whether the commit records a line that a router took: not a line of the log, a recipient, a
 * waiting event or an incident. */
static bool is_routed(const struct amp_store_commit *c, const struct amp_key *key)
{
    if (!c->has_line || c->role == AMP_ROLE_recipient)
        return false;
    if (strcmp(key->kind, "route") == 0)
        return amp_span_is(c->event, "record");
    return strcmp(key->kind, "cursor") == 0 && amp_span_is(c->event, "enqueue") &&
           !amp_span_is(key->part[1], AMP_LOG_SOURCE);
}

static int item_add(struct amp_recorded *r, const struct amp_store_commit *c, struct amp_span id,
                    struct amp_span line, bool copy, struct amp_error *err)
{
    struct item *i = &r->items[r->n];
    *i = (struct item){.n = c->n,
                       .at_ms = c->at_ms,
                       .line = r->text.len,
                       .size = line.n,
                       .id = r->text.len + line.n,
                       .id_size = id.n,
                       .copy = copy};
    if (amp_buf_add(&r->text, line.p, line.n, err) < 0 ||
        amp_buf_add(&r->text, id.p, id.n, err) < 0)
        return -1;
    r->n++;
    return 0;
}

static int commit_fn(void *ctx, const struct amp_store_commit *c, struct amp_error *err)
{
    struct amp_recorded *r = ctx;
    /* A page ends between frames. */
    if (c->index == 0 && (r->text.len >= PAGE_BYTES || r->n >= PAGE_ITEMS)) {
        r->full = true;
        r->next = c->n;
        return 1;
    }
    if (r->n > 0 && r->n >= PAGE_ITEMS * 2) /* no frame has as many */
        return 0;
    struct amp_key key;
    if (amp_key_split(c->full.n ? c->full : c->key, &r->parts, &key, err) < 0)
        return -1;
    if (strcmp(key.kind, AMP_MESSAGE_KIND) != 0)
        return is_routed(c, &key) ? item_add(r, c, c->id, c->line, true, err) : 0;
    struct amp_message_rec rec = {0};
    if (c->was != 0 || c->index != 0 || c->json.n == 0)
        return 0;
    if (amp_record_read(c->json, &r->mem, &rec, err) < 0)
        return -1;
    return item_add(r, c, key.part[0], rec.line, false, err);
}

static int page_fill(struct amp_recorded *r, struct amp_error *err)
{
    amp_buf_reset(&r->text);
    r->n = r->at = 0;
    r->full = false;
    if (amp_store_commits(r->store, r->next, r->to, NULL, commit_fn, r, err) < 0)
        return -1;
    if (!r->full)
        r->next = r->to + 1;
    return 0;
}

int amp_recorded_open(struct amp_store *s, uint64_t from, uint64_t to, struct amp_recorded **out,
                      struct amp_error *err)
{
    uint64_t first, last;
    if (amp_store_range(s, &first, &last, err) < 0)
        return -1;
    struct amp_recorded *r = calloc(1, sizeof *r);
    if (!r || !(r->items = calloc(PAGE_ITEMS * 2, sizeof *r->items))) {
        free(r);
        return amp_fail_memory(err);
    }
    r->store = s;
    r->next = from < first ? first : from;
    r->to = to > last ? last : to;
    amp_buf_init(&r->text, PAGE_BYTES + AMP_RECORD_MAX * 2);
    amp_buf_init(&r->mem, AMP_RECORD_MAX);
    amp_buf_init(&r->parts, SIZE_MAX / 2);
    *out = r;
    return 0;
}

void amp_recorded_free(struct amp_recorded *r)
{
    if (!r)
        return;
    amp_buf_release(&r->text);
    amp_buf_release(&r->mem);
    amp_buf_release(&r->parts);
    free(r->items);
    amp_history_set_release(&r->seen);
    free(r);
}

/* 1: the item is returned; 0: it was, or it is a router's copy of a message that the ledger has. */
static int item_counts(struct amp_recorded *r, const struct item *i, struct amp_error *err)
{
    struct amp_span id = {r->text.data + i->id, i->id_size};
    struct amp_span line = {r->text.data + i->line, i->size};
    struct amp_store_rec rec;
    if (i->copy && !amp_span_is(id, "unnamed")) {
        if (amp_store_get(r->store, AMP_KEY(AMP_MESSAGE_KIND, id), &rec, err) < 0)
            return -1;
        if (rec.found)
            return 0;
    }
    return r->seen.n < SEEN_MOST ? amp_history_set_add(&r->seen, line, err) : 1;
}

int amp_recorded_next(struct amp_recorded *r, struct amp_recorded_item *out, struct amp_error *err)
{
    for (;;) {
        while (r->at < r->n) {
            const struct item *i = &r->items[r->at++];
            int rc = item_counts(r, i, err);
            if (rc < 0)
                return -1;
            if (rc == 0)
                continue;
            *out = (struct amp_recorded_item){
                .n = i->n, .at_ms = i->at_ms, .line = {r->text.data + i->line, i->size}};
            return 1;
        }
        if (r->next > r->to || r->next == 0)
            return 0;
        if (page_fill(r, err) < 0)
            return -1;
    }
}

static int cursor_behind(struct amp_store *s, const char *name, uint64_t *n, struct amp_error *err)
{
    struct amp_cursor_rec rec;
    uint8_t state;
    AMP_BUF struct amp_buf mem = {.max = 1 << 20};
    int rc =
        amp_cursors_find(s, amp_span_str(name), AMP_SPAN(AMP_LOG_SOURCE), &mem, &rec, &state, err);
    if (rc == 0)
        return amp_fail(err, AMP_NO, unknown_ref,
                        "%.100s has no cursor over the log: begin with start, or with a frame's "
                        "number",
                        name);
    *n = rc > 0 ? (uint64_t)rec.last_seq + 1 : 0;
    return rc < 0 ? -1 : 0;
}

int amp_recorded_position(struct amp_store *s, const char *text, uint64_t *n, struct amp_error *err)
{
    uint64_t first, last;
    int64_t number;
    if (amp_store_range(s, &first, &last, err) < 0)
        return -1;
    if (strcmp(text, "start") == 0) {
        *n = first ? first : 1;
        return 0;
    }
    if (strcmp(text, "end") == 0) {
        *n = last + 1;
        return 0;
    }
    bool name = amp_num_parse(amp_span_str(text), 1, INT64_MAX, &number, NULL) < 0;
    if (name && cursor_behind(s, text, n, err) < 0)
        return -1;
    if (!name)
        *n = (uint64_t)number;
    if (*n >= first)
        return 0;
    return amp_fail(
        err, AMP_NO, cursor_expired,
        "frame %llu was removed, the log begins at %llu: --from start reads from there%s%s",
        (unsigned long long)*n, (unsigned long long)first,
        name ? ", and moves the cursor with --cursor " : "", name ? text : "");
}
