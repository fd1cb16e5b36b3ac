/* AOF/1 envelopes that stand in a text. */
#ifndef AMP_PROTOCOL_AOF_TEXT_H
#define AMP_PROTOCOL_AOF_TEXT_H

#include "protocol/spec.h"

#define AMP_AOF_PREFIX "AOF/1 "

/* See spec.h, detect. */
enum amp_detected amp_aof_detect(const struct amp_tape *t, uint32_t object);

/* See spec.h, unwrap: behind the prefix an envelope must stand; a text that starts with { or [ is
 * one where it bears the protocol's name, and must be one where the protocol is given (`pinned`).
 */
enum amp_text_is amp_aof_unwrap(struct amp_tape *t, struct amp_span text, bool pinned,
                                struct amp_span *json, struct amp_json_fault *fault);

/* Whether an envelope has more bytes than the protocol allows. */
bool amp_aof_too_large(struct amp_span text, struct amp_json_fault *fault);

#endif
