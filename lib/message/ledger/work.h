/*
 * AMP's work: a task_dispatch or review_request. After it is READ, its holder must give signs of
 * life until it has an outcome (AMP/1.0: 30 min without one is a heartbeat_timeout).
 */
#ifndef AMP_MESSAGE_LEDGER_WORK_H
#define AMP_MESSAGE_LEDGER_WORK_H

#include "message/record/record.h"

/* Whether the record is of work that is watched after it is READ. Messages to the coordinator are
 * not, because it passes the work on. */
bool amp_work_is(const struct amp_message_rec *r);
/* Whether `by` (an agent or its role) holds the work, as far as this is known. */
bool amp_work_holds(const struct amp_message_rec *r, const char *by);

#endif
