/* The settings of the queue: section `queue` of amp.json. */
#include <string.h>
#include <unistd.h>

#include <amp/base/num.h>

#include "flow/queue/queue.h"

#define DAY_MS INT64_C(86400000)

void amp_queue_settings_default(struct amp_queue_settings *out)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    *out = (struct amp_queue_settings){.ageing_ms = 600000,
                                       .max_parallel = cpus > 0 ? cpus : 1,
                                       .keep_ms = 7 * DAY_MS,
                                       .losses_most = 3,
                                       .heartbeat_ms = 10000,
                                       .threshold = 0.8};
}

/* A time as amp.json has it: text with a unit, or seconds. */
static int duration_load(const json_t *q, const char *key, int64_t least, int64_t *ms,
                         struct amp_error *err)
{
    const json_t *v = json_object_get(q, key);
    int64_t got = -1;

    if (!v)
        return 0;
    if (json_is_integer(v) && json_integer_value(v) <= INT64_MAX / 1000)
        got = json_integer_value(v) * 1000;
    else if (json_is_string(v) &&
             amp_num_duration(amp_span_str(json_string_value(v)), 0, INT64_MAX, &got, NULL) < 0)
        got = -1;
    if (got < least)
        return amp_fail(err, AMP_CONFIG, "bad_value",
                        "queue.%s: expected a time of at least %lld ms", key, (long long)least);
    *ms = got;
    return 0;
}

static int integer_load(const json_t *q, const char *key, int64_t *out, struct amp_error *err)
{
    const json_t *v = json_object_get(q, key);

    if (!v)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < 1)
        return amp_fail(err, AMP_CONFIG, "bad_value", "queue.%s: expected an integer from 1", key);
    *out = json_integer_value(v);
    return 0;
}

int amp_queue_settings_load(struct amp_queue_settings *out, const json_t *config,
                            struct amp_error *err)
{
    const json_t *q = json_object_get(config, "queue"), *threshold;
    json_t *types = json_object_get(q, "types"), *type;
    const char *name;

    if (duration_load(q, "ageing", 0, &out->ageing_ms, err) < 0 ||
        duration_load(q, "keep", 0, &out->keep_ms, err) < 0 ||
        duration_load(q, "heartbeat", 100, &out->heartbeat_ms, err) < 0 ||
        integer_load(q, "max_parallel", &out->max_parallel, err) < 0 ||
        integer_load(q, "losses", &out->losses_most, err) < 0)
        return -1;
    threshold = json_object_get(q, "threshold");
    if (threshold)
        out->threshold = json_is_number(threshold) ? json_number_value(threshold) : -1;
    if (out->threshold < 0 || out->threshold > 1)
        return amp_fail(err, AMP_CONFIG, "bad_value", "queue.threshold: expected 0 to 1");
    out->types = types;
    json_object_foreach (types, name, type) {
        int64_t most = 0;
        if (integer_load(type, "max_parallel", &most, err) < 0)
            return -1;
    }
    return 0;
}

int64_t amp_queue_most(const struct amp_queue_settings *s, struct amp_span type)
{
    const json_t *t = json_object_getn(s->types, type.p, type.n);
    const json_t *most = json_object_get(t, "max_parallel");

    return most ? json_integer_value(most) : s->max_parallel;
}
