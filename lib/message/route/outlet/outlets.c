/*
 * Messages wait for a port in its lanes. A port gets only a little more than its reader can take
 * now, so that an urgent message overtakes the others. A bounded port refuses messages past its
 * bound. If its reader has been quick, the input waits first. The time of these waits is a budget:
 * waiting uses it, and each message that the reader takes gives a part of it back, so a slow reader
 * delays the other ports only at first.
 */
#include "message/route/outlet/outlet.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "base/backoff.h"
#include "base/codes.h"
#include "message/delivery/ledger/timeouts.h"
#include "message/route/count.h"
#include "message/route/outlet/private.h"

#define EARNS_OF   100                /* messages after which the full patience is restored */
#define LISTENS_MS 1000               /* the longest wait for a port of copies at the end */
#define ENOUGH     ((size_t)64 << 10) /* bytes for one write */

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

/* Finds the action, or opens the port. */
static int target_open(struct outlet *t, const struct amp_port_options *opt, struct amp_error *err)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        size_t n = strlen(actions[i].word);
        if (strncmp(t->spec, actions[i].word, n) != 0 || !t->spec[n] == actions[i].arg)
            continue;
        t->is.action = actions[i].action;
        t->is.arg = actions[i].arg ? t->spec + n : NULL;
        return 0;
    }
    if (amp_port_new(t->spec, opt, &t->port, err) < 0)
        return -1;
    t->is.network = amp_port_is_network(t->port);
    t->is.prompt = amp_port_has(t->port, AMP_PORT_PROMPT) && !t->inbound && !t->takes;
    return 0;
}

static void outlet_free(struct outlet *t)
{
    if (!t)
        return;
    amp_waiting_release(&t->waiting);
    free(t->unacked.v);
    free(t->agent);
    amp_port_free(t->port);
    free(t->spec);
    free(t);
}

static int outlet_new(struct amp_outlets *o, const char *spec, uint32_t inbound,
                      const struct amp_port_options *opt, struct outlet **out,
                      struct amp_error *err)
{
    struct outlet *t = calloc(1, sizeof(*t));
    if (!t || !(t->spec = strdup(spec))) {
        free(t);
        return amp_fail_memory(err);
    }
    t->is.spec = t->spec;
    t->inbound = inbound;
    t->patience_ms = o->opt->patience_ms;
    amp_waiting_init(&t->waiting, o->rules);
    t->waiting.counts = o->opt->producer_waiting > 0;
    if (amp_takes_of(&o->opt->units, spec, &t->takes, err) < 0 ||
        (o->opt->fair && amp_waiting_share(&t->waiting, err) < 0) || target_open(t, opt, err) < 0) {
        outlet_free(t);
        return -1;
    }
    t->unacked = (struct amp_unacked){
        .shared = &o->unacked, .run = o->run, .port = t->port, .spec = t->spec};
    *out = t;
    return 0;
}

int amp_outlets_new(struct amp_route_run *run, const struct amp_outlets_options *opt,
                    const struct amp_lane_rules *lanes, const struct amp_outlet_events *events,
                    struct amp_outlets **out, struct amp_error *err)
{
    struct amp_outlets *o = calloc(1, sizeof(*o));
    if (!o)
        return amp_fail_memory(err);
    o->run = run;
    o->opt = opt;
    o->rules = lanes;
    o->events = *events;
    o->unacked = (struct amp_unacked_shared){.run = run,
                                             .leave = events->leave,
                                             .ctx = events->ctx,
                                             .again = amp_outlet_again,
                                             .again_ctx = o,
                                             .wake = {.log = -1, .timer = -1}};
    amp_route_hold_init(&o->hold, run);
    *out = o;
    return 0;
}

void amp_outlets_free(struct amp_outlets *o)
{
    if (!o)
        return;
    amp_wake_close(&o->unacked.wake);
    amp_outlets_drop(o, 0);
    amp_route_hold_release(&o->hold);
    free(o);
}

/* ---- opening ---- */

