/* Refusals of agents, recorded. */
#include "people/answer/person.h"
#include "message/delivery/history/find.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include <amp/protocol/protocol.h>

#include "message/store/store.h"
#include "people/facts.h"
#include "people/keep.h"
#include "work/git/person.h"

#define RECORD_MAX   (64u << 10)
#define LOCK_WAIT_MS 2000

/* A record that cannot be written changes nothing: the action is refused in any case. */
static void refusal_record(const char *state, const char *tool, const struct amp_error *why)
{
    AMP_BUF struct amp_buf record = {0};
    char log[PATH_MAX];
    struct amp_store *store;
    const struct amp_store_options opt = {.lock_timeout_ms = LOCK_WAIT_MS,
                                          .facts = &amp_facts_all,
                                          .keep = amp_keep_all,
                                          .names = amp_history_names,
                                          .actor = tool};
    const struct amp_line_place at = {.tool = tool, .line = 1, .now_ms = amp_now_ms()};
    const struct amp_finding f = {.severity = AMP_SEV_ERROR,
                                  .type = AMP_SPAN(""),
                                  .id = AMP_SPAN(""),
                                  .code = why->code,
                                  .field = "",
                                  .pointer = "",
                                  .rule = "people_only",
                                  .message = why->what,
                                  .found = "",
                                  .expected = ""};

    int n = snprintf(log, sizeof log, "%s/log", state);
    if (n < 0 || (size_t)n >= sizeof log || access(log, F_OK) != 0)
        return;
    amp_buf_init(&record, RECORD_MAX);
    if (amp_store_open(state, &opt, &store, NULL) < 0)
        return;
    if (amp_finding_record(&f, &at, &record, NULL) == 0)
        amp_store_error_log(store, amp_buf_span(&record), NULL);
    amp_store_close(store);
}

int amp_person_or_self_recorded(const char *state, const char *tool, char *const *envp,
                                const char *name, const char *act, struct amp_error *err)
{
    if (amp_person_or_self(envp, name, act, err) == 0)
        return 0;
    if (state && *state)
        refusal_record(state, tool, err);
    return -1;
}

int amp_person_only_recorded(const char *state, const char *tool, char *const *envp,
                             const char *act, struct amp_error *err)
{
    return amp_person_or_self_recorded(state, tool, envp, NULL, act, err);
}
