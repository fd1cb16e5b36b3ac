/* Reads the file of reserved paths. */
#include "work/git/paths/reserved.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"

static const struct amp_span head = {"amp-reservations 1\n", 19};

static struct amp_span word_take(struct amp_span *line)
{
    const char *end = line->n ? memchr(line->p, ' ', line->n) : NULL;
    struct amp_span word = {line->p, end ? (size_t)(end - line->p) : line->n};
    size_t skip = word.n + (end ? 1 : 0);
    line->p += skip;
    line->n -= skip;
    return word;
}

static bool line_next(const struct amp_buf *text, size_t *at, struct amp_reservation *out)
{
    if (*at == 0)
        *at = head.n;
    const char *end = *at < text->len ? memchr(text->data + *at, '\n', text->len - *at) : NULL;
    if (!end)
        return false;
    struct amp_span line = {text->data + *at, (size_t)(end - text->data) - *at};
    *at += line.n + 1;
    out->holder = word_take(&line);
    out->task = word_take(&line);
    if (amp_span_is(out->task, "-"))
        out->task.n = 0;
    out->pattern = line;
    return true;
}

static int bad_file(struct amp_error *err, const char *why)
{
    return amp_fail(err, AMP_CONFIG, bad_reservations,
                    "amp/" AMP_RESERVED_FILE ": %s; worktree-bind reservations writes it again",
                    why);
}

int amp_reserved_load(struct amp_buf *text, int common_fd, struct amp_error *err)
{
    struct amp_reservation r;
    amp_buf_init(text, AMP_RESERVED_MAX);
    if (faccessat(common_fd, "amp/" AMP_RESERVED_FILE, F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
        errno == ENOENT)
        return 0;
    if (amp_file_read(common_fd, "amp/" AMP_RESERVED_FILE, AMP_RESERVED_MAX, text, err) < 0)
        return bad_file(err, "cannot be read");
    if (text->len < head.n || memcmp(text->data, head.p, head.n) != 0 ||
        text->data[text->len - 1] != '\n')
        return bad_file(err, "malformed");
    for (size_t at = 0; line_next(text, &at, &r);)
        if (!r.holder.n || amp_glob_check(r.pattern, NULL))
            return bad_file(err, "malformed");
    return 0;
}

bool amp_reserved_by(const struct amp_buf *text, struct amp_span holder, struct amp_span path,
                     struct amp_reservation *out)
{
    for (size_t at = 0; text->len > 0 && line_next(text, &at, out);)
        if (!amp_span_eq(out->holder, holder) && amp_glob_match(out->pattern, path))
            return true;
    return false;
}
