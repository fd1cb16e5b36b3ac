/*
 * The time for which final records stay in the live set (docs/state.md).
 *
 * Before retention removes a segment, it copies the live records in it. A record is not copied if a
 * rule says that it is final, its last change is older than its group is kept, and no record that
 * still lives needs it. A stand frame with "forget" removes it. The keys of some kinds are
 * remembered longer, without their records, so that a duplicate of what they stood for is found:
 * amp_store_rec.forgotten.
 */
#ifndef AMP_MESSAGE_STORE_KEEP_KEEP_H
#define AMP_MESSAGE_STORE_KEEP_KEEP_H

#include <amp/json/tape.h>

#include "message/store/key.h"

/* Groups of kinds, by their setting in store.keep; the last one is for remembered keys. */
#define AMP_KEEP_GROUPS(X) X(messages) X(tasks) X(jobs) X(questions) X(bindings) X(duplicates)
enum amp_keep_group {
#define X(name) AMP_KEEP_##name,
    AMP_KEEP_GROUPS(X)
#undef X
        AMP_KEEP_COUNT
};
enum { AMP_KEEP_DAYS = 30, AMP_KEEP_DUPLICATES_DAYS = 90 };

/* A record whose key has one part. part: the id, or the part as it is in another key (encoded). */
struct amp_keep_other {
    const char *kind;
    struct amp_span part; /* empty: no record */
    bool encoded;
};

/* A rule. A list of rules ends with one without a kind; the first rule of a record's kind and state
 * applies, and a record without a rule, or with a deadline, is never final. */
struct amp_keep {
    const char *kind;
    const char *states; /* the names of its final states, separated by blanks; NULL: all */
    enum amp_keep_group group;
    bool remembered;
    /* Whether the record is final. NULL: each is. */
    bool (*is_final)(const struct amp_tape *record);
    /* The i-th record that needs this one: while it lives and is not itself final and old, this one
     * stays. parts: those of the key, encoded. false: there are no more. NULL: there are none. */
    bool (*needed_by)(const struct amp_span parts[AMP_KEY_PARTS], const struct amp_tape *record,
                      uint32_t i, struct amp_keep_other *out);
};

#endif
