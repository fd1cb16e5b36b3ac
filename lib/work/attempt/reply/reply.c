/*
 * Answers of agents. The record "reply.<message>/<agent>" has the last answer of an agent to a
 * message, and "reply.<message>/=end" the one that ended its work, of any agent; the commit of this
 * record emits the line. The ledger follows in another frame, so a crash or a full disk can lose
 * it. Then the next answer to the message, of any agent, carries out the rest first, and so does
 * the line when it is routed.
 */
#include "work/attempt/reply/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/delivery/ledger/holder.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/ledger/timeouts.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/settle/answer.h"
#include "message/delivery/settle/outcome.h"
#include "message/protocol/work.h"
#include "message/record/subject.h"
#include "work/handoff/handoff.h"
#include "work/loop/run/run.h"

#define KEPT_MS INT64_C(604800000)
#define THE_END AMP_SPAN("=end") /* in the place of an agent's name */

/* jansson leaves out a member for which there is no memory, if its result is not tested; an answer
 * must not lack one. */
static _Thread_local bool starved;

static void *noting_malloc(size_t n)
{
    void *p = malloc(n);
    starved = starved || (!p && n > 0);
    return p;
}

/* ---- the record of an agent's answers ---- */

struct note {
    uint8_t act;
    int64_t at_ms, progress_ms; /* of the last answer; of the last progress */
    int64_t frames;             /* reports of progress so far */
    const char *by, *box;       /* of the end: the agent, and the outbox that got the line */
    int64_t requeues;           /* of the end: those of the message before it */
    int64_t due_ms;
};
AMP_WORDS(act_names, AMP_REPLY_ACTS);
static const struct amp_rec_words act_words = {.list = act_names};
static const struct amp_rec_field note_fields[] = {
    AMP_REC_ENUM(struct note, "act", act, &act_words),
    AMP_REC_EVER(TIME, struct note, "at", at_ms),
    AMP_REC(TIME, struct note, "progress_at", progress_ms),
    AMP_REC(INT, struct note, "frames", frames),
    AMP_REC(CSTR, struct note, "by", by),
    AMP_REC(CSTR, struct note, "box", box),
    AMP_REC(INT, struct note, "requeues", requeues),
};
AMP_REC_TABLE(note_rec, "the record of an answer", struct note, note_fields);

static int note_set(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct note *n = t->step->with;

    (void)err;
    *(struct note *)rec = *n;
    t->change->event = act_names[n->act];
    return 0;
}

static const char *const note_states[] = {"ACCEPTED", "IN_PROGRESS", "COMPLETED",
                                          "FAILED",   "REPLIED",     NULL};
static const struct amp_subject notes = {.kind = AMP_REPLY_KIND,
                                         .table = &note_rec,
                                         .states = note_states,
                                         .state = AMP_SUBJECT_AT(struct note, act),
                                         .due = AMP_SUBJECT_AT(struct note, due_ms),
                                         .carry = note_set};

/* ---- one answer ---- */

struct work {
    struct amp_store *store;
    const struct amp_reply *r;
    struct amp_reply_result *out;
    const struct amp_answer_terms *answers;
    const struct amp_work_terms *terms;
    bool acks_name_work;
    struct amp_reply_said said;
    struct amp_reader *reader, *own;
    struct amp_view of, line; /* the message; the answer */
    struct amp_message_rec rec;
    struct amp_buf mem, end_mem;
    char name[AMP_MSG_ID_MAX]; /* of a message without an id */
    char by[AMP_REPLY_NAME_MAX], role[128], agent[AMP_REPLY_NAME_MAX];
    json_t *data; /* with what was measured */
    struct note last, end;
    bool answered, ended; /* last is set; end is set */
    struct amp_error fault;
};

static void work_release(struct work *w)
{
    amp_reader_free(w->reader);
    amp_reader_free(w->own);
    amp_buf_release(&w->mem);
    amp_buf_release(&w->end_mem);
    json_decref(w->data);
}

