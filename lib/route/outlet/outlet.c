/*
 * What waits for a port, in its lanes. A port gets no more than it has use for, so that an urgent
 * message overtakes all that its reader has not nearly got. A bounded port refuses past its bound;
 * but a reader that was quick so far is given a moment first, in which the input stands still. That
 * moment is a budget: waiting spends it, each message that the reader takes earns a little of it
 * back, so that a slow reader soon delays nobody.
 */
#include "route/router/router.h"

#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include <amp/base/clock.h>

#define EARNS_OF 100 /* messages that earn the whole patience */
#define AHEAD_OF 4   /* of a bounded buffer, what may lie in the pipe already */

static const struct amp_backoff looks = {.first_ms = 1, .most_ms = 50};

static const struct {
    const char *word;
    enum amp_outlet_action action;
    bool arg;
} actions[] = {
    {"agents", AMP_OUTLET_AGENTS, false},
    {"reject", AMP_OUTLET_REJECT, false},
    {"dead", AMP_OUTLET_DEAD, false},
    {"inbox:", AMP_OUTLET_INBOX, true},
};

/* An action, or a port that is opened. */
static int target_open(struct amp_outlet *t, const struct amp_port_options *opt,
                       struct amp_error *err)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        size_t n = strlen(actions[i].word);
        if (strncmp(t->spec, actions[i].word, n) != 0 || !t->spec[n] == actions[i].arg)
            continue;
        t->action = actions[i].action;
        t->arg = actions[i].arg ? t->spec + n : NULL;
        return 0;
    }
    return amp_port_new(t->spec, opt, &t->port, err);
}

int amp_outlet_add(struct router *r, uint32_t port, const char *spec, uint32_t inbound,
                   const struct amp_port_options *opt, struct amp_error *err)
{
    struct amp_outlet *t = calloc(1, sizeof(*t));
    if (!t || !(t->spec = strdup(spec))) {
        free(t);
        return amp_fail_memory(err);
    }
    if (target_open(t, opt, err) < 0) {
        free(t->spec);
        free(t);
        return -1;
    }
    t->inbound = inbound;
    t->patience_ms = r->patience_ms;
    amp_lanes_init(&t->lanes, &r->lane_rules, amp_mono_ms());
    for (int i = 0; i < AMP_LANE_COUNT; i++)
        t->line[i].last = &t->line[i].first;
    r->outlets[port] = t;
    return 0;
}

static void place_free(struct router *r, struct place *p)
{
    p->next = r->spare;
    r->spare = p;
}

static struct place *place_new(struct router *r, struct amp_error *err)
{
    struct place *p = r->spare;
    if (p)
        r->spare = p->next;
    else if (!(p = malloc(sizeof(*p))))
        amp_fail_memory(err);
    return p;
}

void amp_outlet_release(struct router *r, struct amp_outlet *t)
{
    if (!t)
        return;
    for (int lane = 0; lane < AMP_LANE_COUNT; lane++)
        for (struct place *p = t->line[lane].first, *next; p; p = next) {
            next = p->next;
            place_free(r, p);
        }
    amp_lane_keys_release(&t->keys);
    amp_port_free(t->port);
    free(t->unacked.v);
    free(t->spec);
    free(t);
}

