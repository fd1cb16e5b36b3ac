/* The rate of each producer (SW4RM §13.1): a bucket of tokens for each sender, so that one of them
 * does not monopolize the router. */
#ifndef AMP_MESSAGE_ROUTE_ADMISSION_PRODUCERS_H
#define AMP_MESSAGE_ROUTE_ADMISSION_PRODUCERS_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

#define AMP_PRODUCERS_MAX 4096 /* beyond it, the one that was silent longest is forgotten */

struct amp_producers;
/* rate: messages per second; burst: messages at once, at least 1. */
int amp_producers_new(uint32_t rate, uint32_t burst, struct amp_producers **out,
                      struct amp_error *err);
void amp_producers_free(struct amp_producers *p);
/* Uses a token of the sender. 1: it had one; 0: it exceeds its rate; -1: out of memory. */
int amp_producers_take(struct amp_producers *p, struct amp_span sender, int64_t now_ms,
                       struct amp_error *err);

#endif
