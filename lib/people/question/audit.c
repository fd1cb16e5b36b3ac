/* Turns commits and refused answers into entries of the audit trail. */
#include "people/question/audit.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "message/pause/pause.h"
#include "work/item/permit/permit.h"

#define TEXT_MAX 8192

void amp_audit_reader_init(struct amp_audit_reader *r)
{
    *r = (struct amp_audit_reader){0};
    amp_buf_init(&r->mem, AMP_REC_MAX);
    amp_buf_init(&r->text, TEXT_MAX);
    amp_buf_init(&r->signed_, TEXT_MAX);
}

void amp_audit_reader_release(struct amp_audit_reader *r)
{
    amp_buf_release(&r->mem);
    amp_buf_release(&r->text);
    amp_buf_release(&r->signed_);
}

/* ---- questions ---- */

/* The event of the machine, in the words of the trail. */
static const struct {
    uint8_t event;
    const char *what, *changed;
} words[] = {
    {AMP_ESC_EV_ARRIVE, "asked", "the question is open"},
    {AMP_ESC_EV_ASK, "shown", ""},
    {AMP_ESC_EV_VOTE, "vote", "more persons have to agree"},
    {AMP_ESC_EV_DECIDE, "decided", "the decision was sent"},
    {AMP_ESC_EV_PASS, "unanswered", "the question stays open"},
    {AMP_ESC_EV_DEFER, "deferred", "the question is asked again later"},
    {AMP_ESC_EV_WAKE, "asked", "the question is open again"},
    {AMP_ESC_EV_EXPIRE, "expired", "the deadline passed"},
    {AMP_ESC_EV_END, "ended", "the question is closed: its subject ended"},
    {AMP_ESC_EV_REFUSE, "refused", "the coordinator refused the decision; the question is open"},
};

static const struct amp_vote *vote_newest(const struct amp_question_rec *rec)
{
    const struct amp_vote *v = NULL;

    for (uint32_t i = 0; i < rec->n_votes; i++)
        if (!v || rec->votes[i].at_ms >= v->at_ms)
            v = &rec->votes[i];
    return v;
}

static void vote_fill(const struct amp_vote *v, struct amp_audit_entry *out)
{
    out->person = v->person;
    out->by = v->by;
    out->key = v->key;
    out->channel = v->channel;
    out->shown = v->shown;
    out->decision = v->action;
    out->why = v->note;
    out->line = v->line;
}

static void decision_fill(const struct amp_question_rec *rec, struct amp_audit_entry *out)
{
    out->person = rec->operator;
    out->by = rec->method;
    out->key = rec->key;
    out->channel = rec->channel;
    out->shown = rec->shown;
    out->decision = rec->decision;
    out->why = rec->note;
}

/* A fallback decided, or extended the deadline, or the question stays open. */
static int expiry_fill(struct amp_audit_reader *r, const struct amp_question_rec *rec,
                       const struct amp_store_commit *c, struct amp_audit_entry *out,
                       struct amp_error *err)
{
    if (rec->policy.n == 0) {
        if (rec->expired_ms == 0) {
            out->what = AMP_SPAN("extended");
            out->changed = AMP_SPAN("the deadline is later");
        }
        out->why = rec->fallback;
        return 0;
    }
    decision_fill(rec, out);
    out->what = AMP_SPAN("fallback");
    out->changed = AMP_SPAN("the decision was sent");
    out->line = c->has_line ? c->line : AMP_SPAN("");
    if (amp_buf_fmt(&r->text, err, "%.*s (%.*s)", AMP_CLIP(rec->policy, 200),
                    AMP_CLIP(rec->because, 200)) < 0)
        return -1;
    out->why = amp_buf_span(&r->text);
    return 0;
}

static int question_entry(struct amp_audit_reader *r, const struct amp_store_commit *c,
                          struct amp_span id, struct amp_audit_entry *out, struct amp_error *err)
{
    struct amp_question_rec rec;
    int event = amp_fsm_event(&amp_escalation_fsm, c->event);
    size_t i = 0;

