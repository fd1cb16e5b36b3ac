/* Metrics of the router; nothing is counted where none are kept. */
#ifndef AMP_ROUTE_COUNT_H
#define AMP_ROUTE_COUNT_H

#include "route/job.h"
#include "route/run.h"

/* A message came in. */
void amp_route_count_taken(struct amp_route_run *run, const struct job *j,
                           const struct amp_view *v);
void amp_route_count_job(struct amp_route_run *run, enum amp_metric which, const char *port,
                         const struct job *j);
void amp_route_count_refused(struct amp_route_run *run, const char *port, const struct job *j,
                             const char *code);
/* The same without an answer to the sender. */
void amp_route_count_denied(struct amp_route_run *run, const struct job *j, const char *code);
void amp_route_count_placed(struct amp_route_run *run, const char *port, const struct job *j);
void amp_route_count_waited(struct amp_route_run *run, const char *port, int64_t ms);
/* The present values of an agent's inbox; of others too, the state has them. */
int amp_route_count_inbox(struct amp_metrics *m, const char *label, struct amp_store *store,
                          struct amp_span agent, struct amp_error *err);

#endif
