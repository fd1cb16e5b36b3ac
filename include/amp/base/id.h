/* Identifiers and digests. */
#ifndef AMP_BASE_ID_H
#define AMP_BASE_ID_H

#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

#define AMP_UUID_MAX   37
#define AMP_SHA256_MAX 65

/* A random UUID version 4, lower case, NUL-terminated. */
void amp_uuid4(char out[AMP_UUID_MAX]);
/* Random bytes from the kernel. */
void amp_random(void *p, size_t n);
/* A decimal number that is unique on this machine, for the tail of an AMP msg_id: Unix
 * milliseconds, then digits of the nanosecond clock and random digits. */
#define AMP_ID_TAIL_MAX 32
void amp_id_tail(int64_t now_ms, char out[AMP_ID_TAIL_MAX]);
/* now_ms in microseconds, but above every earlier result in this thread: for numbers that must
 * increase, also across runs, and fit a double. */
int64_t amp_id_number(int64_t now_ms);
/* SHA-256 as 64 lower-case hex digits. */
void amp_sha256_hex(struct amp_span data, char out[AMP_SHA256_MAX]);
/* Whether text is safe as a path component: 1 to 128 bytes of [A-Za-z0-9._-], not starting with a
 * dot or a dash. */
bool amp_id_is_safe(struct amp_span text);

AMP_API_END

#endif
