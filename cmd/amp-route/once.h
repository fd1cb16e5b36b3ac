/* The router's part in doing an operation once. */
#ifndef AMP_ROUTE_ONCE_H
#define AMP_ROUTE_ONCE_H

#include "router.h"

/* The admit step: claims the operation, or answers. */
step_fn once_admit;
extern int64_t once_window_ms; /* how long an outcome is told */

#endif