int amp_outlet_spec_of(const char *path, struct amp_buf *spec, struct amp_error *err)
{
    struct stat st;
    bool fifo = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
    return amp_buf_fmt(spec, err, "%s:%s", fifo ? "fifo" : "file", path);
}

int amp_outlets_output(struct amp_outlets *o, const char *path, struct amp_error *err)
{
    AMP_BUF struct amp_buf spec = {0};
    struct amp_port_options opt = o->opt->port;
    bool named = path && strcmp(path, "-") != 0;
    opt.unopened = false;
    amp_buf_init(&spec, 8192);
    if ((named ? amp_outlet_spec_of(path, &spec, err) : amp_buf_str(&spec, "stdout", err)) < 0 ||
        outlet_new(o, spec.data, 0, &opt, &o->v[0], err) < 0)
        return -1;
    o->n = 1;
    return 0;
}

int amp_outlet_own(struct amp_outlets *o, uint32_t outlet, struct amp_span agent,
                   struct amp_error *err)
{
    struct outlet *t = o->v[outlet];
    char *name = t->agent || t->shared ? NULL : amp_span_dup(agent);
    t->shared = t->shared || (t->agent && !amp_span_is(agent, t->agent));
    if (!name && !t->agent && !t->shared)
        return amp_fail_memory(err);
    if (t->shared)
        free(t->agent);
    t->agent = t->shared ? NULL : t->agent ? t->agent : name;
    return 0;
}

void amp_outlets_start(struct amp_outlets *o)
{
    amp_route_hold_look(&o->hold);
    amp_unacked_shared_open(&o->unacked, o->opt->credits > 0);
}

/* Sets how many messages may wait for the port, 0: any number. Of several options for this port the
 * last one counts. */
static int inbound_of(const struct amp_outlets *o, const char *spec, bool agent, uint32_t *inbound,
                      struct amp_error *err)
{
    *inbound = agent || strncmp(spec, "inbox:", 6) == 0 ? INBOUND_AGENT : 0;
    bool named = false;
    for (int i = 0; i < o->opt->n_inbounds; i++) {
        const char *text = o->opt->inbounds[i], *eq = strrchr(text, '=');
        int64_t n;
        if (amp_num_parse(amp_span_str(eq ? eq + 1 : text), 0, UINT32_MAX, &n, NULL) < 0)
            return amp_fail(err, AMP_USAGE, bad_inbound, "--inbound takes [PORT=]N: %s", text);
        bool is_this = eq && strlen(spec) == (size_t)(eq - text) &&
                       strncmp(spec, text, (size_t)(eq - text)) == 0;
        if (is_this || (!eq && !named))
            *inbound = (uint32_t)n;
        named = named || is_this;
    }
    return 0;
}

/* The open outlet of that spec; else the place for a new one. */
static uint32_t place_find(const struct amp_outlets *o, const char *spec, bool *found)
{
    uint32_t at = o->n;
    *found = true;
    if (strcmp(spec, "stdout") == 0)
        return 0;
    for (uint32_t i = 1; i < o->n; i++) {
        if (!o->v[i]->leaving && strcmp(o->v[i]->spec, spec) == 0)
            return i;
        if (o->v[i]->closed && at == o->n)
            at = i;
    }
    *found = false;
    return at;
}

int amp_outlets_open(struct amp_outlets *o, const char *spec, enum amp_outlet_use use,
                     uint32_t *outlet, struct amp_error *err)
{
    bool found;
    uint32_t inbound, at = place_find(o, spec, &found);
    if (inbound_of(o, spec, use == AMP_OUTLET_FOR_AGENT, &inbound, err) < 0)
        return -1;
    if (at == PORTS_MAX)
        return amp_fail(err, AMP_USAGE, too_many, "more than %d ports", PORTS_MAX - 1);
    if (!found) {
        struct outlet *fresh;
        if (outlet_new(o, spec, inbound, &o->opt->port, &fresh, err) < 0)
            return -1;
        fresh->listens = use == AMP_OUTLET_FOR_COPIES;
        if (at == o->n)
            o->n++;
        else
            outlet_free(o->v[at]);
        o->v[at] = fresh;
    }
    if (use == AMP_OUTLET_FOR_AGENT && at > 0 && o->v[at]->port)
        o->v[at]->unacked.credits = o->opt->credits;
    *outlet = at;
    return 0;
}

