/* The place of an AOP path: see path.h. An ambiguous path is refused. */
#include "protocol/aop/path.h"

#include <ctype.h>
#include <string.h>

static bool is_drive(struct amp_span s)
{
    return s.n >= 2 && s.p[1] == ':' && isalpha((unsigned char)s.p[0]);
}

static bool is_slash(char c)
{
    return c == '/' || c == '\\';
}

/* Whether Windows reads the part as another name, or as a stream. */
static bool is_windows_alias(struct amp_span part)
{
    char last = part.p[part.n - 1];
    return last == '.' || last == ' ' || memchr(part.p, ':', part.n);
}

/* Appends the components of a text. Returns a fault or NULL. */
static const char *parts_add(struct amp_span text, struct amp_aop_path *out)
{
    bool drive = isalpha((unsigned char)out->drive);
    for (size_t i = 0; i < text.n;) {
        size_t end = i;
        while (end < text.n && text.p[end] != '/' && !(drive && text.p[end] == '\\'))
            end++;
        struct amp_span part = {text.p + i, end - i};
        i = end + 1;
        if (part.n == 0 || amp_span_is(part, "."))
            continue;
        if (amp_span_is(part, "..")) {
            if (out->n == 0)
                return "leaves its root by ..";
            out->n--;
            continue;
        }
        if (drive && is_windows_alias(part))
            return "has a part that is another name on Windows";
        if (out->drive == 0 && (memchr(part.p, '\\', part.n) || memchr(part.p, ':', part.n)))
            return "is ambiguous";
        if (out->n == AMP_AOP_PARTS_MOST)
            return "has too many parts";
        out->part[out->n++] = part;
    }
    return NULL;
}

/* Sets the drive of an absolute path and removes it from the text. Returns a fault or NULL. */
static const char *root_take(struct amp_span *path, struct amp_aop_path *out, bool *absolute)
{
    *absolute = true;
    if (memchr(path->p, '\0', path->n))
        return "contains a NUL";
    if (path->n > 0 && path->p[0] == '/') {
        if (path->n > 1 && is_slash(path->p[1]))
            return "names another machine";
        out->drive = '/';
    } else if (path->n > 1 && path->p[0] == '\\' && is_slash(path->p[1])) {
        return "names another machine";
    } else if (is_drive(*path) && path->n > 2 && is_slash(path->p[2])) {
        out->drive = (char)toupper((unsigned char)path->p[0]);
        path->p += 2;
        path->n -= 2;
    } else {
        *absolute = false;
    }
    return NULL;
}

const char *amp_aop_path_read(const struct amp_aop_path *base, struct amp_span path,
                              struct amp_aop_path *out)
{
    bool absolute;
    out->drive = 0;
    out->n = 0;
    const char *fault = root_take(&path, out, &absolute);
    if (fault || absolute)
        return fault ? fault : parts_add(path, out);
    bool drive = !base || isalpha((unsigned char)base->drive);
    if (drive && is_drive(path))
        return "is relative to a drive's own directory";
    if (base) {
        out->drive = base->drive;
        out->n = drive && path.n > 0 && path.p[0] == '\\' ? 0 : base->n; /* from the drive's root */
        memcpy(out->part, base->part, out->n * sizeof *out->part);
    }
    return parts_add(path, out);
}

bool amp_aop_path_within(struct amp_span dir, struct amp_span path)
{
    if (amp_span_is(dir, ".")) /* an unknown directory */
        return path.n > 0 && path.p[0] != '/' && !is_drive(path);
    return path.n >= dir.n && memcmp(path.p, dir.p, dir.n) == 0 &&
           (path.n == dir.n || path.p[dir.n] == '/' || dir.p[dir.n - 1] == '/');
}

enum { OTHER, WORD, JOINT };
static const unsigned char class_of[256] = {
    ['a' ... 'z'] = WORD, ['A' ... 'Z'] = WORD, ['0' ... '9'] = WORD, ['-'] = WORD,
    ['_'] = WORD,         ['.'] = JOINT,        ['/'] = JOINT,
};

/* Absolute, of letters, digits, - and _, with single slashes, and dots only inside a name. */
static bool is_plain(struct amp_span s)
{
    size_t i = is_drive(s) ? 2 : 0;
    if (i >= s.n || s.p[i] != '/')
        return false;
    unsigned last = WORD;
    for (; i < s.n; i++) {
        unsigned now = class_of[(unsigned char)s.p[i]];
        if (now == OTHER || (now == JOINT && last == JOINT))
            return false;
        last = now;
    }
    return last == WORD;
}

bool amp_aop_path_plainly_within(struct amp_span dir, struct amp_span path)
{
    return dir.n > 0 && path.n >= dir.n && memcmp(path.p, dir.p, dir.n) == 0 &&
           (path.n == dir.n || path.p[dir.n] == '/') && is_plain(dir) && is_plain(path);
}

int amp_aop_path_write(const struct amp_aop_path *p, struct amp_buf *out, struct amp_error *err)
{
    char start[] = "?:/";
    start[0] = p->drive;
    const char *root = p->drive == '/' ? "/" : p->drive ? start : "";
    if (amp_buf_str(out, p->drive == 0 && p->n == 0 ? "." : root, err) < 0)
        return -1;
    for (unsigned i = 0; i < p->n; i++)
        if ((i > 0 && amp_buf_str(out, "/", err) < 0) ||
            amp_buf_add(out, p->part[i].p, p->part[i].n, err) < 0)
            return -1;
    return 0;
}
