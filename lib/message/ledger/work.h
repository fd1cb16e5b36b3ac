/*
 * AMP's work: a task_dispatch or review_request. Once it was read its holder is expected to give a
 * sign of life until it has an outcome (the protocol: an agent without one for 30 min is a
 * heartbeat_timeout).
 */
#ifndef AMP_MESSAGE_LEDGER_WORK_H
#define AMP_MESSAGE_LEDGER_WORK_H

#include "message/record/record.h"

/* Whether the record is of work that is watched once it is read. Not what the coordinator gets: it
 * hands the work on. */
bool amp_work_is(const struct amp_message_rec *r);
/* Whether `by` (an agent or its role) holds the work, as far as that can be told. */
bool amp_work_holds(const struct amp_message_rec *r, const char *by);

#endif
