/*
 * http://… and https://… — a request for each message, made by the helper port-http. Each port has
 * its own process, so a slow server delays only its own messages. After a temporary failure, or if
 * the outcome is unknown, the message is sent again with the same Idempotency-Key.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/port/helper.h"
#include "message/port/private.h"
#include "message/port/tries.h"

#define WINDOW        16
#define TIMEOUT_MS    30000
#define HELPER_GRACE  5000 /* beyond the limit of a request, until the helper counts as hung */
#define KEY_MAX       200
#define AUTHORITY_MAX 300

/* Copies the text between "//" and the next '/', '?' or '#'. Only characters of plain hosts and
 * ports are accepted, so that libcurl cannot read the URL differently. */
static int authority_parse(const struct amp_port *p, char out[AUTHORITY_MAX], struct amp_error *err)
{
    const char *at = p->arg + 2;
    size_t n = strncmp(p->arg, "//", 2) == 0 ? strcspn(at, "/?#") : 0;
    bool good = n > 0 && n < AUTHORITY_MAX;
    for (size_t i = 0; good && i < n; i++)
        good = isalnum((unsigned char)at[i]) || strchr("-._:[]", at[i]);
    for (const char *c = p->arg; good && *c; c++)
        good = (unsigned char)*c > ' ' && (unsigned char)*c < 0x7f;
    if (!good && n > 0 && memchr(at, '@', n))
        return amp_fail(err, AMP_USAGE, bad_port,
                        "no user and password in a port: put a header into a file "
                        "(--http-headers)");
    if (!good)
        return amp_fail(err, AMP_USAGE, bad_port, "not a URL with a plain host: %.200s", p->spec);
    memcpy(out, at, n);
    out[n] = 0;
    return 0;
}

static bool is_loopback(const char *authority)
{
    char host[AUTHORITY_MAX];
    struct in_addr four;
    struct in6_addr six;
    snprintf(host, sizeof(host), "%s", authority + (*authority == '['));
    host[strcspn(host, *authority == '[' ? "]" : ":")] = 0;
    if (*authority == '[')
        return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
    return strcasecmp(host, "localhost") == 0 ||
           (inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127);
}

/* The file of headers for this host, or NULL. */
static const char *headers_for(const struct amp_port *p, const char *host)
{
    for (int i = 0; i < p->opt.n_http_headers; i++) {
        const char *row = p->opt.http_headers[i], *eq = strchr(row, '=');
        size_t n = eq ? (size_t)(eq - row) : 0;
        if (n > 0 && strlen(host) == n && strncasecmp(row, host, n) == 0)
            return eq + 1;
    }
    return NULL;
}

static int http_open(struct amp_port *p, struct amp_error *err)
{
    char host[AUTHORITY_MAX];
    const char *args[8]; /* the helper keeps the pointers, but not the array */
    int n = 0;
    if (authority_parse(p, host, err) < 0)
        return -1;
    p->network = !is_loopback(host);
    if (p->opt.attempt_timeout_ms <= 0)
        p->opt.attempt_timeout_ms = TIMEOUT_MS;
    snprintf(p->limit, sizeof(p->limit), "%lld", (long long)p->opt.attempt_timeout_ms);
    args[n++] = "--timeout";
    args[n++] = p->limit;
    const char *headers = headers_for(p, host);
    if (headers) {
        args[n++] = "--headers";
        args[n++] = headers;
    }
    if (p->opt.http_ca) {
        args[n++] = "--ca";
        args[n++] = p->opt.http_ca;
    }
    args[n++] = "-"; /* other users see the arguments of a process, and a URL may be a secret */
    args[n] = NULL;
    if (asprintf(&p->http_env, "AMP_HTTP_URL=%s", p->spec) < 0) {
        p->http_env = NULL;
        return amp_fail_memory(err);
    }
    if (!(p->tries = calloc(1, sizeof(*p->tries))))
        return amp_fail_memory(err);
    p->tries->window = WINDOW;
    struct amp_helper_options opt = {.name = "port-http",
                                     .args = args,
                                     .env = p->http_env,
                                     .limit_ms = p->opt.attempt_timeout_ms + HELPER_GRACE,
                                     .stop = p->opt.stop};
    if (amp_helper_new(&opt, &p->helper, err) < 0)
        return -1;
    return amp_helper_probe(p->helper, err);
}

/* The message id if it is valid in a header; else a digest of it, or of the message. */
static void key_of(const struct amp_try *t, char out[KEY_MAX + 1])
{
    struct amp_span id = amp_try_id(t);
    bool plain = id.n > 0 && id.n <= KEY_MAX;
    for (size_t i = 0; plain && i < id.n; i++)
        plain = (unsigned char)id.p[i] > ' ' && (unsigned char)id.p[i] < 0x7f;
    if (plain)
        amp_span_copy(id, out, KEY_MAX + 1);
    else
        amp_sha256_hex(id.n > 0 ? id : amp_try_line(t), out);
}

