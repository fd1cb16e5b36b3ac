/* amp-ack status: a summary from the counters of the index, or a list of messages. */
#include <inttypes.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "cli/list.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/record/record.h"
#include "message/pause/pause.h"
#include "pass.h"
#include "people/question/escalation.h"
#include "work/task/record.h"
#include "json/record.h"

enum { OVERDUE_MOST = 10000 }; /* more are not counted */

static bool all, only_open;
static const char *task;

static const struct amp_opt status_opts[] = {
    AMP_OPT_JSON("print one JSON object per line"),
    {'a', "all", AMP_OPT_FLAG, &all, NULL, .doc = "list all messages"},
    {0, "open", AMP_OPT_FLAG, &only_open, NULL, .doc = "list the messages that are open"},
    {0, "task", AMP_OPT_STRING, &task, "GLOB",
     .doc = "list the messages of these tasks (without --all: the open ones)", .values = "task"},
    AMP_OPT_END,
};

struct listing {
    struct amp_listing *list;
    struct amp_buf mem;
    unsigned long count[AMP_DELIVERY_STATE_COUNT];
    int64_t now_ms;
};

/* Open: an acknowledgement or an outcome is missing. A message that needs none is settled when it
 * is sent. */
static bool is_open(const struct amp_message_rec *r)
{
    switch (r->state) {
    case AMP_DELIVERY_TIMED_OUT:
        return r->given_up.n == 0;
    case AMP_DELIVERY_RETRYING: /* the next attempt has a row of its own */
        return r->departed_ms == 0;
    case AMP_DELIVERY_REJECTED:
    case AMP_DELIVERY_FAILED:
        return false;
    default:
        return amp_record_due(r, AMP_SILENCE_MS) > 0;
    }
}

static void age_format(int64_t ms, char out[24])
{
    long long s = ms / 1000;
    if (s < 0)
        snprintf(out, 24, "in %llds", -s);
    else if (s < 120)
        snprintf(out, 24, "%llds", s);
    else if (s < 7200)
        snprintf(out, 24, "%lldm", s / 60);
    else
        snprintf(out, 24, "%lldh", s / 3600);
}

struct row {
    struct amp_span id;
    struct amp_message_rec r;
    int64_t due_ms;
    char way[128], overdue[24];
};

static void acks_put(const void *row, const char *key, struct amp_jw *w)
{
    amp_jw_key(w, key);
    amp_record_acks(&((const struct row *)row)->r, w);
}

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct row, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct row, key, head, member)
static const struct amp_column columns[] = {
    EVER(TEXT, "msg_id", "id", id),
    EVER(TEXT, "protocol", NULL, r.protocol),
    EVER(TEXT, "type", NULL, r.type),
    EVER(TEXT, "from", NULL, r.from),
    EVER(TEXT, "to", NULL, r.to),
    SOME(CHARS, NULL, "from → to", way),
    EVER(TEXT, "task_id", "task", r.task),
    AMP_COLUMN_STATE(struct row, "state", "state", r.state, &amp_delivery_fsm),
    SOME(TEXT, "origin", NULL, r.origin),
    SOME(TEXT, "next", NULL, r.next),
    SOME(TEXT, "given_up", NULL, r.given_up),
    SOME(AGE, "sent", "age", r.sent_ms),
    SOME(TIME, "due", NULL, due_ms),
    SOME(CHARS, NULL, "overdue", overdue),
    SOME(TIME, "timed_out", NULL, r.timed_out_ms),
    SOME(INT, "attempt", NULL, r.attempt),
    AMP_COLUMN_PUT("acks", acks_put, .ever = true),
    {0},
};

static int row_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                  struct amp_error *err)
{
    struct listing *l = ctx;
    struct amp_message_rec r;
    if (amp_message_parse(rec, &l->mem, &r, err) < 0)
        return -1;
    if (task && !amp_span_glob(r.task, amp_span_str(task)))
        return 0;
    l->count[r.state]++;
    if (!all && !is_open(&r))
        return 0;
    struct row row = {id, r, amp_record_due(&r, AMP_SILENCE_MS)};
    snprintf(row.way, sizeof row.way, "%.*s → %.*s", AMP_CLIP(r.from, 48), AMP_CLIP(r.to, 48));
    if (row.due_ms > 0)
        age_format(l->now_ms - row.due_ms, row.overdue);
    return amp_listing_row(l->list, &row, err);
}