static int message_load(struct work *w, struct amp_error *err)
{
    if (amp_message_find(w->store, amp_span_str(w->out->id), &w->mem, &w->rec, err) < 0)
        return -1;
    if (!w->rec.found)
        return amp_fail(err, AMP_NO, unknown_ref, "the state has no message %s", w->out->id);
    const struct amp_check_options opt = {.only = amp_protocol_find(w->rec.protocol)};
    if (amp_reader_line(w->reader, w->rec.line, &opt, &w->of, NULL, NULL, err) < 0)
        return -1;
    amp_message_name(&w->of, w->name);
    w->answers = amp_answers_of(w->of.protocol);
    w->terms = amp_work_of(w->of.protocol);
    w->acks_name_work = amp_delivery_of(w->of.protocol)->acks_name_work;
    return 0;
}

/* Finds who answers: an agent, and for a protocol of roles the role that the message is for.
 * "ROLE/NAME" has both. */
static int speaker_find(struct work *w, struct amp_error *err)
{
    const char *slash = strchr(w->r->by, '/');
    snprintf(w->agent, sizeof w->agent, "%s", slash ? slash + 1 : w->r->by);
    if (slash)
        snprintf(w->role, sizeof w->role, "%.*s", (int)(slash - w->r->by), w->r->by);
    else if (amp_holder_role(w->store, w->agent, w->role, err) < 0)
        return -1;
    if (!w->answers->replies || !w->answers->replies->by_role) {
        snprintf(w->by, sizeof w->by, "%s", w->agent);
        snprintf(w->out->principal, sizeof w->out->principal, "%s", w->agent);
        return 0;
    }
    bool is_role = !*w->role && amp_span_is(w->rec.to, w->agent);
    if (is_role)
        snprintf(w->role, sizeof w->role, "%.127s", w->agent);
    snprintf(w->by, sizeof w->by, "%s", w->role);
    snprintf(w->out->principal, sizeof w->out->principal, "%.120s%s%.120s", w->role,
             is_role ? "" : "/", is_role ? "" : w->agent);
    return 0;
}

/* Whether the answer ends the work on the message. Several agents may refuse it. */
static bool is_end(const struct work *w)
{
    return w->r->act == AMP_REPLY_COMPLETE || (w->r->act == AMP_REPLY_FAIL && w->said.taken);
}

static int note_load(struct work *w, struct amp_span of, struct amp_buf *mem, struct note *note,
                     bool *found, struct amp_error *err)
{
    struct amp_key key = AMP_KEY(AMP_REPLY_KIND, amp_span_str(w->out->id), of);
    int rc = amp_subject_find(&notes, w->store, key, mem, note, err);
    *found = rc > 0;
    return rc < 0 ? -1 : 0;
}

static int last_load(struct work *w, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    if (note_load(w, amp_span_str(w->agent), &mem, &w->last, &w->answered, err) < 0 ||
        note_load(w, THE_END, &w->end_mem, &w->end, &w->ended, err) < 0)
        return -1;
    /* If the message was requeued since, nothing has ended. */
    w->ended = w->ended && w->end.requeues == w->rec.requeues;
    return 0;
}

/* Whether the agent has taken the work up. */
static bool is_taken(const struct work *w)
{
    if (w->r->taken && !amp_holder_accepts(&w->rec) && !w->acks_name_work)
        return true;
    if (amp_holder_accepts(&w->rec))
        return amp_span_is(w->rec.holder, w->by);
    return w->acks_name_work ? w->answered : w->rec.state == AMP_DELIVERY_READ;
}

