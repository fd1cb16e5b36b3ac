/* Which keys of signatures there are (SW4RM §6.2): Ed25519, and ECDSA on the curves of NIST. */
#include <string.h>

#include "agent/directory.h"
#include "protocol/sw4rm/sw4rm.h"

/* Bare keys by their length and what their first six bits are, as the digit of base64 has them. */
static const struct {
    uint64_t bytes;
    char first; /* 0: any */
} bare[] = {
    {32, 0},                          /* Ed25519 */
    {33, 'A'}, {49, 'A'}, {67, 'A'},  /* a compressed point: 02 or 03 goes before it */
    {65, 'B'}, {97, 'B'}, {133, 'B'}, /* both coordinates, 04 before them */
};

bool amp_public_key_is_sound(struct amp_span base64)
{
    uint64_t bytes;
    if (base64.n == 0 || !amp_sw4rm_base64(base64, &bytes))
        return false;
    for (size_t i = 0; i < sizeof bare / sizeof *bare; i++)
        if (bytes == bare[i].bytes && (!bare[i].first || base64.p[0] == bare[i].first))
            return true;
    /* A SubjectPublicKeyInfo: a DER sequence, of 44 bytes for Ed25519, up to 158 for P-521. */
    return bytes >= 44 && bytes <= 160 && base64.p[0] == 'M';
}
