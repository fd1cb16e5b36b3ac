/* Facts about agents and tasks for lib/message/delivery (message/facts.h). */
#ifndef AMP_PEOPLE_FACTS_H
#define AMP_PEOPLE_FACTS_H

#include "message/delivery/facts.h"

extern const struct amp_message_facts amp_facts_all;

#endif
