/* The record of a message, with the message's bytes (`jq .state.msg` on the log). */
#include "message/delivery/record/record.h"

#include <string.h>

#include "base/codes.h"
#include "message/protocol/work.h"

static const struct amp_rec_field ack_fields[] = {
    AMP_REC(CSTR, struct amp_ack_note, "stage", stage),
    AMP_REC(CSTR, struct amp_ack_note, "by", by),
    AMP_REC(TEXT, struct amp_ack_note, "id", id),
    AMP_REC(TEXT, struct amp_ack_note, "code", code),
    AMP_REC(INT, struct amp_ack_note, "at_ms", at_ms),
    AMP_REC(BOOL, struct amp_ack_note, "late", late),
    AMP_REC(BOOL, struct amp_ack_note, "implied", implied),
};
AMP_REC_TABLE(ack_rec, "an acknowledgement's record", struct amp_ack_note, ack_fields);

static const struct amp_rec_field try_fields[] = {
    AMP_REC(TEXT, struct amp_message_try, "msg_id", msg_id),
    AMP_REC_EVER(INT, struct amp_message_try, "at_ms", at_ms),
    AMP_REC_EVER(CSTR, struct amp_message_try, "code", code),
    AMP_REC_EVER(CSTR, struct amp_message_try, "route", route),
    AMP_REC_EVER(CSTR, struct amp_message_try, "why", why),
};
const struct amp_rec amp_message_try_rec = {"an attempt's record", try_fields,
                                            sizeof(try_fields) / sizeof(try_fields[0]),
                                            sizeof(struct amp_message_try)};

#define MEMBER(as, key, member) AMP_REC(as, struct amp_message_rec, key, member)
static const struct amp_rec_field message_fields[] = {
    MEMBER(TEXT, "protocol", protocol),
    MEMBER(TEXT, "type", type),
    MEMBER(TEXT, "from", from),
    MEMBER(TEXT, "to", to),
    MEMBER(TEXT, "task", task),
    MEMBER(TEXT, "correlation", correlation),
    MEMBER(TEXT, "claim", claim),
    MEMBER(TEXT, "holder", holder),
    MEMBER(INT, "sent_ms", sent_ms),
    MEMBER(INT, "due_ms", due_ms),
    MEMBER(INT, "ack_timeout_ms", ack_timeout_ms),
    MEMBER(INT, "timed_out_ms", timed_out_ms),
    MEMBER(INT, "expires_ms", expires_ms),
    MEMBER(INT, "sla_ms", sla_ms),
    MEMBER(BOOL, "wants_outcome", wants_outcome),
    MEMBER(BOOL, "for_many", for_many),
    MEMBER(BOOL, "told", notified),
    MEMBER(BOOL, "held", held),
    MEMBER(INT, "beat_ms", beat_ms),
    MEMBER(INT, "until_ms", until_ms),
    MEMBER(BOOL, "beat_warns", beat_warns),
    MEMBER(BOOL, "silent", silent),
    MEMBER(INT, "seen_ms", seen_ms),
    MEMBER(BOOL, "lost", lost),
    MEMBER(BOOL, "supervised", supervised),
    MEMBER(INT, "progress_ms", progress_ms),
    MEMBER(INT, "requeues", requeues),
    MEMBER(INT, "attempt", attempt),
    MEMBER(TEXT, "origin", origin),
    AMP_REC_MANY(struct amp_message_rec, "tries", tries, &amp_message_try_rec, false),
    MEMBER(TEXT, "next", next),
    MEMBER(TEXT, "node", node),
    MEMBER(INT, "sequence", sequence),
    MEMBER(INT, "departed_ms", departed_ms),
    MEMBER(TEXT, "failure", failure),
    MEMBER(TEXT, "given_up", given_up),
    AMP_REC_MANY(struct amp_message_rec, "acks", acks, &ack_rec, false),
    MEMBER(RAW, "result", result),
    AMP_REC_EVER(LINE, struct amp_message_rec, "msg", line),
};
AMP_REC_TABLE(message_rec, "a message's record", struct amp_message_rec, message_fields);

int amp_record_write(const struct amp_message_rec *r, const struct amp_ack_note *note,
                     struct amp_buf *out, struct amp_error *err)
{
    struct amp_message_rec all = *r;
    struct amp_ack_note first;
    if (note && all.n_acks == 0)
        all.acks = &first;
    if (note)
        all.acks[all.n_acks++] = *note; /* lists have room for one more */
    /* Usually enough; if it is not, the buffer grows. */
    amp_buf_reserve(out, all.line.n + 512, NULL);
    return amp_rec_write(&message_rec, &all, out, err);
}