int amp_outlet_usable(const struct amp_outlets *o, uint32_t outlet, struct amp_error *err)
{
    const struct outlet *t = o->v[outlet];
    struct amp_error why;
    if (!o->run->store && !o->run->dry &&
        (t->is.action == AMP_OUTLET_DEAD || t->is.action == AMP_OUTLET_INBOX))
        return amp_fail(err, AMP_USAGE, no_state, "the port %s needs --state", t->spec);
    if (t->is.action == AMP_OUTLET_INBOX &&
        amp_inbox_agent_check(amp_span_str(t->is.arg), &why) < 0)
        return amp_fail_text(err, AMP_USAGE, why.code, "the port %.200s: %s", t->spec, why.what);
    return 0;
}

uint32_t amp_outlets_n(const struct amp_outlets *o)
{
    return o->n;
}

void amp_outlets_drop(struct amp_outlets *o, uint32_t n)
{
    while (o->n > n)
        outlet_free(o->v[--o->n]);
}

/* ---- properties ---- */

const struct amp_outlet_info *amp_outlet_info(const struct amp_outlets *o, uint32_t outlet)
{
    return &o->v[outlet]->is;
}

bool amp_outlets_units(const struct amp_outlets *o)
{
    return o->opt->units.chunk > 0 || o->opt->units.batch > 1;
}

void amp_outlet_inbox_terms(struct amp_outlets *o, uint32_t outlet, const struct parcel *j,
                            struct amp_inbox_options *opt)
{
    struct outlet *t = o->v[outlet];
    opt->bound =
        t->inbound == 0 || t->inbound > AMP_INBOX_BOUND_MAX ? AMP_INBOX_BOUND_MAX : t->inbound;
    opt->urgent = o->rules->urgent_places;
    opt->lane = amp_lanes_admit(&t->waiting.lanes, j->lane, o->run->now_ms);
    opt->order = j->order;
    opt->credits = o->opt->credits;
    opt->producer_most = o->opt->producer_waiting;
    opt->fair = o->opt->fair;
}

void amp_outlets_look(struct amp_outlets *o, struct parcel *j, const struct amp_view *v)
{
    if (v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK) {
        for (uint32_t i = 1; i < o->n; i++)
            amp_unacked_hear(&o->v[i]->unacked, v);
    } else if (o->run->store || o->opt->credits > 0) {
        j->wants_ack = v->id.n > 0 && amp_timeouts_ack(v) > 0;
    }
}

/* ---- counting ---- */

static uint32_t depth_of(const struct outlet *t)
{
    return t->waiting.n + t->waiting.n_held + amp_port_untaken(t->port);
}

static size_t bytes_of(const struct outlet *t)
{
    return t->waiting.bytes + amp_port_pending(t->port);
}

/* The lane of a message that requests the urgent lane. */
static enum amp_lane lane_admit(struct amp_outlets *o, struct outlet *t, const struct parcel *j)
{
    struct amp_lanes *lanes = &t->waiting.lanes;
    uint64_t bursts = lanes->bursts;
    enum amp_lane lane = amp_lanes_admit(lanes, j->lane, o->run->now_ms);
    if (lane != j->lane)
        amp_route_count_parcel(o->run, AMP_METRIC_URGENT_OVERFLOW, t->spec, j);
    if (lanes->bursts != bursts)
        amp_route_count_parcel(o->run, AMP_METRIC_URGENT_BURSTS, t->spec, j);
    return lane;
}

/* ---- held back by people ---- */

