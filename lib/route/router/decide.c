/*
 * The line of messages whose rules are not decided yet. Until jq answered about the first the
 * messages behind it wait too: what goes to one port keeps its order.
 */
#include "route/router/router.h"

#include <string.h>

#include <amp/base/clock.h>

void amp_match_view(struct router *r, struct job *j, const struct amp_view *v)
{
    amp_rules_match(r->rules, j, v);
    j->era = r->era;
}

/* Which rules hold, whatever it was judged by before. */
static int match_again(struct router *r, struct job *j, struct amp_error *err)
{
    struct amp_view v;
    struct amp_check_options opt = {0};
    memset(j->hit, 0, sizeof(j->hit));
    if (amp_reader_line(r->again, amp_route_job_whole(j), &opt, &v, NULL, NULL, err) < 0)
        return -1;
    amp_match_view(r, j, &v);
    if (j->address.kids || j->address.mark || j->address.nobody)
        return 0;
    return amp_recipients_look(r, j, &v, err) < 0 ? -1 : 0;
}

void amp_match_add(struct router *r, struct job *j)
{
    struct amp_error err;
    /* It waited while the rules changed. */
    if (j->era != r->era && !j->refused && match_again(r, j, &err) < 0)
        amp_route_break(r, &err);

    if (r->last)
        r->last->next = j;
    else
        r->first = j;
    r->last = j;
    r->n_undecided++;
}

void amp_match_add_all(struct router *r, struct job *j)
{
    for (struct job *next; j; j = next) {
        next = j->next;
        j->next = NULL;
        amp_match_add(r, j);
    }
}

void amp_match_step(struct router *r)
{
    struct amp_error err;
    for (struct job *j = r->first; j; j = j->next)
        if (j->stage == JOB_ASK && amp_rules_ask(r->rules, j) == 1)
            break;
    if (amp_rules_step(r->rules, &err) < 0) {
        amp_route_break(r, &err);
        return;
    }
    amp_outlets_charge(r);
    while (r->first && r->first->stage == JOB_DECIDED && !r->broken) {
        struct job *j = r->first;
        if (amp_route_job_holds(r, j)) {
            if (!r->held_ms)
                r->held_ms = amp_mono_ms();
            return;
        }
        r->held_ms = 0;
        r->first = j->next;
        if (!r->first)
            r->last = NULL;
        r->n_undecided--;
        j->next = NULL;
        amp_route_job_dispatch(r, j);
    }
}
