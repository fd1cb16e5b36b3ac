/* The sender of refusals, and their numbers. Each thread is a sender of its own, because lines are
 * written in the order of the threads' work, not of their numbers. */
#ifndef AMP_MESSAGE_PROTOCOL_COMPOSE_REFUSE_H
#define AMP_MESSAGE_PROTOCOL_COMPOSE_REFUSE_H

#include <amp/protocol/protocol.h>

#define AMP_REFUSER "amp-validate"

#define AMP_REFUSER_MAX 32
int64_t amp_refuse_number(int64_t now_ms, char sender[AMP_REFUSER_MAX]);

/* The finding as a sentence in `out`: its field, `after`, the sentence. The code if it does not
 * fit. */
struct amp_span amp_refuse_sentence(const struct amp_finding *f, const char *after,
                                    struct amp_buf *out);

#endif
