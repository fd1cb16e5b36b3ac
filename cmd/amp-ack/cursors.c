/* amp-ack cursors: lists and changes how far consumers have read the streams of sources. */
#include <inttypes.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "cli/table.h"
#include "message/cursor/cursors.h"
#include "pass.h"

static bool json, force;

const struct amp_opt cursors_list_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "print one JSON object per line"},
    AMP_OPT_END,
};
const struct amp_opt cursors_edit_opts[] = {
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

int ack_cursors_list(int argc, char **argv)
{
    static const char *const head[] = {"consumer", "source",  "position", "state",
                                       "missing",  "waiting", "lease",    "holder"};
    int status;
    ACK_STATE *s = ack_open_state(ACK_LOOK, &status);
    if (!s)
        return status;
    struct amp_error err;
    struct listing l = {.now_ms = amp_now_ms()};
    amp_table_init(&l.t, head, 8);
    if (amp_cursors_each(s, row_fn, &l, &err) < 0 ||
        (!json && l.t.rows > 1 && amp_table_print(&l.t, &err) < 0))
        status = amp_complain(&err);
    else if (!json && l.t.rows == 1)
        amp_note("no cursors");
    amp_table_release(&l.t);
    return status;
}

int ack_cursors_show(int argc, char **argv)
{
    int status;
    struct amp_error err = {0};
    struct amp_cursor_rec r;
    uint8_t state;
    AMP_BUF struct amp_buf mem = {0};
    if (argc != 2)
        amp_die_usage("a consumer and a source are needed");
    ACK_STATE *s = ack_open_state(ACK_LOOK, &status);
    if (!s)
        return status;
    amp_buf_init(&mem, 1 << 20);
    int rc =
        amp_cursors_find(s, amp_span_str(argv[0]), amp_span_str(argv[1]), &mem, &r, &state, &err);
    if (rc == 0)
        rc = amp_fail(&err, AMP_NO, unknown_ref, "%s has no cursor over %s", argv[0], argv[1]);
    else if (rc > 0)
        rc = print_json(&r, state, amp_now_ms(), &err);
    return rc < 0 ? amp_complain(&err) : 0;
}

static int cursor_edit(int argc, char **argv, bool move)
{
    int status;
    struct amp_error err = {0};
    struct amp_cursors_edit e = {.now_ms = amp_now_ms(),
                                 .lease_ms = AMP_CURSOR_LEASE_MS,
                                 .actor = ack_as ? ack_as : "amp-ack",
                                 .force = force};
    if (argc != (move ? 3 : 2))
        amp_die_usage("a consumer%s needed",
                      move ? ", a source and a number are" : " and a source are");
    e.consumer = amp_span_str(argv[0]);
    e.source = amp_span_str(argv[1]);
    if (move && amp_num_parse(amp_span_str(argv[2]), 0, INT64_MAX, &e.seq, &err) < 0)
        amp_die_usage("'%s' is not the number of an event", argv[2]);
    if (ack_person_or_self(argv[0], "change a consumer's cursor", &err) < 0)
        return amp_complain(&err);
    ACK_STATE *s = ack_open_state(ACK_EXISTING, &status);
    if (!s)
        return status;
    if ((move ? amp_cursors_move : amp_cursors_retire)(s, &e, &err) < 0 ||
        amp_store_sync(s, &err) < 0)
        return amp_complain(&err);
    return 0;
}

int ack_cursors_move(int argc, char **argv)
{
    return cursor_edit(argc, argv, true);
}

int ack_cursors_retire(int argc, char **argv)
{
    return cursor_edit(argc, argv, false);
}
