/* Copies of what is routed, for ports that only listen: nobody waits for them, nothing is answered.
 */
#include "route/router/router.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* PORT as in a route, or the name of a file or FIFO. */
static int add(struct router *r, const char *text, struct amp_error *err)
{
    AMP_BUF struct amp_buf spec = {0};
    struct stat st;
    size_t word = strspn(text, "abcdefghijklmnopqrstuvwxyz-");
    bool named = text[word] == ':' || strcmp(text, "stdout") == 0;
    amp_buf_init(&spec, 8192);
    if (!named &&
        amp_buf_str(&spec, stat(text, &st) == 0 && S_ISFIFO(st.st_mode) ? "fifo:" : "file:", err) <
            0)
        return -1;
    uint32_t before = r->n_ports, *port = &r->tees[r->n_tees];
    if (amp_buf_str(&spec, text, err) < 0 || amp_router_port(r, spec.data, false, port, err) < 0)
        return -1;
    r->n_tees++;
    if (!r->outlets[*port]->port)
        return amp_fail(err, AMP_USAGE, "bad_port", "%s is no port for copies", text);
    r->outlets[*port]->listens = r->n_ports > before;
    return 0;
}

int amp_tee_start(struct router *r, const char *const *specs, int n, struct amp_error *err)
{
    r->tees = calloc((size_t)n + 1, sizeof(*r->tees));
    if (!r->tees)
        return amp_fail_memory(err);
    for (int i = 0; i < n; i++)
        if (add(r, specs[i], err) < 0)
            return -1;
    return 0;
}

void amp_tee_copy(struct router *r, const struct job *j)
{
    for (uint32_t i = 0; i < r->n_tees; i++) {
        struct amp_error err;
        struct job *c = amp_route_job_new(r, amp_route_job_whole(j), NULL);
        if (!c) {
            r->copies_lost++;
            continue;
        }
        c->copy = true;
        c->lane = j->lane;
        c->order = j->order;
        c->protocol = j->protocol;
        if (amp_outlet_offer(r, r->tees[i], c, &err) < 0) {
            r->copies_lost++;
            amp_route_job_free(r, c);
            continue;
        }
        c->waiting = 1;
        r->n_copies++;
    }
}

void amp_tee_end(struct router *r)
{
    uint64_t lost = r->copies_lost + r->n_copies;
    if (lost > 0)
        r->voice->warn("%llu copies did not reach their ports (--tee)", (unsigned long long)lost);
    free(r->tees);
    r->tees = NULL;
    r->n_tees = 0;
}
