/*
 * Bundles: the proofs of a task in one JSON document (schemas/records/bundle.json) that can be
 * verified without the state directory. It has the signed messages, the public keys that verify
 * them, and the coordinator's signature over everything.
 */
#ifndef AMP_PEOPLE_PROOF_BUNDLE_H
#define AMP_PEOPLE_PROOF_BUNDLE_H

#include "people/proof/proof.h"

#define AMP_BUNDLE_NAMESPACE "amp-bundle" /* of the coordinator's signature */
enum {
    AMP_BUNDLE_PROOFS = 256,    /* proofs in a bundle */
    AMP_BUNDLE_MAX = 256 << 20, /* bytes */
};

/* Appends the bundle, one line without LF. ids has the coordinator's key. */
int amp_bundle_write(struct amp_identities *ids, const struct amp_proof *const *proofs, uint32_t n,
                     int64_t now_ms, struct amp_buf *out, struct amp_error *err);

struct amp_bundle {
    struct amp_span signed_; /* the bytes that the coordinator signed, in the text */
    char key[AMP_FINGERPRINT_MAX], alg[64], time[40];
    struct amp_buf value;
    struct amp_buf signers; /* the keys in it, in the format of allowed_signers */
    struct amp_proof *proofs;
    uint32_t n;
};
/* Reads a bundle; the text must outlive it. DATAERR bad_bundle. */
int amp_bundle_read(struct amp_span text, struct amp_bundle *out, struct amp_error *err);
void amp_bundle_release(struct amp_bundle *b);
#define AMP_BUNDLE __attribute__((cleanup(amp_bundle_release))) struct amp_bundle

/* Verifies the coordinator's signature and each proof. who (n of them): see proof.h. 1: everything
 * holds; 0: not, and why says why; -1: failure. */
int amp_bundle_check(struct amp_identities *ids, const struct amp_bundle *b,
                     struct amp_proof_who *who, char why[AMP_PROOF_WHY], struct amp_error *err);

#endif