static int state_check(const struct work *w, struct amp_error *err)
{
    const char *id = w->out->id;
    bool replies = w->r->act == AMP_REPLY_REPLY && !w->rec.wants_outcome;
    switch (w->rec.state) {
    case AMP_DELIVERY_FULFILLED:
        return replies ? 0
                       : amp_fail(err, AMP_NO, already_completed, "%s has an outcome already", id);
    case AMP_DELIVERY_REJECTED:
    case AMP_DELIVERY_FAILED:
        return amp_fail(err, AMP_NO, refused_before, "%s is %s already", id,
                        amp_delivery_fsm.states[w->rec.state].name);
    case AMP_DELIVERY_TIMED_OUT:
    case AMP_DELIVERY_RETRYING:
        if (!w->r->late)
            return amp_fail(err, AMP_NO, late,
                            "%s is %s: an answer would change nothing (--late sends it)", id,
                            amp_delivery_fsm.states[w->rec.state].name);
        break;
    default:
        break;
    }
    /* A refusal ends it as well. */
    if (w->rec.state == AMP_DELIVERY_SENT && w->r->act != AMP_REPLY_FAIL &&
        amp_message_expired(&w->of, w->r->now_ms))
        return amp_fail(err, AMP_NO, expired, "the time to live of %s has passed", id);
    if (w->r->act == AMP_REPLY_ACCEPT && w->answered)
        return amp_fail(err, AMP_NO, already_accepted, "%s answered %s before", w->agent, id);
    if (w->r->act == AMP_REPLY_PROGRESS && w->answers->progress_least_ms > 0 && w->answered &&
        w->r->now_ms - w->last.progress_ms < w->answers->progress_least_ms)
        return amp_fail(err, AMP_NO, too_frequent,
                        "progress is reported at most once in %lld s (last: %lld s ago)",
                        (long long)w->answers->progress_least_ms / 1000,
                        (long long)(w->r->now_ms - w->last.progress_ms) / 1000);
    return 0;
}

/* An agent that handed the task over reports nothing more about it (SW4RM §17.6); it may refuse to
 * take it up again. */
static int given_check(const struct work *w, struct amp_error *err)
{
    char owner[256];
    if (w->r->act == AMP_REPLY_FAIL && !w->said.taken)
        return 0;
    int given = amp_handoff_given(w->store, amp_span_str(w->agent), w->of.task, owner, err);
    return given <= 0 ? given
                      : amp_fail(err, AMP_NO, handed_over, "%s handed %.*s over to %s", w->agent,
                                 AMP_CLIP(w->of.task, 100), owner);
}

/* Only the holder reports progress or the end; the addressee may accept or refuse. */
static int sender_check(const struct work *w, struct amp_error *err)
{
    bool begins = w->r->act == AMP_REPLY_ACCEPT || (w->r->act == AMP_REPLY_FAIL && !w->said.taken);
    bool claims = w->r->act == AMP_REPLY_ACCEPT && amp_holder_accepts(&w->rec);
    const struct amp_holder_claim c = {.stage = claims ? AMP_STAGE_RECEIVED : AMP_STAGE_FULFILLED,
                                       .by = w->by,
                                       .role = w->role,
                                       .worded = !begins,
                                       .takes_up = claims};
    if (!*w->by)
        return amp_fail(err, AMP_NO, bad_sender,
                        "%s has no role: register the agent, or answer as %.*s/%s", w->agent,
                        AMP_CLIP(w->rec.to, 64), w->agent);
    if (amp_holder_check(&w->rec, amp_span_str(w->out->id), &c, err) < 0)
        return -1;
    return amp_holder_is(&w->rec, &c)
               ? 0
               : amp_fail(err, AMP_NO, bad_sender, "%s is for %.*s, not for %s", w->out->id,
                          AMP_CLIP(w->rec.to, 100), w->by);
}

static void fault_keep(void *ctx, const struct amp_finding *f)
{
    struct work *w = ctx;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, 4096);
    if (f->severity != AMP_SEV_ERROR || w->fault.status != 0)
        return;
    if (amp_buf_fmt(&text, NULL, "the answer would not be valid: %s ", f->field) < 0 ||
        amp_finding_sentence(f, true, &text, NULL) < 0)
        amp_buf_reset(&text);
    amp_fail_text(&w->fault, AMP_NO, f->code, "%.*s", AMP_CLIP(amp_buf_span(&text), 400));
}

static unsigned waives_of(void *ctx, const struct amp_view *response)
{
    struct work *w = ctx;
    (void)response;
    return w->terms->result_waives ? w->terms->result_waives(&w->of) : 0;
}

