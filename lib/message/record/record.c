/*
 * The record of a message as JSON. The message itself stands in it as it came (`jq .json.msg` on
 * the log reads it), byte for byte: a text that is not one JSON object, or is nested so deeply that
 * the record around it would pass the scanner's limits, is kept as a string instead.
 */
#include "message/record/record.h"

#include <string.h>

#define RAW_DEPTH 100

static const struct amp_json_limits record_limits = {
    .max_bytes = AMP_RECORD_MAX, .max_depth = 160, .max_tokens = 1000000 + 4096};

void amp_record_tape(struct amp_tape *t)
{
    amp_tape_init(t, &record_limits);
}

int amp_record_scan(struct amp_tape *t, struct amp_span json, struct amp_error *err)
{
    struct amp_json_fault f;
    if (amp_tape_scan(t, json.p, json.n, &f) < 0)
        return amp_json_fail(err, AMP_INTERNAL, "bad_record", "a record of the state is not JSON",
                             &f);
    if (t->n == 0 || t->tok[0].type != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_INTERNAL, "bad_record", "a record of the state is no object");
    return 0;
}

/* One object from its first byte to its last, and not too deep. The line passed the checks. */
static bool line_is_raw(struct amp_span line)
{
    if (line.n < 2 || line.p[0] != '{' || line.p[line.n - 1] != '}')
        return false;
    int depth = 0;
    bool in = false;
    for (size_t i = 0; i < line.n; i++) {
        char c = line.p[i];
        if (in) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in = false;
        } else if (c == '"') {
            in = true;
        } else if (c == '{' || c == '[') {
            if (++depth > RAW_DEPTH)
                return false;
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == '\n' || c == '\r') {
            return false;
        }
    }
    return depth == 0 && !in;
}

void amp_record_line(struct amp_jw *w, struct amp_span line)
{
    if (line_is_raw(line)) {
        amp_jw_key(w, "msg");
        amp_jw_raw(w, line);
    } else {
        amp_jw_member_str(w, "text", line);
    }
}

int amp_record_line_read(const struct amp_tape *t, struct amp_buf *mem, struct amp_span *out,
                         struct amp_error *err)
{
    uint32_t raw = amp_tape_get(t, 0, AMP_SPAN("msg"));
    if (raw == AMP_TOK_NONE)
        return amp_record_text(t, "text", mem, out, err);
    struct amp_span src = amp_tok_source(t, raw);
    size_t at = mem->len;
    if (amp_buf_add(mem, src.p, src.n, err) < 0)
        return -1;
    *out = (struct amp_span){mem->data + at, src.n};
    return 0;
}

int amp_record_text(const struct amp_tape *t, const char *key, struct amp_buf *mem,
                    struct amp_span *out, struct amp_error *err)
{
    uint32_t tok = amp_tape_get(t, 0, amp_span_str(key));
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING) {
        *out = (struct amp_span){"", 0};
        return 0;
    }
    struct amp_span text;
    size_t at = mem->len;
    if (amp_tok_text(t, tok, mem, &text, err) < 0)
        return -1;
    if (mem->len > at && text.p >= mem->data + at && text.p <= mem->data + mem->len) {
        *out = text;
        return 0;
    }
    if (amp_buf_add(mem, text.p, text.n, err) < 0)
        return -1;
    *out = (struct amp_span){mem->data + at, text.n};
    return 0;
}

int64_t amp_record_int(const struct amp_tape *t, const char *key)
{
    uint32_t tok = amp_tape_get(t, 0, amp_span_str(key));
    int64_t n = 0;
    if (tok == AMP_TOK_NONE || !amp_tok_int(t, tok, &n))
        return 0;
    return n;
}

static void flag_member(struct amp_jw *w, const char *key, bool is)
{
    if (!is)
        return;
    amp_jw_key(w, key);
    amp_jw_bool(w, true);
}

