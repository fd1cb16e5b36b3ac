/* The scanner: shared by scan.c and scan_strings.c. */
#ifndef AMP_JSON_SCAN_H
#define AMP_JSON_SCAN_H

#include <amp/json/tape.h>

#include "json/shapes.h"

struct amp_scan {
    struct amp_tape *t;
    const unsigned char *base, *p, *end;
    const struct amp_json_hash_key *key;
    struct amp_json_fault *fault;
};

/* Fills the fault. Returns -1. */
int amp_scan_fail(struct amp_scan *s, const char *code, const unsigned char *at, const char *what);
/* Fills the fault for a byte that is not UTF-8. Returns -1. */
int amp_scan_fail_utf8(struct amp_scan *s, const unsigned char *at);
/* Makes room in the tape's scratch memory. */
int amp_scan_scratch(struct amp_scan *s, size_t bytes);

/* Scans the rest of a string from s->p, after its plain characters; `first` is its first byte. On
 * success s->p is at the closing quote. Returns the token's flags, or -1. */
int amp_scan_rest_of_string(struct amp_scan *s, const unsigned char *first);
/* The hash of a key with escapes, which is that of its decoded text. */
int amp_scan_escaped_hash(struct amp_scan *s, const unsigned char *raw, size_t len, uint64_t *hash);

#endif
