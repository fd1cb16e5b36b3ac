/*
 * The model holds what amp-top knows: lists of rows, counts, rates, the latest activity. It is read
 * from the records of the state directory (load.c), then follows the log: an entry says which
 * record changed, and only that is read again (follow.c). The list of messages is a window over the
 * index, so its size does not depend on their number.
 */
#ifndef TOP_MODEL_H
#define TOP_MODEL_H

#include <amp/base/buf.h>

#include "../view/grid.h"

#define TOP_PANES(X)                                                                               \
    X(TASKS, "Tasks", "Tasks", "tasks")                                                            \
    X(AGENTS, "Agents", "Agents", "agents")                                                        \
    X(QUESTIONS, "Questions", "Asks", "questions")                                                 \
    X(INBOXES, "Inboxes", "Inbox", "inboxes")                                                      \
    X(LANES, "Lanes", "Lanes", "lanes")                                                            \
    X(MESSAGES, "Messages", "Msgs", "messages")                                                    \
    X(DEADLINES, "Deadlines", "Due", "deadlines")                                                  \
    X(COST, "Cost", "Cost", "cost")
enum top_pane {
#define X(id, title, tab, word) TOP_##id,
    TOP_PANES(X)
#undef X
        TOP_PANE_COUNT
};
const char *top_pane_title(enum top_pane p);
const char *top_pane_tab(enum top_pane p);  /* short */
const char *top_pane_word(enum top_pane p); /* for options and records */

enum top_kind {
    TOP_TEXT,
    TOP_AGE,    /* the time since n */
    TOP_UNTIL,  /* the time until n */
    TOP_NUMBER, /* n */
    TOP_COUNT,  /* n, short: 12.3k */
    TOP_MONEY,  /* n millionths of a dollar */
    TOP_GAUGE,  /* n of `most` */
};
/* A value. n 0 of the kinds that are not texts: none, except of a gauge. */
struct top_value {
    uint8_t kind, tone;
    const char *text;
    int64_t n, most;
};

#define TOP_COLUMNS 10
struct top_row {
    char *key; /* identifies the row in its list; the record's name */
    struct top_value value[TOP_COLUMNS];
    char *mem;         /* of the texts */
    const char *of;    /* the task or agent that it is about, or "" */
    int64_t hidden[9]; /* not shown: of an inbox its lanes, of a window its order, of costs … */
    uint8_t rank;      /* rows with a higher rank come first, unless the person sorts */
};

struct top_list {
    struct top_row *v;
    size_t n, cap;
    /* A window: v has the rows from number `first` on of about `total`. Else 0 and n. */
    bool window, more; /* more: there are rows after those of the window */
    uint64_t first, total;
};

/* The columns of a pane. */
struct top_column {
    const char *title; /* NULL: no more; "": only a member in JSON */
    const char *word;  /* its member in JSON */
    uint8_t least, most;
    bool right, flex;
    uint8_t keep; /* columns with the lowest are left out first */
};
extern const struct top_column top_columns_of[TOP_PANE_COUNT][TOP_COLUMNS + 1];

/* The latest activity, the newest first. */
#define TOP_FEED 128
struct top_event {
    int64_t at_ms;
    uint8_t tone;
    char what[28], text[200];
};

#define TOP_MINUTES 64
struct top_model {
    int64_t now_ms;
    const char *dir; /* the state directory */
    bool read_only;  /* nothing can be changed: `why` says why */
    char why[200];
    char paused[200];  /* who suspended everything, or "" */
    uint32_t n_paused; /* suspensions of any scope */
    struct top_list list[TOP_PANE_COUNT];
    struct top_event feed[TOP_FEED];
    uint32_t n_feed, feed_at;  /* the ring's next place */
    uint64_t open, dead;       /* messages with a deadline; dead letters */
    uint32_t working, waiting; /* agents at work; messages in inboxes */
    /* The totals of all results, in tokens and millionths of a dollar. */
    int64_t tokens_in, tokens_out, micros;
    /* Log entries and recorded messages of each minute. */
    struct {
        int64_t minute;
        uint32_t entries, messages;
    } per[TOP_MINUTES];
};
void top_model_release(struct top_model *m);

/* ---- rows ---- */

/* A row in the making. */
struct top_draft {
    struct amp_buf mem;
    size_t key, of, text[TOP_COLUMNS]; /* offsets */
    struct top_value value[TOP_COLUMNS];
    int64_t hidden[9];
    uint8_t rank;
    bool failed;
};
void top_draft_begin(struct top_draft *d, struct amp_span key, struct amp_span of);
void top_draft_text(struct top_draft *d, int column, uint8_t tone, struct amp_span text);
void top_draft_number(struct top_draft *d, int column, uint8_t tone, enum top_kind kind, int64_t n,
                      int64_t most);
/* Puts the row into the list, in place of the one with its key; releases the draft. known: there is
 * no such row. */
int top_draft_end(struct top_draft *d, struct top_list *l, bool known, struct amp_error *err);
/* The number of the row with a key, or -1. */
int64_t top_list_find(const struct top_list *l, const char *key);
void top_list_remove(struct top_list *l, const char *key);
void top_list_clear(struct top_list *l);
/* Removes the rows from number n on. */
void top_list_cut(struct top_list *l, size_t n);

/* ---- counts and activity ---- */

/* Counts a log entry of this time. */
void top_count(struct top_model *m, int64_t at_ms, bool message);
/* Messages (or entries) of the minute `ago` minutes before now. */
uint32_t top_rate(const struct top_model *m, int ago, bool messages);
struct top_event *top_feed_add(struct top_model *m);
/* The event number i, the newest is 0; NULL: there are not so many. */
const struct top_event *top_feed(const struct top_model *m, uint32_t i);

/* Ages and times to a deadline in at most five columns: "<1m", "12m", "3h", "4d". */
void top_age(int64_t ms, char out[16]);
void top_value_text(const struct top_value *v, int64_t now_ms, char *out, size_t size);
void top_short(int64_t n, char out[16]); /* 950, 12.3k, 4.1M */
void top_money(int64_t micros, char out[24]);

#endif