/* Views the composed line as its receiver would. */
static int line_view(struct work *w, struct amp_span line, struct amp_error *err)
{
    const struct amp_check_options opt = {
        .only = w->of.protocol, .now_ms = w->r->now_ms, .waives = waives_of, .waives_ctx = w};
    w->fault.status = 0;
    int rc = amp_reader_line(w->own, line, &opt, &w->line, fault_keep, w, err);
    if (rc == 0 && w->fault.status != 0)
        *err = w->fault;
    return rc > 0 ? 0 : -1;
}

static int line_compose(struct work *w, struct amp_error *err)
{
    struct amp_buf *out = &w->out->line;
    amp_buf_reset(out);
    int rc = w->answers->replies->compose(&w->of, &w->said, out, err);
    if (starved)
        return amp_fail_memory(err);
    if (rc < 0)
        return -1;
    if (out->len > 0 && out->data[out->len - 1] == '\n')
        out->len--;
    if (line_view(w, amp_buf_span(out), err) < 0)
        return -1;
    struct amp_result_fault f;
    if (!w->terms->result_fault || w->line.kind != AMP_KIND_RESULT)
        return 0;
    int bad = w->terms->result_fault(&w->of, &w->line, &f, err);
    return bad <= 0 ? bad
                    : amp_fail_text(err, AMP_NO, f.code, "in the answer, %s %s", f.pointer, f.what);
}

/* Numbers are used only by lines that are valid: a gap in an outbox would hold back later ones. */
static int line_number(struct work *w, struct amp_error *err)
{
    struct amp_answer a = {.by = w->said.by, .node = w->said.by, .now_ms = w->r->now_ms};
    if (amp_sequence_answer(w->store, &w->of, w->r->box, &a, err) < 0)
        return -1;
    if (a.sequence == 0)
        return 0;
    w->said.sequence = a.sequence;
    return line_compose(w, err);
}

/* ---- what the answer changes ---- */

static enum amp_ack_stage stage_of(const struct work *w)
{
    switch (w->r->act) {
    case AMP_REPLY_COMPLETE:
        return AMP_STAGE_FULFILLED;
    case AMP_REPLY_FAIL:
        return w->said.taken ? AMP_STAGE_FAILED : AMP_STAGE_REJECTED;
    default:
        return AMP_STAGE_READ;
    }
}

static bool is_ack(const struct work *w)
{
    struct amp_outcome o;
    return (w->line.kind == AMP_KIND_ACK || w->line.kind == AMP_KIND_NACK) &&
           !amp_outcome_read(&w->line, &o);
}

static bool is_outcome(const struct work *w)
{
    struct amp_outcome o;
    return amp_outcome_read(&w->line, &o) || amp_work_of(w->line.protocol)->watched;
}

static int answer_check(struct work *w, struct amp_error *err)
{
    if (is_ack(w))
        return amp_message_acknowledge_check(w->store, &w->line, err);
    return is_outcome(w) ? amp_outcome_check(w->store, &w->line, err) : 0;
}

/* A message that has no stage for the answer keeps its state. */
static int answer_apply(struct work *w, struct amp_error *err)
{
    int64_t now = w->r->now_ms;
    enum amp_ack_stage stage = stage_of(w);
    if (is_ack(w))
        return amp_message_acknowledge(w->store, &w->line, now, err);
    if (is_outcome(w))
        return amp_outcome_apply(w->store, &w->line, now, err);
    if ((w->answers->no_stages & 1u << stage) || w->rec.state == AMP_DELIVERY_FULFILLED)
        return 0;
    const struct amp_message_answer a = {.stage = stage,
                                         .by = w->by,
                                         .id = w->line.id,
                                         .code = amp_span_str(w->r->code ? w->r->code : ""),
                                         .worded = true};
    return amp_settle_answer(w->store, amp_span_str(w->out->id), &a, now, NULL, err);
}

static int ledger_change(struct work *w, struct amp_error *err)
{
    const struct amp_view *v = &w->line;
    bool kept = v->id.n > 0 && v->kind != AMP_KIND_ACK && v->kind != AMP_KIND_NACK &&
                (v->needs_ack || v->wants_outcome || amp_timeouts_ack(v) > 0);
    if (kept && amp_message_record(w->store, v, w->r->now_ms, NULL, err) < 0)
        return -1;
    return answer_apply(w, err);
}