/* Whether the message is held, or follows a held one; says so once for each port. */
static bool is_held(struct amp_outlets *o, struct outlet *t, const struct parcel *j)
{
    char said[AMP_PAUSE_SAID_MAX];
    if (!amp_route_hold_any(&o->hold))
        return false;
    const struct amp_pause *by =
        amp_route_hold_find(&o->hold, j, t->agent, amp_port_has(t->port, AMP_PORT_RUNS));
    if (by && !t->told) {
        amp_pause_say(by, said);
        o->run->voice->note("%s: %s and what else is suspended waits: %s", t->spec,
                            *j->id ? j->id : "a message", said);
        t->told = true;
    }
    return by || amp_waiting_follows(&t->waiting, j);
}

struct recall {
    struct amp_outlets *o;
    struct outlet *t;
};

static bool recall_wanted(void *ctx, uint64_t tag)
{
    const struct recall *r = ctx;
    const struct parcel *j = (const struct parcel *)(uintptr_t)tag;
    return j && is_held(r->o, r->t, j);
}

static void recall_taken(void *ctx, uint64_t tag)
{
    const struct recall *r = ctx;
    struct parcel *j = (struct parcel *)(uintptr_t)tag;
    struct amp_error err;
    r->t->given--;
    r->t->unacked.away -= j->wants_ack;
    if (amp_waiting_hold(&r->t->waiting, j, j->lane, r->o->run->now_ms, &err) < 0)
        amp_route_break(r->o->run, &err);
}

static bool sort_held(void *ctx, const struct parcel *j)
{
    const struct recall *r = ctx;
    return is_held(r->o, r->t, j);
}

/* Takes what is suspended back from the port. If that is something, or always, holds what is
 * suspended now and releases what is not. */
static void held_sort(struct amp_outlets *o, struct outlet *t, bool always)
{
    struct recall r = {o, t};
    struct amp_port_recall recall = {recall_wanted, recall_taken, &r, AMP_PAUSE_GRACE_MS};
    struct amp_error err;
    uint32_t before = t->waiting.n_held;
    amp_waiting_earlier(&t->waiting);
    amp_port_withdraw(t->port, &recall);
    if ((always || t->waiting.n_held != before) &&
        amp_waiting_sort(&t->waiting, sort_held, &r, &err) < 0)
        amp_route_break(o->run, &err);
    t->waiting.next_earlier = 0;
}

/* After a step of a port that makes attempts: one may have failed, or ended, to be taken back. */
static void attempts_recall(struct amp_outlets *o, struct outlet *t)
{
    bool any = amp_route_hold_any(&o->hold);
    if ((any || t->recalls) &&
        (amp_port_has(t->port, AMP_PORT_RUNS) || amp_port_has(t->port, AMP_PORT_REQUEST)))
        held_sort(o, t, false);
    t->recalls = any;
}

static void held_look(struct amp_outlets *o)
{
    if (!amp_route_hold_look(&o->hold))
        return;
    for (uint32_t i = 0; i < o->n && !o->run->broken; i++) {
        struct outlet *t = o->v[i];
        t->told = false;
        if (t->port && !t->closed)
            held_sort(o, t, true);
    }
}

/* ---- offers ---- */

