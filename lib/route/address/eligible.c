/* Which agents offer what a message requires, by the index records of the capabilities. */
#include "route/address/eligible.h"

#include <string.h>

#include "agent/capability.h"

static const char *text(const json_t *j, const char *key)
{
    return json_string_value(json_object_get(j, key));
}

static bool same_major(struct amp_span a, struct amp_span b)
{
    const char *x = memchr(a.p, '.', a.n), *y = memchr(b.p, '.', b.n);
    return x && y && x - a.p == y - b.p && memcmp(a.p, b.p, (size_t)(x - a.p)) == 0;
}

/* Whether the skill of those who ask goes with that of the owner. */
static bool skills_fit(const json_t *catalog)
{
    const char *mode = text(catalog, "compatibilityMode");
    struct amp_span asks = amp_span_str(
                        text(json_object_get(catalog, "delegationSkillRef"), "version")),
                    does =
                        amp_span_str(text(json_object_get(catalog, "executorSkillRef"), "version"));
    if (!mode || asks.n == 0 || does.n == 0)
        return true;
    int c = amp_semver_compare(does, asks);
    if (strcmp(mode, "strict") == 0)
        return c == 0;
    return c >= 0 && (strcmp(mode, "backward") != 0 || same_major(does, asks));
}

int amp_eligible_refuse(struct amp_error *err, const char *code, struct amp_span cap,
                        const char *why)
{
    return amp_fail(err, AMP_NO, code, "%.*s %s", (int)(cap.n < 160 ? cap.n : 160), cap.p, why);
}

/* Those of `eligible` that the capability's index names too. */
static int narrow(struct amp_store *s, struct amp_span cap, json_t **eligible,
                  struct amp_error *err)
{
    json_t *rec = NULL, *both, *x, *y;
    size_t i, k;
    if (amp_capability_find(s, cap, &rec, err) < 0)
        return -1;
    const json_t *catalog = json_object_get(rec, "catalog");
    const char *status = text(catalog, "status");
    int rc = 0;
    if (!rec)
        rc = amp_eligible_refuse(err, "no_route", cap, "was never published");
    else if (status && strcmp(status, "disabled") == 0)
        rc = amp_eligible_refuse(err, "capability_unavailable", cap, "is disabled");
    else if (!skills_fit(catalog))
        rc = amp_eligible_refuse(err, "version_incompatible", cap,
                                 "has a delegation skill that does not go with its executor skill");
    both = json_array();
    json_array_foreach(json_object_get(json_object_get(rec, "index"), "eligibleAgentIds"), i, x)
    {
        bool had = !*eligible;
        json_array_foreach(*eligible, k, y)
        {
            had = had || json_equal(x, y);
        }
        if (had)
            json_array_append(both, x);
    }
    json_decref(*eligible);
    *eligible = both;
    json_decref(rec);
    return rc;
}

int amp_eligible_find(struct amp_store *s, const struct amp_spans *wanted, json_t **eligible,
                      struct amp_error *err)
{
    int rc = 0;
    *eligible = NULL;
    if (!s)
        return amp_eligible_refuse(err, "no_route", wanted->v[0],
                                   "cannot be looked up: there is no state directory");
    for (uint32_t k = 0; k < wanted->n && rc == 0; k++)
        rc = narrow(s, wanted->v[k], eligible, err);
    if (rc == 0 && json_array_size(*eligible) == 0)
        rc = amp_eligible_refuse(err, "no_route", wanted->v[0],
                                 "and what else is required is offered by no agent");
    return rc;
}
