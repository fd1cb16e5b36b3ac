/* --extract: an input is any text; each message in it is judged as a line of its own. */
#include <string.h>

#include "session.h"

struct extraction {
    struct session *session;
    struct result result;
    struct amp_buf line;
    const char *file;
};

/* As session_emit, for what was found. */
static int take(void *ctx, struct amp_span text, const struct amp_found *at, struct amp_error *err)
{
    struct extraction *e = ctx;
    /* What is no JSON may have line ends in it; it is one text all the same. */
    bool whole = !at->too_long && memchr(text.p, '\n', text.n);
    e->session->found++;
    amp_buf_reset(&e->line);
    if (amp_buf_add(&e->line, text.p, text.n, err) < 0 ||
        (!whole && amp_buf_add(&e->line, "\n", 1, err) < 0))
        return -1;
    struct chunk c = {.file = e->file,
                      .bytes = amp_buf_span(&e->line),
                      .line = at->line,
                      .offset = at->offset,
                      .too_long = at->too_long,
                      .document = whole,
                      .found = at};
    return session_take(e->session, &c, &e->result, err);
}

static int feed(struct session *s, struct stream *in, struct amp_extract *x, struct amp_error *err)
{
    int got, stop = 0;
    do {
        got = session_fill(s, in, err);
        struct amp_span part = {in->buf.data + in->pos, in->buf.len - in->pos};
        if (got > 0) {
            stop = amp_extract_feed(x, part, err);
            stream_take(in, part.n, 0);
        }
    } while (got > 0 && stop == 0);
    if (got < 0)
        return -1;
    return stop ? stop : amp_extract_end(x, err);
}

int extract_input(struct session *s, struct stream *in, struct amp_error *err)
{
    struct amp_json_limits limits = amp_json_limits_default;
    struct extraction e = {.session = s, .file = in->file};
    enum amp_protocol only = AMP_PROTO_NONE;
    limits.max_bytes = (uint32_t)s->opt->max_line;
    limits.max_depth = (uint32_t)s->opt->max_depth;
    if (s->opt->protocol)
        only = amp_protocol_find(amp_span_str(s->opt->protocol));
    if (result_init(&e.result, s->opt, err) < 0)
        return -1;
    amp_buf_init(&e.line, (size_t)s->opt->max_line + 1024);
    struct amp_extract *x = amp_extract_new(&limits, only, take, &e, err);
    int stop = x ? feed(s, in, x, err) : -1;
    amp_extract_free(x);
    amp_buf_release(&e.line);
    result_release(&e.result);
    return stop;
}
