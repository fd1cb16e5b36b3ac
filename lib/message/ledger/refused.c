/* The records of refused messages. */
#include "message/ledger/refused.h"

#include <string.h>

#include "message/record/record.h"

#define KEEP_MS ((int64_t)24 * 3600 * 1000)

struct refused {
    struct amp_span protocol, type, from, to, task, correlation;
    const char *code, *why;
};
#define MEMBER(as, key, member) AMP_REC(as, struct refused, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(TEXT, "protocol", protocol), MEMBER(TEXT, "type", type),
    MEMBER(TEXT, "from", from),         MEMBER(TEXT, "to", to),
    MEMBER(TEXT, "task", task),         MEMBER(TEXT, "correlation", correlation),
    MEMBER(CSTR, "code", code),         MEMBER(CSTR, "why", why),
};
AMP_REC_TABLE(refused_rec, "a refusal's record", struct refused, fields);

struct refusal {
    const char *actor;
    int64_t now_ms;
    struct amp_span json;
};

static int refuse_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    const struct refusal *r = ctx;
    change->event = "refuse";
    change->to = "REFUSED";
    change->json = r->json;
    change->due_ms = r->now_ms + KEEP_MS;
    change->actor = r->actor;
    return 0;
}

int amp_refused_record(struct amp_store *s, const struct amp_view *v, const struct amp_error *why,
                       const char *actor, int64_t now_ms, struct amp_error *err)
{
    char name[AMP_MSG_ID_MAX];
    struct amp_view named = *v;
    AMP_BUF struct amp_buf out = {.max = AMP_RECORD_MAX};
    const struct refused rec = {.protocol = amp_span_str(amp_protocol_name(v->protocol)),
                                .type = v->type,
                                .from = v->from,
                                .to = v->n_to > 0 ? v->to[0] : (struct amp_span){"", 0},
                                .task = v->task,
                                .correlation = v->correlation,
                                .code = why->code,
                                .why = why->what};
    if (!amp_message_name(&named, name) || memchr(named.id.p, '\0', named.id.n))
        return 0;
    if (amp_rec_write(&refused_rec, &rec, &out, err) < 0)
        return -1;
    struct refusal r = {.actor = actor, .now_ms = now_ms, .json = amp_buf_span(&out)};
    return amp_store_update(s, AMP_KEY(AMP_REFUSED, named.id), NULL, refuse_fn, &r, NULL, err);
}
