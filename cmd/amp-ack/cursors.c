/* amp-ack cursors: lists and changes how far consumers have read the streams of sources. */
#include <inttypes.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "cli/table.h"
#include "message/delivery/cursor/cursors.h"
#include "pass.h"

static bool json, force;

static const struct amp_opt cursors_list_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "print one JSON object per line"},
    AMP_OPT_END,
};
static const struct amp_opt cursors_edit_opts[] = {
    {0, "force", AMP_OPT_FLAG, &force, NULL, .doc = "also if a consumer holds its lease"},
    AMP_OPT_END,
};

struct listing {
    struct amp_table t;
    int64_t now_ms;
};

static void time_put(struct amp_jw *w, const char *key, int64_t ms)
{
    char t[AMP_TIME_MAX];
    amp_time_format(ms, t);
    amp_jw_member_text(w, key, t);
}

static bool is_active(const struct amp_cursor_rec *r, uint8_t state, int64_t now_ms)
{
    return state != AMP_CURSOR_EXPIRED && state != AMP_CURSOR_RETIRED && r->lease_until_ms > now_ms;
}

/* The Runtime Protocol's record of a cursor, with some members of our own. */
static int print_json(const struct amp_cursor_rec *r, uint8_t state, int64_t now_ms,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_jw w;
    char epoch[40];
    amp_buf_init(&b, 1 << 20);
    amp_jw_init(&w, &b);
    snprintf(epoch, sizeof epoch, "route-epoch-%" PRId64, r->epoch);
    const char *status = is_active(r, state, now_ms)   ? "active"
                         : state == AMP_CURSOR_RETIRED ? "retired"
                                                       : "expired";
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "consumerNodeId", r->consumer);
    amp_jw_member_str(&w, "sourceNodeId", r->source);
    amp_jw_member_int(&w, "lastSeq", r->last_seq);
    time_put(&w, "updatedAt", r->updated_ms);
    amp_jw_member_text(&w, "status", status);
    time_put(&w, "leaseExpiresAt", r->lease_until_ms ? r->lease_until_ms : r->updated_ms);
    amp_jw_member_text(&w, "epoch", epoch);
    amp_jw_member_text(&w, "state", amp_cursor_fsm.states[state].name);
    amp_jw_some_str(&w, "holder", r->holder);
    if (r->gap_since_ms > 0) {
        amp_jw_member_int(&w, "gapFrom", r->last_seq + 1);
        amp_jw_member_int(&w, "gapTo", r->gap_to);
        time_put(&w, "gapSince", r->gap_since_ms);
    }
    amp_jw_member_int(&w, "waiting", r->held);
    amp_jw_member_open(&w, "givenUp", '[');
    for (uint32_t i = 0; i < r->n_holes; i++) {
        amp_jw_open(&w, '{');
        amp_jw_member_int(&w, "fromSeq", r->hole[i].from);
        amp_jw_member_int(&w, "toSeq", r->hole[i].to);
        time_put(&w, "at", r->hole[i].at_ms);
        amp_jw_close(&w, '}');
    }
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&b), err);
}

static void lease_format(int64_t ms, char out[24])
{
    long long s = (ms + 999) / 1000;
    if (s <= 0)
        snprintf(out, 24, "-");
    else if (s < 7200)
        snprintf(out, 24, "%llds", s);
    else
        snprintf(out, 24, "%lldh", s / 3600);
}

static int row_fn(void *ctx, const struct amp_cursor_rec *r, uint8_t state, struct amp_error *err)
{
    struct listing *l = ctx;
    char at[24], lease[24], gap[48] = "", waiting[16];
    if (json)
        return print_json(r, state, l->now_ms, err);
    snprintf(at, sizeof at, "%" PRId64, r->last_seq);
    snprintf(waiting, sizeof waiting, "%" PRId64, r->held);
    lease_format(r->lease_until_ms - l->now_ms, lease);
    if (r->gap_since_ms > 0)
        snprintf(gap, sizeof gap, "%" PRId64 "..%" PRId64, r->last_seq + 1, r->gap_to);
    const struct amp_span cells[] = {
        r->consumer,         r->source,
        amp_span_str(at),    amp_span_str(amp_cursor_fsm.states[state].name),
        amp_span_str(gap),   amp_span_str(waiting),
        amp_span_str(lease), r->holder};
    return amp_table_row(&l->t, cells, 8, err);
}