static int totals_print(struct listing *l, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 4096);
    for (int i = 0; i < AMP_DELIVERY_STATE_COUNT; i++)
        if (l->count[i] > 0 && amp_buf_fmt(&b, err, "%s%lu %s", b.len > 0 ? ", " : "", l->count[i],
                                           amp_delivery_fsm.states[i].name) < 0)
            return -1;
    if (amp_buf_str(&b, b.len > 0 ? "\n" : "no messages\n", err) < 0)
        return -1;
    return amp_out(amp_buf_span(&b), err);
}

/* The waiting messages of an agent, and whether the agent is busy. */
static int inbox_fn(void *ctx, const struct amp_inbox_info *i, struct amp_error *err)
{
    struct listing *l = ctx;
    AMP_BUF struct amp_buf b = {0};
    char old[24];
    amp_buf_init(&b, 4096);
    age_format(l->now_ms - i->oldest_ms, old);
    if (amp_buf_str(&b, "inbox of ", err) < 0 || amp_text_safe(i->agent, 48, &b, err) < 0 ||
        amp_buf_fmt(&b, err, ": %u of %u%s%s%s\n", i->waiting, i->bound,
                    i->waiting > 0 ? ", the oldest for " : "", i->waiting > 0 ? old : "",
                    i->until_ms > l->now_ms ? ", busy" : "") < 0)
        return -1;
    return amp_out(amp_buf_span(&b), err);
}

static int pauses_print(struct amp_store *s, struct amp_error *err)
{
    AMP_CLEANUP(amp_pauses_release) struct amp_pauses now = {0};
    AMP_BUF struct amp_buf b = {0};

    amp_pauses_init(&now);
    if (amp_pauses_read(s, &now, err) < 0)
        return -1;
    amp_buf_init(&b, 1u << 20);
    for (uint32_t i = 0; i < now.n_v; i++) {
        const struct amp_pause *p = &now.v[i];
        if (amp_buf_fmt(&b, err, "suspended by ") < 0 ||
            amp_text_safe(p->person, 48, &b, err) < 0 ||
            amp_buf_fmt(&b, err, ": %s%s", amp_pause_scope_name((int)p->scope),
                        p->name.n ? " " : "") < 0 ||
            amp_text_safe(p->name, 60, &b, err) < 0 || amp_buf_str(&b, "\n", err) < 0)
            return -1;
    }
    return amp_out(amp_buf_span(&b), err);
}

/* ---- the summary ---- */

static const struct {
    const char *kind, *name, *member;
} summed[] = {
    {AMP_MESSAGE_KIND, "messages", "messages"},
    {AMP_TASK_KIND, "tasks", "tasks"},
    {AMP_DEAD_KIND, "dead letters", "dead_letters"},
    {AMP_ESCALATION_KIND, "questions", "questions"},
};
enum { SUMMED = sizeof summed / sizeof *summed, STATES_MOST = 32 };

struct summary {
    struct amp_store *store;
    struct {
        char state[64];
        uint64_t n;
    } v[SUMMED][STATES_MOST];
    unsigned n[SUMMED];
    uint64_t overdue;
    int64_t next_ms; /* the next deadline, 0: none */
};

static int tally_fn(void *ctx, struct amp_span kind, struct amp_span state, uint64_t n,
                    struct amp_error *err)
{
    struct summary *sum = ctx;
    for (unsigned i = 0; i < SUMMED; i++)
        if (amp_span_is(kind, summed[i].kind) && sum->n[i] < STATES_MOST) {
            amp_span_copy(state, sum->v[i][sum->n[i]].state, 64);
            sum->v[i][sum->n[i]++].n = n;
        }
    return 0;
}

static int summary_read(struct amp_store *s, int64_t now_ms, struct summary *sum,
                        struct amp_error *err)
{
    sum->store = s;
    if (amp_store_tally(s, NULL, tally_fn, sum, err) < 0 ||
        amp_store_count_overdue(s, AMP_MESSAGE_KIND, now_ms, OVERDUE_MOST, &sum->overdue, err) < 0)
        return -1;
    return sum->overdue ? 0 : amp_store_next_due(s, AMP_MESSAGE_KIND, &sum->next_ms, err);
}

static int summary_line(const struct summary *sum, unsigned i, struct amp_buf *b,
                        struct amp_error *err)
{
    uint64_t all_of = 0;
    for (unsigned k = 0; k < sum->n[i]; k++)
        all_of += sum->v[i][k].n;
    if (!all_of)
        return i == 0 ? amp_buf_str(b, "no messages\n", err) : 0;
    if (amp_buf_fmt(b, err, "%s: %" PRIu64, summed[i].name, all_of) < 0)
        return -1;
    for (unsigned k = 0; k < sum->n[i]; k++)
        if (amp_buf_fmt(b, err, "%s%" PRIu64 " ", k ? ", " : " (", sum->v[i][k].n) < 0 ||
            amp_text_safe(amp_span_str(sum->v[i][k].state), 24, b, err) < 0)
            return -1;
    return amp_buf_str(b, ")\n", err);
}

