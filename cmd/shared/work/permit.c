/* Decisions of a person against a rule of the queue: reason, end, signature, record. */
#include "shared/work/permit.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "cli/config.h"
#include "work/item/judge/permit.h"
#include "work/item/queue.h"
#include "json/record.h"

#define TEXT_MAX 65536
#define YEAR_MS  (INT64_C(366) * 86400000)

const char *amp_tool_why, *amp_tool_until;

/* ---- who, why, until when ---- */

static int until_read(int64_t now_ms, int64_t *out, struct amp_error *err)
{
    int64_t in;

    *out = 0;
    if (!amp_tool_until || amp_time_parse(amp_span_str(amp_tool_until), out))
        return 0;
    if (amp_num_duration(amp_span_str(amp_tool_until), 1, YEAR_MS, &in, NULL) < 0)
        return amp_fail(err, AMP_USAGE, bad_time,
                        "--until %.100s: expected an RFC 3339 time with an offset, or a duration",
                        amp_tool_until);
    *out = now_ms + in;
    return 0;
}

int amp_tool_why_check(const char *act, const char *why, struct amp_error *err)
{
    return why && *why ? 0
                       : amp_fail(err, AMP_USAGE, why_required,
                                  "to %s needs a reason (--why, of cancel --reason): it is "
                                  "recorded with your name",
                                  act);
}

int amp_tool_permit_give(struct amp_store *s, const struct amp_tool_person *p,
                         const struct amp_tool_permit *q, char id[AMP_UUID_MAX],
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_tool_signature sig;
    struct amp_permit o = {.of = q->of,
                           .job = q->job,
                           .other = q->other,
                           .person = amp_span_str(p->name),
                           .by = amp_span_str(p->by),
                           .why = amp_span_str(q->why ? q->why : amp_tool_why),
                           .changed = amp_span_str(q->changed),
                           .since_ms = amp_now_ms()};

    amp_uuid4(id);
    o.id = amp_span_str(id);
    amp_buf_init(&text, TEXT_MAX);
    if (until_read(o.since_ms, &o.until_ms, err) < 0 || amp_permit_text(&o, &text, err) < 0)
        return -1;
    if (amp_tool_sign(p, AMP_PERMIT_NAMESPACE, amp_buf_span(&text), &sig)) {
        o.alg = amp_span_str(sig.alg);
        o.key = amp_span_str(sig.key);
        o.signature = amp_span_str(sig.value);
    }
    return amp_permit_give(s, &o, AMP_QUEUE_KEEP_MS, amp_cli_name(), err);
}

/* ---- jobs of other persons ---- */

static int operator_count(void *ctx, const char *text, struct amp_error *err)
{
    int *n = ctx;

    (void)text, (void)err;
    ++*n;
    return 0;
}

int amp_tool_permit_others(struct amp_store *s, const struct amp_tool_person *p,
                           enum amp_permit_of of, const char *id, const char *why,
                           struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_queue_job job;
    char act[64], changed[128], permit[AMP_UUID_MAX];
    int operators = 0;

    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_config_values(amp_tool_config, amp_tool_state, "hitl.operators", operator_count,
                          &operators, err) < 0)
        return -1;
    int found = amp_queue_read(s, amp_span_str(id), &mem, &job, err);
    if (found <= 0 || !operators || amp_span_is(job.by, amp_cli_login("operator")))
        return found < 0 ? -1 : 0;
    snprintf(act, sizeof act, "%s another person's job", amp_permit_name((int)of));
    snprintf(changed, sizeof changed, "%s of job %.32s", amp_permit_name((int)of), id);
    const struct amp_tool_permit q = {.of = of, .job = job.id, .changed = changed, .why = why};
    return amp_tool_why_check(act, why ? why : amp_tool_why, err) < 0
               ? -1
               : amp_tool_permit_give(s, p, &q, permit, err);
}
