/* Opens the state directory of a verb. */
#include "shared/state.h"
#include "base/codes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "message/delivery/history/find.h"
#include "message/delivery/sender/head.h"
#include "people/answer/person.h"
#include "people/facts.h"
#include "people/keep.h"

int amp_state_refuse(const struct amp_command *c, struct amp_error *err)
{
    const char *who = c->verb->who;
    const char *self = who && strcmp(who, AMP_WHO_SELF) == 0 ? c->argv[0] : NULL;

    return amp_person_or_self_recorded(c->state, amp_cli_name(), environ, self, c->act, err);
}

int amp_state_open(struct amp_command *c, struct amp_error *err)
{
    const unsigned how = c->opens & AMP_OPENS_STATE;
    const bool given = c->state && *c->state, creates = how >= AMP_OPENS_MADE;
    const struct amp_store_options opt = {.lock_timeout_ms = c->lock_timeout_ms,
                                          .read_only =
                                              how == AMP_OPENS_READ || how == AMP_OPENS_DAMAGED,
                                          .look = how == AMP_OPENS_READ || how == AMP_OPENS_LOOK,
                                          .facts = &amp_facts_all,
                                          .keep = amp_keep_all,
                                          .names = amp_history_names,
                                          .sign_head = amp_head_sign,
                                          .actor = c->actor ? c->actor : amp_cli_name()};

    if (how == AMP_OPENS_NOTHING || (how == AMP_OPENS_GIVEN && !given))
        return 0;
    if (!given)
        amp_die_no_state();
    if (!creates && access(c->state, F_OK) != 0 && errno == ENOENT)
        return amp_fail(err, AMP_UNAVAILABLE, state_missing, "there is no state directory %s",
                        c->state);
    return amp_store_open(c->state, &opt, &c->store, err);
}

void amp_state_close(struct amp_command *c)
{
    amp_store_close(c->store);
    c->store = NULL;
}
