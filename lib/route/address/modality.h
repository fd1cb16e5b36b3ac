/* Modalities (SW4RM §12): which content types an agent's registration says that it takes. */
#ifndef AMP_ROUTE_MODALITY_H
#define AMP_ROUTE_MODALITY_H

#include <amp/base/buf.h>

#include "store/store.h"

/* 1: the agent takes it, or has not said what it takes; 0: it does not; -1. */
int amp_modality_takes(struct amp_store *s, struct amp_span agent, struct amp_span content_type,
                       struct amp_error *err);

#endif
