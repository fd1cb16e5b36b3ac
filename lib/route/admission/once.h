/* The router's part in doing an operation once. */
#ifndef AMP_ROUTE_ONCE_H
#define AMP_ROUTE_ONCE_H

#include "route/router/router.h"

/* The admit step: claims the operation, or answers. */
step_fn amp_once_admit;

#endif
