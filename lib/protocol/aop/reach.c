/* Access to paths: see reach.h. */
#include "protocol/aop/reach.h"

#include <string.h>

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
    r->fault = amp_aop_path_read(NULL, r->root, &r->base);
    for (uint32_t i = list_of(r, &end); i < end; i = r->v->tape->tok[i].next) {
        struct amp_span text = text_at(r, i);
        size_t before = r->dirs.len;
        if (text.n == 0 || amp_aop_path_read(r->fault ? NULL : &r->base, text, &dir))
            continue;
        if (amp_aop_path_write(&dir, &r->dirs, NULL) < 0 ||
            amp_buf_add(&r->dirs, "", 1, NULL) < 0) {
            r->dirs.len = before;
            return;
        }
    }
}

static bool is_plainly_within(const struct amp_aop_reach *r, struct amp_span path)
{
    const struct amp_tape *t = r->v->tape;
    uint32_t end;
    if (!r->to->limited)
        return amp_aop_path_plainly_within(path, path);
    for (uint32_t i = list_of(r, &end); i < end; i = t->tok[i].next)
        if (t->tok[i].type == AMP_JSON_STRING && !(t->tok[i].flags & AMP_TOK_ESCAPED) &&
            amp_aop_path_plainly_within(amp_tok_raw(t, i), path))
            return true;
    return false;
}

const char *amp_aop_reach_denies(struct amp_aop_reach *r, struct amp_span path)
{
    struct amp_aop_path place;
    if (is_plainly_within(r, path))
        return NULL;
    if (!r->read)
        directories_read(r);
    const char *fault = amp_aop_path_read(r->fault ? NULL : &r->base, path, &place);
    if (!fault && r->fault && place.drive == 0)
        fault = "is relative to an unknown workspace";
    if (fault)
        return fault;
    if (!r->to->limited)
        return NULL;
    amp_buf_reset(&r->room);
    if (amp_aop_path_write(&place, &r->room, NULL) < 0)
        return "is too long";
    for (size_t at = 0; at < r->dirs.len;) {
        struct amp_span dir = amp_span_str(r->dirs.data + at);
        if (amp_aop_path_within(dir, amp_buf_span(&r->room)))
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
    const char *fault = amp_aop_path_read(NULL, root, &base);
    if (!fault)
        fault = amp_aop_path_read(&base, path, &place);
    if (fault)
        return amp_fail(err, AMP_NOPERM, "E_PERMISSION_DENIED", "the path %s", fault);
    return amp_aop_path_write(&place, out, err);
}
