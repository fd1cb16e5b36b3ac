/* Reads the model from the state directory and keeps it up to date with the log. */
#ifndef TOP_READ_H
#define TOP_READ_H

#include "message/delivery/history/history.h"
#include "message/pause/pause.h"
#include "message/store/history/history.h"
#include "model.h"

#define TOP_CHANGES 256 /* changed records of one look; past it the lists are read completely */
#define TOP_WINDOW  96  /* rows of a window */

struct top_change {
    uint8_t pane;
    char id[300];
};

struct top_source {
    struct amp_store *store;
    struct amp_store_place at;
    struct amp_history *history;
    struct amp_pauses pauses;
    struct amp_buf mem;
    struct top_model *m;
    uint64_t after;       /* frames up to this number are older than the activity */
    uint64_t rows, reads; /* counted: log entries, records read again */
    bool loaded;
    /* The records that the log entries since the last look changed. */
    struct top_change change[TOP_CHANGES];
    uint32_t n_change;
    bool all[TOP_PANE_COUNT]; /* read the list completely */
};

/* Reads the latest activity and all lists. s is borrowed. The source must be closed also after a
 * failure. */
int top_source_open(struct top_source *src, struct amp_store *s, struct top_model *m,
                    struct amp_error *err);
void top_source_close(struct top_source *src); /* also of a zeroed struct */
/* Reads the log on, and the records that changed. */
int top_source_follow(struct top_source *src, struct amp_error *err);
/* Moves the window of a list so that it has the row number `row` of its total, if there is one. */
int top_source_window(struct top_source *src, enum top_pane p, uint64_t row, struct amp_error *err);

/* For the files of the reader. */
/* A name of a machine's state for people: "SHUTTING_DOWN" is "shutting down". */
void top_lower(struct amp_span name, char *to, size_t size);
/* Formats what a task has cost so far: "$0.12, 12.3k tokens in, 1.2k out"; "": unknown. */
void top_cost_text(const struct top_model *m, const char *task, char out[80]);
int top_tasks_read(struct top_source *src, struct amp_span id, struct amp_error *err);
int top_agents_read(struct top_source *src, struct amp_span name, struct amp_error *err);
int top_questions_read(struct top_source *src, const char *key, struct amp_error *err);
int top_inboxes_read(struct top_source *src, struct amp_span agent, struct amp_error *err);
/* of: a task, or the id of a message (it has a '/') whose outcome the ledger recorded. */
int top_costs_read(struct top_source *src, struct amp_span of, struct amp_error *err);
int top_messages_read(struct top_source *src, struct amp_error *err);
int top_deadlines_read(struct top_source *src, struct amp_error *err);

#endif
