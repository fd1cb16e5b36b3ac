/* The parts of the channels, for their kinds: folder.c, script.c. */
#ifndef AMP_PEOPLE_CHANNEL_PRIVATE_H
#define AMP_PEOPLE_CHANNEL_PRIVATE_H

#include "people/answer/text/evidence_facts.h"
#include "people/answer/text/told.h"
#include "people/channel/channels.h"

enum { CHANNELS_MAX = 32, CHANNEL_NAME_MAX = 64 };

/* A question on its way to a channel, then the notice that it is settled. */
struct delivery {
    struct channel *channel;
    struct channel_question *asked;
    enum delivery_at {
        DELIVERY_DUE,     /* the question is to be sent, from due_ms on */
        DELIVERY_SENDING, /* it is being sent */
        DELIVERY_TOLD,
        DELIVERY_SETTLE_DUE,
        DELIVERY_SETTLING,
        DELIVERY_DONE,
    } at;
    int64_t due_ms, pause_ms; /* amp_mono_ms */
    uint32_t failures;        /* in a row */
    struct amp_facts *facts; /* of the first attempt: a further one says the same; owned, or NULL */
    char shown[AMP_SHOWN_MAX]; /* the digest of the body that was sent; "": unknown */
};

/* An open question, or one of which not every channel knows that it is settled. */
struct channel_question {
    struct amp_question q; /* message NULL: settled before this process began */
    char title[256];
    bool open, seen;
    int64_t until_ms;                   /* when its tokens expire */
    struct amp_evidence_texts evidence; /* the same for all channels */
    struct delivery deliveries[];       /* one for each channel */
};

/* Descriptors to wait for. */
struct channel_wait {
    struct pollfd *fds;
    unsigned n, most;
    int64_t wait_ms; /* < 0: no limit */
};
struct pollfd *channel_wait_fd(struct channel_wait *w, int fd, short events);
void channel_wait_within(struct channel_wait *w, int64_t ms);

struct channel_ops {
    /* Begins to tell d->facts. Ends now or later by delivery_ended. */
    void (*tell)(struct channel *c, struct delivery *d);
    void (*watch)(struct channel *c, struct channel_wait *w); /* may be NULL */
    int (*step)(struct channel *c, struct amp_error *err);    /* does not block; may be NULL */
    void (*close)(struct channel *c);                         /* also after a failed open */
};

struct channel {
    const struct channel_ops *ops;
    enum amp_channel kind;
    char name[CHANNEL_NAME_MAX]; /* in records: "phone" */
    const char *person;          /* who gets tokens; NULL: nobody does */
    const char *link;            /* the URL of hitl-prompt receive, or NULL */
    unsigned jobs;               /* deliveries at a time */
    unsigned running;
    bool failing; /* its last delivery failed; that was reported */
    bool mute;    /* it gets no notice of settled questions */
    struct amp_channels *all;
    void *own; /* of the kind */
};

struct amp_channels {
    struct amp_channels_options opt;
    enum amp_token_answers tokens;
    int64_t token_life_ms, retry_ms;
    struct channel v[CHANNELS_MAX];
    unsigned n;
    struct channel_question **asked;
    size_t n_asked, cap_asked;
    bool scanned, again; /* again: something was answered here, so look once more */
};

/* The body in which the question is sent, for the record of what was shown. */
void delivery_shows(struct delivery *d, struct amp_span body);
/* The end of a delivery; why NULL: it was taken. */
void delivery_ended(struct delivery *d, const struct amp_error *why);
/* Reports a failure of a channel that is not one of a delivery; once until it works again. */
void channel_failed(struct channel *c, const struct amp_error *why);
void channel_works(struct channel *c);
/* Offers an answer that came through the channel. */
enum amp_offered channel_answer(struct channel *c, struct amp_span text,
                                const struct amp_answer_from *from, struct amp_error *err);

/* Adds a channel with the name "word:name"; either may be NULL. CONFIG bad_config. */
int channel_add(struct amp_channels *all, enum amp_channel kind, const char *word, const char *name,
                const struct channel_ops *ops, struct channel **out, struct amp_error *err);
/* "30s" at a member; absent: *ms is unchanged. */
int channel_time(const json_t *config, const char *key, int64_t least_ms, int64_t *ms,
                 struct amp_error *err);

/* The kinds: they add what the configuration has. config: the member of hitl.channels, or NULL. */
int folder_add(struct amp_channels *all, const json_t *config, struct amp_error *err);
/* Adds those of --notify, too. */
int scripts_add(struct amp_channels *all, const json_t *config, struct amp_error *err);

#endif
