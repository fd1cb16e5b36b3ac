/* Metrics of the router; nothing is counted where none are kept. */
#ifndef AMP_ROUTE_COUNT_H
#define AMP_ROUTE_COUNT_H

#include "job.h"
#include "metrics/metrics.h"

/* A message came in. */
void count_taken(struct router *r, const struct job *j, const struct amp_view *v);
void count_job(struct router *r, enum amp_metric which, const char *port, const struct job *j);
void count_refused(struct router *r, const char *port, const struct job *j, const char *code);
/* The same without an answer to the sender. */
void count_denied(struct router *r, const struct job *j, const char *code);
void count_placed(struct router *r, const char *port, const struct job *j);
void count_waited(struct router *r, const char *port, int64_t ms);
/* The present values of an agent's inbox; of others too, the state has them. */
int count_inbox(struct amp_metrics *m, const char *label, struct amp_store *store,
                struct amp_span agent, struct amp_error *err);
void count_turn(struct router *r);
int count_end(struct router *r, struct amp_error *err);

#endif
