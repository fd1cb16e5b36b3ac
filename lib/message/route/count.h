/* The metrics of the router (--metrics), those of SW4RM §13 by port. Without --metrics nothing is
 * counted. */
#ifndef AMP_MESSAGE_ROUTE_COUNT_H
#define AMP_MESSAGE_ROUTE_COUNT_H

#include "message/route/parcel.h"
#include "message/route/run.h"

void amp_route_count_parcel(struct amp_route_run *run, enum amp_metric which, const char *port,
                            const struct parcel *j);
void amp_route_count_code(struct amp_route_run *run, enum amp_metric which, const char *port,
                          const struct parcel *j, const char *code);
void amp_route_count_placed(struct amp_route_run *run, const char *port, const struct parcel *j);
void amp_route_count_waited(struct amp_route_run *run, const char *port, int64_t ms);
/* Sets the gauges of an agent's inbox. */
int amp_route_count_inbox(struct amp_metrics *m, const char *label, struct amp_store *store,
                          struct amp_span agent, struct amp_error *err);

#endif
