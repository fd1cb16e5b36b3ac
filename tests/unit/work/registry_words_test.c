/* Versions, and keys of signatures: what the registry compares and judges. */
#include <string.h>

#include "../tap.h"
#include "work/agent/capability.h"

/* Each is below those behind it; a line of equal ones is joined by blanks. */
static const char *const versions[] = {
    "0.0.0-0",
    "0.0.1",
    "0.9.9",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.1.0",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-beta.11a",
    "1.0.0-rc.1",
    "1.0.0 1.0.0+build.5 1.0.0+0",
    "1.0.1-0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "2.0.0-x-y",
    "2.0.0",
    "99999999999999999999.0.0",
    "100000000000000000000.0.0",
};

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

static void test_versions(void)
{
    enum { N = sizeof versions / sizeof *versions };
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            const char *a = versions[i], *b = versions[k];
            for (; a; a = strchr(a, ' ') ? strchr(a, ' ') + 1 : NULL) {
                struct amp_span x = {a, strcspn(a, " ")};
                for (const char *y = b; y; y = strchr(y, ' ') ? strchr(y, ' ') + 1 : NULL) {
                    struct amp_span z = {y, strcspn(y, " ")};
                    TAP_OK(sign(amp_semver_compare(x, z)) == sign(i - k), "%.*s and %.*s", (int)x.n,
                           x.p, (int)z.n, z.p);
                }
            }
        }
}

static void test_keys(void)
{
    static const char *const sound[] = {
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", /* Ed25519 */
        "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
        "AgECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g", /* P-256, compressed */
        ("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAh"
         "IiMkJSYnKCkqKywtLi8wMTIzNDU2Nzg5Ojs8PT4/QA=="),
    };
    static const char *const unsound[] = {
        "",
        "AAEC",
        "key",
        "-----BEGIN PUBLIC KEY-----",
        "zzECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g", /* 33 bytes that are no point */
    };
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++)
        TAP_OK(amp_public_key_is_valid(amp_span_str(sound[i])), "a key: %.20s", sound[i]);
    for (size_t i = 0; i < sizeof unsound / sizeof *unsound; i++)
        TAP_OK(!amp_public_key_is_valid(amp_span_str(unsound[i])), "no key: %.50s", unsound[i]);
}

int main(void)
{
    test_versions();
    test_keys();
    return tap_done();
}
