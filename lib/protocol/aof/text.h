/* AOF/1 envelopes that stand in a text. */
#ifndef AMP_PROTOCOL_AOF_TEXT_H
#define AMP_PROTOCOL_AOF_TEXT_H

#include <amp/json/tape.h>

/* The most bytes of an envelope, prefix included. */
#define AMP_AOF_BYTES_MAX ((size_t)10 * 1024 * 1024)

enum amp_aof_text {
    AMP_AOF_NOT,      /* the text is something else */
    AMP_AOF_ENVELOPE, /* scanned: `json` is its text */
    AMP_AOF_BAD,      /* it starts as an envelope and is none: the fault says why */
};

/* What a text is: behind "AOF/1 " an envelope must stand; a text that starts with { or [ is one
 * where it bears the protocol's name, and must be one where the protocol is given (`pinned`). */
enum amp_aof_text amp_aof_text(struct amp_tape *t, struct amp_span text, bool pinned,
                               struct amp_span *json, struct amp_json_fault *fault);

/* Fills the fault of an envelope that is too large. */
void amp_aof_too_large(struct amp_json_fault *fault);

#endif