static int answer_commit(struct work *w, struct amp_error *err)
{
    const struct amp_store_emit line = {.id = amp_span_str(w->out->id),
                                        .line = amp_buf_span(&w->out->line),
                                        .role = AMP_ROLE_answer};
    const bool end = is_end(w), progress = w->r->act == AMP_REPLY_PROGRESS;
    const struct note n = {.act = (uint8_t)w->r->act,
                           .at_ms = w->r->now_ms,
                           .progress_ms = progress ? w->r->now_ms : w->last.progress_ms,
                           .frames = w->last.frames + progress,
                           .by = end ? w->agent : "",
                           .box = end ? w->r->box : "",
                           .requeues = end ? w->rec.requeues : 0,
                           .due_ms = w->r->now_ms + KEPT_MS};
    const struct amp_subject_step step = {.key = AMP_KEY(AMP_REPLY_KIND, amp_span_str(w->out->id),
                                                         end ? THE_END : amp_span_str(w->agent)),
                                          .with = &n,
                                          .actor = w->r->box,
                                          .emits = &line,
                                          .n_emits = 1};
    return amp_subject_step(&notes, w->store, &step, NULL, NULL, NULL, err) < 0
               ? -1
               : ledger_change(w, err);
}

/* ---- an answer that a killed process left ---- */

struct leftover {
    struct work *w;
    bool found;
};

static int entry_fn(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct leftover *l = ctx;
    if (e->role != AMP_ROLE_answer || !amp_span_is(e->id, l->w->out->id))
        return 0;
    l->found = true;
    amp_buf_reset(&l->w->out->line);
    return amp_buf_add(&l->w->out->line, e->line.p, e->line.n, err);
}

/* 1: the outbox has the line of an answer to the message; it is in out->line, and viewed. */
static int line_find(struct work *w, const char *box, struct amp_error *err)
{
    struct leftover l = {.w = w};
    struct amp_error e = {0};
    if (amp_store_outbox(w->store, box, entry_fn, &l, err) < 0)
        return -1;
    return l.found && line_view(w, amp_buf_span(&w->out->line), &e) == 0;
}

static bool is_over(const struct work *w)
{
    return w->rec.state == AMP_DELIVERY_FULFILLED || w->rec.state == AMP_DELIVERY_FAILED ||
           w->rec.state == AMP_DELIVERY_REJECTED;
}

/* Changes in the ledger what an earlier answer did not change there. 1: it is the same answer, and
 * its outbox still has it. */
static int leftover_finish(struct work *w, struct amp_error *err)
{
    const struct note *n = w->ended ? &w->end : &w->last;
    bool once = n->act != AMP_REPLY_PROGRESS && n->act != AMP_REPLY_REPLY;
    bool same = n->act == (uint8_t)w->r->act && (!w->ended || strcmp(n->by, w->agent) == 0);
    struct amp_error e = {0};
    int rc = 0;
    if (!w->ended && !(w->answered && same && once))
        return 0;
    int found = line_find(w, w->ended ? n->box : w->r->box, err);
    if (found < 0)
        return -1;
    if (found)
        rc = ledger_change(w, &e);
    else if (w->ended && !is_over(w)) /* its line was emitted */
        rc = amp_settle_known(w->store, amp_span_str(w->out->id),
                              n->act == AMP_REPLY_COMPLETE ? AMP_STAGE_FULFILLED : AMP_STAGE_FAILED,
                              n->by, AMP_SPAN(""), w->r->now_ms, &e);
    if (rc < 0 && amp_fail_unless_no(err, &e) < 0)
        return -1;
    if (!found || !same)
        return w->ended ? message_load(w, err) : 0;
    w->out->how = AMP_REPLY_REPEATED;
    return 1;
}

/* ---- */