int amp_outlet_offer(struct amp_outlets *o, uint32_t outlet, struct parcel *j,
                     struct amp_error *err)
{
    struct outlet *t = o->v[outlet];
    bool units = false;
    if (t->inbound && depth_of(t) >= t->inbound) {
        t->refused++;
        return amp_fail(err, AMP_NO, buffer_full, "%u %s already waiting (the limit)", t->inbound,
                        t->inbound == 1 ? "message is" : "messages are");
    }
    uint32_t of = amp_waiting_of(&t->waiting, j);
    if (t->waiting.counts && of >= o->opt->producer_waiting && j->kind != AMP_KIND_ACK &&
        j->kind != AMP_KIND_NACK)
        return amp_fail(err, AMP_NO, producer_full,
                        "%u %s of its sender already waiting (the limit)", of,
                        of == 1 ? "message is" : "messages are");
    size_t bytes = bytes_of(t);
    if (bytes + j->n + 1 > o->opt->port.max_pending) {
        t->refused++;
        return amp_fail(err, AMP_NO, buffer_full, "%zu bytes are already waiting", bytes);
    }
    enum amp_lane lane = j->lane;
    if (lane == AMP_LANE_PRIVILEGED)
        lane = lane_admit(o, t, j);
    amp_route_count_placed(o->run, t->spec, j);
    if (is_held(o, t, j))
        return amp_waiting_hold(&t->waiting, j, lane, o->run->now_ms, err);
    if ((t->takes | j->takes) && amp_outlet_prepare(o, t, j, &units, err) < 0)
        return -1;
    if (t->waiting.n > 0 || !amp_outlet_takes_more(t) || units)
        return amp_waiting_join(&t->waiting, j, lane, o->run->now_ms, err);
    if (lane == AMP_LANE_PRIVILEGED) {
        t->waiting.lanes.urgent++;
        amp_outlet_say_urgent(o, t, j);
    }
    return amp_outlet_give(o, t, j, o->run->now_ms, err);
}

int amp_outlets_answer(struct amp_outlets *o, struct parcel *answer, struct amp_error *err)
{
    return amp_port_offer(o->v[0]->port, (struct amp_span){"", 0},
                          (struct amp_span){answer->line, answer->n}, (uintptr_t)answer,
                          amp_mono_ms(), err);
}

bool amp_outlet_write(struct amp_outlets *o, uint32_t outlet, struct amp_span line)
{
    struct outlet *t = o->v[outlet];
    bool free = t->waiting.n + t->waiting.n_held == 0;
    if (free && !amp_port_room(t->port, 0))
        amp_outlet_step(o, outlet);
    if (!free || !amp_port_room(t->port, 0) ||
        amp_port_pending(t->port) + line.n + 1 > o->opt->port.max_pending ||
        amp_port_offer(t->port, (struct amp_span){"", 0}, line, 0, o->run->now_ms, NULL) < 0)
        return false;
    t->given++;
    if (amp_port_pending(t->port) >= ENOUGH)
        amp_outlet_step(o, outlet); /* while it is in the processor's cache */
    return true;
}

static void expired_drop(struct amp_outlets *o, uint32_t outlet)
{
    struct outlet *t = o->v[outlet];
    struct parcel *j;
    while ((j = amp_waiting_expired(&t->waiting))) {
        struct amp_error why;
        amp_fail_text(&why, AMP_NO, amp_parcel_expired_code(j),
                      "its time to live passed while it waited for %.200s", t->spec);
        amp_outlet_fail(o, outlet, j, &why);
    }
}

/* Whether no more acknowledgements can come that give credit for the waiting messages. */
static bool is_hopeless(const struct amp_outlets *o, const struct outlet *t)
{
    const struct amp_route_run *run = o->run;
    int64_t limit = o->opt->port.open_timeout_ms;
    return amp_unacked_full(&t->unacked) && run->eof_ms > 0 &&
           (!run->store || (limit >= 0 && run->now_ms - run->eof_ms > limit));
}

static void hopeless_drop(struct amp_outlets *o, uint32_t outlet)
{
    struct outlet *t = o->v[outlet];
    struct parcel *j;
    while ((j = amp_waiting_first(&t->waiting))) {
        struct amp_error why;
        uint32_t away = t->unacked.away;
        amp_fail(&why, AMP_NO, buffer_full, "%u %s unacknowledged (the limit)", away,
                 away == 1 ? "message is" : "messages are");
        amp_outlet_fail(o, outlet, j, &why);
    }
}

