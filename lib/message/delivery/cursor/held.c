/* Events behind a gap, ordered by number. */
#include "message/delivery/cursor/held.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/num.h>

#include "base/grow.h"

void amp_held_release(struct amp_held_list *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        free(l->v[i].line);
        free(l->v[i].id);
    }
    free(l->v);
    memset(l, 0, sizeof *l);
}

/* The index of a number, or the index at which it is inserted. */
static uint32_t held_place(const struct amp_held_list *l, int64_t seq)
{
    uint32_t from = 0, to = l->n;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (l->v[mid].seq < seq)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

const struct amp_held *amp_held_find(const struct amp_held_list *l, int64_t seq)
{
    uint32_t i = held_place(l, seq);
    return i < l->n && l->v[i].seq == seq ? &l->v[i] : NULL;
}

int amp_held_add(struct amp_held_list *l, const struct amp_held *h, struct amp_span line,
                 struct amp_span id, struct amp_error *err)
{
    uint32_t i = held_place(l, h->seq);
    if (i < l->n && l->v[i].seq == h->seq)
        return 0;
    if (amp_grow(&l->v, &l->cap, l->n, sizeof *l->v, err) < 0)
        return -1;
    struct amp_held new = *h;
    new.line = amp_span_dup(line);
    new.id = amp_span_dup(id);
    new.n = line.n;
    if (!new.line || !new.id) {
        free(new.line);
        free(new.id);
        return amp_fail_memory(err);
    }
    memmove(l->v + i + 1, l->v + i, (l->n - i) * sizeof *l->v);
    l->v[i] = new;
    l->n++;
    l->bytes += new.n;
    return 0;
}

void amp_held_drop_first(struct amp_held_list *l)
{
    l->bytes -= l->v[0].n;
    free(l->v[0].line);
    free(l->v[0].id);
    memmove(l->v, l->v + 1, --l->n * sizeof *l->v);
}

int amp_held_id(int64_t seq, int64_t at_ms, struct amp_span id, char mem[AMP_KEY_MAX],
                struct amp_span *out, struct amp_error *err)
{
    char number[24], at[24];
    snprintf(number, sizeof number, "%" PRId64, seq);
    snprintf(at, sizeof at, "%" PRId64, at_ms);
    struct amp_key key = AMP_KEY("held", amp_span_str(number), amp_span_str(at), id);
    return amp_key_text(&key, mem, out, err);
}

static int load_fn(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct amp_held h = {.entry = {e->n, e->index}};
    struct amp_key key;
    AMP_BUF struct amp_buf mem = {.max = 2 * AMP_KEY_MAX};
    if (e->role != AMP_ROLE_held || amp_key_split(e->id, &mem, &key, NULL) < 0 || key.n != 3 ||
        amp_num_parse(key.part[0], INT64_MIN, INT64_MAX, &h.seq, NULL) < 0 ||
        amp_num_parse(key.part[1], INT64_MIN, INT64_MAX, &h.at_ms, NULL) < 0)
        return 0;
    return amp_held_add(ctx, &h, e->line, key.part[2], err);
}

int amp_held_load(struct amp_store *s, const char *outbox, struct amp_held_list *l,
                  struct amp_error *err)
{
    return amp_store_outbox(s, outbox, load_fn, l, err);
}
