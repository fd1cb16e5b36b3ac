/*
 * A conversation as a Mermaid sequence diagram: participants, an arrow for each message and
 * acknowledgement, notes for what happens without one. Names and texts are untrusted: whatever is
 * not a plain letter, digit or sign stands as an entity, so that nothing of them is read as syntax.
 */
#ifndef AMP_MESSAGE_HISTORY_DIAGRAM_H
#define AMP_MESSAGE_HISTORY_DIAGRAM_H

#include "message/history/history.h"

struct amp_diagram;
/* limit: arrows and notes at most, 0: 2000; what is left out is counted in a last note. */
struct amp_diagram *amp_diagram_new(uint32_t limit, struct amp_error *err);
void amp_diagram_free(struct amp_diagram *d);
int amp_diagram_row(struct amp_diagram *d, const struct amp_history_row *r, struct amp_error *err);
/* Appends the whole text. */
int amp_diagram_write(const struct amp_diagram *d, struct amp_buf *out, struct amp_error *err);

/* Appends text as it may stand in the diagram, at most `most` characters of it, then "…". */
int amp_diagram_text(struct amp_span text, unsigned most, struct amp_buf *out,
                     struct amp_error *err);

#endif