/* 0: the request was made, or failed; 1: not now. */
static int request_make(struct amp_port *p, struct amp_try *t)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_jw w;
    struct amp_error why = {0};
    char key[KEY_MAX + 1];
    struct amp_span line = amp_try_line(t);
    line.n--; /* without its LF */
    key_of(t, key);
    amp_buf_init(&b, (size_t)40 << 20);
    amp_jw_init(&w, &b);
    amp_jw_member_text(&w, "key", key);
    amp_jw_member_str(&w, "body", line);
    int rc = amp_jw_end(&w, &why);
    if (rc == 0)
        rc = amp_helper_ask(p->helper, (uint64_t)(t - p->tries->v), amp_buf_span(&b), &why);
    if (rc == AMP_HELPER_FULL)
        return 1;
    t->begun++;
    if (rc < 0)
        amp_try_ended(p, t, &why, false, 0);
    else
        t->running = true;
    return 0;
}

static void reply_take(void *ctx, uint64_t tag, struct amp_span answer,
                       const struct amp_error *gone)
{
    struct amp_port *p = ctx;
    struct amp_try *t = &p->tries->v[tag];
    if (gone) { /* the server may have the message */
        t->unknown = true;
        amp_try_ended(p, t, gone, true, 0);
        return;
    }
    struct amp_error why = {0};
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape tape = {0};
    int64_t after = 0;
    bool delivered = false, again = true;
    amp_fail(&why, AMP_UNAVAILABLE, http_failed, "%s: no reply from the helper", p->spec);
    amp_tape_init(&tape, NULL);
    if (amp_tape_scan(&tape, answer.p, answer.n, &fault) == 0) {
        uint32_t what = amp_tape_get(&tape, 0, AMP_SPAN("class"));
        uint32_t text = amp_tape_get(&tape, 0, AMP_SPAN("why"));
        uint32_t pause = amp_tape_get(&tape, 0, AMP_SPAN("after_ms"));
        uint32_t unknown = amp_tape_get(&tape, 0, AMP_SPAN("unknown"));
        struct amp_span said = text != AMP_TOK_NONE ? amp_tok_raw(&tape, text) : AMP_SPAN("");
        if (pause != AMP_TOK_NONE)
            (void)amp_tok_int(&tape, pause, &after);
        t->unknown =
            t->unknown || (unknown != AMP_TOK_NONE && tape.tok[unknown].type == AMP_JSON_TRUE);
        delivered = what != AMP_TOK_NONE && amp_tok_is(&tape, what, AMP_SPAN("done"));
        again = what == AMP_TOK_NONE || !amp_tok_is(&tape, what, AMP_SPAN("no"));
        amp_fail_text(&why, again ? AMP_UNAVAILABLE : AMP_NO,
                      again ? AMP_CODE(http_failed) : AMP_CODE(http_refused), "%.200s: %.*s",
                      p->spec, (int)said.n, said.p);
    }
    amp_try_ended(p, t, delivered ? NULL : &why, again, after);
}

static void http_step(struct amp_port *p)
{
    struct amp_tries *s = p->tries;
    int64_t now = amp_mono_ms();
    if (!p->failed) {
        amp_tries_take(p, now);
        for (uint32_t i = 0; i < s->window; i++)
            if (s->v[i].used && !s->v[i].running && s->v[i].due_ms <= now &&
                request_make(p, &s->v[i]) == 1)
                break;
        p->failed = amp_helper_step(p->helper, reply_take, p, &p->why) < 0;
    }
    if (!p->failed)
        return;
    /* The helper will not answer its open requests. */
    for (uint32_t i = 0; i < s->window; i++) {
        s->v[i].unknown = s->v[i].unknown || s->v[i].running;
        s->v[i].running = false;
    }
    amp_tries_fail(p, &p->why);
}

static int64_t http_watch(const struct amp_port *p, struct pollfd *fds)
{
    int timeout = -1;
    int64_t wait = -1;
    if (!p->failed) {
        /* A due attempt for which the helper has no room waits for an answer. */
        if (amp_helper_in_flight(p->helper) == 0 || p->tries->n < p->tries->window)
            wait = amp_tries_wait(p, amp_mono_ms());
        amp_helper_watch(p->helper, fds, &timeout);
    } else if (p->queue.n > 0) {
        wait = 0;
    }
    if (wait == 0 && amp_helper_in_flight(p->helper) > 0)
        wait = 10;
    return timeout >= 0 && (wait < 0 || timeout < wait) ? timeout : wait;
}

static void http_close(struct amp_port *p)
{
    amp_helper_free(p->helper);
    p->helper = NULL;
    free(p->http_env);
    p->http_env = NULL;
    amp_tries_free(p);
}

#define HTTP_OPS(scheme)                                                                           \
    {                                                                                              \
        .word = scheme, .takes_arg = true, .traits = AMP_PORT_REQUEST, .open = http_open,          \
        .offer = amp_tries_offer, .step = http_step, .watch = http_watch, .close = http_close      \
    }
const struct amp_port_ops amp_port_http = HTTP_OPS("http"), amp_port_https = HTTP_OPS("https");
