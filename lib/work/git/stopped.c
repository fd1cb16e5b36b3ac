/* Reads the file of suspended agents. */
#include "work/git/stopped.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"

#define PLACE "amp/" AMP_STOPPED_FILE

/* The rest of the line after "NAME " if it begins so. */
static bool line_is(struct amp_span line, const char *name, struct amp_span *rest)
{
    size_t n = strlen(name);

    if (line.n <= n || memcmp(line.p, name, n) != 0 || line.p[n] != ' ')
        return false;
    *rest = (struct amp_span){line.p + n + 1, line.n - n - 1};
    return true;
}

int amp_stopped_is(int common, const char *agent, char *why, size_t size, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_span rest;

    if (faccessat(common, PLACE, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    amp_buf_init(&text, AMP_STOPPED_MAX + 1);
    if (amp_file_read(common, PLACE, AMP_STOPPED_MAX, &text, err) < 0 ||
        !amp_span_starts(amp_buf_span(&text), AMP_STOPPED_HEAD))
        return amp_fail(err, AMP_CONFIG, bad_suspended,
                        "amp/" AMP_STOPPED_FILE " of the repository cannot be read");
    for (size_t at = strlen(AMP_STOPPED_HEAD); at < text.len;) {
        const char *p = text.data + at, *end = memchr(p, '\n', text.len - at);
        struct amp_span line = {p, end ? (size_t)(end - p) : text.len - at};
        if (line_is(line, "*", &rest) || line_is(line, agent, &rest)) {
            snprintf(why, size, "%.*s", AMP_CLIP(rest, 1000));
            return 1;
        }
        at += line.n + 1;
    }
    return 0;
}
