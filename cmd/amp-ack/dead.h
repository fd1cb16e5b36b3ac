/* What the verbs of `amp-ack dead` share: which letters are meant. */
#ifndef AMP_ACK_DEAD_H
#define AMP_ACK_DEAD_H

#include "message/dead/dead.h"
#include "pass.h"

#define DEAD_REQUEUE "amp-ack.dead"

/* The options that choose, for the tables of all verbs. */
struct dead_filter {
    const char *class, *code, *route, *producer, *type, *protocol, *task, *where;
    const char *since, *until;
    int64_t older_ms, newer_ms, limit, keep;
    bool every, all, raw, dry_run;
};
extern struct dead_filter dead_filter;
extern const char *const dead_classes[], *const dead_protocols[];

#define DEAD_FILTER_OPTS                                                                             \
    {0,                                                                                              \
     "class",                                                                                        \
     AMP_OPT_CHOICE,                                                                                 \
     &dead_filter.class,                                                                             \
     "CLASS",                                                                                        \
     .doc = "only of this class",                                                                    \
     .choices = dead_classes},                                                                       \
        {0, "code", AMP_OPT_STRING, &dead_filter.code, "CODE", .doc = "only these"},                 \
        {0,                                                                                          \
         "route",                                                                                    \
         AMP_OPT_STRING,                                                                             \
         &dead_filter.route,                                                                         \
         "GLOB",                                                                                     \
         .doc = "only those that failed at this port"},                                              \
        {0,                                                                                          \
         "producer",                                                                                 \
         AMP_OPT_STRING,                                                                             \
         &dead_filter.producer,                                                                      \
         "GLOB",                                                                                     \
         .doc = "only from these senders"},                                                          \
        {0, "type", AMP_OPT_STRING, &dead_filter.type, "GLOB", .doc = "only messages of this type"}, \
        {0,                                                                                          \
         "protocol",                                                                                 \
         AMP_OPT_CHOICE,                                                                             \
         &dead_filter.protocol,                                                                      \
         "NAME",                                                                                     \
         .doc = "only of this protocol",                                                             \
         .choices = dead_protocols},                                                                 \
        {0, "task", AMP_OPT_STRING, &dead_filter.task, "GLOB", .doc = "only of these tasks"},        \
        {0,                                                                                          \
         "since",                                                                                    \
         AMP_OPT_STRING,                                                                             \
         &dead_filter.since,                                                                         \
         "TIME",                                                                                     \
         .doc = "only what failed last then or later"},                                              \
        {0,                                                                                          \
         "until",                                                                                    \
         AMP_OPT_STRING,                                                                             \
         &dead_filter.until,                                                                         \
         "TIME",                                                                                     \
         .doc = "only what failed last before it"},                                                  \
        {0,                                                                                          \
         "older-than",                                                                               \
         AMP_OPT_DURATION,                                                                           \
         &dead_filter.older_ms,                                                                      \
         "TIME",                                                                                     \
         .doc = "only what failed last so long ago",                                                 \
         .min = 0,                                                                                   \
         .max = DEAD_AGE_MAX},                                                                       \
        {0,                                                                                          \
         "newer-than",                                                                               \
         AMP_OPT_DURATION,                                                                           \
         &dead_filter.newer_ms,                                                                      \
         "TIME",                                                                                     \
         .doc = "only what failed last within it",                                                   \
         .min = 0,                                                                                   \
         .max = DEAD_AGE_MAX},                                                                       \
        {0,                                                                                          \
         "where",                                                                                    \
         AMP_OPT_STRING,                                                                             \
         &dead_filter.where,                                                                         \
         "JQ",                                                                                       \
         .doc = "only letters of which this jq expression holds"},                                   \
    {                                                                                                \
        0, "limit", AMP_OPT_INT, &dead_filter.limit, "N", .doc = "at most N, the oldest",            \
                                                          .min = 1, .max = INT64_MAX                 \
    }
#define DEAD_AGE_MAX ((int64_t)36500 * 86400 * 1000)

struct dead_choice {
    char *id;
    uint64_t rev;
    int64_t failed_ms;
    uint64_t frame;
    bool open;
};
struct dead_choices {
    struct dead_choice *v;
    size_t n, cap;
};

/* Dies of a usage error where nothing says which letters are meant, or a time cannot be read. */
void dead_filter_check(int argc, bool must);
/* The letters that the operands name ("-": the lines of stdin), or all; of these what the options
 * allow, the oldest first. Names that are none are told. Closed ones only where named, or with
 * --all. */
int dead_choose(struct amp_store *s, int argc, char **argv, struct dead_choices *out,
                struct amp_error *err);
void dead_choices_release(struct dead_choices *c);

const char *dead_state(const struct amp_dead_letter *d); /* as the record has it */
/* Appends the letter for people and files: {"id":…,"state":…, the record}, redacted unless --raw.
 */
int dead_format(struct amp_span id, const struct amp_dead_letter *d, struct amp_span json,
                struct amp_buf *out, struct amp_error *err);

/* Opens the state, chooses, runs; a status. */
int dead_with_choices(enum ack_need need, int argc, char **argv,
                      int (*run)(struct amp_store *s, struct dead_choices *c,
                                 struct amp_error *err));
/* Each letter once more, as it stands now; one that is gone since is passed over. */
int dead_each_choice(struct amp_store *s, const struct dead_choices *c, amp_dead_fn fn, void *ctx,
                     struct amp_error *err);
/* One line on stdout about a letter: what was done, would be done, or why not. */
int dead_tell(const char *action, const struct dead_choice *c, const struct amp_error *refused,
              struct amp_error *err);

#endif