    while (i < sizeof words / sizeof words[0] && words[i].event != event)
        i++;
    if (event < 0 || i == sizeof words / sizeof words[0])
        return 0;
    if (amp_question_rec_read(c->json, &r->mem, &rec, err) < 0)
        return -1;
    *out = (struct amp_audit_entry){
        .at_ms = c->at_ms,
        .frame = c->n,
        .what = amp_span_str(words[i].what),
        .changed = amp_span_str(words[i].changed),
        .question = id,
        .protocol = rec.protocol,
        .task = rec.task,
        .type = rec.type,
        .reason = rec.reason,
        .risk = rec.risk,
    };
    /* An effect of the record's subject: critical questions suspend their task. */
    if (event == AMP_ESC_EV_ARRIVE && amp_span_is(rec.severity, "critical"))
        out->changed = AMP_SPAN("the question is open; its task and agents are suspended");
    const struct amp_vote *v = vote_newest(&rec);
    switch (event) {
    case AMP_ESC_EV_VOTE:
        if (v)
            vote_fill(v, out);
        break;
    case AMP_ESC_EV_DECIDE:
        decision_fill(&rec, out);
        out->line = c->has_line ? c->line : AMP_SPAN("");
        break;
    case AMP_ESC_EV_DEFER:
        out->person = rec.operator;
        out->channel = rec.channel;
        out->why = rec.note;
        out->decision = AMP_SPAN("defer");
        break;
    case AMP_ESC_EV_ARRIVE: /* one that was withdrawn before it arrived */
    case AMP_ESC_EV_END:
        if (rec.withdrawn.n == 0)
            break;
        out->what = AMP_SPAN("withdrawn");
        out->changed = AMP_SPAN("the question is closed: its sender withdrew it");
        out->why = rec.withdrawn;
        break;
    case AMP_ESC_EV_PASS:
        out->why = rec.passed;
        break;
    case AMP_ESC_EV_REFUSE:
        out->why = rec.refused;
        break;
    case AMP_ESC_EV_EXPIRE:
        return expiry_fill(r, &rec, c, out, err) < 0 ? -1 : 1;
    default:
        break;
    }
    return 1;
}

/* ---- suspensions ---- */

static int pause_entry(struct amp_audit_reader *r, const struct amp_store_commit *c,
                       struct amp_audit_entry *out, struct amp_error *err)
{
    struct amp_pause p;

    if (amp_pause_last(c->json, &r->mem, &p, err) < 0)
        return -1;
    bool stop = amp_fsm_event(&amp_pause_fsm, c->event) == AMP_PAUSE_EV_SUSPEND;
    *out = (struct amp_audit_entry){
        .at_ms = c->at_ms,
        .frame = c->n,
        .what = stop ? AMP_SPAN("suspended") : AMP_SPAN("resumed"),
        .task = p.scope == AMP_PAUSE_TASK ? p.name : AMP_SPAN(""),
        .person = p.person,
        .by = p.by,
        .key = p.key,
        .channel = p.channel,
        .why = p.reason,
        .space = AMP_PAUSE_NAMESPACE,
        .alg = p.alg,
        .signature = p.signature,
    };
    amp_buf_reset(&r->signed_);
    if (amp_pause_text(&p, !stop, &r->signed_, err) < 0)
        return -1;
    out->text = amp_buf_span(&r->signed_);
    out->signed_ms = p.since_ms;
    if (amp_buf_fmt(&r->text, err, "%s %s%s%.*s",
                    stop ? "suspended:" : "resumed:", amp_pause_scope_name((int)p.scope),
                    p.name.n ? " " : "", AMP_CLIP(p.name, 300)) < 0)
        return -1;
    out->changed = amp_buf_span(&r->text);
    return 1;
}

/* ---- overrides ---- */

static int permit_entry(struct amp_audit_reader *r, const struct amp_store_commit *c,
                        struct amp_audit_entry *out, struct amp_error *err)
{
    char until[AMP_TIME_MAX] = "";
    struct amp_permit o;

