/*
 * Units of transport (SW4RM §5.4) that a port's reader takes: a message that is sent in chunks, and
 * several messages in a batch. A unit is a parcel of its own, which the port gets in the place of
 * the messages; they are in its member `carried`. Only outlets.c and give.c use this.
 */
#ifndef AMP_MESSAGE_ROUTE_OUTLET_UNITS_H
#define AMP_MESSAGE_ROUTE_OUTLET_UNITS_H

#include "message/protocol/compose/unit.h"
#include "message/route/parcel.h"
#include "message/route/run.h"

enum { AMP_TAKES_CHUNKS = 1, AMP_TAKES_BATCHES = 2 };

#define AMP_BATCH_MAX   256               /* messages of a batch */
#define AMP_BATCH_BYTES ((size_t)1 << 20) /* of its messages; a larger message goes alone */

struct amp_units_wanted {
    size_t chunk;             /* longer messages go in chunks of this size; 0: none do */
    uint32_t batch;           /* messages of a batch; 0, 1: there are no batches */
    const char *const *takes; /* PORT=WORD,WORD: what the readers of ports take */
    int n_takes;
};
/* Reads the words of --takes for the port. USAGE bad_takes. */
int amp_takes_of(const struct amp_units_wanted *w, const char *spec, uint8_t *takes,
                 struct amp_error *err);
/* Checks all texts. USAGE bad_takes. */
int amp_takes_check(const struct amp_units_wanted *w, struct amp_error *err);

/* The progress of a message to one port in chunks. */
struct parcel_chunks {
    struct parcel_note note;    /* first */
    struct parcel_chunks *link; /* the next message of the port that is under way */
    struct parcel *parcel;
    const void *port;
    struct amp_unit_transfer t;
    uint32_t next; /* the chunk that is sent next; t.count: all were given to the port */
    uint32_t away; /* chunks that the port has */
    bool waits;    /* it is in a lane */
    bool given, failed;
    struct amp_error why;
};
/* Begins to send a message in chunks to a port, which has this address. */
int amp_chunks_begin(struct parcel *j, const void *port, size_t chunk, struct amp_error *err);
/* NULL: it is not sent to the port in chunks. */
struct parcel_chunks *amp_chunks_of(const struct parcel *j, const void *port);
/* Makes the unit of the next chunk. */
int amp_chunks_next(const struct amp_route_run *run, const struct parcel_chunks *c,
                    struct parcel **out, struct amp_error *err);
/* Makes the unit of n messages. */
int amp_batch_make(const struct amp_route_run *run, struct parcel *const *v, uint32_t n,
                   struct parcel **out, struct amp_error *err);

#endif
