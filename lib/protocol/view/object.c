/* Looking at an object's members: see object.h. */
#include "protocol/view/object.h"

bool amp_object_starts(const struct amp_tape *t, uint32_t object, const char *key, const char *text)
{
    if (t->tok[object].type != AMP_JSON_OBJECT)
        return false;
    uint32_t tok = amp_tape_get(t, object, amp_span_str(key));
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING)
        return false;
    struct amp_span raw = amp_tok_raw(t, tok);
    size_t n = strlen(text);
    AMP_BUF struct amp_buf room = {0};
    amp_buf_init(&room, 64 * 1024 * 1024);
    if ((t->tok[tok].flags & AMP_TOK_ESCAPED) && amp_tok_text(t, tok, &room, &raw, NULL) < 0)
        return false;
    return raw.n >= n && memcmp(raw.p, text, n) == 0;
}