int amp_record_read(struct amp_span json, struct amp_buf *mem, struct amp_message_rec *out,
                    struct amp_error *err)
{
    return amp_rec_parse(&message_rec, json, mem, out, err);
}

void amp_record_acks(const struct amp_message_rec *r, struct amp_jw *w)
{
    amp_rec_list(&ack_rec, r->acks, r->n_acks, w);
}

int64_t amp_record_lost_at(const struct amp_message_rec *r, int64_t silence_ms)
{
    return r->seen_ms > 0 && !r->lost && silence_ms > 0 ? r->seen_ms + silence_ms : 0;
}

int64_t amp_record_due(const struct amp_message_rec *r, int64_t silence_ms)
{
    int64_t lost = amp_record_lost_at(r, silence_ms);
    return r->due_ms == 0 || (lost > 0 && lost < r->due_ms) ? lost : r->due_ms;
}

#define LATE_ACKS_MAX 32 /* limit of late acknowledgements that differ only by their ids */

static bool takes_late(const struct amp_message_rec *r)
{
    return r->state != AMP_DELIVERY_SENT && r->state != AMP_DELIVERY_RECEIVED &&
           r->state != AMP_DELIVERY_READ;
}

bool amp_record_knows_ack(const struct amp_message_rec *r, struct amp_ack_note *note)
{
    bool by_id = note->id.n > 0 && takes_late(r) && r->n_acks < LATE_ACKS_MAX;
    bool has = false;
    for (uint32_t i = 0; i < r->n_acks; i++) {
        const struct amp_ack_note *a = &r->acks[i];
        bool other = by_id && a->id.n > 0 && !amp_span_eq(a->id, note->id);
        if (!other && !a->implied && strcmp(a->by, note->by ? note->by : "") == 0 &&
            strcmp(a->stage, note->stage) == 0) {
            has = true;
            note->late = a->late;
        }
    }
    return has;
}

bool amp_record_has_ack(const struct amp_message_rec *r, const char *stage, const char *by,
                        bool *late)
{
    struct amp_ack_note note = {.stage = stage, .by = by};
    bool has = amp_record_knows_ack(r, &note);
    if (has)
        *late = note.late;
    return has;
}

bool amp_record_has_stage(const struct amp_message_rec *r, const char *stage)
{
    uint32_t i = 0;
    while (i < r->n_acks && strcmp(r->acks[i].stage, stage) != 0)
        i++;
    return i < r->n_acks;
}

bool amp_record_arrived(const struct amp_message_rec *r)
{
    return amp_record_has_stage(r, "RECEIVED") || amp_record_has_stage(r, "READ") ||
           amp_record_has_stage(r, "FULFILLED");
}

int amp_message_parse(const struct amp_store_rec *row, struct amp_buf *mem,
                      struct amp_message_rec *out, struct amp_error *err)
{
    struct amp_message_rec r;
    int state = amp_fsm_state(&amp_delivery_fsm, row->state);
    if (state < 0)
        return amp_fail(err, AMP_INTERNAL, bad_record, "unknown delivery state \"%.*s\"",
                        (int)row->state.n, row->state.p);
    if (amp_record_read(row->json, mem, &r, err) < 0)
        return -1;
    r.found = true;
    r.state = (uint8_t)state;
    *out = r;
    return 0;
}

int amp_message_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                     struct amp_message_rec *out, struct amp_error *err)
{
    struct amp_store_rec row;
    if (amp_store_get(s, AMP_KEY(AMP_MESSAGE_KIND, id), &row, err) < 0)
        return -1;
    if (!row.found) {
        *out = (struct amp_message_rec){0};
        return 0;
    }
    return amp_message_parse(&row, mem, out, err);
}

static bool is_plain(struct amp_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ')
            return false;
    return s.n < AMP_MSG_ID_MAX;
}

bool amp_message_name(struct amp_view *v, char mem[AMP_MSG_ID_MAX])
{
    const struct amp_work_terms *t = amp_work_of(v->protocol);
    if (v->id.n > 0)
        return true;
    bool may = t->name && v->task.n > 0 && is_plain(v->task) && is_plain(v->correlation);
    int n = may ? t->name(v, mem) : 0;
    if (n <= 0 || n >= AMP_MSG_ID_MAX)
        return false;
    v->id = amp_span_str(mem);
    return true;
}
