/* The records of refused messages. */
#include "message/delivery/ledger/refused.h"

#include <string.h>

#include "message/delivery/record/record.h"
#include "message/record/subject.h"

#define KEEP_MS ((int64_t)24 * 3600 * 1000)

struct refused {
    struct amp_span protocol, type, from, to, task, correlation;
    const char *code, *why;
    int64_t due_ms;
};
#define MEMBER(as, key, member) AMP_REC(as, struct refused, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(TEXT, "protocol", protocol), MEMBER(TEXT, "type", type),
    MEMBER(TEXT, "from", from),         MEMBER(TEXT, "to", to),
    MEMBER(TEXT, "task", task),         MEMBER(TEXT, "correlation", correlation),
    MEMBER(CSTR, "code", code),         MEMBER(CSTR, "why", why),
};
AMP_REC_TABLE(refused_rec, "a refusal's record", struct refused, fields);

static const char *const states[] = {"REFUSED", NULL};
static const struct amp_subject refusals = {.kind = AMP_REFUSED,
                                            .table = &refused_rec,
                                            .states = states,
                                            .due = AMP_SUBJECT_AT(struct refused, due_ms)};

int amp_refused_record(struct amp_store *s, const struct amp_view *v, const struct amp_error *why,
                       const char *actor, int64_t now_ms, struct amp_error *err)
{
    char name[AMP_MSG_ID_MAX];
    struct amp_view named = *v;
    const struct refused rec = {.protocol = amp_span_str(amp_protocol_name(v->protocol)),
                                .type = v->type,
                                .from = v->from,
                                .to = v->n_to > 0 ? v->to[0] : (struct amp_span){"", 0},
                                .task = v->task,
                                .correlation = v->correlation,
                                .code = why->code,
                                .why = why->what,
                                .due_ms = now_ms + KEEP_MS};
    if (!amp_message_name(&named, name) || memchr(named.id.p, '\0', named.id.n))
        return 0;
    return amp_subject_put(&refusals, s, AMP_KEY(AMP_REFUSED, named.id), &rec, false, "refuse",
                           actor, err);
}
