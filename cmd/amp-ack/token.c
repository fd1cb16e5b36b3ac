/* amp-ack token: the idempotency token of an operation whose canonical parameters are on stdin. */
#include <errno.h>
#include <unistd.h>

#include "base/codes.h"
#include "message/delivery/operation/token.h"
#include "verbs.h"

#define CANONICAL_MAX ((size_t)64 << 20)

static const struct amp_opt token_opts[] = {AMP_OPT_END};

static int stdin_read(struct amp_buf *out, struct amp_error *err)
{
    char piece[65536];
    amp_note_terminal(NULL);
    for (;;) {
        ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));
        if (n == 0)
            return 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot read standard input");
        if (out->len + (size_t)n > CANONICAL_MAX)
            return amp_fail(err, AMP_DATAERR, file_too_large,
                            "standard input has more than 64 MiB");
        if (amp_buf_add(out, piece, (size_t)n, err) < 0)
            return -1;
    }
}

static int ack_token(struct amp_command *c, struct amp_error *err)
{
    AMP_BUF struct amp_buf canonical = {.max = CANONICAL_MAX}, token = {.max = 1 << 20};
    if (stdin_read(&canonical, err) < 0 ||
        amp_token_make(amp_span_str(c->argv[0]), amp_span_str(c->argv[1]), amp_buf_span(&canonical),
                       &token, err) < 0 ||
        amp_buf_add(&token, "\n", 1, err) < 0)
        return -1;
    return amp_out(amp_buf_span(&token), err);
}

const struct amp_verb token_verbs[] = {
    {
        "token",
        "PRODUCER OPERATION",
        "print the idempotency token of the parameters on stdin",
        token_opts,
        ack_token,
        .least = 2,
        .most = 2,
        .usage = "a PRODUCER and an OPERATION are needed",
    },
    {0},
};
