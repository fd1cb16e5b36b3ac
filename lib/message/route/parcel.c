/*
 * Parcels and their memory. A parcel is one piece of memory with its line, its id, and its text if
 * that differs from the line. Pieces of common sizes are kept for the next parcels.
 */
#include "message/route/parcel.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/protocol/delivery.h"
#include "message/protocol/routing.h"

#define PIECE_LEAST 1024
#define SPARE_BYTES ((size_t)256 << 10) /* limit for each size */

static size_t piece_bytes(uint32_t size)
{
    return (size_t)PIECE_LEAST << size;
}

static struct parcel *piece_take(struct amp_parcels *all, size_t want)
{
    uint32_t size = 0;
    struct parcel *j;
    while (size < AMP_PARCELS_SIZES && piece_bytes(size) < want)
        size++;
    if (size < AMP_PARCELS_SIZES && (j = all->spare[size].first)) {
        all->spare[size].first = j->next;
        all->spare[size].n--;
    } else if (!(j = malloc(size < AMP_PARCELS_SIZES ? piece_bytes(size) : want))) {
        return NULL;
    }
    memset(j, 0, offsetof(struct parcel, why));
    j->why[0] = 0;
    j->all = all;
    j->size = size;
    return j;
}

/* Copies the text and a NUL to *at. */
static char *text_put(char **at, struct amp_span s)
{
    char *copy = *at;
    if (s.n > 0)
        memcpy(copy, s.p, s.n);
    copy[s.n] = 0;
    *at += s.n + 1;
    return copy;
}

/* The id is used as a C string: an id with a NUL (from an older log) counts as missing. */
static struct amp_span id_of(const struct amp_view *v)
{
    struct amp_span none = {"", 0};
    return !v || (v->id.n > 0 && memchr(v->id.p, '\0', v->id.n)) ? none : v->id;
}

static struct amp_span text_of(const struct amp_parcels *all, const struct amp_view *v)
{
    bool wrapped = v && (v->text.p != v->line.p || v->text.n != v->line.n);
    return wrapped && all->wants_text ? v->text : (struct amp_span){NULL, 0};
}

/* ---- the summary ---- */

#define PART(member)                                                                               \
    {                                                                                              \
        offsetof(struct amp_view, member), offsetof(struct parcel_summary, member)                 \
    }
static const struct {
    size_t of_view, at;
} parts[] = {PART(type), PART(from), PART(task), PART(correlation), PART(content_type), PART(node)};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

static struct amp_span part_of(const struct amp_view *v, size_t i)
{
    return *(const struct amp_span *)(const void *)((const char *)v + parts[i].of_view);
}

static struct amp_span excerpt_of(const struct amp_view *v)
{
    bool any = v->payload != AMP_TOK_NONE && v->tape && v->payload < v->tape->n;
    return any ? amp_tok_source(v->tape, v->payload) : (struct amp_span){"", 0};
}

static void repeats_of(const struct amp_view *v, struct amp_span out[AMP_REPEATS_MAX])
{
    for (int i = 0; i < AMP_REPEATS_MAX; i++)
        out[i] = (struct amp_span){"", 0};
    if (amp_delivery_of(v->protocol)->repeats)
        amp_delivery_of(v->protocol)->repeats(v, out);
}

static bool is_inside(struct amp_span line, struct amp_span s)
{
    uintptr_t first = (uintptr_t)line.p, at = (uintptr_t)s.p;
    return s.n > 0 && at >= first && at + s.n <= first + line.n;
}

/* Bytes that the summary needs in addition to the line. */
static size_t summary_room(const struct amp_view *v, struct amp_span line)
{
    size_t n = _Alignof(struct amp_span) + v->n_to * sizeof(struct amp_span);
    struct amp_span excerpt = excerpt_of(v), repeats[AMP_REPEATS_MAX];
    repeats_of(v, repeats);
    for (int i = 0; i < AMP_REPEATS_MAX; i++)
        n += is_inside(line, repeats[i]) ? 0 : repeats[i].n + 1;
    for (size_t i = 0; i < N_PARTS; i++)
        n += is_inside(line, part_of(v, i)) ? 0 : part_of(v, i).n + 1;
    for (uint32_t i = 0; i < v->n_to; i++)
        n += is_inside(line, v->to[i]) ? 0 : v->to[i].n + 1;
    return n + (is_inside(line, excerpt) ? 0 : excerpt.n + 1);
}

/* Returns the text in the parcel's copy of the line, or a copy of the text. */
static struct amp_span summary_put(const struct parcel *j, char **at, struct amp_span line,
                                   struct amp_span s)
{
    if (is_inside(line, s))
        return (struct amp_span){j->line + (s.p - line.p), s.n};
    return (struct amp_span){text_put(at, s), s.n};
}

static void summary_fill(struct parcel *j, char **at, struct amp_span line,
                         const struct amp_view *v)
{
    struct parcel_summary *s = &j->summary;
    struct amp_span repeats[AMP_REPEATS_MAX];
    uintptr_t align = _Alignof(struct amp_span), odd = (uintptr_t)*at % align;
    *s = (struct parcel_summary){.known = true,
                                 .json = v->json,
                                 .has_attempt = v->has_attempt,
                                 .n_to = v->n_to,
                                 .created_ms = v->created_ms,
                                 .attempt = v->attempt};
    *at += odd ? align - odd : 0;
    s->to = (struct amp_span *)(void *)*at;
    *at += v->n_to * sizeof(*s->to);
    for (uint32_t i = 0; i < v->n_to; i++)
        s->to[i] = summary_put(j, at, line, v->to[i]);
    repeats_of(v, repeats);
    for (int i = 0; i < AMP_REPEATS_MAX; i++)
        s->repeats[i] = summary_put(j, at, line, repeats[i]);
    for (size_t i = 0; i < N_PARTS; i++)
        *(struct amp_span *)(void *)((char *)s + parts[i].at) =
            summary_put(j, at, line, part_of(v, i));
    s->excerpt = summary_put(j, at, line, excerpt_of(v));
}

