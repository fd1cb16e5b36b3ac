/* Filling structs by pointer tables: see fill.h. */
#include "message/protocol/view/fill.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>
#include <amp/protocol/protocol.h>

#include "json/bytes.h"
#include "json/shapes.h"

#define DURATION_MOST 315576000000.0 /* seconds: the most that protobuf allows, 10,000 years */

const struct amp_fill_table amp_fill_nothing = {NULL, 0, 0};

int amp_fill_text(const struct amp_tape *t, uint32_t tok, struct amp_arena *arena,
                  struct amp_span *out, struct amp_error *err)
{
    if (!(t->tok[tok].flags & AMP_TOK_ESCAPED)) {
        *out = amp_tok_raw(t, tok);
        return 0;
    }
    /* Decoding never makes a text longer, so a buffer over this memory never grows. */
    enum { SLACK = 16 };
    size_t room = (size_t)t->tok[tok].len + SLACK;
    struct amp_buf over = {.cap = room, .max = room};
    over.data = amp_arena_get(arena, room + 1);
    if (!over.data)
        return amp_fail_memory(err);
    return amp_tok_text(t, tok, &over, out, err);
}

/* The first `most` texts among the values from `at` to `end`. */
static int fill_strings(const struct amp_tape *t, uint32_t at, uint32_t end, uint32_t most,
                        struct amp_arena *arena, struct amp_span **out, uint32_t *n,
                        struct amp_error *err)
{
    uint32_t have = 0;
    struct amp_span *v = most ? amp_arena_get(arena, most * sizeof *v) : NULL;
    if (most && !v)
        return amp_fail_memory(err);
    for (uint32_t i = at; i < end && have < most; i = t->tok[i].next) {
        if (t->tok[i].type != AMP_JSON_STRING)
            continue;
        if (amp_fill_text(t, i, arena, &v[have], err) < 0)
            return -1;
        have++;
    }
    *out = v;
    *n = have;
    return 0;
}

static int fill_texts(const struct amp_tape *t, uint32_t tok, struct amp_arena *arena,
                      struct amp_spans *out, struct amp_error *err)
{
    struct amp_span *v;
    uint32_t n;
    if (fill_strings(t, tok + 1, t->tok[tok].next, t->tok[tok].count, arena, &v, &n, err) < 0)
        return -1;
    *out = (struct amp_spans){v, n};
    return 0;
}

static int fill_names(const struct amp_tape *t, uint32_t tok, struct amp_arena *arena,
                      struct amp_span **out, uint32_t *count, struct amp_error *err)
{
    bool array = t->tok[tok].type == AMP_JSON_ARRAY;
    uint32_t most = array ? t->tok[tok].count : 1;
    return fill_strings(t, array ? tok + 1 : tok, t->tok[tok].next,
                        most > AMP_TO_MAX ? AMP_TO_MAX : most, arena, out, count, err);
}

static enum amp_tri tri_of(const struct amp_tok *tok)
{
    if (tok->type == AMP_JSON_TRUE)
        return AMP_TRI_TRUE;
    return tok->type == AMP_JSON_FALSE ? AMP_TRI_FALSE : AMP_TRI_NULL;
}

static int fill_tris(const struct amp_tape *t, uint32_t tok, struct amp_arena *arena,
                     const enum amp_tri **out, uint32_t *count, struct amp_error *err)
{
    uint32_t n = t->tok[tok].count, have = 0;
    enum amp_tri *v = n ? amp_arena_get(arena, n * sizeof *v) : NULL;
    if (n && !v)
        return amp_fail_memory(err);
    for (uint32_t i = tok + 1; i < t->tok[tok].next; i = t->tok[i].next)
        v[have++] = tri_of(&t->tok[i]);
    *out = v;
    *count = have;
    return 0;
}

