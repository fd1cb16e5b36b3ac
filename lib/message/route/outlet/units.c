/* Composes chunks and batches. */
#include "message/route/outlet/units.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"

static const struct {
    const char *word;
    uint8_t takes;
} words[] = {{"chunks", AMP_TAKES_CHUNKS}, {"batches", AMP_TAKES_BATCHES}};

static int words_read(const char *text, const char *list, uint8_t *takes, struct amp_error *err)
{
    for (;;) {
        const char *end = strchr(list, ',');
        struct amp_span one = {list, end ? (size_t)(end - list) : strlen(list)};
        uint8_t bit = 0;
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
            bit |= amp_span_is(one, words[i].word) ? words[i].takes : 0;
        if (!bit)
            return amp_fail(err, AMP_USAGE, bad_takes,
                            "--takes takes PORT=chunks, PORT=batches or PORT=chunks,batches: %s",
                            text);
        *takes |= bit;
        if (!end)
            return 0;
        list = end + 1;
    }
}

/* The words after the last '='; NULL: there is none. */
static const char *words_of(const char *text)
{
    const char *eq = strrchr(text, '=');
    return eq && eq > text ? eq + 1 : NULL;
}

int amp_takes_of(const struct amp_units_wanted *w, const char *spec, uint8_t *takes,
                 struct amp_error *err)
{
    *takes = 0;
    for (int i = 0; i < w->n_takes; i++) {
        const char *list = words_of(w->takes[i]);
        size_t n = list ? (size_t)(list - w->takes[i] - 1) : 0;
        if (list && strlen(spec) == n && strncmp(spec, w->takes[i], n) == 0 &&
            words_read(w->takes[i], list, takes, err) < 0)
            return -1;
    }
    return 0;
}

int amp_takes_check(const struct amp_units_wanted *w, struct amp_error *err)
{
    uint8_t any = 0;
    for (int i = 0; i < w->n_takes; i++) {
        const char *list = words_of(w->takes[i]);
        if (words_read(w->takes[i], list ? list : "", &any, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- units ---- */

/* A parcel with that line, signed like the answers of the router. */
static struct parcel *unit_make(const struct amp_route_run *run, struct amp_parcels *all,
                                const char *id, struct amp_span line, struct amp_error *err)
{
    AMP_BUF struct amp_buf sealed = {0};
    amp_buf_init(&sealed, line.n + 8192);
    if (run->voice->sign) {
        if (run->voice->sign(line, &sealed, err) < 0)
            return NULL;
        line = amp_buf_span(&sealed);
    }
    const struct amp_view v = {.line = line,
                               .message = line,
                               .text = line,
                               .id = amp_span_str(id),
                               .payload = AMP_TOK_NONE};
    struct parcel *j = amp_parcel_new(all, line, &v);
    if (!j)
        amp_fail_memory(err);
    return j;
}

struct parcel_chunks *amp_chunks_of(const struct parcel *j, const void *port)
{
    for (struct parcel_note *n = j->notes; n; n = n->other) {
        struct parcel_chunks *c = (struct parcel_chunks *)(void *)n;
        if (c->port == port)
            return c;
    }
    return NULL;
}

int amp_chunks_begin(struct parcel *j, const void *port, size_t chunk, struct amp_error *err)
{
    const struct parcel *came = j->address.of ? j->address.of : j;
    struct parcel_chunks *c = calloc(1, sizeof *c);
    if (!c)
        return amp_fail_memory(err);
    c->t = (struct amp_unit_transfer){.line = {j->line, j->n},
                                      .chunk_size = chunk,
                                      .protocol = j->protocol,
                                      .ref = amp_span_str(j->id),
                                      .from = came->summary.from,
                                      .correlation = came->summary.correlation,
                                      .task = came->summary.task};
    amp_unit_transfer_begin(&c->t);
    c->parcel = j;
    c->port = port;
    c->note.other = j->notes;
    j->notes = &c->note;
    return 0;
}

/* Makes the unit with that line, and room for the n messages in it. */
static struct parcel *carrier_make(const struct amp_route_run *run, struct amp_parcels *all,
                                   const char *id, struct amp_span line, uint32_t n,
                                   struct amp_error *err)
{
    struct parcel *j = unit_make(run, all, id, line, err);
    if (!j)
        return NULL;
    j->n_carried = n;
    if (!(j->carried = calloc(n, sizeof(struct parcel *)))) {
        amp_parcel_free(j);
        amp_fail_memory(err);
        return NULL;
    }
    return j;
}

int amp_chunks_next(const struct amp_route_run *run, const struct parcel_chunks *c,
                    struct parcel **out, struct amp_error *err)
{
    char id[AMP_UUID_MAX];
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, c->t.chunk_size * 2 + ((size_t)64 << 10));
    if (amp_unit_chunk(&c->t, c->next, run->name, amp_now_ms(), id, &line, err) < 0 ||
        !(*out = carrier_make(run, c->parcel->all, id, amp_buf_span(&line), 1, err)))
        return -1;
    (*out)->carried[0] = c->parcel;
    (*out)->expires_ms = c->parcel->expires_ms;
    return 0;
}

int amp_batch_make(const struct amp_route_run *run, struct parcel *const *v, uint32_t n,
                   struct parcel **out, struct amp_error *err)
{
    struct amp_span lines[AMP_BATCH_MAX];
    size_t bytes = 0;
    char id[AMP_UUID_MAX];
    AMP_BUF struct amp_buf line = {0};
    for (uint32_t i = 0; i < n; i++) {
        lines[i] = (struct amp_span){v[i]->line, v[i]->n};
        bytes += v[i]->n;
    }
    amp_buf_init(&line, bytes * 6 + ((size_t)64 << 10));
    if (amp_unit_batch(lines, n, run->name, amp_now_ms(), id, &line, err) < 0 ||
        !(*out = carrier_make(run, v[0]->all, id, amp_buf_span(&line), n, err)))
        return -1;
    memcpy((*out)->carried, v, n * sizeof(struct parcel *));
    return 0;
}