static void attempts_write(struct amp_jw *w, const struct amp_message_rec *r)
{
    amp_jw_some_int(w, "attempt", r->attempt);
    amp_jw_some_str(w, "origin", r->origin);
    if (r->tries.n > 0) {
        amp_jw_key(w, "tries");
        amp_jw_open(w, '[');
        amp_jw_raw(w, r->tries);
        amp_jw_close(w, ']');
    }
    amp_jw_some_str(w, "next", r->next);
    amp_jw_some_str(w, "node", r->node);
    amp_jw_some_int(w, "sequence", r->sequence);
    amp_jw_some_int(w, "departed_ms", r->departed_ms);
    amp_jw_some_str(w, "failure", r->failure);
    amp_jw_some_str(w, "given_up", r->given_up);
}

int amp_record_write(const struct amp_message_rec *r, const struct amp_ack_note *note,
                     struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_some_str(&w, "protocol", r->protocol);
    amp_jw_some_str(&w, "type", r->type);
    amp_jw_some_str(&w, "from", r->from);
    amp_jw_some_str(&w, "to", r->to);
    amp_jw_some_str(&w, "task", r->task);
    amp_jw_some_str(&w, "correlation", r->correlation);
    amp_jw_some_str(&w, "claim", r->claim);
    amp_jw_some_str(&w, "holder", r->holder);
    amp_jw_some_int(&w, "sent_ms", r->sent_ms);
    amp_jw_some_int(&w, "due_ms", r->due_ms);
    amp_jw_some_int(&w, "ack_timeout_ms", r->ack_timeout_ms);
    amp_jw_some_int(&w, "timed_out_ms", r->timed_out_ms);
    amp_jw_some_int(&w, "expires_ms", r->expires_ms);
    amp_jw_some_int(&w, "sla_ms", r->sla_ms);
    flag_member(&w, "wants_outcome", r->wants_outcome);
    flag_member(&w, "for_many", r->for_many);
    flag_member(&w, "told", r->told);
    amp_jw_some_int(&w, "beat_ms", r->beat_ms);
    amp_jw_some_int(&w, "until_ms", r->until_ms);
    flag_member(&w, "beat_warns", r->beat_warns);
    flag_member(&w, "silent", r->silent);
    amp_jw_some_int(&w, "seen_ms", r->seen_ms);
    flag_member(&w, "lost", r->lost);
    flag_member(&w, "supervised", r->supervised);
    attempts_write(&w, r);
    if (r->acks.n > 0 || note) {
        amp_jw_key(&w, "acks");
        amp_jw_open(&w, '[');
        if (r->acks.n > 0)
            amp_jw_raw(&w, r->acks);
        if (note) {
            amp_jw_open(&w, '{');
            amp_jw_some_str(&w, "stage", amp_span_str(note->stage));
            amp_jw_some_str(&w, "by", amp_span_str(note->by));
            amp_jw_some_str(&w, "id", note->id);
            amp_jw_some_str(&w, "code", note->code);
            amp_jw_some_int(&w, "at_ms", note->at_ms);
            if (note->late) {
                amp_jw_key(&w, "late");
                amp_jw_bool(&w, true);
            }
            amp_jw_close(&w, '}');
        }
        amp_jw_close(&w, ']');
    }
    if (r->result.n > 0) {
        amp_jw_key(&w, "result");
        amp_jw_raw(&w, r->result);
    }
    amp_record_line(&w, r->line);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

/* The elements of an array member, as they stand. */
static int elements_read(const struct amp_tape *t, const char *key, struct amp_buf *mem,
                         struct amp_span *out, struct amp_error *err)
{
    *out = (struct amp_span){"", 0};
    uint32_t list = amp_tape_get(t, 0, amp_span_str(key));
    if (list == AMP_TOK_NONE || t->tok[list].type != AMP_JSON_ARRAY || t->tok[list].count == 0)
        return 0;
    struct amp_span src = amp_tok_source(t, list);
    size_t at = mem->len;
    if (amp_buf_add(mem, src.p + 1, src.n - 2, err) < 0)
        return -1;
    *out = (struct amp_span){mem->data + at, src.n - 2};
    return 0;
}

static int attempts_read(const struct amp_tape *t, struct amp_buf *mem, struct amp_message_rec *r,
                         struct amp_error *err)
{
    r->attempt = amp_record_int(t, "attempt");
    r->sequence = amp_record_int(t, "sequence");
    r->departed_ms = amp_record_int(t, "departed_ms");
    return amp_record_text(t, "origin", mem, &r->origin, err) < 0 ||
                   amp_record_text(t, "next", mem, &r->next, err) < 0 ||
                   amp_record_text(t, "node", mem, &r->node, err) < 0 ||
                   amp_record_text(t, "failure", mem, &r->failure, err) < 0 ||
                   amp_record_text(t, "given_up", mem, &r->given_up, err) < 0
               ? -1
               : elements_read(t, "tries", mem, &r->tries, err);
}

static int members_read(const struct amp_tape *t, struct amp_buf *mem, struct amp_message_rec *r,
                        struct amp_error *err)
{
    if (amp_record_line_read(t, mem, &r->line, err) < 0 ||
        amp_record_text(t, "protocol", mem, &r->protocol, err) < 0 ||
        amp_record_text(t, "type", mem, &r->type, err) < 0 ||
        amp_record_text(t, "from", mem, &r->from, err) < 0 ||
        amp_record_text(t, "to", mem, &r->to, err) < 0 ||
        amp_record_text(t, "task", mem, &r->task, err) < 0 ||
        amp_record_text(t, "correlation", mem, &r->correlation, err) < 0 ||
        amp_record_text(t, "claim", mem, &r->claim, err) < 0 ||
        amp_record_text(t, "holder", mem, &r->holder, err) < 0)
        return -1;
    r->result = (struct amp_span){"", 0};
    uint32_t result = amp_tape_get(t, 0, AMP_SPAN("result"));
    if (result != AMP_TOK_NONE) {
        struct amp_span src = amp_tok_source(t, result);
        size_t at = mem->len;
        if (amp_buf_add(mem, src.p, src.n, err) < 0)
            return -1;
        r->result = (struct amp_span){mem->data + at, src.n};
    }
    if (elements_read(t, "acks", mem, &r->acks, err) < 0 || attempts_read(t, mem, r, err) < 0)
        return -1;
    r->sent_ms = amp_record_int(t, "sent_ms");
    r->due_ms = amp_record_int(t, "due_ms");
    r->ack_timeout_ms = amp_record_int(t, "ack_timeout_ms");
    r->timed_out_ms = amp_record_int(t, "timed_out_ms");
    r->expires_ms = amp_record_int(t, "expires_ms");
    r->sla_ms = amp_record_int(t, "sla_ms");
    r->wants_outcome = amp_tape_get(t, 0, AMP_SPAN("wants_outcome")) != AMP_TOK_NONE;
    r->for_many = amp_tape_get(t, 0, AMP_SPAN("for_many")) != AMP_TOK_NONE;
    r->told = amp_tape_get(t, 0, AMP_SPAN("told")) != AMP_TOK_NONE;
    r->beat_ms = amp_record_int(t, "beat_ms");
    r->until_ms = amp_record_int(t, "until_ms");
    r->beat_warns = amp_tape_get(t, 0, AMP_SPAN("beat_warns")) != AMP_TOK_NONE;
    r->silent = amp_tape_get(t, 0, AMP_SPAN("silent")) != AMP_TOK_NONE;
    r->seen_ms = amp_record_int(t, "seen_ms");
    r->lost = amp_tape_get(t, 0, AMP_SPAN("lost")) != AMP_TOK_NONE;
    r->supervised = amp_tape_get(t, 0, AMP_SPAN("supervised")) != AMP_TOK_NONE;
    return 0;
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

int amp_record_read(struct amp_span json, struct amp_buf *mem, struct amp_message_rec *out,
                    struct amp_error *err)
{
    struct amp_tape t;
    struct amp_message_rec r = *out;
    amp_buf_reset(mem);
    amp_record_tape(&t);
    int rc = -1;
    /* The parts never need more than the record, so that the spans stay where they are. */
    if (amp_buf_reserve(mem, json.n, err) == 0 && amp_record_scan(&t, json, err) == 0 &&
        members_read(&t, mem, &r, err) == 0) {
        *out = r;
        rc = 0;
    }
    amp_tape_release(&t);
    return rc;
}

/* So many are kept apart by their ids; a receiver that never stops must not fill the disk. */
#define LATE_ACKS_MAX 32

static bool takes_late(const struct amp_message_rec *r)
{
    return r->state != AMP_DELIVERY_SENT && r->state != AMP_DELIVERY_RECEIVED &&
           r->state != AMP_DELIVERY_READ;
}

bool amp_record_knows_ack(const struct amp_message_rec *r, struct amp_ack_note *note)
{
    if (r->acks.n == 0)
        return false;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, AMP_RECORD_MAX);
    struct amp_tape t;
    amp_record_tape(&t);
    struct amp_json_fault f;
    bool has = false;
    if (amp_buf_str(&text, "[", NULL) == 0 && amp_buf_add(&text, r->acks.p, r->acks.n, NULL) == 0 &&
        amp_buf_str(&text, "]", NULL) == 0 && amp_tape_scan(&t, text.data, text.len, &f) == 0) {
        bool by_id = note->id.n > 0 && takes_late(r) && t.tok[0].count < LATE_ACKS_MAX;
        for (uint32_t i = 1; i < t.n; i = t.tok[i].next) {
            uint32_t st = amp_tape_get(&t, i, AMP_SPAN("stage"));
            uint32_t who = amp_tape_get(&t, i, AMP_SPAN("by"));
            uint32_t id = amp_tape_get(&t, i, AMP_SPAN("id"));
            bool same_who = who == AMP_TOK_NONE
                                ? !note->by || !*note->by
                                : note->by && amp_tok_is(&t, who, amp_span_str(note->by));
            bool other = by_id && id != AMP_TOK_NONE && !amp_tok_is(&t, id, note->id);
            if (st != AMP_TOK_NONE && same_who && !other &&
                amp_tok_is(&t, st, amp_span_str(note->stage))) {
                has = true;
                note->late = amp_tape_get(&t, i, AMP_SPAN("late")) != AMP_TOK_NONE;
            }
        }
    }
    amp_tape_release(&t);
    return has;
}

bool amp_record_has_ack(const struct amp_message_rec *r, const char *stage, const char *by,
                        bool *late)
{
    struct amp_ack_note note = {.stage = stage, .by = by, .late = *late};
    bool has = amp_record_knows_ack(r, &note);
    *late = note.late;
    return has;
}

bool amp_record_has_stage(const struct amp_message_rec *r, const char *stage)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_tape t;
    struct amp_json_fault f;
    bool has = false;
    amp_buf_init(&text, AMP_RECORD_MAX);
    amp_record_tape(&t);
    if (r->acks.n > 0 && amp_buf_fmt(&text, NULL, "[%.*s]", (int)r->acks.n, r->acks.p) == 0 &&
        amp_tape_scan(&t, text.data, text.len, &f) == 0)
        for (uint32_t i = 1; i < t.n && !has; i = t.tok[i].next) {
            uint32_t tok = amp_tape_get(&t, i, AMP_SPAN("stage"));
            has = tok != AMP_TOK_NONE && amp_tok_is(&t, tok, amp_span_str(stage));
        }
    amp_tape_release(&t);
    return has;
}

bool amp_record_arrived(const struct amp_message_rec *r)
{
    return amp_record_has_stage(r, "RECEIVED") || amp_record_has_stage(r, "READ") ||
           amp_record_has_stage(r, "FULFILLED");
}

int amp_message_parse(const struct amp_store_rec *row, struct amp_buf *mem,
                      struct amp_message_rec *out, struct amp_error *err)
{
    struct amp_message_rec r = {.found = true};
    int state = amp_fsm_state(&amp_delivery_fsm, row->state);
    if (state < 0)
        return amp_fail(err, AMP_INTERNAL, "bad_record", "unknown delivery state \"%.*s\"",
                        (int)row->state.n, row->state.p);
    r.state = (uint8_t)state;
    if (amp_record_read(row->json, mem, &r, err) < 0)
        return -1;
    *out = r;
    return 0;
}

int amp_message_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                     struct amp_message_rec *out, struct amp_error *err)
{
    struct amp_store_rec row;
    if (amp_store_get(s, AMP_MESSAGE_KIND, id, &row, err) < 0)
        return -1;
    if (!row.found) {
        *out = (struct amp_message_rec){0};
        return 0;
    }
    return amp_message_parse(&row, mem, out, err);
}