void amp_outlets_free(struct router *r)
{
    for (uint32_t i = 0; i < r->n_ports; i++)
        amp_outlet_release(r, r->outlets[i]);
    for (struct place *p = r->spare, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    r->spare = NULL;
}

/* ---- giving ---- */

static uint32_t ahead(const struct amp_outlet *t)
{
    return t->inbound ? (t->inbound + AHEAD_OF - 1) / AHEAD_OF : 0;
}

static uint32_t depth(const struct amp_outlet *t)
{
    return t->n + amp_port_untaken(t->port);
}

static bool takes(const struct amp_outlet *t)
{
    return !amp_unacked_full(t) && amp_port_room(t->port, ahead(t));
}

static int give(struct router *r, struct amp_outlet *t, struct job *j, int64_t since_ms,
                struct amp_error *err)
{
    if (amp_port_offer_since(t->port, amp_span_str(j->id), (struct amp_span){j->line, j->n},
                             (uintptr_t)j, since_ms, err) < 0) {
        if (err->status != AMP_INTERRUPTED)
            return -1;
        /* It stays as it is: not delivered, and not refused. */
        amp_route_break(r, err);
        return 0;
    }
    t->given++;
    amp_unacked_given(t, j);
    amp_route_count_job(r, AMP_METRIC_SENT, t->spec, j);
    return 0;
}

static int wait_in_line(struct router *r, struct amp_outlet *t, struct job *j, enum amp_lane lane,
                        struct amp_error *err)
{
    struct place *p = place_new(r, err);
    if (!p)
        return -1;
    if (amp_lane_keys_add(&t->keys, j->order, &lane, err) < 0) {
        place_free(r, p);
        return -1;
    }
    *p = (struct place){.job = j, .lane = lane, .since_ms = r->now_ms};
    *t->line[lane].last = p;
    t->line[lane].last = &p->next;
    t->n++;
    t->bytes += j->n + 1;
    return 0;
}

static void told_urgent(struct router *r, const struct amp_outlet *t, const struct job *j)
{
    amp_route_count_job(r, AMP_METRIC_URGENT, t->spec, j);
    if (r->verbose)
        r->voice->note("%s: urgent: %s", t->spec, j->id);
}

static void told(struct router *r, const struct amp_outlet *t, const struct job *j,
                 const struct amp_lane_turn *turn)
{
    amp_route_count_waited(r, t->spec, turn->waited_ms);
    if (turn->starved) {
        amp_route_count_job(r, AMP_METRIC_STARVATION, t->spec, j);
        r->voice->warn("%s: a %s message waited %lld ms while others went: %s", t->spec,
                       amp_lane_name(turn->lane), (long long)turn->waited_ms, j->id);
    }
    if (turn->urgent)
        told_urgent(r, t, j);
}

/* The lane of one that asks for the urgent one. */
static enum amp_lane admit(struct router *r, struct amp_outlet *t, const struct job *j)
{
    uint64_t bursts = t->lanes.bursts;
    enum amp_lane lane = amp_lanes_admit(&t->lanes, j->lane, r->now_ms);
    if (lane != j->lane)
        amp_route_count_job(r, AMP_METRIC_URGENT_OVERFLOW, t->spec, j);
    if (t->lanes.bursts != bursts)
        amp_route_count_job(r, AMP_METRIC_URGENT_BURSTS, t->spec, j);
    return lane;
}

int amp_outlet_offer(struct router *r, uint32_t port, struct job *j, struct amp_error *err)
{
    struct amp_outlet *t = r->outlets[port];
    if (t->inbound && depth(t) >= t->inbound) {
        t->refused++;
        return amp_fail(err, AMP_NO, "buffer_full", "%u messages wait already, as many as may",
                        t->inbound);
    }
    if (t->bytes + amp_port_pending(t->port) + j->n + 1 > r->port_options.max_pending) {
        t->refused++;
        return amp_fail(err, AMP_NO, "buffer_full", "%zu bytes wait already",
                        t->bytes + amp_port_pending(t->port));
    }
    enum amp_lane lane = j->lane;
    if (lane == AMP_LANE_PRIVILEGED)
        lane = admit(r, t, j);
    amp_route_count_placed(r, t->spec, j);
    if (t->n > 0 || !takes(t))
        return wait_in_line(r, t, j, lane, err);
    if (lane == AMP_LANE_PRIVILEGED) {
        t->lanes.urgent++;
        told_urgent(r, t, j);
    }
    return give(r, t, j, r->now_ms, err);
}

/* Takes the first of a lane out. */
static struct job *leave_line(struct router *r, struct amp_outlet *t, enum amp_lane lane,
                              int64_t *since_ms)
{
    struct place *p = t->line[lane].first;
    struct job *j = p->job;
    t->line[lane].first = p->next;
    if (!p->next)
        t->line[lane].last = &t->line[lane].first;
    t->n--;
    t->bytes -= j->n + 1;
    amp_lane_keys_drop(&t->keys, j->order);
    *since_ms = p->since_ms;
    place_free(r, p);
    return j;
}

/* It was never given to the port. */
static void refuse(struct router *r, struct amp_outlet *t, struct job *j,
                   const struct amp_error *why)
{
    amp_keeper_refuse(r, j, why->code, why->what, t->spec, strcmp(why->code, "buffer_full") == 0);
    amp_route_job_leave(r, j);
}

/* Those at the head of a lane whose time has passed meanwhile. */
static void drop_expired(struct router *r, struct amp_outlet *t)
{
    for (int lane = 0; lane < AMP_LANE_COUNT; lane++) {
        const struct place *p;
        while ((p = t->line[lane].first) && p->job->expires_ms > 0 &&
               p->job->expires_ms <= amp_now_ms()) {
            struct amp_error why;
            int64_t since;
            struct job *j = leave_line(r, t, (enum amp_lane)lane, &since);
            amp_fail(&why, AMP_NO, EXPIRED(j), "its time to live passed while it waited for %.200s",
                     t->spec);
            amp_route_job_done(r, (uintptr_t)j, &why);
        }
    }
}

/* Those that wait for credit, and no acknowledgement can give it any more. */
static void drop_hopeless(struct router *r, struct amp_outlet *t)
{
    for (int lane = 0; lane < AMP_LANE_COUNT; lane++)
        while (t->line[lane].first) {
            struct amp_error why;
            int64_t since;
            struct job *j = leave_line(r, t, (enum amp_lane)lane, &since);
            amp_fail(&why, AMP_NO, "buffer_full",
                     "%u messages that nobody acknowledged are out already, as many as may",
                     t->unacked.away);
            refuse(r, t, j, &why);
        }
}

static void next(struct router *r, struct amp_outlet *t)
{
    struct amp_lane_head heads[AMP_LANE_COUNT];
    struct amp_error err = {0};
    for (int i = 0; i < AMP_LANE_COUNT; i++) {
        const struct place *p = t->line[i].first;
        heads[i] = p ? (struct amp_lane_head){true, p->job->n, p->since_ms}
                     : (struct amp_lane_head){false, 0, 0};
    }
    struct amp_lane_turn turn = amp_lanes_next(&t->lanes, heads, r->now_ms);
    int64_t since;
    struct job *j = leave_line(r, t, turn.lane, &since);
    told(r, t, j, &turn);
    if (give(r, t, j, since, &err) < 0)
        amp_route_job_done(r, (uintptr_t)j, &err);
}

void amp_outlet_step(struct router *r, uint32_t port)
{
    struct amp_outlet *t = r->outlets[port];
    bool gave;
    if (!t->port)
        return;
    if (t->n > 0)
        drop_expired(r, t);
    if (t->n > 0 && amp_unacked_full(t))
        amp_unacked_turn(r, t);
    if (t->n > 0 && amp_unacked_hopeless(r, t))
        drop_hopeless(r, t);
    /* Nothing that is written would tell that its reader is gone. */
    if (t->n > 0 && !amp_port_room(t->port, ahead(t)))
        amp_port_notice(t->port);
    do {
        gave = false;
        while (t->n > 0 && takes(t)) {
            next(r, t);
            gave = true;
        }
        struct amp_outlet *before = r->stepping;
        r->stepping = t;
        amp_port_step(t->port, amp_route_job_done, r);
        r->stepping = before;
        if (amp_port_lost(t->port))
            amp_unacked_lost(r, t);
    } while (gave && t->n > 0 && !r->broken);
}

/* ---- patience ---- */

static bool full(const struct amp_outlet *t)
{
    return t->inbound && depth(t) >= t->inbound;
}

/* What its reader took since the last time makes the input wait longer for it. */
static void earn(const struct router *r, struct amp_outlet *t)
{
    uint64_t taken = t->given - amp_port_untaken(t->port);
    if (taken > t->taken) {
        uint64_t n = taken - t->taken;
        int64_t earned = n < EARNS_OF ? (int64_t)n * r->patience_ms / EARNS_OF : r->patience_ms;
        t->patience_ms += earned;
        if (t->patience_ms > r->patience_ms)
            t->patience_ms = r->patience_ms;
    }
    t->taken = taken;
}

bool amp_outlet_holds(struct router *r, uint32_t port)
{
    struct amp_outlet *t = r->outlets[port];
    if (!t->port || !full(t))
        return false;
    amp_outlet_step(r, port);
    earn(r, t);
    return full(t) && t->patience_ms > 0;
}

void amp_outlets_charge(struct router *r)
{
    int64_t now = amp_mono_ms();
    if (!r->held_ms)
        return;
    for (uint32_t i = 0; i < r->n_ports; i++) {
        struct amp_outlet *t = r->outlets[i];
        if (t->blocks)
            t->patience_ms -= now - r->held_ms;
        t->blocks = false;
    }
    r->held_ms = now;
}

/* Until the first of those that wait expires; -1: none does. */
static int64_t expiry(const struct amp_outlet *t)
{
    int64_t first = INT64_MAX;
    for (int lane = 0; lane < AMP_LANE_COUNT; lane++) {
        const struct place *p = t->line[lane].first;
        if (p && p->job->expires_ms > 0 && p->job->expires_ms < first)
            first = p->job->expires_ms;
    }
    int64_t wait = first == INT64_MAX ? -1 : first - amp_now_ms();
    return first != INT64_MAX && wait < 0 ? 0 : wait;
}

void amp_outlets_watch(struct router *r, int *timeout_ms)
{
    int64_t wait = -1;
    bool waiting = false;
    for (uint32_t i = 0; i < r->n_ports; i++) {
        struct amp_outlet *t = r->outlets[i];
        if (!t->port || (!t->inbound && !amp_unacked_full(t) && t->n == 0) || depth(t) == 0)
            continue;
        uint64_t before = t->taken;
        earn(r, t);
        if (t->taken != before)
            r->look_gap_ms = 0;
        bool stuck = full(t);
        int64_t due = amp_unacked_full(t) && t->n > 0 ? amp_unacked_due(r, t) : -1;
        if (due >= 0 && (wait < 0 || due < wait))
            wait = due;
        due = t->n > 0 ? expiry(t) : -1;
        if (due >= 0 && (wait < 0 || due < wait))
            wait = due;
        t->blocks = r->held_ms && stuck;
        if (t->blocks && t->patience_ms > 0 && (wait < 0 || t->patience_ms < wait))
            wait = t->patience_ms;
        /* A pipe does not tell when its reader takes something. */
        waiting = waiting || stuck || (t->n > 0 && t->inbound && !amp_unacked_full(t));
    }
    if (waiting) {
        r->look_gap_ms = amp_backoff_next(&looks, r->look_gap_ms);
        if (wait < 0 || r->look_gap_ms < wait)
            wait = r->look_gap_ms;
    }
    if (wait >= 0 && (*timeout_ms < 0 || wait < *timeout_ms))
        *timeout_ms = (int)wait;
}

/* Whether nothing is under way but what waits for an acknowledgement that will wake us. */
bool amp_outlets_quiet(const struct router *r)
{
    for (uint32_t i = 0; i < r->n_ports; i++) {
        const struct amp_outlet *t = r->outlets[i];
        if (t->port && (amp_port_pending(t->port) > 0 || (t->n > 0 && !amp_unacked_full(t))))
            return false;
    }
    return true;
}

size_t amp_outlet_pending(const struct router *r, uint32_t port)
{
    return r->outlets[port]->bytes + amp_port_pending(r->outlets[port]->port);
}

int amp_outlet_finish(struct router *r, uint32_t port)
{
    struct amp_outlet *t = r->outlets[port];
    struct amp_error err;
    if (t->n > 0)
        return 0;
    int rc = t->port ? amp_port_finish(t->port, &err) : 1;
    if (rc < 0)
        r->voice->status(r->voice->complain(&err));
    if (rc != 0)
        amp_unacked_end(r, t);
    t->closed = rc != 0;
    return rc != 0;
}

void amp_outlets_say(const struct router *r)
{
    for (uint32_t i = 0; i < r->n_ports; i++) {
        const struct amp_outlet *t = r->outlets[i];
        if (t->refused > 0)
            r->voice->note("%s: %llu refused (buffer_full)", t->spec,
                           (unsigned long long)t->refused);
        if (t->lanes.urgent + t->lanes.overflowed > 0)
            r->voice->note("%s: %llu urgent, %llu past their limit in %llu bursts", t->spec,
                           (unsigned long long)t->lanes.urgent,
                           (unsigned long long)t->lanes.overflowed,
                           (unsigned long long)t->lanes.bursts);
        if (t->lanes.starved > 0)
            r->voice->note("%s: %llu starved, %lld ms at most", t->spec,
                           (unsigned long long)t->lanes.starved, (long long)t->lanes.longest_ms);
    }
}
