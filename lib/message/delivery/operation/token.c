/* Tokens. The digested text is unambiguous because producer and operation contain no LF. */
#include "message/delivery/operation/token.h"

#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"

#define DIGITS 16

static int part_check(const char *what, struct amp_span part, struct amp_error *err)
{
    if (part.n == 0)
        return amp_fail(err, AMP_USAGE, bad_token_part, "the %s of a token is empty", what);
    if (memchr(part.p, '\n', part.n))
        return amp_fail(err, AMP_USAGE, bad_token_part, "the %s of a token contains a line feed",
                        what);
    return 0;
}

int amp_token_make(struct amp_span producer, struct amp_span operation, struct amp_span canonical,
                   struct amp_buf *out, struct amp_error *err)
{
    char sum[AMP_SHA256_MAX];
    AMP_BUF struct amp_buf preimage = {.max = producer.n + operation.n + canonical.n + 2};
    if (part_check("producer", producer, err) < 0 || part_check("operation", operation, err) < 0 ||
        amp_buf_add(&preimage, producer.p, producer.n, err) < 0 ||
        amp_buf_add(&preimage, "\n", 1, err) < 0 ||
        amp_buf_add(&preimage, operation.p, operation.n, err) < 0 ||
        amp_buf_add(&preimage, "\n", 1, err) < 0 ||
        (canonical.n > 0 && amp_buf_add(&preimage, canonical.p, canonical.n, err) < 0))
        return -1;
    amp_sha256_hex(amp_buf_span(&preimage), sum);
    return amp_buf_fmt(out, err, "%.*s:%.*s:%.*s", (int)producer.n, producer.p, (int)operation.n,
                       operation.p, DIGITS, sum);
}
