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
    int64_t now_ms, lease_ms, gap_from, gap_to; /* the gap: -1: none */
};

static struct amp_span epoch_text(const void *row, char mem[AMP_CELL_MAX])
{
    snprintf(mem, AMP_CELL_MAX, "route-epoch-%" PRId64, ((const struct row *)row)->r.epoch);
    return amp_span_str(mem);
}

static struct amp_span status_text(const void *row, char mem[AMP_CELL_MAX])
{
    const struct row *r = row;
    (void)mem;
    return amp_span_str(r->state == AMP_CURSOR_RETIRED ? "retired"
                        : r->state != AMP_CURSOR_EXPIRED && r->r.lease_until_ms > r->now_ms
                            ? "active"
                            : "expired");
}

static struct amp_span lease_text(const void *row, char mem[AMP_CELL_MAX])
{
    const struct row *r = row;
    long long s = (r->r.lease_until_ms - r->now_ms + 999) / 1000;
    if (s <= 0)
        return AMP_SPAN("");
    snprintf(mem, AMP_CELL_MAX, s < 7200 ? "%llds" : "%lldh", s < 7200 ? s : s / 3600);
    return amp_span_str(mem);
}

static struct amp_span gap_text(const void *row, char mem[AMP_CELL_MAX])
{
    const struct row *r = row;
    snprintf(mem, AMP_CELL_MAX, "%" PRId64 "..%" PRId64, r->gap_from, r->gap_to);
    return r->gap_to < 0 ? AMP_SPAN("") : amp_span_str(mem);
}

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
    AMP_COLUMN_MADE("status", NULL, status_text, .ever = true),
    EVER(TIME, "leaseExpiresAt", NULL, lease_ms),
    AMP_COLUMN_MADE("epoch", NULL, epoch_text, .ever = true),
    AMP_COLUMN_STATE(struct row, "state", "state", state, &amp_cursor_fsm),
    AMP_COLUMN_MADE(NULL, "missing", gap_text),
    SOME(COUNT, "gapFrom", NULL, gap_from),
    SOME(COUNT, "gapTo", NULL, gap_to),
    SOME(TIME, "gapSince", NULL, r.gap_since_ms),
    EVER(INT, "waiting", "waiting", r.held),
    AMP_COLUMN_MADE(NULL, "lease", lease_text),
    SOME(TEXT, "holder", "holder", r.holder),
    AMP_COLUMN_ROWS(struct row, "givenUp", hole, r.n_holes, hole_columns, .ever = true),
    {0},
};

static int row_fn(void *ctx, const struct amp_cursor_rec *r, uint8_t state, struct amp_error *err)
{
    struct amp_listing *l = ctx;
    const bool gap = r->gap_since_ms > 0;
    const struct row row = {.r = *r,
                            .hole = r->hole,
                            .state = state,
                            .now_ms = l->now_ms,
                            .lease_ms = r->lease_until_ms ? r->lease_until_ms : r->updated_ms,
                            .gap_from = gap ? r->last_seq + 1 : -1,
                            .gap_to = gap ? r->gap_to : -1};
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
