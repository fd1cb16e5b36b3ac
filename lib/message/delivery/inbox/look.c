/* Reading inboxes. */
#include "message/delivery/inbox/private.h"

static void info_of(const struct amp_inbox_buffer *b, struct amp_span agent,
                    struct amp_inbox_info *out)
{
    *out = (struct amp_inbox_info){.found = true,
                                   .agent = agent,
                                   .waiting = b->n_waiting,
                                   .bound = (uint32_t)b->bound,
                                   .credits = (uint32_t)b->credits,
                                   .open = b->n_open,
                                   .busy_ms = b->busy_ms,
                                   .until_ms = b->until_ms};
    out->first = b->n_waiting ? b->waiting[0].id : AMP_SPAN("");
    for (uint32_t i = 0; i < b->n_waiting; i++) {
        const struct amp_inbox_place *p = &b->waiting[i];
        bool known = p->lane >= 0 && p->lane < AMP_LANE_COUNT;
        struct amp_inbox_lane *l = &out->lane[known ? p->lane : AMP_LANE_STANDARD];
        if (out->oldest_ms == 0 || p->at_ms < out->oldest_ms)
            out->oldest_ms = p->at_ms;
        if (l->oldest_ms == 0 || p->at_ms < l->oldest_ms)
            l->oldest_ms = p->at_ms;
        l->waiting++;
        l->bytes += p->size;
    }
}

int amp_inbox_info(struct amp_store *s, struct amp_span agent, struct amp_buf *mem,
                   struct amp_inbox_info *out, struct amp_error *err)
{
    struct amp_inbox_buffer b;
    bool found;
    if (amp_inbox_agent_check(agent, err) < 0 ||
        amp_inbox_buffer_get(s, agent, mem, &b, &found, err) < 0)
        return -1;
    info_of(&b, agent, out);
    out->found = found;
    return 0;
}

struct infos {
    amp_inbox_info_fn fn;
    void *ctx;
};

static int on_buffer(void *ctx, const void *rec, struct amp_error *err)
{
    const struct infos *all = ctx;
    const struct amp_inbox_buffer *b = rec;
    struct amp_inbox_info info;
    info_of(b, b->agent, &info);
    return all->fn(all->ctx, &info, err);
}

int amp_inbox_infos(struct amp_store *s, amp_inbox_info_fn fn, void *ctx, struct amp_error *err)
{
    return amp_subject_each(&amp_inbox_buffers, s, NULL, on_buffer, &(struct infos){fn, ctx}, err);
}

int amp_inbox_is_early(struct amp_store *s, struct amp_span agent, struct amp_span id,
                       struct amp_error *err)
{
    struct amp_inbox_key k;
    struct amp_inbox_delivery d;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (amp_inbox_agent_check(agent, NULL) < 0)
        return 0;
    return amp_inbox_delivery_find(s, agent, id, &k, &mem, &d, err) < 0 ? -1 : d.early != 0;
}

int amp_inbox_each(struct amp_store *s, struct amp_span agent, amp_inbox_msg_fn fn, void *ctx,
                   struct amp_error *err)
{
    struct amp_inbox_buffer b;
    AMP_BUF struct amp_buf names = {.max = AMP_RECORD_MAX}, own = {.max = AMP_RECORD_MAX},
                           mem = {.max = AMP_RECORD_MAX};
    if (amp_inbox_agent_check(agent, err) < 0 ||
        amp_inbox_buffer_get(s, agent, &names, &b, NULL, err) < 0)
        return -1;
    for (uint32_t i = 0; i < b.n_waiting; i++) {
        const struct amp_inbox_place *place = &b.waiting[i];
        struct amp_inbox_key k;
        struct amp_inbox_delivery d;
        struct amp_inbox_msg m = {.id = place->id,
                                  .at_ms = place->at_ms,
                                  .expires_ms = place->expires_ms,
                                  .lane = place->lane};
        if (amp_inbox_delivery_find(s, agent, place->id, &k, &own, &d, err) < 0 ||
            amp_inbox_line(s, &k, &d, &mem, &m.line, err) < 0)
            return -1;
        if (m.line.n == 0 || (place->own && d.state == AMP_INBOX_ABSENT) || amp_inbox_has_ended(&d))
            continue;
        m.state = d.state;
        m.attempt = (uint32_t)d.attempt;
        if (fn(ctx, &m) != 0)
            break;
    }
    return 0;
}
