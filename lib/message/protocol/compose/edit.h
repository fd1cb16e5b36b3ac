/* Replacing a few values of a line. All other bytes stay unchanged. */
#ifndef AMP_MESSAGE_PROTOCOL_COMPOSE_EDIT_H
#define AMP_MESSAGE_PROTOCOL_COMPOSE_EDIT_H

#include <amp/protocol/protocol.h>

#define AMP_EDITS_MAX 6

/* `text` replaces `n` bytes at `at` of the line. */
struct amp_edit_place {
    size_t at, n;
    struct amp_buf text;
};

/* All zero except v, whose line is edited, and err: an unchanged line. */
struct amp_edit {
    const struct amp_view *v;
    struct amp_edit_place place[AMP_EDITS_MAX];
    unsigned n;
    struct amp_error *err;
};

/* Sets a member of an object of the line; a new member becomes the first one. At most AMP_EDITS_MAX
 * edits. */
int amp_edit_text(struct amp_edit *e, uint32_t object, const char *key, struct amp_span text);
int amp_edit_int(struct amp_edit *e, uint32_t object, const char *key, int64_t n);

/* Appends the line. */
int amp_edit_line(struct amp_edit *e, struct amp_buf *out);
void amp_edit_release(struct amp_edit *e);

#endif
