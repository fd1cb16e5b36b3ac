/* hitl-prompt audit: who decided what, when, why, with which key and through which channel. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "../hitl.h"
#include "audit.h"
#include "base/codes.h"
#include "base/grow.h"
#include "cli/list.h"
#include "message/delivery/sender/head.h"
#include "message/delivery/sender/identity.h"
#include "work/item/permit/permit.h"
#include "work/task/landing/landing.h"

#define TEXT_MAX ((size_t)256 << 20)
#define DAYS_MS  (INT64_C(36500) * 86400000)

static const char *since;
static struct amp_list tasks, people, channels, decisions, whats;
static bool verify;

static const struct amp_opt audit_opts[] = {
    {0, "since", AMP_OPT_STRING, &since, "TIME",
     .doc = "only from TIME on: RFC 3339 or an age (90s, 2h)"},
    {0, "task", AMP_OPT_LIST, &tasks, "TASK", .doc = "only entries about this task or question",
     .values = "task"},
    {0, "person", AMP_OPT_LIST, &people, "NAME", .doc = "only what this person did"},
    {0, "channel", AMP_OPT_LIST, &channels, "CHANNEL", .doc = "only answers through this channel"},
    {0, "decision", AMP_OPT_LIST, &decisions, "ACTION", .doc = "only this decision"},
    {0, "what", AMP_OPT_LIST, &whats, "WHAT",
     .doc = "only entries of this kind: asked, decided, vote, rejected, suspended, landed …"},
    {0, "verify", AMP_OPT_FLAG, &verify, NULL,
     .doc = "verify the signatures of entries and the chain of the log"},
    AMP_OPT_JSON("print one JSON object per line"),
    AMP_OPT_END,
};

struct row {
    struct amp_span of[AUDIT_COUNT];
    int64_t frame;
};
static const struct amp_column columns[] = {
#define X(name, member, head)                                                                      \
    AMP_COLUMN(TEXT, struct row, member, head, of[AUDIT_##name],                                   \
               .ever = AUDIT_##name <= AUDIT_WHAT),
    AUDIT_MEMBERS(X)
#undef X
        AMP_COLUMN(INT, struct row, "frame", NULL, frame),
    {0},
};

struct audit {
    struct amp_store *store;
    struct amp_identities *ids; /* for --verify */
    struct amp_reader *reader;
    struct amp_audit_reader entries;
    struct audit_tasks tasks;
    struct audit_list list;
    struct amp_listing *out;
    struct audit_verdict verdict;
    int64_t since_ms;
};

static struct amp_span audit_member(const struct audit_list *l, const struct audit_entry *e,
                                    int member)
{
    size_t off = e->off;
    for (int i = 0; i < member; i++)
        off += e->n[i];
    return (struct amp_span){l->text.data + off, e->n[member]};
}

/* ---- verifying ---- */

/* The outcome of a verification in one word, as entry_signature gives it. */
static int signature_judge(struct amp_identities *ids, int rc, const struct amp_identity *who,
                           const struct amp_error *no, char out[64], struct amp_error *err)
{
    if (rc < 0 && no->status != AMP_NO) {
        *err = *no;
        return -1;
    }
    snprintf(out, 64, "%s",
             rc < 0 ? no->code
             : amp_identities_is_operator(ids, amp_span_str(who->key), who->time_ms)
                 ? "valid"
                 : AMP_CODE(not_operator));
    return 0;
}

static int text_signature(struct amp_identities *ids, const struct amp_audit_entry *e, char out[64],
                          struct amp_error *err)
{
    char time[AMP_TIME_MAX];
    struct amp_identity who;
    struct amp_error no;

    if (e->signature.n == 0) {
        snprintf(out, 64, "unsigned");
        return 0;
    }
    amp_time_format(e->signed_ms, time);
    const struct amp_sig sig = {e->key, e->alg, amp_span_str(time), e->signature};
    int rc = amp_verifier_text(amp_identities_verifier(ids), e->space, &sig, e->text, AMP_SPAN(""),
                               0, &who, &no);
    return signature_judge(ids, rc, &who, &no, out, err);
}

/* Whether the signature of a decision, suspension or landing was valid at its time, and its key an
 * operator's: "valid", "unsigned", or a code; "": the entry has no line. */
static int entry_signature(struct amp_identities *ids, struct amp_reader *reader,
                           const struct amp_audit_entry *e, char out[64], struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    struct amp_identity who;
    struct amp_error no;
    struct amp_view v;

    *out = '\0';
    if (amp_span_is(e->code, AMP_CODE(bad_record))) {
        snprintf(out, 64, AMP_CODE(bad_record));
        return 0;
    }
    if (e->text.n > 0)
        return text_signature(ids, e, out, err);
    if (e->line.n == 0)
        return 0;
    int rc = amp_reader_line(reader, e->line, &any, &v, NULL, NULL, err);
    if (rc < 0)
        return -1;
    const struct amp_sig sig = {v.sig.key, v.sig.alg, v.sig.time, v.sig.value};
    if (rc == 0 || sig.key.n == 0) {
        snprintf(out, 64, "%s", rc == 0 ? "malformed" : "unsigned");
        return 0;
    }
    int verified = amp_verifier_message(amp_identities_verifier(ids), &sig, v.message, AMP_SPAN(""),
                                        0, &who, &no);
    return signature_judge(ids, verified, &who, &no, out, err);
}

