/* The payload that an answer may change: of the task's last dispatch for a question about a task,
 * else of the question's own message. */
#ifndef AMP_PEOPLE_ANSWER_PAYLOAD_H
#define AMP_PEOPLE_ANSWER_PAYLOAD_H

#include "people/answer/evidence.h"

#define AMP_PAYLOAD_MAX (1u << 20) /* bytes of an edited payload */

/* Whether there is a payload to edit. */
bool amp_payload_is_there(const struct amp_question *q, const struct amp_evidence *ev);
/* Appends the payload for a person to edit, indented, with LF. NO no_payload: there is none. */
int amp_payload_text(const struct amp_question *q, const struct amp_evidence *ev,
                     struct amp_buf *out, struct amp_error *err);
/* Checks an edited payload with the schema and the rules of its message, and appends it as one line
 * without LF. 1: it fits, 0: it does not, and `why` says so for each fault on a line of its own;
 * -1: failure. *changed: whether it differs from the payload before. */
int amp_payload_check(const struct amp_question *q, const struct amp_evidence *ev,
                      struct amp_span text, struct amp_buf *out, bool *changed, struct amp_buf *why,
                      struct amp_error *err);

#endif
