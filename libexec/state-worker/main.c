/*
 * state-worker: the history checks of amp-validate. Reads requests {"q":N,"msg":MESSAGE} and writes
 * exactly one reply for each, in order:
 *     {"q":N,"findings":[…]}                     empty: the message is valid
 *     {"q":N,"error":{"status":S,"what":"…"}}    the state cannot be queried
 * It never writes to the state.
 */
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/json/lines.h>

#include "base/codes.h"
#include "cli/cli.h"
#include "message/delivery/settle/rails.h"
#include "message/protocol/work.h"
#include "people/facts.h"
#include "people/keep.h"
#include "worker.h"

enum { REQUEST_MOST = 64 * 1024 * 1024 + 1024, REPLY_MOST = 256 * 1024 };

/* For the largest --max-line and --max-depth, and the request around the message. */
static const struct amp_json_limits limits = {
    .max_bytes = REQUEST_MOST, .max_depth = 1030, .max_tokens = 1000010};

static const char *state;

static const struct amp_opt opts[] = {
    {.name = "state",
     .kind = AMP_OPT_DIR,
     .dest = &state,
     .arg = "DIR",
     .doc = "the state directory to ask"},
    AMP_OPT_END,
};

struct worker {
    struct checks checks;
    struct amp_reader *reader;
    struct amp_tape tape; /* of the request */
    struct amp_buf reply;
    unsigned noted;          /* findings without the state */
    struct amp_error closed; /* why the state cannot be opened: the reply to every request */
};

/* Adds a member that a RESPONSE of AOP lacks although its TASK requires it. */
static void add_missing(void *ctx, const struct amp_finding *f)
{
    struct worker *w = ctx;
    if (f->severity != AMP_SEV_ERROR || !amp_work_of(f->protocol)->result_waives)
        return;
    amp_jw_open(w->checks.out, '{');
    amp_finding_members(w->checks.out, f);
    amp_jw_close(w->checks.out, '}');
    w->noted++;
}

/* Checks the message again, because only the state has the TASK whose guard rails may waive
 * members. amp-validate waives them all. */
static int check_message(struct worker *w, struct amp_span message, struct amp_jw *out,
                         struct amp_error *err)
{
    struct amp_view v;
    struct amp_rails rails = {.store = w->checks.store};
    struct amp_check_options opt = {.waives = amp_rails_waives, .waives_ctx = &rails};
    w->checks.out = out;
    w->noted = 0;
    amp_jw_member_open(out, "findings", '[');
    int good = amp_reader_line(w->reader, message, &opt, &v, add_missing, w, err), bad = 0;
    if (good >= 0 && rails.failed) {
        *err = rails.err;
        good = -1;
    }
    if (good == 0 && w->noted == 0)
        good = amp_fail(err, AMP_INTERNAL, helper_protocol, "the request holds no valid message");
    if (good > 0)
        bad = checks_run(&w->checks, &v, err);
    amp_jw_close(out, ']');
    return good < 0 ? -1 : bad;
}

static void write_error(struct amp_jw *out, const struct amp_error *why)
{
    amp_jw_member_open(out, "error", '{');
    amp_jw_member_int(out, "status", why->status);
    amp_jw_member_str(out, "code", amp_span_str(why->code));
    amp_jw_member_str(out, "what", amp_span_str(why->what));
    amp_jw_close(out, '}');
}

