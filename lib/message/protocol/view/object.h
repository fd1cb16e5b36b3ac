/* Tests of an object's members, for the detection and the check of messages. */
#ifndef AMP_MESSAGE_PROTOCOL_VIEW_OBJECT_H
#define AMP_MESSAGE_PROTOCOL_VIEW_OBJECT_H

#include <string.h>

#include <amp/json/tape.h>

/* Whether an object has a member. */
static inline bool amp_object_has(const struct amp_tape *t, uint32_t object, const char *key)
{
    return amp_tape_get(t, object, (struct amp_span){key, strlen(key)}) != AMP_TOK_NONE;
}
/* The member's value if it has this type; else AMP_TOK_NONE. */
static inline uint32_t amp_object_get(const struct amp_tape *t, uint32_t object, const char *key,
                                      enum amp_json_type type)
{
    uint32_t tok = amp_tape_get(t, object, (struct amp_span){key, strlen(key)});
    return tok != AMP_TOK_NONE && t->tok[tok].type == type ? tok : AMP_TOK_NONE;
}
/* Whether a member is this string. */
static inline bool amp_object_is(const struct amp_tape *t, uint32_t object, const char *key,
                                 const char *text)
{
    uint32_t tok = amp_tape_get(t, object, (struct amp_span){key, strlen(key)});
    return tok != AMP_TOK_NONE && amp_tok_is(t, tok, (struct amp_span){text, strlen(text)});
}
/* Whether a member is a string that starts with the text. */
static inline bool amp_object_starts(const struct amp_tape *t, uint32_t object, const char *key,
                                     const char *text)
{
    if (t->tok[object].type != AMP_JSON_OBJECT)
        return false;
    uint32_t tok = amp_tape_get(t, object, amp_span_str(key));
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING)
        return false;
    AMP_BUF struct amp_buf decoded = {0};
    struct amp_span value;
    amp_buf_init(&decoded, (size_t)t->tok[tok].len + 1);
    return amp_tok_text(t, tok, &decoded, &value, NULL) == 0 && amp_span_starts(value, text);
}

#endif
