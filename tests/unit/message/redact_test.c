/* Redaction: each shape both ways, where a text was cut, JSON that stays JSON, hostile input. */
#include <stdlib.h>

#include <amp/base/clock.h>

#include "../tap.h"
#include "message/protocol/redact/redact.h"

static struct amp_error err;
static struct amp_buf out;

/* Text that bears a secret, and what becomes of it; NULL: it stays as it is. */
static const struct {
    const char *text, *want;
} texts[] = {
    /* shapes */
    {"use AKIAIOSFODNN7EXAMPLE now", "use [redacted:aws_key] now"},
    {"use AKIAIOSFODNN7 now", NULL},
    {"xAKIAIOSFODNN7EXAMPLE", NULL},
    {"AKIAISLOWERcase12345678", NULL},
    {"ghp_0123456789abcdefghijABCDEFGHIJ012345", "[redacted:github_token]"},
    {"ghs_0123456789abcdefghijABCDEFGHIJ012345.", "[redacted:github_token]."},
    {"ghx_0123456789abcdefghijABCDEFGHIJ012345", NULL},
    {"ghp_short", NULL},
    {"github_pat_11ABCDEFG0123456789_abcdefghij", "[redacted:github_token]"},
    {"github_pat_", NULL},
    {"(sk-proj-abcdEFGH0123456789abcd)", "([redacted:openai_key])"},
    {"sk-ant-api03-abcdefgh012345", "[redacted:anthropic_key]"},
    {"task-0123456789abcdefghijkl", NULL},
    {"sk-learn-is-a-library-for-people", NULL},
    {"xoxb-12345678901-abcdef", "[redacted:slack_token]"},
    {"xoxb-1", NULL},
    {"xoxz-12345678901-abcdef", NULL},
    {"AIzaSyA-1234567890abcdefghijklmnopqrstu", "[redacted:google_key]"},
    {"AIza", NULL},
    {"glpat-abcdefgh0123456789xy", "[redacted:gitlab_token]"},
    {"sk_live_abcdefgh01234567", "[redacted:stripe_key]"},
    {"sk_live_x", NULL},
    {"npm_abcdefghijklmnopqrstuvwxyz0123456789", "[redacted:npm_token]"},
    {"npm_config", NULL},
    {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_123 x", "[redacted:jwt] x"},
    {"eyJhbGciOiJIUzI1NiJ9", NULL},
    {"eyJ is how it begins", NULL},
    {"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----\nafter",
     "[redacted:private_key]\nafter"},
    {"-----BEGIN PRIVATE KEY-----\nMIIE", "[redacted:private_key]"},
    {"{\"k\":\"-----BEGIN PRIVATE KEY-----\\nMIIE\"}", "{\"k\":\"[redacted:private_key]\"}"},
    {"-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", NULL},
    {"-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----", NULL},
    {"https://ann:hunter2@host/x", "https://[redacted:userinfo]@host/x"},
    {"https:\\/\\/ann:hunter2@host", "https:\\/\\/[redacted:userinfo]@host"},
    {"https://0123456789abcdef0123@github.com", "https://[redacted:userinfo]@github.com"},
    {"ssh://git@host/x", NULL},
    {"http://host:8080/a@b", NULL},
    {"see http://host/?q=a:b@c", NULL},
    /* names */
    {"password=hunter2", "password=[redacted:password]"},
    {"password = hunter2, x", "password = [redacted:password], x"},
    {"Password: hunter2\nnext", "Password: [redacted:password]\nnext"},
    {"{\"password\":\"hunter2\",\"a\":1}", "{\"password\":\"[redacted:password]\",\"a\":1}"},
    {"{\\\"password\\\": \\\"hu\\\\\\\"nter\\\", \\\"a\\\": 1}",
     "{\\\"password\\\": \\\"[redacted:password]\\\", \\\"a\\\": 1}"},
    {"'passwd' => 'it is me', b", "'passwd' => '[redacted:password]', b"},
    {"DB_PASSWORD='a b c' cmd", "DB_PASSWORD='[redacted:password]' cmd"},
    {"DB_PASS=x1 cmd", "DB_PASS=[redacted:password] cmd"},
    {"pass=3 fail=0", NULL},
    {"OLDPWD=/srv PWD=/srv", NULL},
    {"cmd --password hunter2 x", "cmd --password [redacted:password] x"},
    {"cmd --password --force", NULL},
    {"the password is missing", NULL},
    {"password: ", NULL},
    {"password=", NULL},
    {"\"password\":null", NULL},
    {"GITHUB_TOKEN=abc", "GITHUB_TOKEN=[redacted:token]"},
    {"https://h/?access_token=abc&x=1", "https://h/?access_token=[redacted:token]&x=1"},
    {"idempotency_token=abc", NULL},
    {"\"idempotency_token\": \"p:op:0123\"", NULL},
    {"\"idempotencyToken\":\"p:op:0123\"", NULL},
    {"max_tokens=400", NULL},
    {"tokens: 400", NULL},
    {"api_key: 'k'", "api_key: '[redacted:api_key]'"},
    {"X-Api-Key: abc", "X-Api-Key: [redacted:api_key]"},
    {"client_secret=abc;x", "client_secret=[redacted:secret];x"},
    {"secretary=ann", NULL},
    {"aws_secret_access_key = wJalr/K7MDENG+x", "aws_secret_access_key = [redacted:api_key]"},
    {"private_key=abc", "private_key=[redacted:private_key]"},
    {"public_key=abc", NULL},
    {"Authorization: Bearer abc.def", "Authorization: [redacted:authorization]"},
    {"-H \"Authorization: Basic YTpi\" x", "-H \"Authorization: [redacted:authorization]\" x"},
    {"Cookie: a=b; c=d\nnext", "Cookie: [redacted:cookie]\nnext"},
    {"sent Bearer abcdefgh01234567", "sent Bearer [redacted:bearer]"},
    {"Bearer of the news", NULL},
    {"bearer authentication-is-needed", NULL},
    {"key=AbCdEfGh0123456789xyz", "key=[redacted:key]"},
    {"\"key\":\"0123456789abcdef0123456789abcdef\"", "\"key\":\"[redacted:key]\""},
    {"key=message", NULL},
    {"key=dead.AbCdEfGh0123456789xyz", NULL},
    {"\"key\":\"0123abcd-0123-4567-89ab-0123456789ab\"", NULL},
    {"password=[redacted:password]", NULL},
    {"password=[redacted:x]hunter2", "password=[redacted:password]"},
    /* what was cut before it came here */
    {"found \"ghp_01…", "found \"[redacted:github_token]…"},
    {"found \"AKIAIO...", "found \"[redacted:aws_key]..."},
    {"found eyJhbGciOi…", "found [redacted:jwt]…"},
    {"", NULL},
};

static void each_text(void)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *want = texts[i].want ? texts[i].want : texts[i].text;
        amp_buf_reset(&out);
        if (amp_redact_text(amp_span_str(texts[i].text), false, &out, &err) < 0)
            printf("# %s\n", err.what);
        TAP_SPAN(amp_buf_span(&out), want, texts[i].text);
    }
}