static int ack_cursors_list(struct amp_command *c, struct amp_error *err)
{
    static const char *const head[] = {"consumer", "source",  "position", "state",
                                       "missing",  "waiting", "lease",    "holder"};
    struct listing l = {.now_ms = amp_now_ms()};
    amp_table_init(&l.t, head, 8);
    int rc = amp_cursors_each(c->store, row_fn, &l, err);
    if (rc == 0 && !json && l.t.rows > 1)
        rc = amp_table_print(&l.t, err);
    else if (rc == 0 && !json)
        amp_note("no cursors");
    amp_table_release(&l.t);
    return rc;
}

static int ack_cursors_show(struct amp_command *c, struct amp_error *err)
{
    struct amp_cursor_rec r;
    uint8_t state;
    AMP_BUF struct amp_buf mem = {.max = 1 << 20};
    int rc = amp_cursors_find(c->store, amp_span_str(c->argv[0]), amp_span_str(c->argv[1]), &mem,
                              &r, &state, err);
    if (rc == 0)
        return amp_fail(err, AMP_NO, unknown_ref, "%s has no cursor over %s", c->argv[0],
                        c->argv[1]);
    return rc < 0 ? -1 : print_json(&r, state, amp_now_ms(), err);
}

static struct amp_cursors_edit edit = {.lease_ms = AMP_CURSOR_LEASE_MS};

static int move_check(struct amp_command *c, struct amp_error *err)
{
    if (amp_num_parse(amp_span_str(c->argv[2]), 0, INT64_MAX, &edit.seq, err) < 0)
        amp_die_usage("'%s' is not the number of an event", c->argv[2]);
    return 0;
}

static int cursor_edit(struct amp_command *c,
                       int (*change)(struct amp_store *s, const struct amp_cursors_edit *e,
                                     struct amp_error *err),
                       struct amp_error *err)
{
    edit.now_ms = amp_now_ms();
    edit.actor = ack_as ? ack_as : "amp-ack";
    edit.force = force;
    edit.consumer = amp_span_str(c->argv[0]);
    edit.source = amp_span_str(c->argv[1]);
    return change(c->store, &edit, err) < 0 ? -1 : amp_store_sync(c->store, err);
}

static int ack_cursors_move(struct amp_command *c, struct amp_error *err)
{
    return cursor_edit(c, amp_cursors_move, err);
}

static int ack_cursors_retire(struct amp_command *c, struct amp_error *err)
{
    return cursor_edit(c, amp_cursors_retire, err);
}

const struct amp_verb cursors_verbs[] = {
    {"cursors list", "", "list how far consumers have read", cursors_list_opts, ack_cursors_list,
     .opens = AMP_OPENS_LOOK, .finds_state = true, .group = "Cursors"},
    {"cursors show", "CONSUMER SOURCE", "print one cursor", NULL, ack_cursors_show,
     .opens = AMP_OPENS_LOOK, .least = 2, .most = 2, .usage = "a consumer and a source are needed",
     .finds_state = true, .values = "consumer source"},
    {"cursors move", "CONSUMER SOURCE SEQ", "set a cursor to the event after SEQ",
     cursors_edit_opts, ack_cursors_move, .check = move_check, .least = 3, .most = 3,
     .usage = "a consumer, a source and a number are needed", .opens = AMP_OPENS_FOUND,
     .act = "change a consumer's cursor", .values = "consumer source", .who = AMP_WHO_SELF},
    {"cursors retire", "CONSUMER SOURCE", "retire a cursor", cursors_edit_opts, ack_cursors_retire,
     .least = 2, .most = 2, .usage = "a consumer and a source are needed", .opens = AMP_OPENS_FOUND,
     .act = "change a consumer's cursor", .values = "consumer source", .who = AMP_WHO_SELF},
    {0},
};
