/* Finds from the options what is enforced. */
#include "work/confine/confinement.h"

#include "base/codes.h"
#include "work/confine/effective.h"

static int demand_find(const struct amp_confinement_args *a, enum amp_confine_demand *out,
                       struct amp_error *err)
{
    if (a->require + a->best_effort + a->unconfined > 1)
        return amp_fail(err, AMP_USAGE, bad_value,
                        "--require, --best-effort and --unconfined exclude each other");
    if (a->require || a->best_effort || a->unconfined)
        *out = a->unconfined    ? AMP_CONFINE_OFF
               : a->best_effort ? AMP_CONFINE_BEST_EFFORT
                                : AMP_CONFINE_REQUIRE;
    else if (!a->demand || !*a->demand)
        *out = AMP_CONFINE_REQUIRE;
    else if (!amp_confine_demand_find(amp_span_str(a->demand), out))
        return amp_fail(err, AMP_USAGE, bad_value,
                        "AMP_CONFINE is \"%s\" (expected require, best-effort or off)", a->demand);
    return 0;
}

static int grants_add(struct amp_confine_policy *policy, enum amp_confine_grant kind,
                      const char *const *v, int n, struct amp_error *err)
{
    for (int i = 0; i < n; i++)
        if (amp_confine_policy_add(policy, kind, amp_span_str(v[i]), err) < 0)
            return -1;
    return 0;
}

static int level_choose(const struct amp_confinement_args *a, struct amp_confine_policy *policy,
                        struct amp_confine_report *report, struct amp_error *err)
{
    enum amp_confine_demand demand;

    if (demand_find(a, &demand, err) < 0 ||
        grants_add(policy, AMP_GRANT_READ, a->read, a->n_read, err) < 0 ||
        grants_add(policy, AMP_GRANT_WRITE, a->write, a->n_write, err) < 0)
        return -1;
    if (a->network && !amp_network_find(amp_span_str(a->network), &policy->network))
        return amp_fail(err, AMP_USAGE, bad_value, "unknown network policy \"%s\"", a->network);
    if (a->access.p && amp_access_restrict_text(a->access, policy, err) < 0)
        return -1;
    return amp_confine_choose(demand, policy, report, err);
}

static int report_note(const struct amp_confine_report *report, void (*note)(const char *fmt, ...),
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf lacks = {0};

    if (report->demand == AMP_CONFINE_OFF) {
        note("not confined: the agent can do what this user can, also what is reserved for people");
        return 0;
    }
    if (report->network == AMP_NETWORK_FULL_ACCESS)
        note("the network policy FULL_ACCESS allows every connection, also inbound ones");
    if (!report->lacks)
        return 0;
    amp_buf_init(&lacks, 4096);
    if (amp_confine_lacks_text(report, &lacks, err) < 0)
        return -1;
    note("confined only in part; not enforced: %.*s", (int)lacks.len, lacks.data);
    return 0;
}

int amp_confinement_choose(const struct amp_confinement_args *a, void (*note)(const char *fmt, ...),
                           struct amp_confine_policy *policy, struct amp_confine_report *report,
                           struct amp_error *err)
{
    struct amp_confine_policy mine;

    amp_confine_policy_init(&mine);
    if ((a->policy && amp_confine_policy_read(a->policy, &mine, err) < 0) ||
        level_choose(a, &mine, report, err) < 0 || report_note(report, note, err) < 0) {
        amp_confine_policy_release(&mine);
        return -1;
    }
    *policy = mine;
    return 0;
}
