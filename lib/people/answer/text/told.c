/* Records which channel was sent which question. */
#include "people/answer/text/told.h"

#include <sodium.h>

static const struct amp_rec_field told_fields[] = {
    AMP_REC_EVER(TEXT, struct amp_told, "question", question),
    AMP_REC_EVER(TEXT, struct amp_told, "channel", channel),
    AMP_REC_EVER(TEXT, struct amp_told, "title", title),
    AMP_REC_EVER(INT, struct amp_told, "at", at_ms),
    AMP_REC(TEXT, struct amp_told, "shown", shown),
};
AMP_REC_TABLE(told_rec, "the record of a channel", struct amp_told, told_fields);

static int told_set(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    (void)err;
    *(struct amp_told *)rec = *(const struct amp_told *)t->step->with;
    t->change->event = "TELL";
    return 0;
}

static const char *const states[] = {"TOLD", NULL};
const struct amp_subject amp_told_subject = {.kind = "told",
                                             .table = &told_rec,
                                             .states = states,
                                             .state = AMP_SUBJECT_AT(struct amp_told, state),
                                             .carry = told_set};

int amp_told_write(struct amp_store *s, const struct amp_told *t, bool told, const char *actor,
                   struct amp_error *err)
{
    const struct amp_subject_step step = {
        .key = AMP_KEY(amp_told_subject.kind, t->question, t->channel), .with = t, .actor = actor};

    return told ? amp_subject_step(&amp_told_subject, s, &step, NULL, NULL, NULL, err)
                : amp_subject_forget(&amp_told_subject, s, step.key, 0, actor, err);
}

void amp_shown_digest(struct amp_span text, char out[AMP_SHOWN_MAX])
{
    unsigned char sum[32];

    crypto_generichash(sum, sizeof sum, (const unsigned char *)(text.n ? text.p : ""), text.n, NULL,
                       0);
    sodium_bin2hex(out, AMP_SHOWN_MAX, sum, sizeof sum);
}

int amp_told_shown(struct amp_store *s, const char *question, const char *channel,
                   char out[AMP_SHOWN_MAX], struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    const struct amp_key key =
        AMP_KEY(amp_told_subject.kind, amp_span_str(question), amp_span_str(channel));
    struct amp_told t;

    if (amp_subject_find(&amp_told_subject, s, key, &mem, &t, err) < 0)
        return -1;
    if (!amp_span_copy(t.shown, out, AMP_SHOWN_MAX))
        out[0] = '\0';
    return 0;
}
