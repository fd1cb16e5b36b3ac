/* Finds facts in the records of agents and tasks, and does what follows from the end of work. */
#include "people/facts.h"

#include <stdio.h>

#include "message/pause/pause.h"
#include "message/protocol/rtp/rtp.h"
#include "message/protocol/rtp/task.h"
#include "work/agent/approval.h"
#include "work/agent/publish.h"
#include "work/agent/review.h"
#include "work/agent/skill.h"
#include "work/agent/work.h"
#include "work/git/binding.h"
#include "work/task/machines.h"
#include "work/task/task.h"
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

/* ---- the end of work ---- */

static int reviews_add(struct amp_store *s, const struct amp_work_end *e, const struct amp_view *v,
                       const struct amp_rtp_task *t, struct amp_error *err)
{
    struct amp_span word = e->done ? e->done->body.result.failure : AMP_SPAN("");
    struct amp_review_cause c = {.failure =
                                     e->failure ? e->failure : amp_rtp_failure(word, AMP_SPAN("")),
                                 .correlation = v->correlation,
                                 .route = e->route,
                                 .actor = e->actor,
                                 .now_ms = e->now_ms};
    for (uint32_t i = 0; i < t->n_capabilities; i++) {
        c.capability = t->capability[i];
        if (amp_review_add(s, &c, NULL, err) < 0)
            return -1;
    }
    return 0;
}

/* A completion that confirms another version does not end the distribution. */
static int skill_confirm(struct amp_store *s, const struct amp_work_end *e,
                         const struct amp_rtp_task *t, struct amp_error *err)
{
    char version[65];
    struct amp_span said;
    struct amp_error why = {0};
    if (!t->skill || t->n_capabilities == 0 || !amp_rtp_task_confirms(e->done, &said) ||
        said.n == 0 || !amp_span_copy(said, version, sizeof version))
        return 0;
    const struct amp_skill_change c = {.capability = t->capability[0],
                                       .agent = e->done->body.result.agent,
                                       .version = version,
                                       .actor = e->actor,
                                       .now_ms = e->now_ms};
    return c.agent.n > 0 && amp_skill_confirm(s, &c, &why) < 0 ? amp_fail_unless_no(err, &why) : 0;
}

/* A review item for each capability of a task that failed, is overdue or has no route (Runtime
 * Protocol v1 §8), and the confirmation of a distributed skill (§7). */
static int work_ended(struct amp_store *s, const struct amp_work_end *e, struct amp_error *err)
{
    const struct amp_check_options any = {0};
    struct amp_rtp_task t;
    struct amp_view v;
    struct amp_reader *reader = amp_reader_new(NULL, err);
    if (!reader)
        return -1;
    int rc = amp_reader_line(reader, e->request, &any, &v, NULL, NULL, err);
    bool failed =
        e->failure || (e->done && e->done->body.result.completion == AMP_COMPLETION_FAILED);
    if (rc >= 0 && amp_rtp_task_read(&v, &t))
        rc = failed ? reviews_add(s, e, &v, &t, err) : e->done ? skill_confirm(s, e, &t, err) : 0;
    amp_reader_free(reader);
    return rc < 0 ? -1 : 0;
}

static int work_approved(struct amp_store *s, struct amp_span request, struct amp_error *err)
{
    const struct amp_check_options any = {0};
    struct amp_rtp_task t;
    struct amp_view v;
    struct amp_reader *reader = amp_reader_new(NULL, err);
    if (!reader)
        return -1;
    int rc = amp_reader_line(reader, request, &any, &v, NULL, NULL, err);
    if (rc >= 0)
        rc = amp_rtp_task_read(&v, &t) && !t.skill
                 ? amp_approval_check(s, v.task, t.capability, t.n_capabilities, err)
                 : 0;
    amp_reader_free(reader);
    return rc;
}

static int work_waits(struct amp_store *s, struct amp_span task, const char *agent,
                      char why[AMP_FACTS_WHY], struct amp_error *err)
{
    struct amp_task_status t;
    struct amp_agent_status a = {0};

    if (amp_task_status(s, task, &t, err) < 0 || (agent && amp_agent_status(s, agent, &a, err) < 0))
        return -1;
    if (t.suspended)
        snprintf(why, AMP_FACTS_WHY, "task %.*s is suspended until the admin decides %s",
                 AMP_CLIP(task, 200), t.ref);
    else if (a.suspended)
        snprintf(why, AMP_FACTS_WHY, "task %s suspends agent %s until the admin decides %s",
                 a.cause, agent, a.ref);
    return t.suspended || a.suspended;
}

static int agent_bound(struct amp_store *s, const char *agent, bool *yes, struct amp_error *err)
{
    struct amp_binding b;

    if (amp_binding_get(s, agent, &b, err) < 0)
        return -1;
    *yes = amp_binding_is_bound(&b);
    return 0;
}

const struct amp_message_facts amp_facts_all = {.role = agent_role,
                                                .descriptors = agent_descriptors,
                                                .task = task_facts,
                                                .approved = work_approved,
                                                .waits = work_waits,
                                                .bound = agent_bound,
                                                .publish = amp_publish_line,
                                                .ended = work_ended};
