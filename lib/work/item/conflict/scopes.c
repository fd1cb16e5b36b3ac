/* A table of scopes by their types and texts. */
#include "work/item/conflict/scopes.h"

#include <stdlib.h>
#include <string.h>

#include "work/item/queue.h"

#define TABLE_MIN 1024

static size_t scope_hash(const void *type, struct amp_span text)
{
    uint64_t h = 1469598103934665603u ^ (uintptr_t)type;

    for (size_t i = 0; i < text.n; i++)
        h = (h ^ (unsigned char)text.p[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

static struct amp_shared_scope **scope_place(const struct amp_scopes *s, const void *type,
                                             struct amp_span text)
{
    struct amp_shared_scope **at = &s->table[scope_hash(type, text) & (s->n_buckets - 1)];

    while (*at && ((*at)->type != type || !amp_span_is(text, (*at)->text)))
        at = &(*at)->next;
    return at;
}

static int table_grow(struct amp_scopes *s, struct amp_error *err)
{
    size_t n = s->n_buckets ? s->n_buckets * 2 : TABLE_MIN;
    struct amp_shared_scope **table = calloc(n, sizeof *table);

    if (!table)
        return amp_fail_memory(err);
    for (size_t i = 0; i < s->n_buckets; i++)
        for (struct amp_shared_scope *x = s->table[i], *next; x; x = next) {
            struct amp_shared_scope **at =
                &table[scope_hash(x->type, amp_span_str(x->text)) & (n - 1)];
            next = x->next;
            x->next = *at;
            *at = x;
        }
    free(s->table);
    s->table = table;
    s->n_buckets = n;
    return 0;
}

void amp_scopes_release(struct amp_scopes *s)
{
    free(s->table);
    *s = (struct amp_scopes){0};
}

static void scope_free(struct amp_shared_scope *x)
{
    amp_buf_release(&x->mem);
    free(x->text);
    free(x);
}

static int scope_make(const void *type, struct amp_span text, struct amp_shared_scope **out,
                      struct amp_error *err)
{
    struct amp_shared_scope *x = calloc(1, sizeof *x);

    if (!x || !(x->text = amp_span_dup(text))) {
        free(x);
        return amp_fail_memory(err);
    }
    x->type = type;
    amp_buf_init(&x->mem, 4 * AMP_QUEUE_SCOPE_MAX);
    if (amp_scope_parse(text, &x->mem, &x->parsed, err) < 0) {
        scope_free(x);
        return -1;
    }
    *out = x;
    return 0;
}

int amp_scopes_take(struct amp_scopes *s, const void *type, struct amp_span text,
                    struct amp_shared_scope **out, struct amp_error *err)
{
    *out = NULL;
    if (s->n >= s->n_buckets && table_grow(s, err) < 0)
        return -1;
    struct amp_shared_scope **at = scope_place(s, type, text);
    if (!*at) {
        if (scope_make(type, text, at, err) < 0)
            return -1;
        s->n++;
    }
    (*at)->uses++;
    *out = *at;
    return 0;
}

void amp_scopes_drop(struct amp_scopes *s, struct amp_shared_scope *scope)
{
    if (!scope || --scope->uses)
        return;
    struct amp_shared_scope **at = scope_place(s, scope->type, amp_span_str(scope->text));
    *at = scope->next;
    s->n--;
    scope_free(scope);
}

bool amp_scopes_meet(const struct amp_shared_scope *a, const struct amp_shared_scope *b,
                     bool (*patterns)(struct amp_span, struct amp_span))
{
    if (a == b)
        return *a->text != '\0';
    return amp_scope_overlap(&a->parsed, &b->parsed, a->type == b->type, patterns);
}
