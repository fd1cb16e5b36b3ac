/* Access to paths: see reach.h. */
#include "message/protocol/aop/policy/reach.h"

#include <ctype.h>
#include <string.h>

#include "base/codes.h"

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

/* Reads a path; a relative one starts from `base`, NULL: from an unknown directory. Returns NULL,
 * or the fault as the end of a sentence ("leaves its root by .."); then out is undefined. */
static const char *path_read(const struct amp_aop_path *base, struct amp_span path,
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

bool amp_aop_is_within(struct amp_span dir, struct amp_span path)
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

/* Tells whether path is in dir, for texts that are not canonical. True only if both are plain, as
 * nearly all are; false means that the path has to be read. */
static bool is_within_plain(struct amp_span dir, struct amp_span path)
{
    return dir.n > 0 && path.n >= dir.n && memcmp(path.p, dir.p, dir.n) == 0 &&
           (path.n == dir.n || path.p[dir.n] == '/') && is_plain(dir) && is_plain(path);
}

/* The canonical text: "C:/a/b", "/a/b", "a/b" or ".". */
static int path_write(const struct amp_aop_path *p, struct amp_buf *out, struct amp_error *err)
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

/* Directories beyond these limits are not granted. */
enum { DIRS_MOST = 4 * 1024 * 1024, TEXT_MOST = 64 * 1024 * 1024 };

void amp_aop_reach_init(struct amp_aop_reach *r, const struct amp_view *v,
                        const struct amp_aop_paths *to, struct amp_span root)
{
    r->v = v;
    r->to = to;
    r->root = root;
    r->read = false;
    r->fault = NULL;
    amp_buf_init(&r->dirs, DIRS_MOST);
    amp_buf_init(&r->room, TEXT_MOST);
}

void amp_aop_reach_release(struct amp_aop_reach *r)
{
    amp_buf_release(&r->dirs);
    amp_buf_release(&r->room);
}

/* The first granted directory; *end is the end of the list. */
static uint32_t list_of(const struct amp_aop_reach *r, uint32_t *end)
{
    const struct amp_tape *t = r->v->tape;
    uint32_t list = r->to->list;
    bool is = r->to->limited && list != AMP_TOK_NONE && t->tok[list].type == AMP_JSON_ARRAY;
    *end = is ? t->tok[list].next : 0;
    return is ? list + 1 : 0;
}

static struct amp_span text_at(struct amp_aop_reach *r, uint32_t tok)
{
    struct amp_span text = {"", 0};
    amp_buf_reset(&r->room);
    if (r->v->tape->tok[tok].type == AMP_JSON_STRING &&
        amp_tok_text(r->v->tape, tok, &r->room, &text, NULL) < 0)
        text.n = 0;
    return text;
}

/* Reads the directories; one that cannot be resolved grants nothing. */
static void directories_read(struct amp_aop_reach *r)
{
    struct amp_aop_path dir;
    uint32_t end;
    r->read = true;
    r->fault = path_read(NULL, r->root, &r->base);
    for (uint32_t i = list_of(r, &end); i < end; i = r->v->tape->tok[i].next) {
        struct amp_span text = text_at(r, i);
        size_t before = r->dirs.len;
        if (text.n == 0 || path_read(r->fault ? NULL : &r->base, text, &dir))
            continue;
        if (path_write(&dir, &r->dirs, NULL) < 0 || amp_buf_add(&r->dirs, "", 1, NULL) < 0) {
            r->dirs.len = before;
            return;
        }
    }
}

static bool is_plainly_granted(const struct amp_aop_reach *r, struct amp_span path)
{
    const struct amp_tape *t = r->v->tape;
    uint32_t end;
    if (!r->to->limited)
        return is_within_plain(path, path);
    for (uint32_t i = list_of(r, &end); i < end; i = t->tok[i].next)
        if (t->tok[i].type == AMP_JSON_STRING && !(t->tok[i].flags & AMP_TOK_ESCAPED) &&
            is_within_plain(amp_tok_raw(t, i), path))
            return true;
    return false;
}

const char *amp_aop_reach_denies(struct amp_aop_reach *r, struct amp_span path)
{
    struct amp_aop_path place;
    if (is_plainly_granted(r, path))
        return NULL;
    if (!r->read)
        directories_read(r);
    const char *fault = path_read(r->fault ? NULL : &r->base, path, &place);
    if (!fault && r->fault && place.drive == 0)
        fault = "is relative to an unknown workspace";
    if (fault)
        return fault;
    if (!r->to->limited)
        return NULL;
    amp_buf_reset(&r->room);
    if (path_write(&place, &r->room, NULL) < 0)
        return "is too long";
    for (size_t at = 0; at < r->dirs.len;) {
        struct amp_span dir = amp_span_str(r->dirs.data + at);
        if (amp_aop_is_within(dir, amp_buf_span(&r->room)))
            return NULL;
        at += dir.n + 1;
    }
    return "is outside the effective access";
}

const char *amp_aop_denies(const struct amp_view *v, const struct amp_aop_paths *to,
                           struct amp_span root, struct amp_span path)
{
    struct amp_aop_reach r;
    amp_aop_reach_init(&r, v, to, root);
    const char *why = amp_aop_reach_denies(&r, path);
    amp_aop_reach_release(&r);
    return why;
}

int amp_aop_resolve(struct amp_span root, struct amp_span path, struct amp_buf *out,
                    struct amp_error *err)
{
    struct amp_aop_path base, place;
    const char *fault = path_read(NULL, root, &base);
    if (!fault)
        fault = path_read(&base, path, &place);
    if (fault)
        return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED, "the path %s", fault);
    return path_write(&place, out, err);
}