/* The port reports the outcome of a line. */
static void line_done(void *ctx, uint64_t tag, const struct amp_error *why)
{
    struct amp_outlets *o = ctx;
    struct outlet *t = o->v[o->stepping];
    struct parcel *j = (struct parcel *)(uintptr_t)tag;
    if (!j) {
        if (why)
            o->events.failed(o->events.ctx, amp_port_failed(t->port), o->stepping, why);
        else
            o->run->delivered++;
        return;
    }
    if (j->carried) {
        amp_outlet_unit_done(o, t, j, why);
        return;
    }
    if (!why && !j->copy && !j->answer)
        o->run->delivered++;
    bool kept = amp_unacked_done(&t->unacked, j, !why);
    o->events.done(o->events.ctx, j, o->stepping, why, kept);
}

void amp_outlet_step(struct amp_outlets *o, uint32_t outlet)
{
    struct outlet *t = o->v[outlet];
    bool gave;
    if (!t->port)
        return;
    if (t->waiting.n + t->waiting.n_held > 0) {
        expired_drop(o, outlet);
        if (amp_unacked_full(&t->unacked))
            amp_unacked_turn(&t->unacked);
        if (is_hopeless(o, t))
            hopeless_drop(o, outlet);
    }
    /* Without a write, only this shows that the reader is gone. */
    if (t->waiting.n > 0 && !amp_port_room(t->port, amp_outlet_ahead(t)))
        amp_port_notice(t->port);
    do {
        gave = false;
        while (t->waiting.n > 0 && amp_outlet_takes_more(t)) {
            amp_outlet_give_next(o, outlet);
            gave = true;
        }
        uint32_t before = o->stepping;
        o->stepping = outlet;
        amp_port_step(t->port, line_done, o);
        o->stepping = before;
        if (amp_port_lost(t->port)) {
            amp_outlet_restart(o, t);
            amp_unacked_lost(&t->unacked);    /* these come before the others */
            if (amp_route_hold_any(&o->hold)) /* the next reader must not get them */
                held_sort(o, t, false);
        }
        attempts_recall(o, t);
    } while (gave && t->waiting.n > 0 && !o->run->broken);
}

/* The router's own output is last: outcomes of the others may add answers to it. */
void amp_outlets_step(struct amp_outlets *o)
{
    for (uint32_t i = o->n; i-- > 0 && !o->run->broken;)
        if (i == 0 || (!o->run->dry && !o->v[i]->closed))
            amp_outlet_step(o, i);
}

/* ---- patience ---- */

static bool is_full(const struct outlet *t)
{
    return t->inbound && depth_of(t) >= t->inbound;
}

/* Messages that the reader took since the last call give patience back. */
static void patience_earn(const struct amp_outlets *o, struct outlet *t)
{
    uint64_t taken = t->given - amp_port_untaken(t->port);
    int64_t most = o->opt->patience_ms;
    if (taken > t->taken) {
        uint64_t n = taken - t->taken;
        t->patience_ms += n < EARNS_OF ? (int64_t)n * most / EARNS_OF : most;
        if (t->patience_ms > most)
            t->patience_ms = most;
    }
    t->taken = taken;
}

bool amp_outlet_holds(struct amp_outlets *o, uint32_t outlet)
{
    struct outlet *t = o->v[outlet];
    if (!t->port || !is_full(t))
        return false;
    amp_outlet_step(o, outlet);
    patience_earn(o, t);
    return is_full(t) && t->waiting.n_held == 0 && t->patience_ms > 0;
}

void amp_outlets_charge(struct amp_outlets *o)
{
    int64_t now = amp_mono_ms();
    if (!o->run->held_ms)
        return;
    for (uint32_t i = 0; i < o->n; i++) {
        struct outlet *t = o->v[i];
        if (t->blocks)
            t->patience_ms -= now - o->run->held_ms;
        t->blocks = false;
    }
    o->run->held_ms = now;
}

/* ---- waiting ---- */

static void wait_lower(int64_t *wait, int64_t ms)
{
    if (ms >= 0 && (*wait < 0 || ms < *wait))
        *wait = ms;
}

