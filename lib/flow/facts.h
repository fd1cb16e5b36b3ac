/* Facts about agents and tasks for lib/message (message/facts.h). */
#ifndef AMP_FLOW_FACTS_H
#define AMP_FLOW_FACTS_H

#include "message/facts.h"

extern const struct amp_message_facts amp_flow_facts;

#endif
