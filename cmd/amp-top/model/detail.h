/* The text behind a row: the story of a task, the work and the worktree of an agent, the evidence
 * for a question, the messages of an inbox, a message. */
#ifndef TOP_DETAIL_H
#define TOP_DETAIL_H

#include "read.h"

/* A line may lead to one of these objects, by a key. */
enum top_link {
    TOP_TO_NOTHING,
    TOP_TO_TASK,    /* an id */
    TOP_TO_INBOX,   /* an agent */
    TOP_TO_INBOXED, /* a message, by its id in the inbox of the text's `of` */
};

#define TOP_LABEL_MAX 24
/* A paragraph: a short label in a column of its own, and a text, which is wrapped. Texts are as
 * they were recorded: the view makes them safe. */
struct top_line {
    uint8_t tone, label_tone;
    uint8_t indent; /* columns of the text */
    uint8_t to;     /* enum top_link */
    char label[TOP_LABEL_MAX];
    char *text, *key;
};

struct top_text {
    char title[120];
    struct top_line *v;
    size_t n, cap;
    int label; /* columns of the widest label */
    char of[300];
    bool failed;
    /* A question's key, its answers and the form of an answer. */
    char question[1200];
    char answers[200], form[200];
};
void top_text_release(struct top_text *t); /* also of a zeroed struct */
void top_text_add(struct top_text *t, uint8_t label_tone, const char *label, uint8_t tone,
                  int indent, struct amp_span text);

/* Reads what is behind a row of a list. t is released first; after a failure it has the reason.
 * opened: the person opened it; else the history of a message is left out. */
void top_detail_read(struct top_source *src, enum top_pane p, const struct top_row *row,
                     bool opened, struct top_text *t);
/* Reads what a line leads to in the same way. of: that of its text. */
void top_link_read(struct top_source *src, enum top_link to, const char *of, const char *key,
                   struct top_text *t);

/* For the files of the details. */
/* Makes the last line lead to something. */
void top_link_add(struct top_text *t, enum top_link to, struct amp_span key);
void top_fact_add(struct top_text *t, const char *label, const char *text); /* unless it is empty */
void top_head_add(struct top_text *t, const char *title);
void top_failed_add(struct top_text *t, const struct amp_error *err);
/* The local time; with the date unless it is of today. */
const char *top_time_text(const struct top_source *src, int64_t ms, char out[32]);
void top_task_show(struct top_source *src, const char *id, struct top_text *t);
void top_message_show(struct top_source *src, struct amp_key key, const char *name, bool opened,
                      struct top_text *t);
void top_inbox_show(struct top_source *src, const char *agent, struct top_text *t);
void top_lane_show(struct top_source *src, const char *lane, struct top_text *t);

#endif