/* Milliseconds until the outlets have work without an event; -1: no limit. */
static int64_t turn_wait(struct amp_outlets *o)
{
    int64_t wait = -1;
    bool waiting = false;
    for (uint32_t i = 0; i < o->n; i++) {
        struct outlet *t = o->v[i];
        bool any = t->waiting.n > 0;
        if (t->waiting.n_held > 0)
            wait_lower(&wait, amp_waiting_expiry(&t->waiting));
        if (!t->port || (!t->inbound && !amp_unacked_full(&t->unacked) && !any) || depth_of(t) == 0)
            continue;
        uint64_t before = t->taken;
        patience_earn(o, t);
        if (t->taken != before)
            o->look_gap_ms = 0;
        bool stuck = is_full(t) && t->waiting.n_held == 0, credit = !amp_unacked_full(&t->unacked);
        if (any) {
            wait_lower(&wait, credit ? -1 : amp_unacked_due(&t->unacked));
            wait_lower(&wait, amp_waiting_expiry(&t->waiting));
        }
        t->blocks = o->run->held_ms && stuck;
        if (t->blocks && t->patience_ms > 0)
            wait_lower(&wait, t->patience_ms);
        /* A pipe does not report when its reader takes something. */
        waiting = waiting || stuck || (any && t->inbound && credit);
    }
    if (waiting) {
        o->look_gap_ms = amp_backoff_next(&looks, o->look_gap_ms);
        wait_lower(&wait, o->look_gap_ms);
    }
    return wait;
}

/* Whether a message can still be held or released. */
static bool suspension_matters(const struct amp_outlets *o)
{
    for (uint32_t i = 0; i < o->n && o->hold.pauses.store; i++) {
        const struct outlet *t = o->v[i];
        if (t->port && !t->closed &&
            (t->waiting.n + t->waiting.n_held > 0 || amp_port_pending(t->port) > 0))
            return true;
    }
    return false;
}

uint32_t amp_outlets_watch(struct amp_outlets *o, struct pollfd *fds, int *timeout_ms)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->n; i++, n += AMP_PORT_FDS)
        if (o->v[i]->port && (i == 0 || (!o->run->dry && !o->v[i]->closed)))
            amp_port_watch(o->v[i]->port, &fds[n], timeout_ms);
        else
            fds[n] = fds[n + 1] = (struct pollfd){.fd = -1};
    fds[n++] = (struct pollfd){.fd = o->unacked.wake.log, .events = POLLIN};
    int64_t wait = turn_wait(o);
    bool watches = suspension_matters(o);
    fds[n++] =
        (struct pollfd){.fd = watches ? amp_pause_watch_fd(&o->hold.pauses) : -1, .events = POLLIN};
    if (watches)
        wait_lower(&wait, amp_pause_watch_wait(&o->hold.pauses));
    if (wait >= 0 && (*timeout_ms < 0 || wait < *timeout_ms))
        *timeout_ms = (int)wait;
    return n;
}

void amp_outlets_woken(struct amp_outlets *o, const struct pollfd *fds, uint32_t n)
{
    if (n > 1 && fds[n - 2].revents)
        amp_unacked_shared_wake(&o->unacked);
    held_look(o);
}

bool amp_outlets_quiet(const struct amp_outlets *o, bool ended)
{
    bool holds = false;
    for (uint32_t i = 0; i < o->n; i++) {
        const struct outlet *t = o->v[i];
        if (t->port &&
            (amp_port_pending(t->port) > 0 || (t->waiting.n > 0 && !amp_unacked_full(&t->unacked))))
            return false;
        if (ended && i > 0 && !t->closed && t->waiting.n_held == 0)
            return false;
        holds = holds || t->waiting.n_held > 0;
    }
    return !ended || holds;
}

bool amp_outlets_has_room(const struct amp_outlets *o)
{
    return bytes_of(o->v[0]) < o->opt->port.max_pending / 2;
}

/* ---- ends ---- */

/* Returns whether it is closed now. */
static bool outlet_finish(const struct amp_outlets *o, struct outlet *t)
{
    struct amp_error err;
    if (t->waiting.n + t->waiting.n_held > 0)
        return false;
    int rc = t->port ? amp_port_finish(t->port, &err) : 1;
    if (rc < 0)
        o->run->voice->status(o->run->voice->complain(&err));
    if (rc != 0)
        amp_unacked_end(&t->unacked);
    t->closed = rc != 0;
    return t->closed;
}