static int summary_print(const struct summary *sum, struct listing *l, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    char due[24];
    amp_buf_init(&b, 1 << 16);
    for (unsigned i = 0; i < SUMMED; i++) {
        if (summary_line(sum, i, &b, err) < 0)
            return -1;
        if (i > 0)
            continue;
        if (sum->overdue &&
            amp_buf_fmt(&b, err, "past their deadline: %s%" PRIu64 "\n",
                        sum->overdue >= OVERDUE_MOST ? "at least " : "", sum->overdue) < 0)
            return -1;
        if (sum->next_ms) {
            age_format(l->now_ms - sum->next_ms, due);
            if (amp_buf_fmt(&b, err, "next deadline: %s\n", due) < 0)
                return -1;
        }
    }
    if (amp_out(amp_buf_span(&b), err) < 0 || amp_inbox_infos(sum->store, inbox_fn, l, err) < 0)
        return -1;
    return pauses_print(sum->store, err);
}

static int inbox_put(void *ctx, const struct amp_inbox_info *i, struct amp_error *err)
{
    struct amp_jw *w = ctx;
    amp_jw_open(w, '{');
    amp_jw_member_str(w, "agent", i->agent);
    amp_jw_member_uint(w, "waiting", i->waiting);
    amp_jw_member_uint(w, "limit", i->bound);
    if (i->waiting > 0)
        amp_rec_time(w, "oldest", i->oldest_ms);
    amp_rec_time(w, "busy_until", i->until_ms);
    amp_jw_close(w, '}');
    return 0;
}

static int pauses_put(struct amp_store *s, struct amp_jw *w, struct amp_error *err)
{
    AMP_CLEANUP(amp_pauses_release) struct amp_pauses now = {0};
    amp_pauses_init(&now);
    if (amp_pauses_read(s, &now, err) < 0)
        return -1;
    for (uint32_t i = 0; i < now.n_v; i++) {
        amp_jw_open(w, '{');
        amp_jw_member_text(w, "scope", amp_pause_scope_name((int)now.v[i].scope));
        amp_jw_some_str(w, "name", now.v[i].name);
        amp_jw_member_str(w, "by", now.v[i].person);
        amp_jw_close(w, '}');
    }
    return 0;
}

static int summary_json(const struct summary *sum, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_jw w;
    amp_buf_init(&b, (size_t)16 << 20);
    amp_jw_init(&w, &b);
    amp_jw_open(&w, '{');
    for (unsigned i = 0; i < SUMMED; i++) {
        amp_jw_member_open(&w, summed[i].member, '{');
        for (unsigned k = 0; k < sum->n[i]; k++)
            amp_jw_member_uint(&w, sum->v[i][k].state, sum->v[i][k].n);
        amp_jw_close(&w, '}');
    }
    amp_jw_member_uint(&w, "overdue", sum->overdue);
    amp_rec_time(&w, "next_deadline", sum->next_ms);
    amp_jw_member_open(&w, "inboxes", '[');
    if (amp_inbox_infos(sum->store, inbox_put, &w, err) < 0)
        return -1;
    amp_jw_close(&w, ']');
    amp_jw_member_open(&w, "suspended", '[');
    if (pauses_put(sum->store, &w, err) < 0)
        return -1;
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&b), err);
}

/* ---- the verb ---- */

static int list_print(struct amp_store *s, struct listing *l, struct amp_error *err)
{
    amp_buf_init(&l->mem, (size_t)256 << 20);
    int rc = amp_store_each(s, AMP_MESSAGE_KIND, NULL, row_fn, l, err);
    if (rc == 0 && !amp_listing_json)
        rc = amp_listing_flush(l->list, err) < 0 ? -1 : totals_print(l, err);
    amp_buf_release(&l->mem);
    return rc;
}

static int ack_status(struct amp_command *c, struct amp_error *err)
{
    struct listing l = {.list = c->list, .now_ms = amp_now_ms()};
    struct summary sum = {0};
    if (all || only_open || task)
        return list_print(c->store, &l, err);
    if (summary_read(c->store, l.now_ms, &sum, err) < 0)
        return -1;
    return amp_listing_json ? summary_json(&sum, err) : summary_print(&sum, &l, err);
}

const struct amp_verb status_verbs[] = {
    {"status", "", "show how far messages are delivered", status_opts, ack_status,
     .opens = AMP_OPENS_LOOK, .lists = columns, .finds_state = true, .group = "Looking",
     .operand_hint = "--task TASK selects"},
    {0},
};
