/* The message that a prefix names. */
#include <ctype.h>
#include <string.h>

#include "flow/reply/reply.h"
#include "message/record/record.h"

#define PREFIX_MIN 4

struct finding {
    struct amp_span prefix;
    char *id;
    unsigned n;
};

static int record_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                     struct amp_error *err)
{
    struct finding *f = ctx;
    (void)rec, (void)err;
    if (id.n < f->prefix.n || memcmp(id.p, f->prefix.p, f->prefix.n) != 0)
        return 0;
    amp_span_copy(id, f->id, AMP_MSG_ID_MAX);
    return ++f->n > 1;
}

int amp_reply_find(struct amp_store *s, const char *prefix, char id[AMP_MSG_ID_MAX],
                   struct amp_error *err)
{
    struct amp_span all = amp_span_str(prefix), plain = {prefix, 0};
    struct amp_store_rec rec;
    struct finding f = {.prefix = all, .id = id};
    if (all.n == 0 || all.n >= AMP_MSG_ID_MAX)
        return amp_fail(err, AMP_NO, "unknown_ref", "'%.100s' is not an id", prefix);
    if (amp_store_get(s, AMP_KEY(AMP_MESSAGE_KIND, all), &rec, err) < 0)
        return -1;
    if (rec.found) {
        amp_span_copy(all, id, AMP_MSG_ID_MAX);
        return 0;
    }
    while (plain.n < all.n && (isalnum((unsigned char)prefix[plain.n]) || prefix[plain.n] == '-' ||
                               prefix[plain.n] == '_'))
        plain.n++;
    if (all.n >= PREFIX_MIN && plain.n > 0 &&
        amp_store_each_of(s, AMP_MESSAGE_KIND, plain, record_fn, &f, err) < 0)
        return -1;
    if (f.n == 1)
        return 0;
    return f.n > 1
               ? amp_fail(err, AMP_NO, "ambiguous", "'%.100s' fits several messages", prefix)
               : amp_fail(err, AMP_NO, "unknown_ref", "the state has no message '%.100s'", prefix);
}
