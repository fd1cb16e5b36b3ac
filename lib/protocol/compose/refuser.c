/* The name and the numbers of refusals. */
#include "protocol/compose/refuser.h"

#include <stdatomic.h>
#include <stdio.h>

#include <amp/base/id.h>

int64_t amp_refuse_number(int64_t now_ms, char who[AMP_REFUSER_MAX])
{
    static atomic_uint threads;
    static _Thread_local unsigned thread;
    if (thread == 0)
        thread = atomic_fetch_add(&threads, 1) + 1;
    if (thread == 1)
        snprintf(who, AMP_REFUSER_MAX, AMP_REFUSER);
    else
        snprintf(who, AMP_REFUSER_MAX, AMP_REFUSER "-%u", thread);
    return amp_id_number(now_ms);
}
