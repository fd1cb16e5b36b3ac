/*
 * Lanes (SW4RM §7.3): who goes next where messages wait for one recipient. PRIVILEGED goes first,
 * within a limit: past its rate it joins STANDARD, and after a run of urgent ones one of the others
 * goes. STANDARD and BULK share what is left by their weights, counted in bytes. Pure: the caller
 * has the messages and the clock.
 */
#ifndef AMP_MESSAGE_INBOX_LANE_H
#define AMP_MESSAGE_INBOX_LANE_H

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
    uint32_t urgent_rate;            /* a second */
    uint32_t urgent_burst;           /* at once */
    uint32_t urgent_run;             /* one after the other while others wait, at least 1 */
    uint32_t urgent_places;          /* of their own in an inbox, beyond its bound */
    int64_t starved_ms;              /* waiting longer behind others is told */
};
extern const struct amp_lane_rules amp_lane_rules_default;

/* What the message asks for, by its priority. */
enum amp_lane amp_lane_of(const struct amp_lane_rules *rules, const struct amp_view *v);

struct amp_lanes {
    const struct amp_lane_rules *rules;
    int64_t thousandths; /* of urgent tokens */
    int64_t filled_ms;
    bool dry;     /* of tokens, since the last time that there were some to spare */
    uint32_t run; /* urgent ones in a row while others waited */
    uint64_t clock, due[AMP_LANE_COUNT];
    bool busy[AMP_LANE_COUNT];
    int64_t went_ms[AMP_LANE_COUNT]; /* when the last one of each went */
    /* counted */
    uint64_t urgent;     /* went by the urgent lane */
    uint64_t bursts;     /* times that the urgent limit was reached */
    uint64_t overflowed; /* urgent ones that joined STANDARD */
    uint64_t starved;
    int64_t longest_ms; /* wait of one that starved */
};

void amp_lanes_init(struct amp_lanes *l, const struct amp_lane_rules *rules, int64_t now_ms);
/* The lane that one gets which asks for `wanted`; spends a token. */
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
    bool starved; /* it waited past the bound, and others went meanwhile */
    int64_t waited_ms;
};
/* Whose turn it is; the caller lets that one go. */
struct amp_lane_turn amp_lanes_next(struct amp_lanes *l,
                                    const struct amp_lane_head heads[AMP_LANE_COUNT],
                                    int64_t now_ms);

/* A number for what amp_order_key says; 0 for an empty text. */
uint64_t amp_lane_key_of(struct amp_span text);

/* What must keep its order stays in the lane that the first of them waits in. A count of those that
 * wait, by key; key 0 is none. */
struct amp_lane_keys {
    struct amp_lane_key {
        uint64_t key;
        uint32_t n;
        enum amp_lane lane;
    } * v;
    uint32_t n, cap;
};
/* The lane for one of the key that would get `lane`, and notes that it waits there. */
int amp_lane_keys_add(struct amp_lane_keys *k, uint64_t key, enum amp_lane *lane,
                      struct amp_error *err);
void amp_lane_keys_drop(struct amp_lane_keys *k, uint64_t key);
void amp_lane_keys_release(struct amp_lane_keys *k);

#endif
