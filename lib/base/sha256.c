/* SHA-256. It has its own file, so that programs without digests do not link libsodium. */
#include <amp/base/id.h>

#include <sodium.h>

void amp_sha256_hex(struct amp_span data, char out[AMP_SHA256_MAX])
{
    unsigned char sum[crypto_hash_sha256_BYTES];
    static const unsigned char none[1];
    crypto_hash_sha256(sum, data.n ? (const unsigned char *)data.p : none, data.n);
    sodium_bin2hex(out, AMP_SHA256_MAX, sum, sizeof sum);
}