static int fill_list(const struct amp_tape *t, uint32_t tok, const struct amp_fill_table *table,
                     struct amp_arena *arena, const void **out, uint32_t *count,
                     struct amp_error *err)
{
    uint32_t n = t->tok[tok].count, have = 0;
    char *v = n ? amp_arena_get(arena, n * table->size) : NULL;
    if (n && !v)
        return amp_fail_memory(err);
    for (uint32_t i = tok + 1; i < t->tok[tok].next; i = t->tok[i].next) {
        if (t->tok[i].type != AMP_JSON_OBJECT)
            continue;
        if (amp_fill(t, i, table, v + have * table->size, arena, err) < 0)
            return -1;
        have++;
    }
    *out = v;
    *count = have;
    return 0;
}

static bool fill_word(const struct amp_tape *t, uint32_t tok, const struct amp_word_list *words,
                      void *place)
{
    for (unsigned i = 0; i < words->n; i++)
        if (amp_tok_is(t, tok, amp_span_str(words->word[i]))) {
            memcpy(place, &i, sizeof i);
            return true;
        }
    return false;
}

/* The seconds of a number, or of the digits in a string before `unit`. */
static bool seconds_read(const struct amp_tape *t, uint32_t tok, const char *unit, double *out)
{
    struct amp_span text = amp_tok_raw(t, tok);
    struct amp_error none;
    size_t n = strlen(unit);
    if (t->tok[tok].type == AMP_JSON_NUMBER)
        return amp_tok_real(t, tok, out);
    if (t->tok[tok].type != AMP_JSON_STRING || text.n < n ||
        memcmp(text.p + text.n - n, unit, n) != 0)
        return false;
    text.n -= n;
    return amp_num_real(text, 0, DURATION_MOST, out, &none) == 0;
}

/* A Duration in one of the JSON forms that writers of protobuf use. */
static bool fill_duration(const struct amp_tape *t, uint32_t tok, void *place)
{
    double seconds = 0, nanos = 0;
    if (t->tok[tok].type == AMP_JSON_OBJECT) {
        uint32_t s = amp_tape_get(t, tok, AMP_SPAN("seconds")),
                 n = amp_tape_get(t, tok, AMP_SPAN("nanos"));
        if ((s != AMP_TOK_NONE && !seconds_read(t, s, "", &seconds)) ||
            (n != AMP_TOK_NONE && !seconds_read(t, n, "", &nanos)))
            return false;
        seconds += nanos / 1e9;
    } else if (!seconds_read(t, tok, "s", &seconds)) {
        return false;
    }
    if (seconds < 0 || seconds > DURATION_MOST)
        return false;
    int64_t ms = (int64_t)(seconds * 1000 + 0.5);
    if (ms == 0 && seconds > 0)
        ms = 1;
    memcpy(place, &ms, sizeof ms);
    return true;
}

/* 1: filled; 0: the value has another type; -1: failure. */
static int fill_scalar(const struct amp_tape *t, uint32_t tok, const struct amp_fill_row *row,
                       void *place, struct amp_arena *arena, struct amp_error *err)
{
    uint8_t type = t->tok[tok].type;
    struct amp_span text;
    int64_t n;
    double real;
    switch (row->as) {
    case AMP_AS_TEXT:
        if (type != AMP_JSON_STRING)
            return 0;
        if (amp_fill_text(t, tok, arena, &text, err) < 0)
            return -1;
        memcpy(place, &text, sizeof text);
        return 1;
    case AMP_AS_TIME:
        if (type != AMP_JSON_STRING)
            return 0;
        if (amp_fill_text(t, tok, arena, &text, err) < 0)
            return -1;
        if (!amp_time_parse(text, &n))
            return 0;
        memcpy(place, &n, sizeof n);
        return 1;
    case AMP_AS_INT:
    case AMP_AS_SIZE:
    case AMP_AS_SECONDS:
        if (type != AMP_JSON_NUMBER || !amp_tok_int(t, tok, &n))
            return 0;
        if (row->as == AMP_AS_SIZE && n < 0)
            return 0;
        if (row->as == AMP_AS_SECONDS) {
            if (n < 0 || n > INT64_MAX / 1000)
                return 0;
            n *= 1000;
        }
        memcpy(place, &n, sizeof n);
        return 1;
    case AMP_AS_DURATION:
        return fill_duration(t, tok, place);
    case AMP_AS_REAL:
        if (type != AMP_JSON_NUMBER || !amp_tok_real(t, tok, &real))
            return 0;
        memcpy(place, &real, sizeof real);
        return 1;
    case AMP_AS_BOOL:
        if (type != AMP_JSON_TRUE && type != AMP_JSON_FALSE)
            return 0;
        *(bool *)place = type == AMP_JSON_TRUE;
        return 1;
    case AMP_AS_WORD:
        return type == AMP_JSON_STRING && fill_word(t, tok, row->of, place);
    case AMP_AS_TRI:
        *(enum amp_tri *)place = tri_of(&t->tok[tok]);
        return 1;
    case AMP_AS_SOURCE:
        if (type != AMP_JSON_OBJECT)
            return 0;
        text = amp_tok_source(t, tok);
        memcpy(place, &text, sizeof text);
        return 1;
    case AMP_AS_TOKEN:
        memcpy(place, &tok, sizeof tok);
        return 1;
    default:
        return 0;
    }
}

