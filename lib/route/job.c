/*
 * The memory of jobs. A message is one piece: the job, its line, its id, and its text where that is
 * not the line. Pieces of common sizes are kept for the next ones.
 */
#include "route/router/router.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_LEAST 1024
#define SPARE_BYTES ((size_t)256 << 10) /* of each size, at most */

static size_t piece(uint32_t size)
{
    return (size_t)PIECE_LEAST << size;
}

static struct job *take(struct router *r, size_t want)
{
    uint32_t size = 0;
    struct job *j;
    while (size < JOB_SIZES && piece(size) < want)
        size++;
    if (size < JOB_SIZES && (j = r->spare_jobs[size].first)) {
        r->spare_jobs[size].first = j->next;
        r->spare_jobs[size].n--;
    } else if (!(j = malloc(size < JOB_SIZES ? piece(size) : want))) {
        return NULL;
    }
    memset(j, 0, offsetof(struct job, why));
    j->why[0] = 0;
    j->size = size;
    return j;
}

/* A copy with NUL behind it. */
static char *put(char **at, struct amp_span s)
{
    char *copy = *at;
    if (s.n > 0)
        memcpy(copy, s.p, s.n);
    copy[s.n] = 0;
    *at += s.n + 1;
    return copy;
}

/* An id is used as a C string: one with a NUL, out of an older log, is none. */
static struct amp_span id_of(const struct amp_view *v)
{
    struct amp_span none = {"", 0};
    return !v || (v->id.n > 0 && memchr(v->id.p, '\0', v->id.n)) ? none : v->id;
}

static struct amp_span text_of(const struct router *r, const struct amp_view *v)
{
    bool wrapped = v && (v->text.p != v->line.p || v->text.n != v->line.n);
    return wrapped && r->wants_text ? v->text : (struct amp_span){NULL, 0};
}

/* ---- the summary ---- */

#define PART(member)                                                                               \
    {                                                                                              \
        offsetof(struct amp_view, member), offsetof(struct summary, member)                        \
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

static bool is_inside(struct amp_span line, struct amp_span s)
{
    uintptr_t first = (uintptr_t)line.p, at = (uintptr_t)s.p;
    return s.n > 0 && at >= first && at + s.n <= first + line.n;
}

/* Bytes that it needs beside the line. */
static size_t summary_room(const struct amp_view *v, struct amp_span line)
{
    size_t n = _Alignof(struct amp_span) + v->n_to * sizeof(struct amp_span);
    struct amp_span excerpt = excerpt_of(v);
    for (size_t i = 0; i < N_PARTS; i++)
        n += is_inside(line, part_of(v, i)) ? 0 : part_of(v, i).n + 1;
    for (uint32_t i = 0; i < v->n_to; i++)
        n += is_inside(line, v->to[i]) ? 0 : v->to[i].n + 1;
    return n + (is_inside(line, excerpt) ? 0 : excerpt.n + 1);
}

/* The same text in our copy of the line, or a copy of its own. */
static struct amp_span summary_put(const struct job *j, char **at, struct amp_span line,
                                   struct amp_span s)
{
    if (is_inside(line, s))
        return (struct amp_span){j->line + (s.p - line.p), s.n};
    return (struct amp_span){put(at, s), s.n};
}

static void summary_fill(struct job *j, char **at, struct amp_span line, const struct amp_view *v)
{
    struct summary *s = &j->summary;
    uintptr_t align = _Alignof(struct amp_span), odd = (uintptr_t)*at % align;
    *s = (struct summary){.known = true,
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
    for (size_t i = 0; i < N_PARTS; i++)
        *(struct amp_span *)(void *)((char *)s + parts[i].at) =
            summary_put(j, at, line, part_of(v, i));
    s->excerpt = summary_put(j, at, line, excerpt_of(v));
}

struct amp_span amp_route_job_whole(const struct job *j)
{
    const struct job *came = j->address.of ? j->address.of : j;
    return (struct amp_span){came->line, came->n};
}

bool amp_route_job_view(const struct job *j, struct amp_view *v)
{
    static const struct amp_tape empty = {.text = ""};
    const struct job *came = j->address.of ? j->address.of : j;
    const struct summary *s = &came->summary;
    struct amp_span line = {came->line, came->n};
    if (!s->known)
        return false;
    *v = (struct amp_view){.protocol = came->protocol,
                           .kind = came->kind,
                           .line = line,
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

/* ---- jobs ---- */

struct job *amp_route_job_new(struct router *r, struct amp_span line, const struct amp_view *v)
{
    struct amp_span id = id_of(v), text = text_of(r, v);
    struct job *j =
        take(r, sizeof(*j) + line.n + id.n + text.n + 3 + (v ? summary_room(v, line) : 0));
    if (!j)
        return NULL;
    char *at = j->mem;
    j->line = put(&at, line);
    j->id = put(&at, id);
    j->text = text.p ? put(&at, text) : NULL;
    if (v)
        summary_fill(j, &at, line, v);
    j->n = line.n;
    j->kind = v ? v->kind : AMP_KIND_OTHER;
    j->protocol = v ? v->protocol : AMP_PROTO_NONE;
    j->stage = JOB_DECIDED;
    r->n_jobs++;
    j->older = r->newest;
    if (r->newest)
        r->newest->newer = j;
    r->newest = j;
    return j;
}

int amp_route_job_fill(const struct router *r, struct job *j, struct amp_span line,
                       const struct amp_view *v, struct amp_error *err)
{
    struct amp_span text = text_of(r, v);
    char *own = malloc(line.n + v->id.n + text.n + 3 + summary_room(v, line)), *at = own;
    if (!own)
        return amp_fail_memory(err);
    j->line = put(&at, line);
    j->id = put(&at, id_of(v));
    j->text = text.p ? put(&at, text) : NULL;
    if (!j->address.of)
        summary_fill(j, &at, line, v);
    free(j->own);
    j->own = own;
    j->n = line.n;
    j->kind = v->kind;
    j->protocol = v->protocol;
    return 0;
}

void amp_route_job_refuse(struct job *j, const char *code, const char *why, const char *by,
                          bool again)
{
    if (j->refused)
        return;
    j->refused = code;
    j->refused_by = by;
    j->again = again;
    snprintf(j->why, sizeof(j->why), "%.150s", why);
}

void amp_route_job_free(struct router *r, struct job *j)
{
    if (!j)
        return;
    r->n_jobs--;
    if (j->newer)
        j->newer->older = j->older;
    else
        r->newest = j->older;
    if (j->older)
        j->older->newer = j->newer;
    free(j->own);
    free(j->address.mark);
    free(j->address.nobody);
    free(j->address.name);
    struct spare_jobs *s = j->size < JOB_SIZES ? &r->spare_jobs[j->size] : NULL;
    if (!s || (s->n + 1) * piece(j->size) > SPARE_BYTES) {
        free(j);
        return;
    }
    j->next = s->first;
    s->first = j;
    s->n++;
}

void amp_route_jobs_free(struct router *r)
{
    while (r->newest)
        amp_route_job_free(r, r->newest);
    for (uint32_t i = 0; i < JOB_SIZES; i++)
        for (struct job *j = r->spare_jobs[i].first, *next; j; j = next) {
            next = j->next;
            free(j);
        }
}
