/* What would become of a message: which predicates were asked, which held, and where that leads. */
#include "route/router/router.h"

#include <string.h>

#include <amp/json/writer.h>

/* Why it would be answered instead of delivered; NULL: it would not. */
static const char *refusal(const struct router *r, const struct job *j, const char **why)
{
    bool any = false;
    *why = j->why;
    if (j->refused)
        return j->refused;
    for (uint32_t i = 0; i < amp_rules_n(r->rules) && !any; i++) {
        if (!amp_rules_hold(j, i))
            continue;
        any = true;
        enum amp_outlet_action does = r->outlets[amp_rules_at(r->rules, i)->port]->action;
        if (does == AMP_OUTLET_REJECT || does == AMP_OUTLET_DEAD) {
            *why = amp_rules_at(r->rules, i)->text;
            return does == AMP_OUTLET_REJECT ? "rejected" : "kept_back";
        }
        if (does == AMP_OUTLET_AGENTS && j->address.nobody) {
            *why = j->address.nobody->why.what;
            return j->address.nobody->why.code;
        }
        for (const struct job *kid = j->address.kids; kid && does == AMP_OUTLET_AGENTS;
             kid = kid->next)
            if (kid->refused) {
                *why = kid->why;
                return kid->refused;
            }
    }
    *why = "no route takes it";
    return any ? NULL : "no_route";
}

static void ports(struct amp_jw *w, const struct router *r, const struct job *j)
{
    amp_jw_key(w, "ports");
    amp_jw_open(w, '[');
    for (uint32_t i = 0; i < amp_rules_n(r->rules) && !j->refused; i++) {
        if (!amp_rules_hold(j, i))
            continue;
        amp_jw_str(w, amp_span_str(r->outlets[amp_rules_at(r->rules, i)->port]->spec));
        if (!r->all)
            break;
    }
    amp_jw_close(w, ']');
    if (!j->address.kids)
        return;
    amp_jw_key(w, "recipients");
    amp_jw_open(w, '[');
    for (const struct job *kid = j->address.kids; kid; kid = kid->next)
        if (!kid->refused)
            amp_jw_str(w, amp_span_str(kid->address.name));
    amp_jw_close(w, ']');
}

void amp_dry_say(struct router *r, const struct job *j)
{
    AMP_BUF struct amp_buf line = {0};
    struct amp_jw w;
    struct amp_error err;
    const char *why, *code = refusal(r, j, &why);
    amp_buf_init(&line, (size_t)1 << 20);
    amp_jw_init(&w, &line);
    amp_jw_open(&w, '{');
    amp_jw_member_int(&w, "line", (int64_t)j->number);
    amp_jw_member_text(&w, "id", j->id);
    amp_jw_member_text(&w, "protocol", amp_protocol_name(j->protocol));
    amp_jw_key(&w, "tried");
    amp_jw_open(&w, '[');
    bool any = false;
    for (uint32_t i = 0; i < amp_rules_n(r->rules) && !(any && !r->all); i++) {
        amp_jw_open(&w, '{');
        amp_jw_member_text(&w, "predicate", amp_rules_at(r->rules, i)->text);
        amp_jw_key(&w, "holds");
        amp_jw_bool(&w, amp_rules_hold(j, i));
        amp_jw_close(&w, '}');
        any = any || amp_rules_hold(j, i);
    }
    amp_jw_close(&w, ']');
    ports(&w, r, j);
    amp_jw_member_text(&w, "lane", amp_lane_name(j->lane));
    if (code) {
        amp_jw_member_text(&w, "refused", code);
        amp_jw_member_text(&w, "why", why);
    }
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, &err) < 0) {
        amp_route_break(r, &err);
        return;
    }
    if (code)
        r->voice->status(AMP_NO);
    amp_keeper_say(r, amp_buf_span(&line));
}