/* Wherever the text ends: what it shows of the secret is never more than the prefix that is known
 * to everybody. */
static void each_cut(void)
{
    static const struct {
        const char *text, *shown; /* as far as the text may be shown */
    } cases[] = {
        {"x ghp_0123456789abcdefghijABCDEFGHIJ012345", "x ghp_"},
        {"x AKIAIOSFODNN7EXAMPLE", "x AKIA"},
        {"x sk-proj-abcdEFGH0123456789", "x sk-"},
        {"x xoxb-12345678901-abcdef", "x xoxb-"},
        {"x password=hunter2", "x password="},
        {"x \"password\":\"hunter2 and more\"", "x \"password\":\""},
        {"x Authorization: Bearer abcdef", "x Authorization: "},
        {"x -----BEGIN RSA PRIVATE KEY-----\nMIIEabc", "x -----BEGIN "},
        {"x Bearer abcdefgh01234567", "x Bearer "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t shown = strlen(cases[i].shown);
        bool good = true;
        for (size_t n = shown + 1; n <= strlen(cases[i].text); n++) {
            amp_buf_reset(&out);
            good &= amp_redact_text((struct amp_span){cases[i].text, n}, true, &out, &err) == 0;
            struct amp_span s = amp_buf_span(&out);
            size_t same = 0;
            while (same < s.n && same < n && s.p[same] == cases[i].text[same])
                same++;
            if (same > shown) {
                printf("# cut at %zu: %.*s\n", n, (int)s.n, s.p);
                good = false;
            }
        }
        TAP_OK(good, "no half of it is seen: %s", cases[i].text);
    }
}

static void json(void)
{
    static const struct {
        const char *line, *want;
    } cases[] = {
        {"{\"a\":\"x\",\"password\":\"p\\\"q\"}",
         "{\"a\":\"x\",\"password\":\"[redacted:password]\"}"},
        {"{\"p\\u0061ssword\":12}", "{\"p\\u0061ssword\":\"[redacted:password]\"}"},
        {"{\"credentials\":{\"user\":\"a\",\"n\":[1]}}",
         "{\"credentials\":\"[redacted:credentials]\"}"},
        {"{\"token\":null,\"secret\":\"\"}", "{\"token\":null,\"secret\":\"\"}"},
        {"{\"a\":[\"\\u0067hp_0123456789abcdefghijABCDEFGHIJ012345\",1.50]}",
         "{\"a\":[\"[redacted:github_token]\",1.50]}"},
        {"{\"a\":\"say \\\"password=x\\\" now\"}",
         "{\"a\":\"say \\\"password=[redacted:password]\\\" now\"}"},
        {"{\"cmd\":\"{\\\"api_key\\\":\\\"k\\\"}\"}",
         "{\"cmd\":\"{\\\"api_key\\\":\\\"[redacted:api_key]\\\"}\"}"},
        {"{\"a\":\"\\u00e9\\/\"}", "{\"a\":\"\\u00e9\\/\"}"},
        {"{\"key\":\"AbCdEfGh0123456789xyz\"}", "{\"key\":\"[redacted:key]\"}"},
        {"{\"ghp_0123456789abcdefghijABCDEFGHIJ012345\":1}", "{\"[redacted:github_token]\":1}"},
        {"password=x", "password=[redacted:password]"},
        /* A signed line keeps its signature as long as its message has every byte. */
        {"{\"to\":\"b\", \"sig\":{\"v\":\"AAAA\"},\"msg\":{\"a\":1}}",
         "{\"to\":\"b\",\"sig\":{\"v\":\"AAAA\"},\"msg\":{\"a\":1}}"},
        {"{\"sig\":{\"v\":\"AAAA\"},\"msg\":{\"a\": 1}}",
         "{\"sig\":\"[redacted:signature]\",\"msg\":{\"a\":1}}"},
        {"[{\"msg\":{\"password\":\"p\"},\"sig\":{}}]",
         "[{\"msg\":{\"password\":\"[redacted:password]\"},\"sig\":\"[redacted:signature]\"}]"},
        {"{\"sig\":{\"password\":\"p\"},\"msg\":{\"sig\":{},\"msg\":[ ]}}",
         "{\"sig\":\"[redacted:signature]\",\"msg\":{\"sig\":\"[redacted:signature]\",\"msg\":[]}"
         "}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        amp_buf_reset(&out);
        if (amp_redact_line(amp_span_str(cases[i].line), &out, &err) < 0)
            printf("# %s\n", err.what);
        TAP_SPAN(amp_buf_span(&out), cases[i].want, cases[i].line);
    }
}

static void excerpts(void)
{
    amp_buf_reset(&out);
    amp_redact_excerpt(amp_span_str("a\x1b[2J\n\xe2\x80\xae \xff password=hunter2 and then"), 40,
                       &out, &err);
    TAP_SPAN(amp_buf_span(&out),
             "a\\x1b[2J\\x0a\\xe2\\x80\\xae \\xff password=[redacted:password]…",
             "an excerpt is safe for a terminal and cut behind what was redacted");
    char *big = malloc(1 << 20);
    memset(big, 'x', 1 << 20);
    memcpy(big + 65530, " ghp_0123456789abcdefghijABCDEFGHIJ012345 ", 42);
    amp_buf_reset(&out);
    amp_redact_excerpt((struct amp_span){big, 1 << 20}, 70000, &out, &err);
    TAP_OK(!memmem(out.data, out.len, "ghp_0", 5), "nor is what stands at the end of the window");
    free(big);
}

/* Texts made to take long: a megabyte each, and each of them must be done in a moment. */
static void hostile(void)
{
    static const char *const units[] = {
        "a.a-",      "a:\"",     "password:\"\\", "key:\\\"", "-----BEGIN PRIVATE KEY-----",
        "://a:b",    "eyJ.eyJ.", "sk-",           "password", "\"",
        "key=AbCd1", "token=x,", "--password ",   "Bearer ",
    };
    size_t n = 1 << 20;
    char *big = malloc(n);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t m = strlen(units[i]);
        for (size_t k = 0; k < n; k++)
            big[k] = units[i][k % m];
        amp_buf_reset(&out);
        int64_t t = amp_cpu_ns();
        int rc = amp_redact_text((struct amp_span){big, n}, true, &out, &err);
        int64_t ms = (amp_cpu_ns() - t) / 1000000;
        TAP_OK(rc == 0 && ms < 2000, "a megabyte of %s in %d ms", units[i], (int)ms);
    }
    /* Quotes behind more and more backslashes: none closes the one before. */
    size_t at = 0;
    for (size_t k = 0; at + k + 16 < n; k++) {
        memcpy(big + at, "key=", 4);
        memset(big + at + 4, '\\', k);
        big[at + 4 + k] = '"';
        at += k + 5;
    }
    amp_buf_reset(&out);
    int64_t t = amp_cpu_ns();
    amp_redact_text((struct amp_span){big, at}, false, &out, &err);
    TAP_OK((amp_cpu_ns() - t) / 1000000 < 2000, "nor do backslashes take long");
    free(big);
}

static void patterns(void)
{
    TAP_OK(amp_redact_pattern("(?#invoice)INV-\\d{4}", &err) == 0, "a pattern with a name");
    TAP_OK(amp_redact_pattern("customer \\K\\w+", &err) == 0, "and one without");
    TAP_OK(amp_redact_pattern("(", &err) < 0 && err.status == AMP_USAGE, "no regular expression");
    TAP_STR(err.code, "bad_pattern", "its code");
    amp_buf_reset(&out);
    amp_redact_text(amp_span_str("INV-1234 of customer ann, INV-12"), false, &out, &err);
    TAP_SPAN(amp_buf_span(&out), "[redacted:invoice] of customer [redacted:pattern], INV-12",
             "both are replaced");
    amp_buf_reset(&out);
    amp_redact_text(amp_span_str("see INV-12"), true, &out, &err);
    TAP_SPAN(amp_buf_span(&out), "see [redacted:invoice]", "half of one at a cut end too");
    amp_buf_reset(&out);
    amp_redact_line(amp_span_str("{\"a\":\"INV-1234\"}"), &out, &err);
    TAP_SPAN(amp_buf_span(&out), "{\"a\":\"[redacted:invoice]\"}", "and in JSON");
    /* One that takes for ever: the text counts as secret. */
    amp_redact_pattern("(?#slow)(a+)+$", &err);
    size_t n = 1 << 20;
    char *big = malloc(n);
    memset(big, 'a', n);
    big[n - 1] = '!';
    amp_buf_reset(&out);
    int64_t t = amp_cpu_ns();
    int rc = amp_redact_text((struct amp_span){big, n}, false, &out, &err);
    int64_t ms = (amp_cpu_ns() - t) / 1000000;
    TAP_OK(rc == 0 && ms < 3000, "a hostile pattern ends (%d ms)", (int)ms);
    TAP_SPAN(amp_buf_span(&out), "[redacted:not_judged]",
             "and what it could not judge is not shown");
    free(big);
}

int main(void)
{
    amp_buf_init(&out, (size_t)64 << 20);
    each_text();
    each_cut();
    json();
    excerpts();
    hostile();
    patterns();
    amp_buf_release(&out);
    return tap_done();
}