    if (!amp_span_is(c->event, "override"))
        return 0;
    if (amp_permit_parse(c->json, &r->mem, &o, err) < 0)
        return -1;
    *out = (struct amp_audit_entry){
        .at_ms = c->at_ms,
        .frame = c->n,
        .what = AMP_SPAN("overridden"),
        .task = o.job,
        .person = o.person,
        .by = o.by,
        .key = o.key,
        .channel = AMP_SPAN("command"),
        .decision = amp_span_str(amp_permit_name((int)o.of)),
        .why = o.why,
        .space = AMP_PERMIT_NAMESPACE,
        .alg = o.alg,
        .signature = o.signature,
    };
    amp_buf_reset(&r->signed_);
    if (amp_permit_text(&o, &r->signed_, err) < 0)
        return -1;
    out->text = amp_buf_span(&r->signed_);
    out->signed_ms = o.since_ms;
    if (o.until_ms)
        amp_time_format(o.until_ms, until);
    if (amp_buf_fmt(&r->text, err, "%.*s%s%s", AMP_CLIP(o.changed, 300), *until ? ", until " : "",
                    until) < 0)
        return -1;
    out->changed = amp_buf_span(&r->text);
    return 1;
}

int amp_audit_commit(struct amp_audit_reader *r, const struct amp_store_commit *c,
                     struct amp_audit_entry *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf parts = {0};
    struct amp_key key;
    char id[AMP_QUESTION_KEY_MAX];

    if (c->index > 0 || c->json.n == 0)
        return 0;
    amp_buf_init(&parts, AMP_KEY_MAX);
    amp_buf_reset(&r->text);
    if (amp_key_split(c->full.n ? c->full : c->key, &parts, &key, err) < 0)
        return -1;
    if (strcmp(key.kind, AMP_PAUSE_KIND) == 0)
        return pause_entry(r, c, out, err);
    if (strcmp(key.kind, AMP_PERMIT_KIND) == 0)
        return permit_entry(r, c, out, err);
    if (strcmp(key.kind, AMP_ESCALATION_KIND) != 0)
        return 0;
    amp_span_copy(key.part[0], id, sizeof id);
    if (amp_buf_str(&r->text, id, err) < 0)
        return -1;
    size_t n = r->text.len;
    int rc = question_entry(r, c, (struct amp_span){NULL, 0}, out, err);
    if (rc > 0) { /* the buffer may have moved */
        out->question = (struct amp_span){r->text.data, n};
        if (out->why.p >= r->text.data && out->why.p <= r->text.data + r->text.len)
            out->why = (struct amp_span){r->text.data + n, r->text.len - n};
    }
    return rc;
}

/* ---- refused answers ---- */

struct refused {
    int64_t at_ms;
    struct amp_span type, id, code, from, key, file, message, protocol;
};
#define REFUSED(as, key_, member) AMP_REC(as, struct refused, key_, member)
static const struct amp_rec_field refused_fields[] = {
    REFUSED(TIME, "time", at_ms),
    REFUSED(TEXT, "type", type),
    REFUSED(TEXT, "id", id),
    REFUSED(TEXT, "code", code),
    REFUSED(TEXT, "from", from),
    REFUSED(TEXT, "key", key),
    REFUSED(TEXT, "file", file),
    REFUSED(TEXT, "message", message),
    REFUSED(TEXT, "protocol", protocol),
};
AMP_REC_TABLE(refused_rec, "a refused answer", struct refused, refused_fields);

int amp_audit_error(struct amp_audit_reader *r, struct amp_span line, struct amp_audit_entry *out,
                    struct amp_error *err)
{
    struct refused f;
    struct amp_error why;

    if (!memmem(line.p, line.n, "\"answer\"", 8) ||
        amp_rec_parse(&refused_rec, line, &r->mem, &f, &why) < 0 || !amp_span_is(f.type, "answer"))
        return 0;
    *out = (struct amp_audit_entry){
        .at_ms = f.at_ms,
        .what = AMP_SPAN("rejected"),
        .changed = AMP_SPAN("nothing: the answer was refused"),
        .question = f.id,
        .protocol = f.protocol,
        .person = f.from,
        .key = f.key,
        .channel = f.file,
        .why = f.message,
        .code = f.code,
    };
    return 1;
}