static int said_fill(struct work *w, struct amp_error *err)
{
    const struct amp_reply *r = w->r;
    json_auto_t *text = r->text ? json_string(r->text) : json_null();
    json_auto_t *code = r->code ? json_string(r->code) : json_null();
    if (!text || !code)
        return amp_fail(err, AMP_NO, bad_value, "the text is not UTF-8");
    w->said = (struct amp_reply_said){.act = r->act,
                                      .by = w->by,
                                      .role = w->role,
                                      .text = r->text && *r->text ? r->text : NULL,
                                      .data = w->data,
                                      .files = r->files,
                                      .n_files = r->n_files,
                                      .has_percent = r->has_percent,
                                      .percent = r->percent,
                                      .code = r->code && *r->code ? r->code : NULL,
                                      .retryable = r->retryable,
                                      .eta_ms = r->eta_ms,
                                      .taken = is_taken(w),
                                      .frame = w->last.frames,
                                      .began_ms = w->rec.sent_ms,
                                      .now_ms = r->now_ms};
    for (uint32_t i = w->rec.n_acks; i-- > 0;)
        if (strcmp(w->rec.acks[i].stage, "READ") == 0)
            w->said.began_ms = w->rec.acks[i].at_ms;
    return 0;
}

/* Measures the change of the branch, outside the store's lock. */
static int change_measure(struct work *w, struct amp_error *err)
{
    const struct amp_reply_terms *t = w->answers->replies;
    w->data = w->r->data ? json_deep_copy(w->r->data) : NULL;
    if (said_fill(w, err) < 0)
        return -1;
    if (!t || !t->needs_diff || !t->needs_diff(&w->of, &w->said) || !w->r->git)
        return 0;
    char commit[AMP_OID_MAX];
    struct amp_git_diff diff = {0};
    struct amp_git *git = w->r->git(w->r->git_ctx, err);
    if (!git || amp_run_measure(w->store, git, &w->of, commit, &diff, err) < 0)
        return -1;
    json_t *list = json_array();
    for (uint32_t i = 0; i < diff.n_files; i++)
        json_array_append_new(list, json_string(diff.files[i]));
    if (!w->data)
        w->data = json_object();
    json_object_set_new(w->data, "diff_summary",
                        json_pack("{s:o, s:I, s:I}", "files_changed", list, "lines_added",
                                  (json_int_t)diff.lines_added, "lines_removed",
                                  (json_int_t)diff.lines_removed));
    amp_reply_default(w->data, "commit_hash", json_string(commit));
    amp_git_diff_release(&diff);
    return 0;
}

static int answer_make(struct work *w, struct amp_error *err)
{
    if (w->r->allowed && w->r->allowed(w->r->allowed_ctx, err) < 0)
        return -1;
    if (message_load(w, err) < 0 || last_load(w, err) < 0)
        return -1;
    int left = leftover_finish(w, err);
    if (left != 0)
        return left < 0 ? -1 : 0;
    if (!w->answers->replies)
        return amp_fail(err, AMP_NO, unsupported_reply, "%s is not answered", w->out->id);
    return state_check(w, err) < 0 || said_fill(w, err) < 0 || sender_check(w, err) < 0 ||
                   given_check(w, err) < 0 || line_compose(w, err) < 0 ||
                   answer_check(w, err) < 0 || line_number(w, err) < 0
               ? -1
               : answer_commit(w, err);
}

int amp_reply(struct amp_store *s, const struct amp_reply *r, struct amp_reply_result *out,
              struct amp_error *err)
{
    __attribute__((cleanup(work_release))) struct work w = {.store = s,
                                                            .r = r,
                                                            .out = out,
                                                            .mem = {.max = AMP_RECORD_MAX},
                                                            .end_mem = {.max = AMP_REC_MAX}};
    out->how = AMP_REPLY_COMPOSED;
    starved = false;
    json_set_alloc_funcs(noting_malloc, free);
    if (amp_reply_find(s, r->id, out->id, err) < 0)
        return -1;
    if (!(w.reader = amp_reader_new(NULL, err)) || !(w.own = amp_reader_new(NULL, err)))
        return -1;
    if (message_load(&w, err) < 0 || speaker_find(&w, err) < 0 || last_load(&w, err) < 0 ||
        change_measure(&w, err) < 0 || amp_store_begin(s, err) < 0)
        return -1;
    int rc = answer_make(&w, err);
    amp_store_end(s);
    return rc;
}
