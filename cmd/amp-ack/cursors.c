/* amp-ack cursors: lists and changes how far consumers have read the streams of sources. */
#include <inttypes.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "cli/list.h"
#include "message/delivery/cursor/cursors.h"
#include "pass.h"

static bool force;

static const struct amp_opt cursors_list_opts[] = {
    AMP_OPT_JSON("print one JSON object per line"),
    AMP_OPT_END,
};
static const struct amp_opt cursors_edit_opts[] = {
    {0, "force", AMP_OPT_FLAG, &force, NULL, .doc = "also if a consumer holds its lease"},
    AMP_OPT_END,
};

struct row {
    struct amp_cursor_rec r;
    const struct amp_cursor_hole *hole;
    uint8_t state;
    const char *status;
    int64_t lease_ms, gap_from, gap_to; /* the gap: -1: none */
    char epoch[40], lease[24], gap[48];
};

static const struct amp_column hole_columns[] = {
    AMP_COLUMN_EVER(INT, struct amp_cursor_hole, "fromSeq", NULL, from),
    AMP_COLUMN_EVER(INT, struct amp_cursor_hole, "toSeq", NULL, to),
    AMP_COLUMN(TIME, struct amp_cursor_hole, "at", NULL, at_ms),
    {0},
};

/* The Runtime Protocol's record of a cursor, with some members of our own. */
#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct row, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct row, key, head, member)
static const struct amp_column columns[] = {
    EVER(TEXT, "consumerNodeId", "consumer", r.consumer),
    EVER(TEXT, "sourceNodeId", "source", r.source),
    EVER(INT, "lastSeq", "position", r.last_seq),
    EVER(TIME, "updatedAt", NULL, r.updated_ms),
    EVER(CSTR, "status", NULL, status),
    EVER(TIME, "leaseExpiresAt", NULL, lease_ms),
    EVER(CHARS, "epoch", NULL, epoch),
    AMP_COLUMN_STATE(struct row, "state", "state", state, &amp_cursor_fsm),
    SOME(CHARS, NULL, "missing", gap),
    SOME(COUNT, "gapFrom", NULL, gap_from),
    SOME(COUNT, "gapTo", NULL, gap_to),
    SOME(TIME, "gapSince", NULL, r.gap_since_ms),
    EVER(INT, "waiting", "waiting", r.held),
    SOME(CHARS, NULL, "lease", lease),
    SOME(TEXT, "holder", "holder", r.holder),
    AMP_COLUMN_ROWS(struct row, "givenUp", hole, r.n_holes, hole_columns, .ever = true),
    {0},
};

static int row_fn(void *ctx, const struct amp_cursor_rec *r, uint8_t state, struct amp_error *err)
{
    struct amp_listing *l = ctx;
    const bool gap = r->gap_since_ms > 0;
    const long long left_s = (r->lease_until_ms - l->now_ms + 999) / 1000;
    struct row row = {.r = *r,
                      .hole = r->hole,
                      .state = state,
                      .status = state == AMP_CURSOR_RETIRED ? "retired"
                                : state != AMP_CURSOR_EXPIRED && r->lease_until_ms > l->now_ms
                                    ? "active"
                                    : "expired",
                      .lease_ms = r->lease_until_ms ? r->lease_until_ms : r->updated_ms,
                      .gap_from = gap ? r->last_seq + 1 : -1,
                      .gap_to = gap ? r->gap_to : -1};

    snprintf(row.epoch, sizeof row.epoch, "route-epoch-%" PRId64, r->epoch);
    if (left_s > 0)
        snprintf(row.lease, sizeof row.lease, left_s < 7200 ? "%llds" : "%lldh",
                 left_s < 7200 ? left_s : left_s / 3600);
    if (gap)
        snprintf(row.gap, sizeof row.gap, "%" PRId64 "..%" PRId64, row.gap_from, row.gap_to);
    return amp_listing_row(l, &row, err);
}

static int ack_cursors_list(struct amp_command *c, struct amp_error *err)
{
    return amp_cursors_each(c->store, row_fn, c->list, err);
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
    amp_listing_json = true;
    return rc < 0 ? -1 : row_fn(c->list, &r, state, err);
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
     .opens = AMP_OPENS_LOOK, .lists = columns, .none = "no cursors", .finds_state = true,
     .group = "Cursors"},
    {"cursors show", "CONSUMER SOURCE", "print one cursor", NULL, ack_cursors_show,
     .opens = AMP_OPENS_LOOK, .lists = columns, .least = 2, .most = 2,
     .usage = "a consumer and a source are needed", .finds_state = true,
     .values = "consumer source"},
    {"cursors move", "CONSUMER SOURCE SEQ", "set a cursor to the event after SEQ",
     cursors_edit_opts, ack_cursors_move, .check = move_check, .least = 3, .most = 3,
     .usage = "a consumer, a source and a number are needed", .opens = AMP_OPENS_FOUND,
     .act = "change a consumer's cursor", .values = "consumer source", .who = AMP_WHO_SELF},
    {"cursors retire", "CONSUMER SOURCE", "retire a cursor", cursors_edit_opts, ack_cursors_retire,
     .least = 2, .most = 2, .usage = "a consumer and a source are needed", .opens = AMP_OPENS_FOUND,
     .act = "change a consumer's cursor", .values = "consumer source", .who = AMP_WHO_SELF},
    {0},
};
