/* The settings of the queue: section `queue` of amp.json. */
#include <string.h>
#include <unistd.h>

#include <amp/base/num.h>

#include "base/codes.h"
#include "base/words.h"
#include "work/item/claim/queue.h"

#define DAY_MS INT64_C(86400000)

void amp_queue_settings_default(struct amp_queue_settings *out)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    *out = (struct amp_queue_settings){.ageing_ms = 600000,
                                       .max_parallel = cpus > 0 ? cpus : 1,
                                       .keep_ms = 7 * DAY_MS,
                                       .losses_most = 3,
                                       .heartbeat_ms = 10000,
                                       .threshold = 0.8,
                                       .judge_ms = 30000,
                                       .judge_failures = 3,
                                       .judge_pause_ms = 60000};
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
        return amp_fail(err, AMP_CONFIG, bad_value, "queue.%s: expected a time of at least %lld ms",
                        key, (long long)least);
    *ms = got;
    return 0;
}

static int integer_load(const json_t *q, const char *key, int64_t *out, struct amp_error *err)
{
    const json_t *v = json_object_get(q, key);

    if (!v)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < 1)
        return amp_fail(err, AMP_CONFIG, bad_value, "queue.%s: expected an integer from 1", key);
    *out = json_integer_value(v);
    return 0;
}

static int overlap_load(const json_t *o, int8_t *out, struct amp_error *err)
{
    AMP_WORDS(words, AMP_OVERLAPS);
    const json_t *v = json_object_get(o, "overlap");

    if (!v)
        return 0;
    int found = amp_word_find(words, amp_span_str(json_string_value(v)));
    if (found >= 0)
        *out = (int8_t)found;
    return found >= 0
               ? 0
               : amp_fail(err, AMP_CONFIG, bad_value,
                          "queue.overlap: expected serialise or ask, of a type also parallel");
}

static int judge_load(const json_t *q, const json_t **out, struct amp_error *err)
{
    const json_t *list = json_object_get(q, "conflict_exec"), *word;
    size_t i;

    if (!list)
        return 0;
    bool good = json_array_size(list) >= 1 && json_array_size(list) <= AMP_JUDGE_ARGS_MAX;
    json_array_foreach (list, i, word)
        good = good && json_is_string(word);
    if (!good)
        return amp_fail(err, AMP_CONFIG, bad_value,
                        "queue.conflict_exec: expected the command and its arguments, 1 to %d "
                        "texts",
                        AMP_JUDGE_ARGS_MAX);
    *out = list;
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
        integer_load(q, "losses", &out->losses_most, err) < 0 ||
        duration_load(q, "conflict_timeout", 1, &out->judge_ms, err) < 0 ||
        duration_load(q, "conflict_pause", 1, &out->judge_pause_ms, err) < 0 ||
        integer_load(q, "conflict_failures", &out->judge_failures, err) < 0 ||
        overlap_load(q, &out->overlap, err) < 0 || judge_load(q, &out->judge_list, err) < 0)
        return -1;
    out->has_max = json_object_get(q, "max_parallel") != NULL;
    if (out->overlap == AMP_OVERLAP_PARALLEL)
        return amp_fail(err, AMP_CONFIG, bad_value,
                        "queue.overlap: parallel is a setting of single types (queue.types)");
    threshold = json_object_get(q, "threshold");
    if (threshold)
        out->threshold = json_is_number(threshold) ? json_number_value(threshold) : -1;
    if (out->threshold < 0 || out->threshold > 1)
        return amp_fail(err, AMP_CONFIG, bad_value, "queue.threshold: expected 0 to 1");
    out->types = types;
    out->overlaps = out->overlap != AMP_OVERLAP_SERIALISE;
    json_object_foreach (types, name, type) {
        int64_t most = 0;
        int8_t overlap = AMP_OVERLAP_SERIALISE;
        if (integer_load(type, "max_parallel", &most, err) < 0 ||
            overlap_load(type, &overlap, err) < 0)
            return -1;
        out->overlaps |= overlap != AMP_OVERLAP_SERIALISE;
    }
    return 0;
}

static enum amp_overlap overlap_of(const struct amp_queue_settings *s, struct amp_span type)
{
    int8_t out = s->overlap;
    struct amp_error e;

    overlap_load(json_object_getn(s->types, type.p, type.n), &out, &e); /* checked by the load */
    return (enum amp_overlap)out;
}

enum amp_overlap amp_queue_overlap(const struct amp_queue_settings *s, struct amp_span type,
                                   struct amp_span other)
{
    enum amp_overlap a = overlap_of(s, type), b = overlap_of(s, other);

    return a == b                                         ? a
           : a == AMP_OVERLAP_ASK || b == AMP_OVERLAP_ASK ? AMP_OVERLAP_ASK
                                                          : AMP_OVERLAP_SERIALISE;
}

int64_t amp_queue_most(const struct amp_queue_settings *s, struct amp_span type)
{
    const json_t *t = json_object_getn(s->types, type.p, type.n);
    const json_t *most = json_object_get(t, "max_parallel");

    return most ? json_integer_value(most) : s->max_parallel;
}

bool amp_queue_limits(const struct amp_queue_settings *s, struct amp_span type)
{
    const json_t *t = json_object_getn(s->types, type.p, type.n);

    return s->has_max || json_object_get(t, "max_parallel");
}
