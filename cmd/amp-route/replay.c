/* amp-route replay: prints recorded messages, byte for byte, and changes nothing. */
#include <inttypes.h>
#include <string.h>

#include <amp/base/num.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/delivery/history/recorded.h"
#include "message/route/rules/predicate.h"
#include "wiring.h"
#include "json/record.h"

static const char *state, *from = "start", *to = "end";
static struct amp_list where;
static bool dry_run, wrap;
static int64_t lock_timeout_ms = AMP_LOCK_TIMEOUT_MS;

static const struct amp_opt replay_opts[] = {
    AMP_OPT_STATE(state),
    {0, "from", AMP_OPT_STRING, &from, "POSITION", .doc = "where to begin (default: start)"},
    {0, "to", AMP_OPT_STRING, &to, "POSITION", .doc = "where to end (default: end)"},
    {0, "where", AMP_OPT_LIST, &where, "PREDICATE", .doc = "only messages that match"},
    {'n', "dry-run", AMP_OPT_FLAG, &dry_run, NULL,
     .doc = "print what would be written, and write nothing"},
    {0, "wrap", AMP_OPT_FLAG, &wrap, NULL, .doc = "write each message in a record with its origin"},
    {'v', "verbose", AMP_OPT_FLAG, &amp_verbose, NULL, .doc = "print a line about each message"},
    AMP_OPT_LOCK_TIMEOUT(lock_timeout_ms),
    AMP_OPT_END,
};

enum { WHERE_MAX = 64 };

struct replay {
    struct amp_store *store;
    struct amp_reader *reader;
    struct amp_recorded *log;
    struct amp_predicate *where[WHERE_MAX];
    uint32_t n_where;
    struct amp_buf out;
    uint64_t n;
};

static int replay_open(struct replay *r, struct amp_error *err)
{
    uint64_t first, behind;
    for (int i = 0; i < where.n; i++) {
        if (r->n_where == WHERE_MAX)
            return amp_fail(err, AMP_USAGE, too_many, "more than %d predicates", WHERE_MAX);
        if (amp_predicate_parse(amp_span_str(where.v[i]), &r->where[r->n_where], err) < 0)
            return -1;
        if (amp_predicate_jq(r->where[r->n_where++]))
            return amp_fail(err, AMP_USAGE, bad_predicate, "--where does not take jq: predicates");
    }
    if (!(r->reader = amp_reader_new(NULL, err)) ||
        amp_recorded_position(r->store, from, &first, err) < 0 ||
        amp_recorded_position(r->store, to, &behind, err) < 0)
        return -1;
    int64_t number; /* a frame that --to names is included */
    bool named = amp_num_parse(amp_span_str(to), 1, INT64_MAX, &number, NULL) == 0;
    return amp_recorded_open(r->store, first, named ? behind : behind - 1, &r->log, err) < 0
               ? -1
               : amp_store_sync(r->store, err);
}

static bool is_wanted(const struct replay *r, const struct amp_view *v)
{
    for (uint32_t i = 0; i < r->n_where; i++)
        if (!amp_predicate_match(r->where[i], v))
            return false;
    return true;
}

static void item_report(const struct amp_recorded_item *item, const struct amp_view *v)
{
    amp_note("frame %" PRIu64 ": redelivered: %.*s %.*s from %.*s", item->n,
             (int)(v->type.n < 64 ? v->type.n : 64), v->type.p ? v->type.p : "",
             (int)(v->id.n < 128 ? v->id.n : 128), v->id.p ? v->id.p : "",
             (int)(v->from.n < 64 ? v->from.n : 64), v->from.p ? v->from.p : "");
}

static int wrapped_add(struct replay *r, const struct amp_recorded_item *item,
                       const struct amp_view *v, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, &r->out);
    amp_jw_open(&w, '{');
    amp_jw_member_uint(&w, "frame", item->n);
    amp_rec_time(&w, "recorded", item->at_ms);
    amp_jw_member_bool(&w, "redelivered", true);
    if (v->json)
        amp_jw_member_raw(&w, "msg", item->line);
    else
        amp_jw_member_str(&w, "text", item->line);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

static int item_write(struct replay *r, const struct amp_recorded_item *item, struct amp_error *err)
{
    struct amp_view v;
    struct amp_check_options check = {0};
    if (amp_reader_line(r->reader, item->line, &check, &v, NULL, NULL, err) < 0)
        return -1;
    if (!is_wanted(r, &v))
        return 0;
    amp_progress("messages", ++r->n, 0);
    if (amp_verbose || dry_run)
        item_report(item, &v);
    if (dry_run)
        return 0;
    amp_buf_reset(&r->out);
    if ((wrap ? wrapped_add(r, item, &v, err)
              : amp_buf_add(&r->out, item->line.p, item->line.n, err)) < 0 ||
        amp_buf_str(&r->out, "\n", err) < 0)
        return -1;
    return amp_out(amp_buf_span(&r->out), err);
}

static int log_replay(struct replay *r, struct amp_error *err)
{
    struct amp_recorded_item item;
    int rc;
    while ((rc = amp_recorded_next(r->log, &item, err)) > 0) {
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
        if (item_write(r, &item, err) < 0)
            return -1;
    }
    return rc;
}

static int route_replay(struct amp_command *c, struct amp_error *err)
{
    struct replay r = {.store = c->store};
    amp_buf_init(&r.out, (size_t)256 << 20);
    int rc = replay_open(&r, err) < 0 ? -1 : log_replay(&r, err);
    if (rc == 0 && (amp_verbose || dry_run))
        amp_note("%" PRIu64 " %s", r.n, r.n == 1 ? "message" : "messages");
    amp_recorded_free(r.log);
    for (uint32_t i = 0; i < r.n_where; i++)
        amp_predicate_free(r.where[i]);
    amp_reader_free(r.reader);
    amp_buf_release(&r.out);
    return rc;
}

const struct amp_verb replay_verbs[] = {
    {"replay", "", "print recorded messages again", replay_opts, route_replay,
     .opens = AMP_OPENS_READ, .signals = true},
    {0},
};
