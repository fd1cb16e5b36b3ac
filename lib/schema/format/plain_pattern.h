/* Patterns that need no engine: ^, then classes with counts, then perhaps $. */
#ifndef AMP_SCHEMA_FORMAT_PLAIN_PATTERN_H
#define AMP_SCHEMA_FORMAT_PLAIN_PATTERN_H

#include <amp/base/buf.h>

enum { AMP_PLAIN_MOST = 24 };

struct amp_plain_pattern {
    uint32_t n;
    bool to_end;
    struct amp_plain_step {
        uint64_t set[4]; /* ASCII characters: the upper half is empty */
        uint32_t min, max;
    } step[AMP_PLAIN_MOST];
};

/* False for any other text, valid or not. */
bool amp_plain_pattern_read(struct amp_span text, struct amp_plain_pattern *out);
bool amp_plain_pattern_match(const struct amp_plain_pattern *p, struct amp_span subject);

#endif