static int fill_row(const struct amp_tape *t, uint32_t tok, const struct amp_fill_row *row,
                    char *target, struct amp_arena *arena, struct amp_error *err)
{
    char *place = target + row->at, *also = target + row->also;
    bool array = t->tok[tok].type == AMP_JSON_ARRAY;
    switch (row->as) {
    case AMP_AS_TEXTS:
        return array ? fill_texts(t, tok, arena, (struct amp_spans *)place, err) : 0;
    case AMP_AS_NAMES:
        return fill_names(t, tok, arena, (struct amp_span **)place, (uint32_t *)also, err);
    case AMP_AS_TRIS:
        return array ? fill_tris(t, tok, arena, (const enum amp_tri **)place, (uint32_t *)also, err)
                     : 0;
    case AMP_AS_LIST:
        return array
                   ? fill_list(t, tok, row->of, arena, (const void **)place, (uint32_t *)also, err)
                   : 0;
    default: {
        int got = fill_scalar(t, tok, row, place, arena, err);
        if (got < 0)
            return -1;
        if (row->also)
            *(bool *)also = got == 1;
        return 0;
    }
    }
}

enum { LENGTHS = 32, PLANS = 128, PLAN_ROWS = 40, DEEPER = 64 };

/* The members of an object by the lengths of their names, which differ in most cases. */
struct members {
    const struct amp_tape *t;
    uint32_t key[AMP_SHAPE_KEYS];
    uint8_t head[LENGTHS], next[AMP_SHAPE_KEYS]; /* 1 + index, 0: none */
};

/* The members for the rows of a table in objects of one shape: 1 + the member's number, or 0; with
 * DEEPER if the pointer continues in the member. */
struct amp_fill_plan {
    const struct amp_fill_table *table;
    uint64_t shapes;
    uint16_t shape;
    uint8_t row[PLAN_ROWS];
};

static struct amp_fill_plan *plan_slot(struct amp_arena *a, const struct amp_fill_table *table,
                                       uint16_t shape)
{
    struct amp_fill_plan *plans = a->kept;
    if (!plans && !(a->kept = plans = calloc(PLANS, sizeof *plans)))
        return NULL; /* plans are optional */
    uint64_t mixed = ((uint64_t)(uintptr_t)table + shape) * UINT64_C(0x9e3779b97f4a7c15);
    return &plans[mixed >> 40 & (PLANS - 1)];
}

static uint8_t member_find(const struct members *m, struct amp_span name)
{
    uint8_t i = m->head[name.n % LENGTHS];
    for (; i; i = m->next[i - 1]) {
        const struct amp_tok *k = &m->t->tok[m->key[i - 1]];
        if (k->len == name.n && amp_same_bytes(m->t->text + k->off, name.p, name.n))
            break;
    }
    return i;
}

