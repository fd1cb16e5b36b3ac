/* Shared by the verbs of `amp-ack dead`: the selection of letters. */
#ifndef AMP_ACK_DEAD_H
#define AMP_ACK_DEAD_H

#include "../pass.h"
#include "message/delivery/dead/dead.h"

#define DEAD_REQUEUE "amp-ack.dead"

/* The options of all verbs. */
struct dead_filter {
    const char *class, *code, *route, *producer, *type, *protocol, *task, *where;
    const char *since, *until;
    int64_t older_ms, newer_ms, limit, keep;
    bool every, all, raw, dry_run;
};
extern struct dead_filter dead_filter;
extern const char *const dead_classes[], *const dead_protocols[];

#define DEAD_AGE_MAX ((int64_t)36500 * 86400 * 1000)
#define DEAD_RAW_OPT                                                                               \
    AMP_OPT_ROW(0, "raw", AMP_OPT_FLAG, &dead_filter.raw, NULL, "do not redact secrets")
#define DEAD_EVERY_OPT                                                                             \
    AMP_OPT_ROW(0, "every", AMP_OPT_FLAG, &dead_filter.every, NULL,                                \
                "all letters that match the filters")
#define DEAD_DRY_OPT                                                                               \
    AMP_OPT_ROW('n', "dry-run", AMP_OPT_FLAG, &dead_filter.dry_run, NULL,                          \
                "print what would be done, and change nothing")
#define DEAD_ALL_OPT                                                                               \
    AMP_OPT_ROW('a', "all", AMP_OPT_FLAG, &dead_filter.all, NULL, "include closed letters")
#define DEAD_STRING_OPT(name, dest, arg, text)                                                     \
    AMP_OPT_ROW(0, name, AMP_OPT_STRING, &dead_filter.dest, arg, text)
#define DEAD_AGE_OPT(name, dest, text)                                                             \
    AMP_OPT_ROW(0, name, AMP_OPT_DURATION, &dead_filter.dest, "TIME", text, .max = DEAD_AGE_MAX)
#define DEAD_FILTER_OPTS                                                                           \
    AMP_OPT_ROW(0, "class", AMP_OPT_CHOICE, &dead_filter.class, "CLASS", "only this class",        \
                .choices = dead_classes),                                                          \
        AMP_OPT_ROW(0, "code", AMP_OPT_STRING, &dead_filter.code, "CODE", "only this code",        \
                    .values = "code"),                                                             \
        DEAD_STRING_OPT("route", route, "GLOB", "only failures at this port"),                     \
        DEAD_STRING_OPT("producer", producer, "GLOB", "only from these senders"),                  \
        DEAD_STRING_OPT("type", type, "GLOB", "only this message type"),                           \
        AMP_OPT_ROW(0, "protocol", AMP_OPT_CHOICE, &dead_filter.protocol, "NAME",                  \
                    "only of this protocol", .choices = dead_protocols),                           \
        AMP_OPT_ROW(0, "task", AMP_OPT_STRING, &dead_filter.task, "GLOB", "only these tasks",      \
                    .values = "task"),                                                             \
        DEAD_STRING_OPT("since", since, "TIME", "only letters with a failure at TIME or later"),   \
        DEAD_STRING_OPT("until", until, "TIME", "only letters with an earlier failure"),           \
        DEAD_AGE_OPT("older-than", older_ms, "only letters with an older failure"),                \
        DEAD_AGE_OPT("newer-than", newer_ms, "only letters with a failure within TIME"),           \
        DEAD_STRING_OPT("where", where, "JQ", "only letters for which the jq expression is true"), \
        AMP_OPT_ROW(0, "limit", AMP_OPT_INT, &dead_filter.limit, "N",                              \
                    "at most N letters, the oldest", .min = 1, .max = INT64_MAX)

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

/* Ends the program with a usage error if a time is invalid, or if `must` and nothing selects
 * letters. */
void dead_filter_check(int argc, bool must);
/* The letters of the operands ("-": the ids in the lines of stdin), or all; of these the ones that
 * match the options, the oldest first. Unknown ids are reported. Closed letters are included only
 * if an operand names them, or with --all. */
int dead_choose(struct amp_store *s, int argc, char **argv, struct dead_choices *out,
                struct amp_error *err);
void dead_choices_release(struct dead_choices *c);

const char *dead_state(const struct amp_dead_letter *d); /* "DEAD", "WITHDRAWN" or "REQUEUED" */
/* Appends the letter as JSON: {"id":…,"state":…, the record}, redacted unless --raw. */
int dead_format(struct amp_span id, const struct amp_dead_letter *d, struct amp_span json,
                struct amp_buf *out, struct amp_error *err);

/* Refuses options that select no letters. */
int dead_check(struct amp_command *c, struct amp_error *err);
/* Chooses the letters and runs `run` on them. */
int dead_with_choices(struct amp_command *c,
                      int (*run)(struct amp_store *s, struct dead_choices *c,
                                 struct amp_error *err),
                      struct amp_error *err);
/* Reads each chosen letter again and calls fn; skips letters that no longer exist. */
int dead_each_choice(struct amp_store *s, const struct dead_choices *c, amp_dead_fn fn, void *ctx,
                     struct amp_error *err);
/* Prints one line on stdout about a letter: the action, or the reason of its refusal. */
int dead_report(const char *action, const struct dead_choice *c, const struct amp_error *refused,
                struct amp_error *err);

/* Syncs the directory of a new file. */
int dead_sync_parent(const char *path, struct amp_error *err);

#endif
