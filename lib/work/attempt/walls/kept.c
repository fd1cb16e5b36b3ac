/* Keeps the beginning and the end of a command's output. */
#include "work/attempt/walls/kept.h"

#include <string.h>

#include "json/text.h"

void amp_kept_add(struct amp_kept_output *s, struct amp_span more)
{
    s->bytes += (int64_t)more.n;
    size_t room = sizeof s->head - s->n_head, n = more.n < room ? more.n : room;
    memcpy(s->head + s->n_head, more.p, n);
    s->n_head += n;
    for (size_t i = n; i < more.n; i++) {
        s->tail[s->at] = more.p[i];
        s->at = (s->at + 1) % sizeof s->tail;
        if (s->n_tail < sizeof s->tail)
            s->n_tail++;
    }
}

int amp_kept_clean(struct amp_span in, struct amp_buf *out, struct amp_error *err)
{
    for (size_t i = 0; i < in.n;) {
        const unsigned char *p = (const unsigned char *)in.p + i;
        size_t n = *p < 0x80 ? 1 : amp_utf8_length(p, in.n - i);
        bool bad = n == 0 || (*p < ' ' && *p != '\n' && *p != '\t') || *p == 0x7f;
        if (amp_buf_add(out, bad ? "?" : (const char *)p, bad ? 1 : n, err) < 0)
            return -1;
        i += n ? n : 1;
    }
    return 0;
}

int amp_kept_text(const struct amp_kept_output *s, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf tail = {.max = sizeof s->tail + 1};
    int64_t left_out = s->bytes - (int64_t)(s->n_head + s->n_tail);
    size_t from = s->n_tail < sizeof s->tail ? 0 : s->at;

    if (amp_buf_add(&tail, s->tail + from, s->n_tail - from, err) < 0 ||
        amp_buf_add(&tail, s->tail, from, err) < 0 ||
        amp_kept_clean((struct amp_span){s->head, s->n_head}, out, err) < 0 ||
        (left_out > 0 && amp_buf_fmt(out, err, "\n[%lld bytes]\n", (long long)left_out) < 0))
        return -1;
    return amp_kept_clean(amp_buf_span(&tail), out, err);
}

int amp_kept_end(const struct amp_kept_output *s, size_t most, struct amp_buf *out,
                 struct amp_error *err)
{
    AMP_BUF struct amp_buf all = {.max = 8 * AMP_KEPT_BYTES};

    if (amp_kept_text(s, &all, err) < 0)
        return -1;
    size_t n = all.len, from;
    while (n && strchr(" \t\n", all.data[n - 1]))
        n--;
    for (from = n > most ? n - most : 0; from < n && (all.data[from] & 0xc0) == 0x80;)
        from++;
    return (from && amp_buf_str(out, "…", err) < 0) ||
                   (n && amp_buf_add(out, all.data + from, n - from, err) < 0)
               ? -1
               : 0;
}