static void chain_note(void *ctx, uint32_t seg, uint64_t off, const char *what)
{
    (void)ctx;
    amp_warn("log/%06u.ndjson, offset %" PRIu64 ": %s", seg, off, what);
}

/* The chain of the log (amp-ack audit --verify). 0 also if it was changed: then intact is false. */
static int chain_verify(struct amp_store *s, struct audit_verdict *v, struct amp_error *err)
{
    const struct amp_store_verify how = {.note = chain_note};
    struct amp_store_verdict found;

    if (amp_head_verify(s, how, &found, err) < 0) {
        if (!amp_code_is(err->code, log_tampered))
            return -1;
        snprintf(v->log, sizeof v->log, "The log was changed: %s", err->what);
        return 0;
    }
    v->intact = true;
    snprintf(v->log, sizeof v->log,
             "The log is intact: frames %" PRIu64 " to %" PRIu64 " in %u segments", found.first,
             found.last, found.segments);
    return 0;
}

/* ---- collecting ---- */

static bool list_has(const struct amp_list *l, struct amp_span text)
{
    for (int i = 0; i < l->n; i++)
        if (amp_span_is(text, l->v[i]))
            return true;
    return l->n == 0;
}

static bool is_wanted(const struct audit *a, const struct amp_audit_entry *e)
{
    return e->at_ms >= a->since_ms &&
           (list_has(&tasks, e->task) || list_has(&tasks, e->question)) &&
           list_has(&people, e->person) && list_has(&channels, e->channel) &&
           list_has(&decisions, e->decision) && list_has(&whats, e->what);
}

static void signature_count(struct audit_verdict *v, const char *signature)
{
    v->valid += strcmp(signature, "valid") == 0;
    v->unsigned_ += strcmp(signature, "unsigned") == 0;
    v->invalid += *signature && strcmp(signature, "valid") && strcmp(signature, "unsigned");
}

static int entry_add(struct audit *a, const struct amp_audit_entry *e, struct amp_error *err)
{
    struct audit_list *l = &a->list;
    char at[AMP_TIME_MAX], signature[64] = "";

    if (!is_wanted(a, e))
        return 0;
    if (a->ids && entry_signature(a->ids, a->reader, e, signature, err) < 0)
        return -1;
    signature_count(&a->verdict, signature);
    amp_time_format(e->at_ms, at);
    const struct amp_span texts[AUDIT_COUNT] = {
        [AUDIT_AT] = amp_span_str(at),  [AUDIT_WHAT] = e->what,
        [AUDIT_QUESTION] = e->question, [AUDIT_PROTOCOL] = e->protocol,
        [AUDIT_TASK] = e->task,         [AUDIT_TYPE] = e->type,
        [AUDIT_REASON] = e->reason,     [AUDIT_RISK] = e->risk,
        [AUDIT_PERSON] = e->person,     [AUDIT_BY] = e->by,
        [AUDIT_KEY] = e->key,           [AUDIT_CHANNEL] = e->channel,
        [AUDIT_SHOWN] = e->shown,       [AUDIT_DECISION] = e->decision,
        [AUDIT_WHY] = e->why,           [AUDIT_CHANGED] = e->changed,
        [AUDIT_CODE] = e->code,         [AUDIT_SIGNATURE] = amp_span_str(signature),
    };
    if (amp_grow(&l->v, &l->cap, l->n, sizeof *l->v, err) < 0)
        return -1;
    struct audit_entry x = {.off = l->text.len, .frame = e->frame, .number = l->n};
    for (int i = 0; i < AUDIT_COUNT; i++) {
        x.n[i] = (uint32_t)texts[i].n;
        if (amp_buf_add(&l->text, texts[i].p, texts[i].n, err) < 0)
            return -1;
    }
    l->v[l->n++] = x;
    return 0;
}

static int on_commit(void *ctx, const struct amp_store_commit *c, struct amp_error *err)
{
    struct audit *a = ctx;
    struct amp_audit_entry e;
    int rc = amp_audit_commit(&a->entries, c, &e, err);
    if (rc == 0)
        rc = audit_task_commit(&a->tasks, c, &e, err);
    return rc > 0 ? entry_add(a, &e, err) : rc;
}

/* A refused answer, in the error log. */
static int error_take(void *ctx, struct amp_span record, struct amp_error *err)
{
    struct audit *a = ctx;
    struct amp_audit_entry e;
    int rc = amp_audit_error(&a->entries, record, &e, err);

    return rc > 0 ? entry_add(a, &e, err) : rc;
}

