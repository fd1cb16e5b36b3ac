/*
 * jq-worker: jq predicates, in their own process. libjq can loop without end, abort on a failed
 * allocation and read the environment. Here this does not affect the router: the environment is
 * empty, memory and CPU time are limited, and the router kills a worker that takes too long.
 *
 * usage: jq-worker EXPR...      stdin: {"q":N,"f":[INDEX...],"m":MESSAGE}, one a line
 *                               stdout: {"q":N,"r":[true|false|"error"...]}, exactly one for each
 *
 * A filter is true if its first output is neither false nor null; without an output it is false.
 * The router sends only messages that it has validated.
 */
#include <jq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/json/lines.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/codes.h"

#define MEMORY_MAX  ((rlim_t)1 << 30)
#define CPU_SECONDS 10 /* for one request */
#define LINE_MAX_   ((size_t)40 << 20)

static void keep_error(void *data, jv msg)
{
    char *first = data;
    if (!*first) {
        jv text = jq_format_error(jv_copy(msg));
        snprintf(first, 200, "%s", jv_string_value(text));
        jv_free(text);
    }
    jv_free(msg);
}

static int filter_compile(jq_state **out, const char *expr)
{
    char said[200] = "";
    jq_state *jq = *out = jq_init();
    if (!jq)
        return -1;
    jq_set_error_cb(jq, keep_error, said);
    jq_set_attr(jq, jv_string("JQ_LIBRARY_PATH"), jv_array());
    if (!jq_compile(jq, expr)) {
        char *nl = strchr(said, '\n');
        if (nl)
            *nl = 0;
        fprintf(stderr, "jq-worker: error: %s: %s\n", expr, said);
        return -1;
    }
    return 0;
}

/* Limits the CPU time of a request. Past it SIGPROF ends this process, and the router starts
 * another worker. */
static void limit_cpu(long seconds)
{
    struct itimerval t = {.it_value = {.tv_sec = seconds}};
    setitimer(ITIMER_PROF, &t, NULL);
}

static void write_result(jq_state *jq, jv message, struct amp_jw *w)
{
    char said[200] = "";
    jq_set_error_cb(jq, keep_error, said);
    jq_start(jq, message, 0);
    jv out = jq_next(jq);
    if (jv_is_valid(out)) {
        jv_kind k = jv_get_kind(out);
        amp_jw_bool(w, k != JV_KIND_FALSE && k != JV_KIND_NULL);
    } else if (jv_invalid_has_msg(jv_copy(out))) {
        jv msg = jv_invalid_get_msg(jv_copy(out));
        if (jv_get_kind(msg) != JV_KIND_STRING)
            msg = jv_dump_string(msg, 0);
        amp_jw_str(w, amp_span_str(jv_string_value(msg)));
        jv_free(msg);
    } else {
        amp_jw_bool(w, false);
    }
    jv_free(out);
    /* Releases the memory of the run. */
    jq_start(jq, jv_null(), 0);
}

static int answer_request(jq_state **filters, int n_filters, struct amp_tape *t,
                          struct amp_span line, struct amp_buf *out, struct amp_error *err)
{
    struct amp_json_fault fault;
    if (amp_tape_scan(t, line.p, line.n, &fault) < 0)
        return amp_json_fail(err, AMP_DATAERR, AMP_CODE(bad_request), "a request", &fault);
    uint32_t q = amp_tape_get(t, 0, AMP_SPAN("q"));
    uint32_t list = amp_tape_get(t, 0, AMP_SPAN("f"));
    uint32_t m = amp_tape_get(t, 0, AMP_SPAN("m"));
    int64_t number;
    if (q == AMP_TOK_NONE || list == AMP_TOK_NONE || m == AMP_TOK_NONE ||
        !amp_tok_int(t, q, &number))
        return amp_fail(err, AMP_DATAERR, bad_request, "a request needs q, f and m");
    struct amp_span text = amp_tok_source(t, m);
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_int(&w, "q", number);
    amp_jw_member_open(&w, "r", '[');
    limit_cpu(CPU_SECONDS);
    jv message = jv_parse_sized(text.p, (int)text.n);
    for (uint32_t i = list + 1; i < t->tok[list].next; i = t->tok[i].next) {
        int64_t f;
        if (!amp_tok_int(t, i, &f) || f < 0 || f >= n_filters)
            amp_jw_str(&w, AMP_SPAN("no such filter"));
        else if (!jv_is_valid(message))
            amp_jw_str(&w, AMP_SPAN("libjq does not read this message"));
        else
            write_result(filters[f], jv_copy(message), &w);
    }
    limit_cpu(0);
    jv_free(message);
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

static int serve_requests(jq_state **filters, int n)
{
    const struct amp_json_limits limits = {
        .max_bytes = LINE_MAX_, .max_depth = 160, .max_tokens = 1100000};
    AMP_TAPE struct amp_tape t = {0};
    struct amp_lines in;
    struct amp_line line;
    struct amp_error err = {0};
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, LINE_MAX_);
    amp_tape_init(&t, &limits);
    amp_lines_init(&in, LINE_MAX_);
    int rc = 0;
    while (rc == 0) {
        enum amp_line_result r = amp_lines_next(&in, &line);
        if (r == AMP_LINE_END)
            break;
        if (r == AMP_LINE_MORE) {
            if (amp_lines_fill(&in, STDIN_FILENO, &err) == AMP_READ_FAILED)
                rc = AMP_IOERR;
        } else if (r != AMP_LINE || answer_request(filters, n, &t, line.bytes, &out, &err) < 0) {
            fprintf(stderr, "jq-worker: error: %s\n", r == AMP_LINE ? err.what : "line too long");
            rc = AMP_DATAERR;
        } else if (amp_write_all(STDOUT_FILENO, amp_buf_span(&out), &err) < 0) {
            rc = AMP_IOERR; /* each reply is written at once: the next request may be the last */
        }
        amp_buf_reset(&out);
    }
    amp_lines_release(&in);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts("jq-worker " AMP_VERSION) < 0 ? AMP_IOERR : 0;
    if (argc < 2) {
        fprintf(stderr, "usage: jq-worker EXPR...\n");
        return AMP_USAGE;
    }
    /* Empty, not absent: libjq 1.6 crashes after clearenv(). */
    static char *no_environment[] = {NULL};
    environ = no_environment;
    struct rlimit mem = {MEMORY_MAX, MEMORY_MAX}, none = {0, 0};
#if !defined(__SANITIZE_ADDRESS__)
    setrlimit(RLIMIT_AS, &mem);
#else
    (void)mem;
#endif
    setrlimit(RLIMIT_CORE, &none);
    jq_state **filters = calloc((size_t)argc, sizeof(*filters));
    if (!filters)
        return AMP_TEMPFAIL;
    int rc = 0, n = 0;
    for (; n < argc - 1 && rc == 0; n++)
        if (filter_compile(&filters[n], argv[n + 1]) < 0)
            rc = AMP_USAGE;
    if (rc == 0)
        rc = serve_requests(filters, n);
    for (int i = 0; i < n; i++)
        jq_teardown(&filters[i]);
    free(filters);
    return rc;
}
