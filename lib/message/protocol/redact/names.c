/* Names of secrets, and values that look generated. */
#include <string.h>

#include "message/protocol/redact/redact.h"

enum { NAME_MOST = 64, KEYLIKE_LEAST = 20 };

static const struct {
    const char *name, *kind; /* name: the end of a name, without separators, in lower case */
} names[] = {
    {"password", "password"},      {"passwords", "password"},
    {"passwd", "password"},        {"passphrase", "password"},
    {"passcode", "password"},      {"secret", "secret"},
    {"secrets", "secret"},         {"token", "token"},
    {"apikey", "api_key"},         {"apikeys", "api_key"},
    {"accesskey", "api_key"},      {"secretkey", "secret"},
    {"privatekey", "private_key"}, {"signingkey", "private_key"},
    {"encryptionkey", "secret"},   {"authorization", "authorization"},
    {"credential", "credentials"}, {"credentials", "credentials"},
    {"setcookie", "cookie"},       {"connectionstring", "secret"},
};
/* Names of a secret only if the value looks like a key. */
static const char *const maybe[] = {"key", "auth", "cred", "creds", "signature", "hmac"};

static bool ends_with(const char *name, size_t n, const char *end)
{
    size_t m = strlen(end);
    return n >= m && memcmp(name + n - m, end, m) == 0;
}

/* The last letters and digits of a name, in lower case. Returns how many. */
static size_t name_normalise(struct amp_span name, char out[NAME_MOST])
{
    size_t n = 0;
    if (name.n > NAME_MOST) {
        name.p += name.n - NAME_MOST;
        name.n = NAME_MOST;
    }
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (amp_redact_upper(c))
            c = (char)(c | 32);
        if (amp_redact_lower(c) || amp_redact_digit(c))
            out[n++] = c;
    }
    return n;
}

const char *amp_redact_name(struct amp_span name)
{
    char word[NAME_MOST];
    size_t n = name_normalise(name, word);
    if (n < 4)
        return NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (ends_with(word, n, names[i].name))
            return ends_with(word, n, "idempotencytoken") ? NULL : names[i].kind;
    if (n == 6 && memcmp(word, "cookie", 6) == 0)
        return "cookie";
    /* DB_PASS, smtpPass, db_pwd; but not "pass: 3" or "OLDPWD". */
    if (name.n > 4 && ends_with(word, n, "pass") &&
        (strchr("_-.", name.p[name.n - 5]) || name.p[name.n - 4] == 'P'))
        return "password";
    if (name.n > 3 && ends_with(word, n, "pwd") && strchr("_-.", name.p[name.n - 4]))
        return "password";
    return NULL;
}

/* A value looks generated if it is long and is hexadecimal, or has letters of both cases and
 * digits. */
bool amp_redact_keylike(struct amp_span v)
{
    bool upper = false, lower = false, digit = false, hex = v.n >= 32;
    if (v.n < KEYLIKE_LEAST)
        return false;
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        upper |= amp_redact_upper(c);
        lower |= amp_redact_lower(c);
        digit |= amp_redact_digit(c);
        hex &= amp_redact_digit(c) || (c >= 'a' && c <= 'f');
        if (!amp_redact_upper(c) && !amp_redact_lower(c) && !amp_redact_digit(c) &&
            !strchr("_+/=-", c))
            return false;
    }
    return hex || (upper && lower && digit);
}

bool amp_redact_may_name(struct amp_span name)
{
    char word[NAME_MOST];
    size_t n = name_normalise(name, word);
    for (size_t i = 0; n > 0 && i < sizeof(maybe) / sizeof(maybe[0]); i++)
        if (ends_with(word, n, maybe[i]))
            return true;
    return false;
}
