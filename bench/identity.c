/* identity MESSAGES: signs and verifies the lines of a file in this process, with Ed25519: prints
 * microseconds for each message, mean and median of rounds, first signing, then verifying. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "message/identity/signer.h"
#include "message/identity/verify.h"

enum { ROUNDS = 9, LINES_MAX = 4096 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

int main(int argc, char **argv)
{
    struct amp_error err = {0};
    struct amp_seckey *key = NULL;
    struct amp_signer *signer = NULL;
    struct amp_trust *trust = NULL;
    struct amp_verifier *verifier = NULL;
    struct amp_buf text, out, signers;
    static struct amp_span line[LINES_MAX], signed_line[LINES_MAX];
    double sign[ROUNDS], verify[ROUNDS];
    size_t n = 0;
    amp_buf_init(&text, 64 << 20);
    amp_buf_init(&out, 256 << 20);
    amp_buf_init(&signers, 1 << 16);
    if (argc != 3 || amp_file_read(AT_FDCWD, argv[1], 64 << 20, &text, &err) < 0 ||
        amp_seckey_generate(&key, &err) < 0 || amp_buf_str(&signers, "bench ", &err) < 0 ||
        amp_pubkey_write(amp_seckey_public(key), NULL, &signers, &err) < 0 ||
        amp_file_write_atomic(AT_FDCWD, argv[2], 0600, amp_buf_span(&signers), &err) < 0 ||
        amp_signer_of_key(key, &signer, &err) < 0 || amp_trust_new(NULL, NULL, &trust, &err) < 0 ||
        amp_trust_add(trust, argv[2], false, true, &err) < 0 ||
        amp_verifier_new(&(struct amp_verifier_options){.trust = trust, .skew_ms = 300000},
                         &verifier, &err) < 0) {
        fprintf(stderr, "identity: %s\n", err.what);
        return 1;
    }
    for (char *p = text.data, *lf;
         n < LINES_MAX && (lf = memchr(p, '\n', text.len - (size_t)(p - text.data))); p = lf + 1)
        line[n++] = (struct amp_span){p, (size_t)(lf - p)};
    for (int r = 0; r < ROUNDS; r++) {
        static size_t at[LINES_MAX + 1];
        amp_buf_reset(&out);
        double start = now();
        for (size_t i = 0; i < n; i++) {
            at[i] = out.len;
            if (amp_signer_line(signer, line[i], amp_now_ms(), &out, &err) < 0)
                return 1;
        }
        sign[r] = (now() - start) / (double)n;
        at[n] = out.len;
        for (size_t i = 0; i < n; i++)
            signed_line[i] = (struct amp_span){out.data + at[i], at[i + 1] - at[i]};
        start = now();
        for (size_t i = 0; i < n; i++) {
            struct amp_identity who;
            struct amp_signed s;
            if (!amp_signed_split(signed_line[i], &s) ||
                amp_verifier_message(verifier, &s.sig, s.msg, AMP_SPAN("bench"), amp_now_ms(), &who,
                                     &err) < 0)
                return 1;
        }
        verify[r] = (now() - start) / (double)n;
    }
    qsort(sign, ROUNDS, sizeof sign[0], by_size);
    qsort(verify, ROUNDS, sizeof verify[0], by_size);
    printf("%.1f %.1f %zu %zu\n", sign[ROUNDS / 2], verify[ROUNDS / 2], n, text.len / n);
    amp_signer_free(signer);
    amp_verifier_free(verifier);
    amp_trust_free(trust);
    amp_buf_release(&text);
    amp_buf_release(&out);
    amp_buf_release(&signers);
    return 0;
}
