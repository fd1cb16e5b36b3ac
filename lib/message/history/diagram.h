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

/* What a row is in a diagram: an arrow or a note over one or two participants, with words. Spans
 * are those of the row. false: it is book-keeping. */
enum amp_diagram_is {
    AMP_DIAGRAM_NOTE,    /* over `from`, and `to` unless it is empty */
    AMP_DIAGRAM_MESSAGE, /* from → to */
    AMP_DIAGRAM_REPLY,
    AMP_DIAGRAM_REFUSAL,
    AMP_DIAGRAM_ANSWER, /* a line that was emitted */
};
struct amp_diagram_step {
    enum amp_diagram_is is;
    struct amp_span from, to, word[6];
    size_t n;
};
bool amp_diagram_step(const struct amp_history_row *r, struct amp_diagram_step *out);

/* Appends text, escaped for the diagram; after `most` characters it is cut with "…". */
int amp_diagram_text(struct amp_span text, unsigned most, struct amp_buf *out,
                     struct amp_error *err);

#endif
