/*
 * The queue of messages whose rules are not decided. Messages behind one that waits for jq wait
 * too, so that the messages to a port keep their order.
 */
#include "message/route/router/private.h"

#include <amp/base/clock.h>

/* Evaluates the rules of the present table. */
static int match_again(struct amp_router *r, struct parcel *j, struct amp_error *err)
{
    struct amp_view v;
    struct amp_check_options opt = {0};
    if (amp_reader_line(r->run.reader, amp_parcel_whole(j), &opt, &v, NULL, NULL, err) < 0)
        return -1;
    amp_rules_match(r->rules, j, &v);
    if (j->address.kids || j->address.is_group || j->address.no_recipient)
        return 0;
    return amp_addressing_look(r->addressing, j, &v, err);
}

static void parcel_add(struct amp_router *r, struct parcel *j)
{
    struct amp_error err;
    /* The rules changed since it was read. */
    if (j->era != amp_rules_era(r->rules) && !j->refused && match_again(r, j, &err) < 0)
        amp_route_break(&r->run, &err);
    j->next = NULL;
    if (r->undecided.last)
        r->undecided.last->next = j;
    else
        r->undecided.first = j;
    r->undecided.last = j;
    r->undecided.n++;
}

void amp_decide_add(struct amp_router *r, struct parcel *first)
{
    for (struct parcel *next; first; first = next) {
        next = first->next;
        parcel_add(r, first);
    }
}

void amp_decide_pass(void *router, struct parcel *first)
{
    amp_decide_add(router, first);
    amp_decide_step(router);
}

void amp_decide_step(struct amp_router *r)
{
    struct amp_error err;
    struct parcel *j;
    for (j = r->undecided.first; j; j = j->next)
        if (j->stage == PARCEL_ASK && amp_rules_ask(r->rules, j) == AMP_RULES_LATER)
            break;
    if (amp_rules_step(r->rules, &err) < 0) {
        amp_route_break(&r->run, &err);
        return;
    }
    amp_outlets_charge(r->outlets);
    while ((j = r->undecided.first) && j->stage == PARCEL_DECIDED && !r->run.broken) {
        if (amp_dispatch_holds(r, j)) {
            r->run.held_ms = r->run.held_ms ? r->run.held_ms : amp_mono_ms();
            return;
        }
        r->run.held_ms = 0;
        r->undecided.first = j->next;
        if (!j->next)
            r->undecided.last = NULL;
        r->undecided.n--;
        j->next = NULL;
        amp_dispatch(r, j);
    }
}
