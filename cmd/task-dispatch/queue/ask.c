/* task-dispatch preempt, queue rank: people change the order of jobs. */
#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "../tasks/person.h"
#include "../verbs.h"
#include "flow/queue/queue.h"
#include "override.h"
#include "queue.h"

static const char *priority;
static int64_t level;

const struct amp_opt queue_rank_opts[] = {
    {0, "priority", AMP_OPT_STRING, &priority, "N", "the new priority, -19 (first) to 20"},
    QUEUE_OPTS_OVERRIDE,
    AMP_OPT_END,
};
const struct amp_opt queue_ask_opts[] = {
    QUEUE_OPTS_OVERRIDE,
    AMP_OPT_END,
};

static int job_ask(uint8_t event, enum amp_waiver_of of, int argc, char **argv)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_store *store = NULL;
    struct tasks_person person;
    struct amp_error err;
    int rc = 0;

    amp_buf_init(&mem, 64 << 20);
    if (argc == 0)
        amp_die_usage("no job: give its id");
    if (tasks_person_open("change the order of jobs", &person, &err) < 0 ||
        task_open(&store, &err) < 0)
        rc = -1;
    for (int i = 0; i < argc && rc == 0; i++) {
        const struct amp_queue_step st = {.id = amp_span_str(argv[i]),
                                          .event = event,
                                          .priority = level,
                                          .by = person.name,
                                          .why = "asked by a person",
                                          .actor = amp_cli_name(),
                                          .now_ms = amp_now_ms()};
        rc = queue_override_others(store, &person, of, argv[i], NULL, &err);
        if (rc == 0)
            rc = amp_queue_step(store, &st, &mem, NULL, &err);
    }
    if (rc == 0)
        rc = amp_store_sync(store, &err);
    tasks_person_close(&person);
    amp_store_close(store);
    return rc < 0 ? amp_complain(&err) : AMP_OK;
}

int queue_preempt(int argc, char **argv)
{
    return job_ask(AMP_QUEUE_EV_PREEMPT, AMP_WAIVER_PREEMPT, argc, argv);
}

int queue_rank(int argc, char **argv)
{
    if (!priority || amp_num_parse(amp_span_str(priority), AMP_QUEUE_HIGHEST, AMP_QUEUE_LOWEST,
                                   &level, NULL) < 0)
        amp_die_usage("--priority: expected %d to %d", AMP_QUEUE_HIGHEST, AMP_QUEUE_LOWEST);
    return job_ask(AMP_QUEUE_EV_RANK, AMP_WAIVER_RANK, argc, argv);
}
