/* The values that a state directory knows, a row for each kind. */
#include "shared/values.h"

#include <errno.h>
#include <unistd.h>

#include "base/codes.h"
#include "message/delivery/cursor/cursors.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/record/delivery.h"
#include "message/delivery/record/record.h"
#include "message/protocol/codes/values.h"
#include "people/question/escalation.h"
#include "work/agent/capability.h"
#include "work/agent/record.h"
#include "work/aop/session.h"
#include "work/git/binding.h"
#include "work/handoff/handoff.h"
#include "work/item/queue.h"
#include "work/task/machines.h"
#include "work/task/record.h"

struct finding {
    const struct amp_values_ask *ask;
    struct amp_store *store;
    const struct amp_fsm *open_of; /* only records that have not ended; NULL: all */
    bool source;                   /* of a cursor, not its consumer */
};

static int value_give(struct finding *f, struct amp_span value, struct amp_span doc,
                      struct amp_error *err)
{
    return f->ask->fn(f->ask->ctx, value, doc, err);
}

static int record_give(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct finding *f = ctx;
    int state = f->open_of ? amp_fsm_state(f->open_of, rec->state) : -1;

    if (state >= 0 && (f->open_of->terminal >> state & 1))
        return 0;
    if (f->open_of == &amp_queue_fsm && id.n >= AMP_QUEUE_ID_MAX) /* a worker's own */
        return 0;
    return value_give(f, id, rec->state, err);
}

/* A prefix that a range of the index can have: the letters, digits, '-' and '_' that it begins
 * with. */
static struct amp_span prefix_of(struct amp_span text)
{
    size_t n = 0;

    while (n < text.n &&
           (text.p[n] == '-' || text.p[n] == '_' || (text.p[n] >= '0' && text.p[n] <= '9') ||
            ((text.p[n] | 32) >= 'a' && (text.p[n] | 32) <= 'z')))
        n++;
    return (struct amp_span){text.p, n};
}

static int records_give(struct finding *f, const char *kind, const struct amp_fsm *open_of,
                        struct amp_error *err)
{
    struct amp_span prefix = prefix_of(f->ask->prefix);

    f->open_of = open_of;
    return prefix.n ? amp_store_each_of(f->store, kind, prefix, record_give, f, err)
                    : amp_store_each(f->store, kind, NULL, record_give, f, err);
}

static int tasks_find(struct finding *f, struct amp_error *err)
{
    return records_give(f, AMP_TASK_KIND, NULL, err);
}

static int handoffs_find(struct finding *f, struct amp_error *err)
{
    return records_give(f, AMP_HANDOFF_KIND, &amp_handoff_fsm, err);
}

static int jobs_find(struct finding *f, struct amp_error *err)
{
    return records_give(f, AMP_QUEUE_KIND, &amp_queue_fsm, err);
}

static int sessions_find(struct finding *f, struct amp_error *err)
{
    return records_give(f, AMP_SESSION_KIND, &amp_session_fsm, err);
}

static int questions_find(struct finding *f, struct amp_error *err)
{
    return records_give(f, AMP_ESCALATION_KIND, &amp_escalation_fsm, err);
}

static int messages_find(struct finding *f, struct amp_error *err)
{
    return records_give(f, AMP_MESSAGE_KIND, &amp_delivery_fsm, err);
}

static int agent_give(void *ctx, struct amp_span name, const struct amp_agent_rec *rec,
                      struct amp_error *err)
{
    return value_give(ctx, name, amp_span_str(rec->work.task ? rec->work.task : ""), err);
}

static int agents_find(struct finding *f, struct amp_error *err)
{
    return amp_agent_records(f->store, agent_give, f, err);
}

static int binding_give(void *ctx, const struct amp_binding *b, struct amp_error *err)
{
    return value_give(ctx, amp_span_str(b->agent), amp_span_str(b->branch), err);
}

static int bindings_find(struct finding *f, struct amp_error *err)
{
    return amp_binding_each(f->store, binding_give, f, err);
}

static int letter_give(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                       struct amp_span json, struct amp_error *err)
{
    (void)json;
    return value_give(ctx, id, amp_span_str(d->code), err);
}

static int letters_find(struct finding *f, struct amp_error *err)
{
    return amp_dead_each(f->store, false, letter_give, f, err);
}

static int capability_give(void *ctx, struct amp_span id, const struct amp_capability *c,
                           struct amp_error *err)
{
    (void)c;
    return value_give(ctx, id, AMP_SPAN(""), err);
}

static int capabilities_find(struct finding *f, struct amp_error *err)
{
    return amp_capability_each(f->store, capability_give, f, err);
}

static int cursor_give(void *ctx, const struct amp_cursor_rec *rec, uint8_t state,
                       struct amp_error *err)
{
    struct finding *f = ctx;

    (void)state;
    return f->source ? value_give(f, rec->source, rec->consumer, err)
                     : value_give(f, rec->consumer, rec->source, err);
}

static int consumers_find(struct finding *f, struct amp_error *err)
{
    return amp_cursors_each(f->store, cursor_give, f, err);
}

static int sources_find(struct finding *f, struct amp_error *err)
{
    f->source = true;
    return amp_cursors_each(f->store, cursor_give, f, err);
}

/* The kinds that need the state directory. */
static const struct kind {
    const char *name;
    int (*find)(struct finding *f, struct amp_error *err);
} kinds[] = {
    {"agent", agents_find},       {"binding", bindings_find}, {"capability", capabilities_find},
    {"consumer", consumers_find}, {"handoff", handoffs_find}, {"job", jobs_find},
    {"letter", letters_find},     {"message", messages_find}, {"question", questions_find},
    {"session", sessions_find},   {"source", sources_find},   {"task", tasks_find},
};

int amp_values(const struct amp_values_ask *ask, struct amp_error *err)
{
    struct amp_store_options opt = {.lock_timeout_ms = 1000, .read_only = true, .look = true};
    struct finding f = {.ask = ask};
    const struct kind *k = kinds;

    if (amp_span_is(ask->what, "code"))
        return amp_code_values(ask, err);
    while (k < kinds + sizeof kinds / sizeof kinds[0] && !amp_span_is(ask->what, k->name))
        k++;
    if (k == kinds + sizeof kinds / sizeof kinds[0])
        return amp_fail(err, AMP_USAGE, bad_usage, "there are no values of the kind %.*s",
                        AMP_CLIP(ask->what, 40));
    if (!ask->state || (access(ask->state, F_OK) != 0 && errno == ENOENT))
        return 0;
    if (amp_store_open(ask->state, &opt, &f.store, err) < 0)
        return -1;
    int rc = k->find(&f, err);
    amp_store_close(f.store);
    return rc;
}
