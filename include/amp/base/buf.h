/*
 * Spans and bounded buffers. Every buffer gets its maximum size at initialization; growing past it
 * fails with code "buffer_full" and leaves the contents unchanged.
 */
#ifndef AMP_BASE_BUF_H
#define AMP_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/error.h>

AMP_API_BEGIN

/* Borrowed bytes, not NUL-terminated. p may be NULL only if n is 0. */
struct amp_span {
    const char *p;
    size_t n;
};

#define AMP_SPAN(lit) ((struct amp_span){(lit), sizeof(lit) - 1})
/* The arguments for "%.*s": the span, or its first `most` bytes. */
#define AMP_CLIP(span, most) (int)((span).n < (most) ? (span).n : (most)), (span).p

struct amp_span amp_span_str(const char *s); /* NULL gives the empty span */
bool amp_span_eq(struct amp_span a, struct amp_span b);
bool amp_span_is(struct amp_span a, const char *s);
bool amp_span_starts(struct amp_span a, const char *with);
bool amp_span_ends(struct amp_span a, const char *with);
/* Copies at most size - 1 bytes and a NUL. Returns false if the span was truncated. */
bool amp_span_copy(struct amp_span a, char *dst, size_t size);
/* Returns a heap copy with a NUL, which the caller frees; NULL if out of memory. */
char *amp_span_dup(struct amp_span a);
/* Shell-style glob with `*` and `?` only, matched over bytes. */
bool amp_span_glob(struct amp_span text, struct amp_span pattern);

struct amp_buf {
    char *data;
    size_t len, cap, max;
};

void amp_buf_init(struct amp_buf *b, size_t max);
void amp_buf_release(struct amp_buf *b);
void amp_buf_reset(struct amp_buf *b); /* empties it and keeps the memory */
/* Makes room for n more bytes and a NUL after them. */
int amp_buf_reserve(struct amp_buf *b, size_t n, struct amp_error *err);
int amp_buf_add(struct amp_buf *b, const void *p, size_t n, struct amp_error *err);
int amp_buf_str(struct amp_buf *b, const char *s, struct amp_error *err);
int amp_buf_fmt(struct amp_buf *b, struct amp_error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void amp_buf_drop(struct amp_buf *b, size_t n); /* removes n bytes from the front */
struct amp_span amp_buf_span(const struct amp_buf *b);

/* Cleanup attributes: AMP_BUF struct amp_buf b; */
void amp_auto_free(void *pp); /* for a pointer from malloc */
void amp_auto_close(int *fd); /* for a descriptor, -1 is none */
#define AMP_FREE  __attribute__((cleanup(amp_auto_free)))
#define AMP_CLOSE __attribute__((cleanup(amp_auto_close)))
#define AMP_BUF   __attribute__((cleanup(amp_buf_release)))
/* Runs the struct's own release function at the end of the scope. */
#define AMP_CLEANUP(release) __attribute__((cleanup(release)))

AMP_API_END

#endif
