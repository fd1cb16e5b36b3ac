/* What is behind a row: the story of a task, the work and the worktree of an agent, the evidence
 * for a question, the messages of an inbox, a message. */
#ifndef TOP_DETAIL_H
#define TOP_DETAIL_H

#include "read.h"

#define TOP_LABEL_MAX 24
#define TOP_ACTIONS   12
/* A paragraph: a short label in a column of its own, and a text, which is wrapped. Texts are as
 * they were recorded: the view makes them safe. */
struct top_line {
    uint8_t tone, label_tone;
    uint8_t indent; /* columns of the text */
    char label[TOP_LABEL_MAX];
    char *text;
};

struct top_text {
    char title[120];
    struct top_line *v;
    size_t n, cap;
    int label; /* columns of the widest label */
    bool failed;
    /* Of a question: its key, the answers and the form of an answer. */
    char question[1200];
    char answers[200], form[200];
    struct {
        char name[64];
        bool grave; /* a person confirms it */
    } action[TOP_ACTIONS];
};
void top_text_release(struct top_text *t); /* also of a zeroed struct */
void top_text_add(struct top_text *t, uint8_t label_tone, const char *label, uint8_t tone,
                  int indent, struct amp_span text);

/* Reads what is behind a row of a list. t is released first; after a failure it has the reason. */
void top_detail_read(struct top_source *src, enum top_pane p, const struct top_row *row,
                     struct top_text *t);

#endif
