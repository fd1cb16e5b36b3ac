/* The rows of a drawing, the deliveries in them, and a writer of SVG. */
#ifndef AMP_MESSAGE_HISTORY_DRAW_PRIVATE_H
#define AMP_MESSAGE_HISTORY_DRAW_PRIVATE_H

#include "message/history/diagram.h"
#include "message/history/draw/draw.h"

struct draw_row {
    uint64_t n;
    enum amp_history_what what;
    int64_t at_ms;
    struct amp_span kind, id, agent, event, from, to, actor, correlation, task, protocol, type,
        sender, recipient, stage, by, code, original;
    int64_t attempt;
    bool late;
};

/* The delivery of a message. Times are 0 if unknown. */
struct draw_delivery {
    struct amp_span id, type, task, correlation, protocol, sender, recipient, original, state, code;
    int64_t attempt;
    int64_t sent_ms, acked_ms, read_ms, end_ms;
};

struct draw_block;
struct amp_drawing {
    struct draw_row *row;
    size_t n, cap;
    uint32_t limit, left_out;
    struct draw_block *block; /* the texts */
    struct draw_delivery *delivery;
    size_t n_delivery, cap_delivery;
    uint32_t *slot; /* deliveries by id; number + 1, 0 free */
    size_t slots;
    bool made;
    int64_t first_ms, last_ms;
};

/* Makes the deliveries from the rows, once. */
int draw_deliveries(struct amp_drawing *d, struct amp_error *err);
bool draw_failed(const struct draw_delivery *m);

/* A list of different names, in the order of their first use. */
struct draw_names {
    struct amp_span *v;
    size_t n, cap, most; /* beyond most - 1 names, the last one is "others" */
};
int draw_name(struct draw_names *names, struct amp_span name, size_t *number,
              struct amp_error *err);

/* ---- SVG ---- */

/* Appends text for XML and HTML; after `most` characters it is cut with "…". */
int draw_escape(struct amp_span text, unsigned most, struct amp_buf *out, struct amp_error *err);
/* anchor: start, middle or end. */
int draw_text(struct amp_buf *out, double x, double y, const char *class, const char *anchor,
              struct amp_span text, unsigned most, struct amp_error *err);
int draw_line(struct amp_buf *out, double x1, double y1, double x2, double y2, const char *class,
              struct amp_error *err);
int draw_rect(struct amp_buf *out, double x, double y, double w, double h, const char *class,
              struct amp_span hint, struct amp_error *err);
/* The colours and classes, without <style>. */
extern const char draw_style[];
/* The charts that a drawing has. */
struct draw_size {
    double width, height;
};
/* Each appends a <g> that begins at (0, y), and sets the size that it needs. */
int draw_sequence(struct amp_drawing *d, double y, struct amp_buf *out, struct draw_size *size,
                  struct amp_error *err);
int draw_gantt(struct amp_drawing *d, double y, struct amp_buf *out, struct draw_size *size,
               struct amp_error *err);
int draw_depth(struct amp_drawing *d, double y, struct amp_buf *out, struct draw_size *size,
               struct amp_error *err);
int draw_latency(struct amp_drawing *d, double y, struct amp_buf *out, struct draw_size *size,
                 struct amp_error *err);
/* A complete <svg> element with one or several of them; root: a document of its own. */
enum draw_part { DRAW_SEQUENCE, DRAW_GANTT, DRAW_DEPTH, DRAW_LATENCY, DRAW_PARTS };
int draw_svg(struct amp_drawing *d, const enum draw_part *parts, size_t n, bool root,
             struct amp_span title, struct amp_buf *out, struct amp_error *err);
/* A moment in local time, "2026-11-23 07:14:02". */
void draw_moment(int64_t ms, char out[32]);
void draw_clock(int64_t ms, int64_t span_ms, char out[32]);
/* "3.2 s" */
void draw_duration(double ms, char out[32]);

#endif