static void make_plan(struct amp_fill_plan *p, struct members *m,
                      const struct amp_fill_table *table, uint32_t n)
{
    memset(m->head, 0, sizeof m->head);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *head = &m->head[m->t->tok[m->key[i]].len % LENGTHS];
        m->next[i] = *head;
        *head = (uint8_t)(i + 1);
    }
    for (unsigned i = 0; i < table->n; i++) {
        struct amp_span name = {table->rows[i].pointer.p + 1, table->rows[i].pointer.n - 1};
        p->row[i] = member_find(m, name);
        const char *slash = p->row[i] ? NULL : memchr(name.p, '/', name.n);
        if (!slash)
            continue;
        name.n = (size_t)(slash - name.p);
        p->row[i] = member_find(m, name);
        if (p->row[i])
            p->row[i] |= DEEPER;
    }
}

/* Lists the members in m and finds or makes the plan for them; *own is used if there is no slot for
 * it. NULL: the object is large, or a name has escapes. */
static const struct amp_fill_plan *plan_of(struct amp_arena *a, const struct amp_fill_table *table,
                                           uint32_t object, struct members *m,
                                           struct amp_fill_plan *own)
{
    const struct amp_tok *tok = m->t->tok, *k = &tok[object];
    uint32_t n = k->count, key = object + 1;
    uint8_t flags = 0;
    if (n > AMP_SHAPE_KEYS || table->n > PLAN_ROWS)
        return NULL;
    for (uint32_t i = 0; i < n; i++, key = tok[key + 1].next) {
        m->key[i] = key;
        flags |= tok[key].flags;
    }
    if (flags & AMP_TOK_ESCAPED)
        return NULL;
    struct amp_fill_plan *p = k->shape ? plan_slot(a, table, k->shape) : NULL;
    if (!p) {
        make_plan(own, m, table, n);
        return own;
    }
    if (p->table != table || p->shape != k->shape || p->shapes != amp_tape_shapes(m->t)) {
        make_plan(p, m, table, n);
        p->table = table;
        p->shape = k->shape;
        p->shapes = amp_tape_shapes(m->t);
    }
    return p;
}

/* The token at the rest of a pointer, in the value of its first key. */
static uint32_t pointer_follow(const struct amp_tape *t, uint32_t key, struct amp_span pointer)
{
    const char *slash = memchr(pointer.p + 1, '/', pointer.n - 1);
    pointer.n -= (size_t)(slash - pointer.p);
    return amp_tape_pointer(t, key + 1, (struct amp_span){slash, pointer.n});
}

int amp_fill(const struct amp_tape *t, uint32_t from, const struct amp_fill_table *table,
             void *target, struct amp_arena *arena, struct amp_error *err)
{
    if (from == AMP_TOK_NONE || t->tok[from].type != AMP_JSON_OBJECT || table->n == 0)
        return 0;
    struct members m;
    struct amp_fill_plan own;
    m.t = t;
    const struct amp_fill_plan *plan = plan_of(arena, table, from, &m, &own);
    for (unsigned i = 0; i < table->n; i++) {
        const struct amp_fill_row *row = &table->rows[i];
        uint32_t tok;
        if (!plan) {
            tok = amp_tape_pointer(t, from, row->pointer);
        } else if (!plan->row[i]) {
            continue;
        } else {
            uint32_t key = m.key[(plan->row[i] & (DEEPER - 1)) - 1];
            tok = plan->row[i] & DEEPER ? pointer_follow(t, key, row->pointer) : key + 1;
        }
        if (tok == AMP_TOK_NONE)
            continue;
        if (row->as == AMP_AS_TEXT && !row->also && t->tok[tok].type == AMP_JSON_STRING &&
            !(t->tok[tok].flags & AMP_TOK_ESCAPED)) {
            struct amp_span text = amp_tok_raw(t, tok);
            memcpy((char *)target + row->at, &text, sizeof text);
        } else if (fill_row(t, tok, row, target, arena, err) < 0) {
            return -1;
        }
        /* The items of a list also have plans, which may have replaced this one. */
        if (row->as == AMP_AS_LIST && plan && plan != &own &&
            (plan->table != table || plan->shape != t->tok[from].shape))
            plan = plan_of(arena, table, from, &m, &own);
    }
    return 0;
}
