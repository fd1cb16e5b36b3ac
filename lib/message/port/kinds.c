/* The functions of all ports: names, options and calls of the kind. */
#include "message/port/private.h"
#include "message/port/tries.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/trace.h"

#define JOBS     4
#define ATTEMPTS 5
#define PENDING  ((size_t)16 << 10) /* bytes that wait for a pipe, without those in it */

static const struct amp_port_ops *const kinds[] = {
    &amp_port_fifo, &amp_port_file, &amp_port_spool, &amp_port_command, &amp_port_unix,
    &amp_port_each, &amp_port_http, &amp_port_https, &amp_port_stdout};

static int spec_parse(struct amp_port *p, struct amp_error *err)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct amp_port_ops *k = kinds[i];
        size_t n = strlen(k->word);
        if (strncmp(p->spec, k->word, n) != 0)
            continue;
        if (k->takes_arg ? p->spec[n] == ':' && p->spec[n + 1] : p->spec[n] == 0) {
            p->ops = k;
            p->arg = k->takes_arg ? p->spec + n + 1 : NULL;
            if (p->arg && strcmp(p->arg, "-") == 0)
                return amp_fail(err, AMP_USAGE, bad_port,
                                "%s: \"-\" is not standard output here: use stdout, or %s:./- for "
                                "a file of that name",
                                p->spec, k->word);
            return 0;
        }
    }
    return amp_fail(err, AMP_USAGE, bad_port,
                    "unknown port \"%.200s\": one of fifo:PATH file:PATH spool:DIR command:ARGV "
                    "unix:PATH exec-each:ARGV http(s)://URL stdout%s",
                    p->spec, p->opt.also ? p->opt.also : "");
}

/* Neither a URL nor the arguments of a command: they may be secrets. */
static const char *shown_name(const struct amp_port *p)
{
    if (p->argv)
        return p->argv[0];
    return p->ops == &amp_port_http || p->ops == &amp_port_https ? NULL : p->arg;
}

void amp_port_trace(const struct amp_port *p, const char *event, const struct amp_error *why)
{
    AMP_TRACE(AMP_TRACE_PORT, AMP_TRACE_TEXT("event", event), AMP_TRACE_TEXT("port", p->ops->word),
              AMP_TRACE_TEXT("name", shown_name(p)),
              AMP_TRACE_TEXT("code", why ? why->code : NULL));
}

void amp_port_report(struct amp_port *p, uint64_t tag, const struct amp_error *why)
{
    if (why)
        amp_port_trace(p, "fail", why);
    p->done(p->done_ctx, tag, why);
}

int amp_port_new(const char *spec, const struct amp_port_options *opt, struct amp_port **out,
                 struct amp_error *err)
{
    struct amp_port *p = calloc(1, sizeof(*p));
    if (!p || !(p->spec = strdup(spec))) {
        free(p);
        return amp_fail_memory(err);
    }
    p->opt = *opt;
    p->opt.jobs = opt->jobs ? opt->jobs : JOBS;
    p->opt.attempts = opt->attempts ? opt->attempts : ATTEMPTS;
    p->ends = -1;
    p->born_ms = amp_mono_ms();
    amp_queue_init(&p->queue, opt->max_pending);
    if (spec_parse(p, err) < 0 || (!p->opt.unopened && p->ops->open(p, err) < 0)) {
        amp_port_free(p);
        return -1;
    }
    if (!p->ops->stream && !p->opt.unopened) {
        p->was_open = true;
        amp_port_trace(p, "open", NULL);
    }
    *out = p;
    return 0;
}

void amp_port_free(struct amp_port *p)
{
    if (!p)
        return;
    if (p->ops)
        p->ops->close(p);
    if (p->ops && !p->ops->stream && p->was_open)
        amp_port_trace(p, "close", NULL);
    amp_argv_free(p->argv);
    amp_queue_release(&p->queue);
    free(p->spec);
    free(p);
}

bool amp_port_has(const struct amp_port *p, enum amp_port_trait trait)
{
    return p->ops->traits & trait;
}
bool amp_port_is_network(const struct amp_port *p)
{
    return p->network;
}
size_t amp_port_pending(const struct amp_port *p)
{
    return amp_queue_pending(&p->queue) - p->out_bytes + (p->tries ? p->tries->bytes : 0);
}
bool amp_port_lost(const struct amp_port *p)
{
    return p->lost;
}
struct amp_span amp_port_failed(const struct amp_port *p)
{
    return p->failing;
}
uint64_t amp_port_number(const struct amp_port *p)
{
    return p->reporting;
}
uint64_t amp_port_first(const struct amp_port *p)
{
    const struct amp_queued *head = amp_queue_at(&p->queue, 0);
    return head ? head->number : p->queue.numbers + 1;
}

uint32_t amp_port_untaken(const struct amp_port *p)
{
    uint32_t n = p->queue.n - p->out;
    if (p->tries)
        return p->queue.n + p->tries->n;
    uint64_t unread = amp_port_unread(p);
    if (unread > p->out_bytes)
        unread = p->out_bytes;
    for (uint32_t i = p->out; i > 0 && unread > 0; i--, n++) {
        size_t len = amp_queue_at(&p->queue, i - 1)->len;
        unread -= len < unread ? len : unread;
    }
    return n;
}

bool amp_port_room(const struct amp_port *p, uint32_t ahead)
{
    bool piped = amp_port_has(p, AMP_PORT_PIPED);
    if (p->tries)
        return p->queue.n + p->tries->n < p->tries->window;
    if (ahead > 0 && piped)
        return amp_port_untaken(p) < ahead;
    return amp_port_pending(p) < (piped ? PENDING : AMP_PORT_FEED);
}

int amp_port_offer(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                   int64_t since_ms, struct amp_error *err)
{
    return p->ops->offer(p, id, line, tag, since_ms, err);
}

void amp_port_step(struct amp_port *p, amp_port_done_fn done, void *ctx)
{
    p->done = done;
    p->done_ctx = ctx;
    p->ops->step(p);
}

void amp_port_withdraw(struct amp_port *p, const struct amp_port_recall *r)
{
    if (p->tries)
        amp_tries_withdraw(p, r);
    if (p->queue.n > p->out && (p->tries || p->ops->retract))
        amp_queue_withdraw(&p->queue, p->ops->retract ? p->ops->retract(p) : 0, r);
}

void amp_port_watch(const struct amp_port *p, struct pollfd fds[AMP_PORT_FDS], int *timeout_ms)
{
    for (int i = 0; i < AMP_PORT_FDS; i++)
        fds[i] = (struct pollfd){.fd = -1};
    int64_t wait = p->ops->watch(p, fds);
    if (wait >= 0 && (*timeout_ms < 0 || wait < *timeout_ms))
        *timeout_ms = (int)(wait > 60000 ? 60000 : wait);
}

int amp_port_finish(struct amp_port *p, struct amp_error *err)
{
    if (p->queue.n > p->out || (p->tries && p->tries->n > 0))
        return 0;
    if (!p->finishing)
        p->finish_ms = amp_mono_ms();
    p->finishing = true;
    return p->ops->finish ? p->ops->finish(p, err) : 1;
}