static const char *compared; /* the text of the entries, for qsort */

static int by_time(const void *x, const void *y)
{
    const struct audit_entry *a = x, *b = y;
    size_t n = a->n[AUDIT_AT] < b->n[AUDIT_AT] ? a->n[AUDIT_AT] : b->n[AUDIT_AT];
    int rc = memcmp(compared + a->off, compared + b->off, n);
    return rc ? rc : (a->number > b->number) - (a->number < b->number);
}

static int entries_collect(struct audit *a, struct amp_error *err)
{
    static const char *const kinds[] = {AMP_ESCALATION_KIND, AMP_PAUSE_KIND,   AMP_PERMIT_KIND,
                                        AMP_TASK_KIND,       AMP_LANDING_KIND, NULL};
    uint64_t first, last;

    if (amp_store_range(a->store, &first, &last, err) < 0 ||
        (last > 0 && amp_store_commits(a->store, first, last, kinds, on_commit, a, err) < 0) ||
        amp_store_errors_each(a->store, error_take, a, err) < 0)
        return -1;
    compared = a->list.text.data;
    if (a->list.n > 0)
        qsort(a->list.v, a->list.n, sizeof *a->list.v, by_time);
    return 0;
}

/* ---- printing ---- */

static int list_print(const struct audit_list *l, struct amp_listing *list, struct amp_error *err)
{
    for (size_t i = 0; i < l->n; i++) {
        struct row row = {.frame = (int64_t)l->v[i].frame};
        for (int k = 0; k < AUDIT_COUNT; k++)
            row.of[k] = audit_member(l, &l->v[i], k);
        if (amp_listing_row(list, &row, err) < 0)
            return -1;
    }
    return 0;
}

/* The last line of --verify --json. */
static int verdict_print(const struct audit_verdict *v, struct amp_listing *list,
                         struct amp_error *err)
{
    char at[AMP_TIME_MAX];
    struct row row = {
        .of = {[AUDIT_WHAT] = AMP_SPAN("verified"), [AUDIT_CHANGED] = amp_span_str(v->log)}};

    amp_time_format(amp_now_ms(), at);
    row.of[AUDIT_AT] = amp_span_str(at);
    if (!v->intact)
        row.of[AUDIT_CODE] = amp_span_str(AMP_CODE(log_tampered));
    return amp_listing_row(list, &row, err);
}

/* ---- the verb ---- */

static int since_read(int64_t *ms, struct amp_error *err)
{
    struct amp_error why;
    int64_t ago;

    *ms = 0;
    if (!since || amp_time_parse(amp_span_str(since), ms))
        return 0;
    if (amp_num_duration(amp_span_str(since), 0, DAYS_MS, &ago, &why) < 0)
        return amp_fail(err, AMP_USAGE, bad_time,
                        "--since takes an RFC 3339 time with an offset, or a duration");
    *ms = amp_now_ms() - ago;
    return 0;
}

static int audit_run(struct audit *a, struct amp_error *err)
{
    if (since_read(&a->since_ms, err) < 0)
        return -1;
    if (verify && (chain_verify(a->store, &a->verdict, err) < 0 || hitl_trust(&a->ids, err) < 0 ||
                   !(a->reader = amp_reader_new(NULL, err))))
        return -1;
    if (verify && !a->ids)
        amp_warn("identities are off: signatures are not verified");
    if (entries_collect(a, err) < 0)
        return -1;
    if (list_print(&a->list, a->out, err) < 0)
        return -1;
    if (!verify)
        return 0;
    const struct audit_verdict *v = &a->verdict;
    if (amp_listing_json && verdict_print(v, a->out, err) < 0)
        return -1;
    amp_note("%s; signatures: %llu valid, %llu not valid, %llu missing", v->log,
             (unsigned long long)v->valid, (unsigned long long)v->invalid,
             (unsigned long long)v->unsigned_);
    if (!v->intact)
        return amp_fail(err, AMP_NO, log_tampered, "%s", v->log);
    return v->invalid ? amp_fail(err, AMP_NO, bad_signature, "%llu signatures are not valid",
                                 (unsigned long long)v->invalid)
                      : 0;
}

static int hitl_audit(struct amp_command *c, struct amp_error *err)
{
    struct audit a = {.store = c->store, .out = c->list};

    amp_audit_reader_init(&a.entries);
    audit_tasks_init(&a.tasks);
    amp_buf_init(&a.list.text, TEXT_MAX);
    int rc = audit_run(&a, err);
    amp_audit_reader_release(&a.entries);
    audit_tasks_release(&a.tasks);
    amp_buf_release(&a.list.text);
    free(a.list.v);
    amp_reader_free(a.reader);
    amp_identities_close(a.ids);
    return rc;
}

const struct amp_verb audit_verbs[] = {
    {"audit", "", "list, verify and report what people decided", audit_opts, hitl_audit,
     .opens = AMP_OPENS_LOOK, .lists = columns, .signals = true, .finds_state = true},
    {0},
};
