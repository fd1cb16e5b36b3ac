/* Says which records are final, for retention (store/keep/keep.h). */
#ifndef AMP_PEOPLE_KEEP_H
#define AMP_PEOPLE_KEEP_H

#include "message/store/store.h"

extern const struct amp_keep amp_keep_all[];

#endif
