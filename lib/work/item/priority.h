/* There are 40 priorities, from -19 (first) to 20 (last); the default is 0 (SW4RM §7.1). Other
 * protocols have words and risks for them (task-queue(1)). */
#ifndef AMP_WORK_ITEM_PRIORITY_H
#define AMP_WORK_ITEM_PRIORITY_H

#include <amp/base/buf.h>

/* A word: critical, high, normal, medium, low, in any case. 0; NO bad_priority. */
int amp_priority_of_word(struct amp_span word, int64_t *out, struct amp_error *err);
/* With ageing: the priority of a job that has waited for some time. */
int64_t amp_priority_aged(int64_t priority, int64_t waited_ms, int64_t ageing_ms);

#endif
