/* Looking at an object's members while a message is detected and checked. */
#ifndef AMP_PROTOCOL_OBJECT_H
#define AMP_PROTOCOL_OBJECT_H

#include <string.h>

#include <amp/json/tape.h>

/* Whether an object has a member. */
static inline bool amp_object_has(const struct amp_tape *t, uint32_t object, const char *key)
{
    return amp_tape_get(t, object, (struct amp_span){key, strlen(key)}) != AMP_TOK_NONE;
}
/* Whether a member is this string. */
static inline bool amp_object_is(const struct amp_tape *t, uint32_t object, const char *key,
                                 const char *text)
{
    uint32_t tok = amp_tape_get(t, object, (struct amp_span){key, strlen(key)});
    return tok != AMP_TOK_NONE && amp_tok_is(t, tok, (struct amp_span){text, strlen(text)});
}
/* Whether a member is a string that starts with the text. */
bool amp_object_starts(const struct amp_tape *t, uint32_t object, const char *key,
                       const char *text);

#endif
