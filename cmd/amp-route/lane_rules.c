/* The limits of the lanes: lanes.* of amp.json, then --lane KEY=N. */
#include "cli/config.h"
#include "wiring.h"

#include <stddef.h>
#include <string.h>

#include <amp/base/num.h>

#include "base/codes.h"

#define AT(member) offsetof(struct amp_lane_rules, member)

/* The fields are int64_t if `wide`, else uint32_t. */
static const struct {
    const char *key, *path;
    size_t at;
    bool wide;
    int64_t min, max;
} keys[] = {
    {"privileged_priority", "lanes.privileged_priority", AT(urgent_to), true, -21, 20},
    {"bulk_priority", "lanes.bulk_priority", AT(bulk_from), true, -20, 21},
    {"standard_weight", "lanes.standard_weight", AT(weight[AMP_LANE_STANDARD]), false, 1, 1000},
    {"bulk_weight", "lanes.bulk_weight", AT(weight[AMP_LANE_BULK]), false, 1, 1000},
    {"privileged_rate", "lanes.privileged_rate", AT(urgent_rate), false, 0, 1000000},
    {"privileged_burst", "lanes.privileged_burst", AT(urgent_burst), false, 0, 1000000},
    {"privileged_run", "lanes.privileged_run", AT(urgent_run), false, 1, 1000000},
    {"privileged_places", "lanes.privileged_places", AT(urgent_places), false, 0, 1000},
    {"starved_ms", "lanes.starved_ms", AT(starved_ms), true, 1, 86400000},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

struct setting {
    struct amp_lane_rules *rules;
    size_t key;
};

static int setting_apply(void *arg, const char *text, struct amp_error *err)
{
    const struct setting *s = arg;
    char *at = (char *)s->rules + keys[s->key].at;
    int64_t n;
    if (amp_num_parse(amp_span_str(text), keys[s->key].min, keys[s->key].max, &n, NULL) < 0)
        return amp_fail(err, AMP_USAGE, bad_lane, "%s is a number from %lld to %lld, not \"%.40s\"",
                        keys[s->key].key, (long long)keys[s->key].min, (long long)keys[s->key].max,
                        text);
    if (keys[s->key].wide)
        *(int64_t *)(void *)at = n;
    else
        *(uint32_t *)(void *)at = (uint32_t)n;
    return 0;
}

static int given_one(struct amp_lane_rules *rules, const char *text, struct amp_error *err)
{
    const char *eq = strchr(text, '=');
    for (size_t i = 0; eq && i < N_KEYS; i++) {
        size_t n = strlen(keys[i].key);
        if ((size_t)(eq - text) == n && strncmp(text, keys[i].key, n) == 0)
            return setting_apply(&(struct setting){rules, i}, eq + 1, err);
    }
    return amp_fail(err, AMP_USAGE, bad_lane, "--lane takes KEY=N, not \"%.60s\"", text);
}

int lanes_set(const char *config, const char *state, const char *const *given, int n,
              struct amp_lane_rules *out, struct amp_error *err)
{
    struct amp_lane_rules rules = amp_lane_rules_default;
    for (size_t i = 0; i < N_KEYS; i++)
        if (amp_config_values(config, state, keys[i].path, setting_apply,
                              &(struct setting){&rules, i}, err) < 0)
            return -1;
    for (int i = 0; i < n; i++)
        if (given_one(&rules, given[i], err) < 0)
            return -1;
    if (rules.urgent_to >= rules.bulk_from)
        return amp_fail(err, AMP_USAGE, bad_lane,
                        "privileged_priority must be below bulk_priority");
    *out = rules;
    return 0;
}
