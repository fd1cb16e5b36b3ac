/* All metrics, in one list. Names are those of SW4RM §13 where it has one; in OpenMetrics text
 * they begin with "amp_" and have '_' for '.'. */
#ifndef AMP_MESSAGE_METRICS_LIST_H
#define AMP_MESSAGE_METRICS_LIST_H

/* X(id, kind, name, unit, labels, name of label c, help, source)
 * labels: p protocol, a agent, l lane, c the one that the row names.
 * kind: COUNTER (its name ends in _total), GAUGE, TIMES (a histogram of seconds), COUNTS (a
 * histogram of small numbers). */
#define AMP_METRICS_LIST(X)                                                                        \
    X(QUEUE_DEPTH, GAUGE, "router.inbound_queue_depth", "", "a", "",                               \
      "Messages in the agent's inbound buffer", "SW4RM 13")                                        \
    X(QUEUE_CAPACITY, GAUGE, "router.inbound_queue_capacity", "", "a", "",                         \
      "Capacity of the agent's inbound buffer", "SW4RM 13")                                        \
    X(OLDEST_AGE, GAUGE, "router.oldest_enqueued_age_seconds", "seconds", "a", "",                 \
      "Age of the oldest message in the agent's inbound buffer", "SW4RM 13")                       \
    X(CREDITS, GAUGE, "router.credits", "", "a", "",                                               \
      "Messages that the agent accepts until one of them ends", "SW4RM 13.1")                      \
    X(REJECTS, COUNTER, "router.enqueue_rejects_total", "", "ac", "reason",                        \
      "Messages that the agent's inbound buffer refused", "SW4RM 13")                              \
    X(NACKS, COUNTER, "router.nacks_total", "", "pac", "error_code",                               \
      "Negative acknowledgements sent", "SW4RM 13")                                                \
    X(ENQUEUE_LATENCY, TIMES, "router.enqueue_latency_seconds", "seconds", "a", "",                \
      "Time from receiving a message to queueing it", "SW4RM 13")                                  \
    X(DEQUEUE_LATENCY, TIMES, "agent.dequeue_latency_seconds", "seconds", "a", "",                 \
      "Time from queueing a message to handing it over", "SW4RM 13")                               \
    X(PROCESS_TIME, TIMES, "agent.process_time_seconds", "seconds", "a", "",                       \
      "Time from handing a message over to the end of the work", "SW4RM 13")                       \
    X(RECEIVED, COUNTER, "messages.received_total", "", "pl", "", "Messages received", "SW4RM 13") \
    X(SENT, COUNTER, "messages.sent_total", "", "pal", "", "Messages sent", "SW4RM 13")            \
    X(REJECTED, COUNTER, "messages.rejected_total", "", "pc", "error_code", "Messages rejected",   \
      "SW4RM 21")                                                                                  \
    X(ACKED, COUNTER, "messages.acked_total", "", "pac", "stage", "Acknowledgements received",     \
      "SW4RM 11")                                                                                  \
    X(NACKED, COUNTER, "messages.nacked_total", "", "pac", "error_code",                           \
      "Negative acknowledgements received", "SW4RM 11")                                            \
    X(LATE_ACKS, COUNTER, "messages.late_acks_total", "", "pa", "",                                \
      "Acknowledgements after the deadline or the outcome", "SW4RM 11.1")                          \
    X(TIMEOUTS, COUNTER, "messages.timeouts_total", "", "pa", "",                                  \
      "Messages not acknowledged in time", "SW4RM 11")                                             \
    X(RETRIES, COUNTER, "messages.retries_total", "", "pa", "", "Attempts after the first",        \
      "SW4RM 11.3")                                                                                \
    X(RETRY_COUNT, COUNTS, "messages.retry_count", "", "p", "",                                    \
      "Retry count of each message received", "SW4RM 11")                                          \
    X(ACK_LATENCY, TIMES, "messages.ack_latency_seconds", "seconds", "pac", "stage",               \
      "Time from recording a message to its acknowledgement", "SW4RM 13")                          \
    X(DUPLICATES, COUNTER, "messages.duplicates_total", "", "pc", "decision",                      \
      "Messages of an operation that is under way or done", "SW4RM 11.2, 19")                      \
    X(REDELIVERED, COUNTER, "messages.redelivered_total", "", "pa", "",                            \
      "Messages received or sent again with the same id", "SW4RM 11.3")                            \
    X(DEAD_LETTERS, COUNTER, "messages.dead_letters_total", "", "pac", "error_code",               \
      "Messages that became dead letters", "SW4RM 21.1")                                           \
    X(ESCALATIONS, COUNTER, "messages.escalations_total", "", "c", "escalation",                   \
      "Escalations to a person", "SW4RM 15")                                                       \
    X(URGENT, COUNTER, "router.urgent_dispatches_total", "", "a", "",                              \
      "Messages sent through the urgent lane", "SW4RM 19")                                         \
    X(URGENT_BURSTS, COUNTER, "router.urgent_bursts_total", "", "a", "",                           \
      "Times that an agent exceeded its rate of the urgent lane", "SW4RM 19")                      \
    X(URGENT_OVERFLOW, COUNTER, "router.urgent_overflow_total", "", "a", "",                       \
      "Urgent messages sent through the standard lane", "SW4RM 7.3")                               \
    X(STARVATION, COUNTER, "router.starvation_warnings_total", "", "l", "",                        \
      "Times that a lane waited too long", "SW4RM 19")                                             \
    X(CURSOR_POSITION, GAUGE, "cursor.position", "", "ac", "source",                               \
      "Number up to which the consumer has read the source", "Runtime Protocol 6")                 \
    X(CURSOR_LAG, GAUGE, "cursor.lag", "", "ac", "source",                                         \
      "Numbers after the cursor that are missing or waiting", "Runtime Protocol 6")                \
    X(CURSOR_WAITING, GAUGE, "cursor.waiting", "", "ac", "source", "Events waiting behind a gap",  \
      "Runtime Protocol 6")                                                                        \
    X(CURSOR_WATERMARK, GAUGE, "cursor.watermark", "", "c", "source",                              \
      "Number up to which every active consumer has read the source", "Runtime Protocol 6")        \
    X(CURSOR_GAPS, COUNTER, "cursor.gaps_total", "", "ac", "source", "Gaps found",                 \
      "Runtime Protocol 6")                                                                        \
    X(CURSOR_TIMEOUTS, COUNTER, "cursor.gap_timeouts_total", "", "ac", "source",                   \
      "Gaps not filled in time", "Runtime Protocol 6")                                             \
    X(CURSOR_GIVEN_UP, COUNTER, "cursor.given_up_total", "", "ac", "source",                       \
      "Numbers skipped or replaced by a tombstone", "Runtime Protocol 6")                          \
    X(CURSOR_EXPIRIES, COUNTER, "cursor.lease_expiries_total", "", "ac", "source",                 \
      "Expired leases of consumers", "Runtime Protocol 6")                                         \
    X(ACTIVITY, GAUGE, "activity.entries", "", "", "", "Executions in the activity buffer",        \
      "SW4RM 10.1")                                                                                \
    X(ACTIVITY_FILL, GAUGE, "activity.fill_percent", "", "", "",                                   \
      "Share of activity.max that is used; from 80 on it is a warning", "SW4RM 10.1")              \
    X(TOOL_FRAMES, COUNTER, "tool.frames_total", "", "a", "", "TOOL_RESULT messages received",     \
      "SW4RM 19")                                                                                  \
    X(TOOL_BYTES, COUNTER, "tool.bytes_total", "bytes", "a", "",                                   \
      "Payload bytes of TOOL_RESULT messages", "SW4RM 19")                                         \
    X(DEADLINES, COUNTER, "watch.deadlines_total", "", "c", "kind", "Deadlines handled",           \
      "SW4RM 19")                                                                                  \
    X(OTHER_SETS, COUNTER, "metrics.other_total", "", "", "",                                      \
      "Values counted under other because there were too many label sets", "")

enum amp_metric {
#define X(id, kind, name, unit, labels, code, help, source) AMP_METRIC_##id,
    AMP_METRICS_LIST(X)
#undef X
        AMP_METRIC_N
};
enum amp_metric_kind {
    AMP_METRIC_COUNTER,
    AMP_METRIC_GAUGE,
    AMP_METRIC_TIMES,
    AMP_METRIC_COUNTS,
};
struct amp_metric_spec {
    const char *name, *unit, *labels, *code, *help, *source;
    enum amp_metric_kind kind;
};
extern const struct amp_metric_spec amp_metric_specs[AMP_METRIC_N];

#endif