void amp_outlets_retire(struct amp_outlets *o, bool (*used)(void *ctx, uint32_t outlet), void *ctx)
{
    for (uint32_t i = 1; i < o->n; i++)
        o->v[i]->leaving = !used(ctx, i);
}

void amp_outlets_close_retired(struct amp_outlets *o)
{
    for (uint32_t i = 1; i < o->n; i++)
        if (o->v[i]->leaving && !o->v[i]->closed)
            outlet_finish(o, o->v[i]);
}

bool amp_outlets_finish(struct amp_outlets *o)
{
    bool late = o->run->now_ms - o->run->eof_ms > LISTENS_MS, all = true;
    for (uint32_t i = o->n; i-- > 0;) {
        struct outlet *t = o->v[i];
        if (t->closed)
            continue;
        if (i == 0 && !all)
            break; /* an open port may still fail, which makes an answer */
        if (i > 0 && (o->run->dry || (t->listens && late)))
            t->closed = true;
        else
            all = outlet_finish(o, t) && all;
    }
    return all && o->v[0]->closed;
}

void amp_outlets_stop(struct amp_outlets *o)
{
    for (uint32_t i = 1; i < o->n; i++) {
        struct outlet *t = o->v[i];
        if (!t->port)
            continue;
        amp_port_notice(t->port);
        if (!amp_port_lost(t->port))
            amp_unacked_end(&t->unacked);
    }
}

/* ---- metrics and counts ---- */

void amp_outlets_measure(const struct amp_outlets *o)
{
    const struct amp_route_run *run = o->run;
    struct amp_metrics *m = run->metrics;
    struct amp_error err;
    for (uint32_t i = 1; i < o->n; i++) {
        const struct outlet *t = o->v[i];
        struct amp_metric_labels l = {.agent = amp_span_str(t->spec)};
        if (t->is.action == AMP_OUTLET_INBOX) {
            /* Its messages are in the state, which a dry run may not have. */
            if (run->store && !run->broken &&
                amp_route_count_inbox(m, t->spec, run->store, amp_span_str(t->is.arg), &err) < 0)
                run->voice->warn("%s", err.what);
            continue;
        }
        int64_t oldest = amp_waiting_oldest(&t->waiting, run->now_ms);
        uint32_t credits = t->unacked.credits, away = t->unacked.away;
        amp_metrics_set(m, AMP_METRIC_QUEUE_DEPTH, &l, t->port ? depth_of(t) : 0);
        amp_metrics_set(m, AMP_METRIC_OLDEST_AGE, &l, (double)(run->now_ms - oldest) / 1e3);
        if (credits > 0)
            amp_metrics_set(m, AMP_METRIC_CREDITS, &l, credits > away ? credits - away : 0);
        if (t->inbound)
            amp_metrics_set(m, AMP_METRIC_QUEUE_CAPACITY, &l, t->inbound);
    }
}

void amp_outlets_say(const struct amp_outlets *o)
{
    for (uint32_t i = 0; i < o->n; i++) {
        const struct outlet *t = o->v[i];
        const struct amp_lanes *lanes = &t->waiting.lanes;
        if (t->refused > 0)
            o->run->voice->note("%s: %" PRIu64 " refused (buffer_full)", t->spec, t->refused);
        if (lanes->urgent + lanes->overflowed > 0)
            o->run->voice->note("%s: %" PRIu64 " urgent, %" PRIu64 " past their limit in %" PRIu64
                                " bursts",
                                t->spec, lanes->urgent, lanes->overflowed, lanes->bursts);
        if (lanes->starved > 0)
            o->run->voice->note("%s: %" PRIu64 " starved, %" PRId64 " ms at most", t->spec,
                                lanes->starved, lanes->longest_ms);
    }
}
