/*
 * A conversation as a Mermaid sequence diagram: participants, an arrow for each message and
 * acknowledgement, a note for every other event. Names and texts are untrusted: every character
 * except plain letters, digits and signs is written as an entity, so that none is parsed as syntax.
 */
#ifndef AMP_MESSAGE_HISTORY_DIAGRAM_H
#define AMP_MESSAGE_HISTORY_DIAGRAM_H

#include "message/history/history.h"

struct amp_diagram;
/* limit: of arrows and notes, 0: 2000. A last note has the number of omitted ones. */
struct amp_diagram *amp_diagram_new(uint32_t limit, struct amp_error *err);
void amp_diagram_free(struct amp_diagram *d);
int amp_diagram_row(struct amp_diagram *d, const struct amp_history_row *r, struct amp_error *err);
/* Appends the complete text. */
int amp_diagram_write(const struct amp_diagram *d, struct amp_buf *out, struct amp_error *err);

/* Appends text, escaped for the diagram; after `most` characters it is cut with "…". */
int amp_diagram_text(struct amp_span text, unsigned most, struct amp_buf *out,
                     struct amp_error *err);

#endif
