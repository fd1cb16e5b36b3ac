/* The result of a chunk: pieces of output in order, reports, counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "stats.h"

enum { TEXT_MOST = 1 << 30 };

int result_init(struct chunk_result *r, const struct validate_options *opt, struct amp_error *err)
{
    *r = (struct chunk_result){.lines = 0};
    amp_buf_init(&r->text, TEXT_MOST);
    amp_buf_init(&r->reports, TEXT_MOST);
    if (opt->stats && !(r->stats = stats_new()))
        return amp_fail_memory(err);
    return 0;
}

void result_release(struct chunk_result *r)
{
    free(r->pieces);
    free(r->asks);
    free(r->numbers);
    free(r->stats);
    amp_buf_release(&r->text);
    amp_buf_release(&r->reports);
}

void result_reset(struct chunk_result *r)
{
    amp_buf_reset(&r->text);
    amp_buf_reset(&r->reports);
    r->n_pieces = r->n_asks = r->n_numbers = r->used = 0;
    r->lines = r->refused = r->refused_line = r->refused_offset = 0;
    r->undecided = r->stop = false;
    r->n_refusals = 0;
    if (r->stats)
        stats_reset(r->stats);
}

static int piece_add(struct chunk_result *r, struct piece p, struct amp_error *err)
{
    if (r->n_pieces > 0) {
        struct piece *last = &r->pieces[r->n_pieces - 1];
        if (last->of_chunk == p.of_chunk && last->at + last->n == p.at) {
            last->n += p.n;
            return 0;
        }
    }
    if (amp_grow(&r->pieces, &r->cap_pieces, r->n_pieces, sizeof *r->pieces, err) < 0)
        return -1;
    r->pieces[r->n_pieces++] = p;
    return 0;
}

int result_pass(struct chunk_result *r, const struct chunk *c, struct amp_span whole,
                struct amp_error *err)
{
    return piece_add(r, (struct piece){true, (size_t)(whole.p - c->bytes.p), whole.n}, err);
}

int result_end(struct chunk_result *r, size_t begun, struct amp_error *err)
{
    if (r->text.len == begun)
        return 0;
    return piece_add(r, (struct piece){false, begun, r->text.len - begun}, err);
}

void result_count(struct chunk_result *r, const char *code)
{
    unsigned i = 0;
    while (i < r->n_refusals && i < REFUSALS_MOST - 1 && strcmp(r->refusals[i].code, code) != 0)
        i++;
    if (i == r->n_refusals) {
        bool fits = i < REFUSALS_MOST - 1;
        r->refusals[i].n = 0;
        r->n_refusals++;
        snprintf(r->refusals[i].code, sizeof r->refusals[i].code, "%s",
                 fits ? code : "other codes");
    }
    r->refusals[i].n++;
}
