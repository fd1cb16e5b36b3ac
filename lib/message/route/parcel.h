/* A message in the router. */
#ifndef AMP_MESSAGE_ROUTE_PARCEL_H
#define AMP_MESSAGE_ROUTE_PARCEL_H

#include <amp/protocol/protocol.h>

#include "message/delivery/inbox/lane.h"
#include "message/protocol/delivery.h"
#include "message/store/store.h"

struct stream;

#define RULES_MAX 256

enum parcel_stage {
    PARCEL_ASK, /* waits for room in the jq worker */
    PARCEL_ASKED,
    PARCEL_DECIDED, /* its rules are known */
};

/* The recipients of a message: a parcel for each, until the message is offered to them. */
struct parcel_address {
    struct parcel *kids, *last;
    uint32_t n;
    bool is_group; /* the recipients are committed with the message */
    struct no_recipient {
        struct amp_error why;
        const char *seed_code;
        bool retryable;
    } * no_recipient; /* why a name of the message has no recipient, or NULL */

    /* Members of a recipient's parcel. */
    struct parcel *of; /* the message, or NULL; then `next` is the next recipient */
    char *name;
};

/* The members of a message for answers and dead letters: a refused message is not parsed again. The
 * texts are in the parcel's memory. */
struct parcel_summary {
    bool known, json, has_attempt;
    struct amp_span type, from, task, correlation, content_type, node, excerpt;
    struct amp_span repeats[AMP_REPEATS_MAX]; /* for its answer (terms.h) */
    struct amp_span *to;
    uint32_t n_to;
    int64_t created_ms, attempt;
};

/* A port's note about a message: the beginning of a larger struct, freed with the message. */
struct parcel_note {
    struct parcel_note *other;
};

/* A message, or (answer) a line for the router's own output. */
struct parcel {
    struct parcel *next;          /* in the queue of undecided messages */
    struct parcel *older, *newer; /* among all parcels */
    char *line;                   /* in mem, or in own */
    size_t n;
    char *own;  /* memory of a line that was set later, or NULL */
    char *text; /* the document inside a wrapped line, NULL: the line itself */
    char *id;   /* empty for control records */
    enum amp_kind kind;
    enum amp_protocol protocol;
    bool answer;
    uint32_t era;    /* of the table of rules that decided it */
    bool copy;       /* for a port of --tee */
    uint64_t number; /* of its line in the input */
    enum parcel_stage stage;
    const char *refused; /* the code of its refusal, NULL: none; `why` has the reason */
    const char *refused_by;
    bool again;                      /* sending it again may succeed */
    bool wants_ack;                  /* it must be acknowledged */
    int64_t came_ms;                 /* amp_mono_ms when it was read */
    const char *tried;               /* while it is refused: the port that could not deliver it */
    enum amp_lane lane;              /* that it requests */
    uint64_t order;                  /* messages with one order keep their sequence; 0: none */
    int64_t expires_ms;              /* 0: never */
    struct amp_store_entry_id entry; /* in the outbox; n 0: none */
    uint64_t hit[RULES_MAX / 64];    /* rules that hold */
    uint32_t ask_from;               /* the first jq rule that must be evaluated */
    uint32_t waiting;                /* ports that have it now */
    struct parcel_summary summary;   /* of the message; a recipient has none */
    struct parcel_address address;
    struct stream *stream; /* in which it has a number, or NULL */
    int64_t seq;
    uint8_t takes; /* the units that its recipient registered: AMP_TAKES_ (outlet/units.h) */
    struct parcel *
        *carried; /* it is a unit of transport with these messages (outlet/units.h), or NULL
                   */
    uint32_t n_carried;
    struct parcel_note *notes; /* of the ports that it is or was sent to in chunks */
    uint64_t requeued;         /* number of requeues of its dead letter, or 0 */
    int64_t requeued_ms;       /* time of the last one */

    struct amp_parcels *all;
    uint32_t size; /* class of its memory */
    char why[160]; /* from here on not cleared */
    char mem[];
};

/* All parcels of a router, and memory of freed ones for reuse. Starts as {0}. */
#define AMP_PARCELS_SIZES 7
struct amp_parcels {
    struct parcel *newest;
    uint32_t n;
    bool wants_text; /* new parcels keep the text of a wrapped message (for jq predicates) */
    struct amp_parcels_spare {
        struct parcel *first;
        uint32_t n;
    } spare[AMP_PARCELS_SIZES];
};
void amp_parcels_release(struct amp_parcels *all); /* also frees the remaining parcels */

/* v NULL: the line was not viewed yet. Returns NULL if out of memory. */
struct parcel *amp_parcel_new(struct amp_parcels *all, struct amp_span line,
                              const struct amp_view *v);
void amp_parcel_free(struct parcel *j);
/* Fills a parcel that was made without a view. */
int amp_parcel_fill(struct parcel *j, struct amp_span line, const struct amp_view *v,
                    struct amp_error *err);
/* Adds a recipient; one of an earlier run with its entry. */
int amp_parcel_add_recipient(struct parcel *j, struct amp_span name,
                             struct amp_store_entry_id entry, struct amp_error *err);
/* Fills a view from the parcel's summary; it has no document. False: there is no summary. */
bool amp_parcel_view(const struct parcel *j, struct amp_view *v);
/* The line that was read; a recipient's own line may have less
 * (amp_routing_terms.delivers_content). */
struct amp_span amp_parcel_whole(const struct parcel *j);
/* Whether the message is new work of a task, which waits while the task is suspended. */
bool amp_parcel_is_work(const struct amp_view *v);
/* The code of an expired message. */
const char *amp_parcel_expired_code(const struct parcel *j);
/* Marks the parcel to be refused in its turn; only the first call counts. Codes are static strings.
 */
void amp_parcel_refuse(struct parcel *j, const char *code, const char *why, const char *by,
                       bool again);

#endif
