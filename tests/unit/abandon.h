/* A store whose process is killed. */
#ifndef TESTS_ABANDON_H
#define TESTS_ABANDON_H

#include "message/store/store_int.h"

/* Closes what the kernel closes for a killed process: what was not synced is not. */
static inline void store_abandon(struct amp_store *s)
{
    s->appended = false;
    amp_store_close(s);
}

#endif
