/*
 * The checks before a message goes to its ports: whether its operation is a duplicate, its number
 * in a stream, its expiry, whether its task is suspended; then its lane, the rules that hold and
 * its recipients. Messages from the state (of streams, and of the log) enter here too.
 */
#ifndef AMP_MESSAGE_ROUTE_ADMISSION_ADMISSION_H
#define AMP_MESSAGE_ROUTE_ADMISSION_ADMISSION_H

#include "message/route/admission/source.h"

struct amp_admission;
int amp_admission_new(const struct amp_source_env *env, struct amp_admission **out,
                      struct amp_error *err);
void amp_admission_free(struct amp_admission *a);
/* With the store open: opens the cursors. */
int amp_admission_open(struct amp_admission *a, struct amp_error *err);

enum amp_admitted {
    AMP_ADMIT_FAILED = -1,
    AMP_ADMIT_GO,
    AMP_ADMIT_DROP, /* the message needs no delivery: it was handled completely */
};
/* Checks a message once, when it is read, before it is recorded. */
enum amp_admitted amp_admission_admit(struct amp_admission *a, struct parcel *j,
                                      const struct amp_view *v, struct amp_error *err);
/* Checks a message, also one of an earlier run; marks it if it must be refused
 * (amp_parcel_refuse). */
int amp_admission_look(struct amp_admission *a, struct parcel *j, const struct amp_view *v,
                       struct amp_error *err);
/* Checks a message that has only its line, in the same way. */
int amp_admission_look_again(struct amp_admission *a, struct parcel *j, struct amp_error *err);
/* amp_streams_record */
int amp_admission_record(struct amp_admission *a, struct parcel **batch, uint32_t *n,
                         struct amp_error *err);

/* Routes messages of the streams and, if there is room, of the log; renews leases. */
int amp_admission_turn(struct amp_admission *a, bool room, struct amp_error *err);
/* Whether the log is being read; the input waits. */
bool amp_admission_reads(const struct amp_admission *a);
/* Lowers *timeout_ms. */
void amp_admission_watch(const struct amp_admission *a, bool room, int *timeout_ms);
void amp_admission_measure(const struct amp_admission *a);
void amp_admission_say(const struct amp_admission *a);

#endif
