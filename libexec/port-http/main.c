/*
 * port-http: sends messages as HTTP requests, one after the other. It is a process of its own
 * because loading libcurl takes longer than routing, and to keep its failures out of the router.
 *
 * usage: port-http [--timeout MS] [--headers FILE] [--ca FILE] URL
 *   stdin:  {"q":N,"key":"…","body":"…"}, one a line
 *   stdout: {"q":N,"class":"done|again|no","after_ms":M,"unknown":B,"why":"…"}, exactly one for
 * each
 *
 * URL may be "-": then it is in AMP_HTTP_URL, where other users cannot read it.
 *
 * One request is one attempt. The router repeats it after a temporary failure, with the same key,
 * by which a server recognizes the repetition. "why" contains nothing from a server's answer, which
 * may contain parts of the request. "unknown": there was no answer, but the server may have the
 * request.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/num.h>
#include <amp/json/lines.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "http.h"

#define LINE_MAX_ ((size_t)40 << 20)

static int answer_request(struct http *h, struct amp_tape *t, struct amp_span line,
                          struct amp_buf *arena, struct amp_buf *out, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_span key, body;
    struct http_outcome how = {0};
    int64_t q;
    if (amp_tape_scan(t, line.p, line.n, &fault) < 0)
        return amp_json_fail(err, AMP_DATAERR, AMP_CODE(bad_request), "a request", &fault);
    uint32_t tq = amp_tape_get(t, 0, AMP_SPAN("q")), tk = amp_tape_get(t, 0, AMP_SPAN("key")),
             tb = amp_tape_get(t, 0, AMP_SPAN("body"));
    if (tq == AMP_TOK_NONE || tk == AMP_TOK_NONE || tb == AMP_TOK_NONE || !amp_tok_int(t, tq, &q) ||
        t->tok[tk].type != AMP_JSON_STRING || t->tok[tb].type != AMP_JSON_STRING)
        return amp_fail(err, AMP_DATAERR, bad_request, "a request needs q, key and body");
    amp_buf_reset(arena);
    if (amp_buf_reserve(arena, line.n, err) < 0 || amp_tok_text(t, tk, arena, &key, err) < 0 ||
        amp_tok_text(t, tb, arena, &body, err) < 0 || http_post(h, key, body, &how, err) < 0)
        return -1;
    static const char *const names[] = {"done", "again", "no"};
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_int(&w, "q", q);
    amp_jw_member_text(&w, "class", names[how.what]);
    amp_jw_member_int(&w, "after_ms", how.after_ms);
    amp_jw_member_bool(&w, "unknown", how.unknown);
    amp_jw_member_text(&w, "why", how.why);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

static int serve_requests(struct http *h)
{
    const struct amp_json_limits limits = {
        .max_bytes = LINE_MAX_, .max_depth = 8, .max_tokens = 64};
    AMP_TAPE struct amp_tape t = {0};
    struct amp_lines in;
    struct amp_line line;
    struct amp_error err = {0};
    AMP_BUF struct amp_buf out = {0};
    AMP_BUF struct amp_buf arena = {0};
    amp_buf_init(&out, 65536);
    amp_buf_init(&arena, LINE_MAX_);
    amp_tape_init(&t, &limits);
    amp_lines_init(&in, LINE_MAX_);
    int rc = 0;
    while (rc == 0) {
        enum amp_line_result r = amp_lines_next(&in, &line);
        if (r == AMP_LINE_END)
            break;
        if (r == AMP_LINE_MORE) {
            if (amp_lines_fill(&in, STDIN_FILENO, &err) < 0)
                rc = AMP_IOERR;
        } else if (r != AMP_LINE || answer_request(h, &t, line.bytes, &arena, &out, &err) < 0) {
            fprintf(stderr, "port-http: error: %s\n", r == AMP_LINE ? err.what : "line too long");
            rc = AMP_DATAERR;
        } else if (amp_write_all(STDOUT_FILENO, amp_buf_span(&out), &err) < 0) {
            rc = AMP_IOERR;
        }
        amp_buf_reset(&out);
    }
    amp_lines_release(&in);
    return rc;
}

int main(int argc, char **argv)
{
    struct http_options opt = {.timeout_ms = 30000};
    struct amp_error err = {0};
    int i = 1;
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts("port-http " AMP_VERSION) < 0 ? AMP_IOERR : 0;
    for (; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--headers") == 0)
            opt.headers = argv[i + 1];
        else if (strcmp(argv[i], "--ca") == 0)
            opt.ca = argv[i + 1];
        else if (strcmp(argv[i], "--timeout") != 0 ||
                 amp_num_parse(amp_span_str(argv[i + 1]), 1, 86400000, &opt.timeout_ms, &err) < 0)
            break;
    }
    if (i != argc - 1) {
        fprintf(stderr, "usage: port-http [--timeout MS] [--headers FILE] [--ca FILE] URL\n");
        return AMP_USAGE;
    }
    opt.url = strcmp(argv[i], "-") == 0 ? getenv("AMP_HTTP_URL") : argv[i];
    if (!opt.url) {
        fprintf(stderr, "port-http: AMP_HTTP_URL is not set\n");
        return AMP_USAGE;
    }
    /* A core file would contain the secrets of the headers. */
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    struct http *h;
    if (http_new(&opt, &h, &err) < 0) {
        fprintf(stderr, "port-http: error: %s\n", err.what);
        return err.status;
    }
    int rc = serve_requests(h);
    http_free(h);
    return rc;
}
