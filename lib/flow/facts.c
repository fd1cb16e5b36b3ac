/* Facts about agents and tasks, from their records. */
#include "flow/facts.h"

#include "agent/record.h"
#include "hitl/pause/pause.h"
#include "task/machines.h"
#include "task/task.h"
#include "json/record.h"

static int agent_role(struct amp_store *s, const char *agent, char role[128], struct amp_error *err)
{
    struct amp_agent_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    role[0] = '\0';
    if (!*agent)
        return 0;
    if (amp_agent_find(s, amp_span_str(agent), &mem, &rec, err) < 0)
        return -1;
    if (!amp_span_copy(amp_span_str(rec.reach.role), role, 128))
        role[0] = '\0';
    return 0;
}

struct walk {
    amp_descriptor_fn fn;
    void *ctx;
};

static int on_agent(void *ctx, struct amp_span agent, const struct amp_agent_rec *rec,
                    struct amp_error *err)
{
    const struct walk *w = ctx;
    (void)agent;
    return rec->reach.descriptor.n > 0 ? w->fn(w->ctx, rec->reach.descriptor, err) : 0;
}

static int agent_descriptors(struct amp_store *s, amp_descriptor_fn fn, void *ctx,
                             struct amp_error *err)
{
    struct walk w = {fn, ctx};
    return amp_agent_records(s, on_agent, &w, err);
}

static int task_facts(struct amp_store *s, struct amp_span id, struct amp_task_facts *out,
                      struct amp_error *err)
{
    struct amp_task_status st;
    AMP_CLEANUP(amp_pauses_release) struct amp_pauses paused = {0};
    amp_pauses_init(&paused);
    if (amp_task_status(s, id, &st, err) < 0 || amp_pauses_read(s, &paused, err) < 0)
        return -1;
    *out = (struct amp_task_facts){.found = st.found,
                                   .suspended =
                                       st.suspended || amp_pauses_find(&paused, id, AMP_SPAN("")),
                                   .state = amp_task_fsm.states[st.state].name,
                                   .reject_count = st.reject_count};
    return 0;
}

const struct amp_message_facts amp_flow_facts = {agent_role, agent_descriptors, task_facts};
