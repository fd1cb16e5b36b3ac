/*
 * Lanes (SW4RM §7.3) select the next of the messages that wait for one recipient. PRIVILEGED is
 * first, within a limit: past its rate a message joins STANDARD, and after a run of urgent messages
 * one of another lane is next. STANDARD and BULK share the rest by weights, counted in bytes. Pure
 * functions: the caller has the messages and the clock.
 */
#ifndef AMP_MESSAGE_DELIVERY_INBOX_LANE_H
#define AMP_MESSAGE_DELIVERY_INBOX_LANE_H

#include <amp/protocol/protocol.h>

#define AMP_LANE_LIST(X) X(PRIVILEGED) X(STANDARD) X(BULK)

enum amp_lane {
#define X(id) AMP_LANE_##id,
    AMP_LANE_LIST(X)
#undef X
        AMP_LANE_COUNT
};
const char *amp_lane_name(enum amp_lane lane);
enum amp_lane amp_lane_find(struct amp_span name); /* AMP_LANE_COUNT when unknown */

struct amp_lane_rules {
    int64_t urgent_to, bulk_from;    /* priorities, -20 the most urgent: both ends included */
    uint32_t weight[AMP_LANE_COUNT]; /* of STANDARD and BULK, at least 1 */
    uint32_t urgent_rate;            /* per second */
    uint32_t urgent_burst;           /* at once */
    uint32_t urgent_run;             /* urgent ones in a row while others wait, at least 1 */
    uint32_t urgent_places;          /* reserved in an inbox, beyond its limit */
    int64_t starved_ms;              /* a longer wait behind others is reported */
};
extern const struct amp_lane_rules amp_lane_rules_default;

/* The lane that the message requests by its priority. */
enum amp_lane amp_lane_of(const struct amp_lane_rules *rules, const struct amp_view *v);

struct amp_lanes {
    const struct amp_lane_rules *rules;
    int64_t thousandths; /* of urgent tokens */
    int64_t filled_ms;
    bool dry;     /* no tokens since the last time that some were left */
    uint32_t run; /* urgent ones in a row while others waited */
    uint64_t clock, due[AMP_LANE_COUNT];
    bool busy[AMP_LANE_COUNT];
    int64_t went_ms[AMP_LANE_COUNT]; /* when the last message of each lane was sent */
    /* counted */
    uint64_t urgent;     /* sent in the urgent lane */
    uint64_t bursts;     /* times that the urgent limit was reached */
    uint64_t overflowed; /* urgent ones that joined STANDARD */
    uint64_t starved;
    int64_t longest_ms; /* wait of one that starved */
};

void amp_lanes_init(struct amp_lanes *l, const struct amp_lane_rules *rules, int64_t now_ms);
/* The lane for a message that requests `wanted`; uses a token. */
enum amp_lane amp_lanes_admit(struct amp_lanes *l, enum amp_lane wanted, int64_t now_ms);

/* The head of each lane. */
struct amp_lane_head {
    bool any;
    size_t bytes;
    int64_t since_ms;
};
struct amp_lane_turn {
    enum amp_lane lane; /* AMP_LANE_COUNT: none waits */
    bool urgent;
    bool starved; /* it waited longer than starved_ms while others were sent */
    int64_t waited_ms;
};
/* Selects the lane whose first message the caller sends next. */
struct amp_lane_turn amp_lanes_next(struct amp_lanes *l,
                                    const struct amp_lane_head heads[AMP_LANE_COUNT],
                                    int64_t now_ms);

/* A number for the text of amp_sequence_key; 0 for an empty text. */
uint64_t amp_lane_key_of(struct amp_span text);

/* Messages with one order key stay in the lane in which the first of them waits. This counts the
 * waiting messages by key; key 0 is none. */
struct amp_lane_keys {
    struct amp_lane_key {
        uint64_t key;
        uint32_t n;
        enum amp_lane lane;
    } * v;
    uint32_t n, cap;
};
/* Counts a message with this key that would get *lane, and changes *lane to the lane of its key. */
int amp_lane_keys_add(struct amp_lane_keys *k, uint64_t key, enum amp_lane *lane,
                      struct amp_error *err);
/* Whether a waiting message has this key. */
bool amp_lane_keys_has(const struct amp_lane_keys *k, uint64_t key);
/* The number of waiting messages with this key. */
uint32_t amp_lane_keys_count(const struct amp_lane_keys *k, uint64_t key);
void amp_lane_keys_drop(struct amp_lane_keys *k, uint64_t key);
void amp_lane_keys_release(struct amp_lane_keys *k);

#endif