struct amp_span amp_parcel_whole(const struct parcel *j)
{
    const struct parcel *came = j->address.of ? j->address.of : j;
    return (struct amp_span){came->line, came->n};
}

bool amp_parcel_is_work(const struct amp_view *v)
{
    return v->task.n > 0 && (v->kind == AMP_KIND_REVIEW ||
                             (v->kind == AMP_KIND_DISPATCH &&
                              !(v->n_to == 1 && amp_span_is(v->to[0], "coordinator"))));
}

bool amp_parcel_view(const struct parcel *j, struct amp_view *v)
{
    static const struct amp_tape empty = {.text = ""};
    const struct parcel *came = j->address.of ? j->address.of : j;
    const struct parcel_summary *s = &came->summary;
    struct amp_span line = {came->line, came->n};
    if (!s->known)
        return false;
    *v = (struct amp_view){.protocol = came->protocol,
                           .kind = came->kind,
                           .line = line,
                           .message = line,
                           .text = line,
                           .tape = &empty,
                           .payload = AMP_TOK_NONE,
                           .json = s->json,
                           .id = amp_span_str(came->id),
                           .to = s->to,
                           .n_to = s->n_to,
                           .created_ms = s->created_ms,
                           .has_attempt = s->has_attempt,
                           .attempt = s->attempt};
    for (size_t i = 0; i < N_PARTS; i++)
        *(struct amp_span *)(void *)((char *)v + parts[i].of_view) =
            *(const struct amp_span *)(const void *)((const char *)s + parts[i].at);
    return true;
}

/* ---- parcels ---- */

struct parcel *amp_parcel_new(struct amp_parcels *all, struct amp_span line,
                              const struct amp_view *v)
{
    struct amp_span id = id_of(v), text = text_of(all, v);
    struct parcel *j =
        piece_take(all, sizeof(*j) + line.n + id.n + text.n + 3 + (v ? summary_room(v, line) : 0));
    if (!j)
        return NULL;
    char *at = j->mem;
    j->line = text_put(&at, line);
    j->id = text_put(&at, id);
    j->text = text.p ? text_put(&at, text) : NULL;
    if (v)
        summary_fill(j, &at, line, v);
    j->n = line.n;
    j->kind = v ? v->kind : AMP_KIND_OTHER;
    j->protocol = v ? v->protocol : AMP_PROTO_NONE;
    j->stage = PARCEL_DECIDED;
    all->n++;
    j->older = all->newest;
    if (all->newest)
        all->newest->newer = j;
    all->newest = j;
    return j;
}

int amp_parcel_fill(struct parcel *j, struct amp_span line, const struct amp_view *v,
                    struct amp_error *err)
{
    struct amp_span text = text_of(j->all, v);
    char *own = malloc(line.n + v->id.n + text.n + 3 + summary_room(v, line)), *at = own;
    if (!own)
        return amp_fail_memory(err);
    j->line = text_put(&at, line);
    j->id = text_put(&at, id_of(v));
    j->text = text.p ? text_put(&at, text) : NULL;
    if (!j->address.of)
        summary_fill(j, &at, line, v);
    free(j->own);
    j->own = own;
    j->n = line.n;
    j->kind = v->kind;
    j->protocol = v->protocol;
    return 0;
}

const char *amp_parcel_expired_code(const struct parcel *j)
{
    const char *own = amp_routing_of(j->protocol)->expired_code;
    return own ? own : "ttl_expired";
}

void amp_parcel_refuse(struct parcel *j, const char *code, const char *why, const char *by,
                       bool again)
{
    if (j->refused)
        return;
    j->refused = code;
    j->refused_by = by;
    j->again = again;
    snprintf(j->why, sizeof(j->why), "%.150s", why);
}

void amp_parcel_free(struct parcel *j)
{
    if (!j)
        return;
    struct amp_parcels *all = j->all;
    all->n--;
    if (j->newer)
        j->newer->older = j->older;
    else
        all->newest = j->older;
    if (j->older)
        j->older->newer = j->newer;
    free(j->own);
    free(j->carried);
    for (struct parcel_note *n = j->notes, *other; n; n = other) {
        other = n->other;
        free(n);
    }
    free(j->address.no_recipient);
    free(j->address.name);
    struct amp_parcels_spare *s = j->size < AMP_PARCELS_SIZES ? &all->spare[j->size] : NULL;
    if (!s || (s->n + 1) * piece_bytes(j->size) > SPARE_BYTES) {
        free(j);
        return;
    }
    j->next = s->first;
    s->first = j;
    s->n++;
}

void amp_parcels_release(struct amp_parcels *all)
{
    while (all->newest)
        amp_parcel_free(all->newest);
    for (uint32_t i = 0; i < AMP_PARCELS_SIZES; i++)
        for (struct parcel *j = all->spare[i].first, *next; j; j = next) {
            next = j->next;
            free(j);
        }
}

int amp_parcel_add_recipient(struct parcel *j, struct amp_span name,
                             struct amp_store_entry_id entry, struct amp_error *err)
{
    struct parcel *kid = amp_parcel_new(j->all, (struct amp_span){"", 0}, NULL);
    if (!kid || !(kid->address.name = amp_span_dup(name))) {
        amp_parcel_free(kid);
        return amp_fail_memory(err);
    }
    kid->entry = entry;
    kid->address.of = j;
    if (j->address.last)
        j->address.last->next = kid;
    else
        j->address.kids = kid;
    j->address.last = kid;
    j->address.n++;
    return 0;
}
