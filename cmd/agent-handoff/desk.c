/* The state, the outbox and the output of a verb of handoffs. */
#include "handoff.h"

#include <stdio.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "shared/work/tool.h"

#define PENDING_MAX ((size_t)256 << 20) /* bytes of unwritten output */

int handoff_desk_open(struct handoff_desk *d, struct amp_store *store, const char *box,
                      const char *principal, struct amp_error *err)
{
    const struct amp_identity_tool who = {
        .state = amp_tool_state, .config = amp_tool_config, .principal = principal};

    snprintf(d->box_name, sizeof d->box_name, "%s", box);
    d->h = (struct amp_handoffs){
        .store = store, .box = d->box_name, .service = "coordinator", .now_ms = amp_now_ms()};
    if (amp_outbox_lock(d->h.store, d->box_name, amp_tool_lock_timeout, &d->lock, err) < 0 ||
        amp_outq_open(&d->out, STDOUT_FILENO, false, PENDING_MAX, err) < 0)
        return -1;
    if (amp_principal_is(amp_span_str(principal)) &&
        amp_identity_cli_open(&amp_tool_identity, &who, &d->ids, err) < 0)
        return -1;
    d->box = (struct amp_outbox){
        .store = d->h.store, .name = d->box_name, .ids = d->ids, .out = &d->out};
    return 0;
}

int handoff_desk_finish(struct handoff_desk *d, struct amp_error *err)
{
    return amp_store_sync(d->h.store, err) < 0 ? -1 : amp_outbox_finish(&d->box, &amp_stop, err);
}

void handoff_desk_close(struct handoff_desk *d)
{
    if (d->out.fd >= 0)
        amp_outq_close(&d->out);
    amp_outbox_release(&d->box);
    amp_identities_close(d->ids);
    if (d->lock >= 0)
        close(d->lock);
}
