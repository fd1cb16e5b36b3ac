/*
 * The record that a channel has a question, and the digest of what it was sent: an answer that
 * comes back through this channel was given by somebody who was shown that.
 *
 * Key "told.QUESTION.CHANNEL": {"question","channel","title","at","shown"}.
 */
#ifndef AMP_PEOPLE_ANSWER_TEXT_TOLD_H
#define AMP_PEOPLE_ANSWER_TEXT_TOLD_H

#include "message/record/subject.h"

struct amp_told {
    struct amp_span question, channel, title;
    struct amp_span shown; /* BLAKE2b of the body, in hex; empty: unknown */
    int64_t at_ms;
    uint8_t state;
};
extern const struct amp_subject amp_told_subject;

/* Writes the record, or removes it with told false: then only question and channel are used. */
int amp_told_write(struct amp_store *s, const struct amp_told *t, bool told, const char *actor,
                   struct amp_error *err);

/* The digest of a text that is shown to somebody. */
#define AMP_SHOWN_MAX 65
void amp_shown_digest(struct amp_span text, char out[AMP_SHOWN_MAX]);
/* The digest of what the channel was sent; "" if that is not recorded. */
int amp_told_shown(struct amp_store *s, const char *question, const char *channel,
                   char out[AMP_SHOWN_MAX], struct amp_error *err);

#endif
