/* task-queue preempt, rank: people change the order of jobs. */
#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "shared/work/permit.h"
#include "work/item/claim/queue.h"

static const char *priority;
static int64_t level;

static const struct amp_opt queue_rank_opts[] = {
    {0, "priority", AMP_OPT_STRING, &priority, "N", "the new priority, -19 (first) to 20"},
    AMP_TOOL_OPTS_PERMIT,
    AMP_OPT_END,
};
static const struct amp_opt queue_ask_opts[] = {
    AMP_TOOL_OPTS_PERMIT,
    AMP_OPT_END,
};

static int job_ask(uint8_t event, enum amp_permit_of of, struct amp_command *c,
                   struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = 64 << 20};
    const struct amp_tool_person *person = c->own;

    for (int i = 0; i < c->argc; i++) {
        const struct amp_queue_step st = {.id = amp_span_str(c->argv[i]),
                                          .event = event,
                                          .priority = level,
                                          .by = person->name,
                                          .why = "asked by a person",
                                          .actor = amp_cli_name(),
                                          .now_ms = amp_now_ms()};
        if (amp_tool_permit_others(c->store, person, of, c->argv[i], NULL, err) < 0 ||
            amp_queue_step(c->store, &st, &mem, NULL, err) < 0)
            return -1;
    }
    return amp_store_sync(c->store, err);
}

static int queue_preempt(struct amp_command *c, struct amp_error *err)
{
    return job_ask(AMP_QUEUE_EV_PREEMPT, AMP_PERMIT_PREEMPT, c, err);
}

static int rank_check(struct amp_command *c, struct amp_error *err)
{
    (void)c, (void)err;
    if (!priority || amp_num_parse(amp_span_str(priority), AMP_QUEUE_HIGHEST, AMP_QUEUE_LOWEST,
                                   &level, NULL) < 0)
        amp_die_usage("--priority: expected %d to %d", AMP_QUEUE_HIGHEST, AMP_QUEUE_LOWEST);
    return 0;
}

static int queue_rank(struct amp_command *c, struct amp_error *err)
{
    return job_ask(AMP_QUEUE_EV_RANK, AMP_PERMIT_RANK, c, err);
}

const struct amp_verb queue_rank_verbs[] = {
    {"rank", "JOB…", "give jobs that wait another priority", queue_rank_opts, queue_rank,
     .check = rank_check, .opens = AMP_OPENS_MADE | AMP_TOOL_OPENS_PERSON,
     .act = "change the order of jobs", .least = 1, .usage = "no job: give its id",
     .finds_state = true, .values = "job", .who = AMP_WHO_PERSON},
    {0},
};

const struct amp_verb queue_preempt_verbs[] = {
    {"preempt", "JOB…", "ask the agents of jobs to yield", queue_ask_opts, queue_preempt,
     .opens = AMP_OPENS_MADE | AMP_TOOL_OPENS_PERSON, .act = "change the order of jobs", .least = 1,
     .usage = "no job: give its id", .finds_state = true, .values = "job", .who = AMP_WHO_PERSON},
    {0},
};