static int answer_request(struct worker *w, struct amp_span line, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_error why;
    int64_t q = -1;
    uint32_t message = AMP_TOK_NONE;
    if (amp_tape_scan(&w->tape, line.p, line.n, &fault) == 0 &&
        w->tape.tok[0].type == AMP_JSON_OBJECT) {
        uint32_t tok = amp_tape_get(&w->tape, 0, AMP_SPAN("q"));
        message = amp_tape_get(&w->tape, 0, AMP_SPAN("msg"));
        if (tok == AMP_TOK_NONE || w->tape.tok[tok].type != AMP_JSON_NUMBER ||
            !amp_tok_int(&w->tape, tok, &q))
            q = -1;
    }
    if (q < 0 || message == AMP_TOK_NONE)
        return amp_fail(err, AMP_INTERNAL, helper_protocol, "a request is not one");
    struct amp_jw out;
    amp_buf_reset(&w->reply);
    amp_jw_init(&out, &w->reply);
    amp_jw_open(&out, '{');
    amp_jw_member_int(&out, "q", q);
    if (!w->checks.store)
        write_error(&out, &w->closed);
    else if (check_message(w, amp_tok_source(&w->tape, message), &out, &why) < 0 ||
             amp_store_sync(w->checks.store, &why) < 0) /* after the reply, the line may pass */
        write_error(&out, &why);
    amp_jw_close(&out, '}');
    if (amp_jw_end_line(&out, err) < 0)
        return -1;
    return amp_write_all(1, amp_buf_span(&w->reply), err);
}

static int serve_requests(struct worker *w, struct amp_error *err)
{
    struct amp_lines lines;
    struct amp_line line;
    enum amp_read got;
    int bad = 0;
    amp_lines_init(&lines, REQUEST_MOST);
    do {
        got = amp_lines_fill(&lines, 0, err);
        enum amp_line_result r = AMP_LINE_MORE;
        while (got != AMP_READ_FAILED && bad == 0 &&
               (r = amp_lines_next(&lines, &line)) == AMP_LINE)
            bad = answer_request(w, line.bytes, err);
        if (r == AMP_LINE_TOO_LONG)
            bad = amp_fail(err, AMP_INTERNAL, helper_protocol, "a request is too long");
    } while (got != AMP_READ_FAILED && got != AMP_READ_END && bad == 0);
    amp_lines_release(&lines);
    return got == AMP_READ_FAILED || bad < 0 ? -1 : 0;
}

/* A state that cannot be opened is the reply to every request. */
static int run_worker(struct amp_command *c, struct amp_error *err)
{
    struct worker w = {0};
    struct amp_store_options how = {
        .lock_timeout_ms = 10000, .read_only = true, .facts = &amp_facts_all, .keep = amp_keep_all};
    (void)c;
    if (!state)
        amp_die_usage("--state is missing");
    if (amp_store_open(state, &how, &w.checks.store, &w.closed) < 0)
        w.checks.store = NULL;
    amp_buf_init(&w.reply, REPLY_MOST);
    amp_buf_init(&w.checks.mem, REQUEST_MOST);
    amp_tape_init(&w.tape, &limits);
    amp_tape_init(&w.checks.tape, &limits);
    seen_init(&w.checks.seen);
    amp_map_init(&w.checks.progress, sizeof(int64_t));
    int bad = !(w.reader = amp_reader_new(&limits, err)) || serve_requests(&w, err) < 0 ? -1 : 0;
    rtp_history_free(w.checks.rtp);
    seen_release(&w.checks.seen);
    amp_map_release(&w.checks.progress);
    amp_reader_free(w.reader);
    amp_tape_release(&w.tape);
    amp_tape_release(&w.checks.tape);
    amp_buf_release(&w.checks.mem);
    amp_buf_release(&w.reply);
    if (w.checks.store)
        amp_store_close(w.checks.store);
    return bad;
}

static const struct amp_verb verbs[] = {
    {.name = NULL, .args = "", .doc = "answer requests on stdin", .run = run_worker},
    {0},
};
static const struct amp_verb *const tables[] = {verbs, NULL};
static const int statuses[] = {0, 64, 65, 70, 74, 75, 0};

int main(int argc, char **argv)
{
    static const struct amp_tool tool = {.name = "state-worker",
                                         .doc = "history checks for amp-validate",
                                         .opts = opts,
                                         .verbs = tables,
                                         .statuses = statuses};
    return amp_cli_main(&tool, argc, argv);
}
