/*
 * Drawings of a history: rows are collected, then written as SVG (a sequence diagram; the agents'
 * times of work, the messages that were open, how long acknowledgements took), as one HTML page
 * that needs nothing else, as a graph for dot(1), or as traces for OpenTelemetry (OTLP/JSON).
 * Texts of messages are untrusted: each format escapes them.
 */
#ifndef AMP_MESSAGE_HISTORY_DRAW_DRAW_H
#define AMP_MESSAGE_HISTORY_DRAW_DRAW_H

#include "message/history/history.h"

struct amp_drawing;
/* limit: rows that are kept; later ones are counted and left out, and the drawing says how many. */
struct amp_drawing *amp_drawing_new(uint32_t limit, struct amp_error *err);
void amp_drawing_free(struct amp_drawing *d);
int amp_drawing_row(struct amp_drawing *d, const struct amp_history_row *r, struct amp_error *err);

/* Each appends a complete document. conversation: the rows are of one conversation, so a sequence
 * diagram is drawn; otherwise the charts. title: for people, untrusted. */
int amp_drawing_svg(struct amp_drawing *d, bool conversation, struct amp_span title,
                    struct amp_buf *out, struct amp_error *err);
int amp_drawing_html(struct amp_drawing *d, bool conversation, struct amp_span title,
                     struct amp_buf *out, struct amp_error *err);
/* The states that the tasks went through, and who sent what to whom. */
int amp_drawing_dot(struct amp_drawing *d, struct amp_buf *out, struct amp_error *err);
/* A trace for each task (or correlation, or message without one), a span for each message and each
 * further attempt at it, events for its transitions. The ids are digests of the names, so a second
 * export gives the same ids. */
int amp_drawing_otlp(struct amp_drawing *d, struct amp_buf *out, struct amp_error *err);

#endif
