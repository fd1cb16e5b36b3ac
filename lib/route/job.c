/*
 * The memory of jobs. A message is one piece: the job, its line, its id, and its text where that is
 * not the line. Pieces of common sizes are kept for the next ones.
 */
#include "route/router/router.h"

#include <stddef.h>
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
    return wrapped && r->jq ? v->text : (struct amp_span){NULL, 0};
}

struct job *amp_route_job_new(struct router *r, struct amp_span line, const struct amp_view *v)
{
    struct amp_span id = id_of(v), text = text_of(r, v);
    struct job *j = take(r, sizeof(*j) + line.n + id.n + text.n + 3);
    if (!j)
        return NULL;
    char *at = j->mem;
    j->line = put(&at, line);
    j->id = put(&at, id);
    j->text = text.p ? put(&at, text) : NULL;
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
    char *own = malloc(line.n + v->id.n + text.n + 3), *at = own;
    if (!own)
        return amp_fail_memory(err);
    j->line = put(&at, line);
    j->id = put(&at, id_of(v));
    j->text = text.p ? put(&at, text) : NULL;
    free(j->own);
    j->own = own;
    j->n = line.n;
    j->kind = v->kind;
    j->protocol = v->protocol;
    return 0;
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
    amp_recipients_free(&j->address);
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
