/*
 * HTTP by libcurl. Certificates are checked, no proxy is used, only http and https are allowed. A
 * redirection is followed only within the same origin, because the headers may contain secrets. The
 * size of an answer is limited.
 */
#include "http.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codes.h"

#define ANSWER_MAX   ((size_t)1 << 20)
#define HEADERS_MAX  65536
#define REDIRECTS    3
#define AFTER_MAX_MS 60000
#define CONNECT_MS   10000

struct http {
    CURL *curl;
    CURLU *base;
    struct curl_slist *headers; /* of the file and of every request */
    const char *url;
    size_t got; /* bytes of an answer */
};

static size_t count_answer(char *p, size_t size, size_t n, void *ctx)
{
    struct http *h = ctx;
    h->got += size * n;
    return h->got > ANSWER_MAX ? 0 : size * n;
}

static int add_header(struct curl_slist **list, const char *text, struct amp_error *err)
{
    struct curl_slist *more = curl_slist_append(*list, text);
    if (!more)
        return amp_fail_memory(err);
    *list = more;
    return 0;
}

/* Headers that only this program sets. */
static bool is_ours(const char *line)
{
    static const char *const names[] = {
        "Content-Length:", "Transfer-Encoding:", "Expect:", "Idempotency-Key:", "Host:"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncasecmp(line, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int read_headers(const char *path, char *text, size_t size, struct amp_error *err)
{
    struct stat st;
    AMP_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return amp_fail_errno(err, AMP_USAGE, "cannot read the headers in %s", path);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return amp_fail(err, AMP_USAGE, bad_headers, "%s belongs to another user", path);
    if (st.st_mode & 077)
        return amp_fail(err, AMP_USAGE, bad_headers, "other users can access %s: chmod 600 %s",
                        path, path);
    size_t len = 0;
    ssize_t n;
    while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = 0;
    if (len == size - 1 || memchr(text, 0, len))
        return amp_fail(err, AMP_USAGE, bad_headers, "%s is too long or not text", path);
    return 0;
}

/* One "Name: value" in each line. Empty lines and those that begin with # are ignored. A fault is
 * reported with its line's number, without its text. */
static int take_headers(struct http *h, const char *path, struct amp_error *err)
{
    AMP_FREE char *text = malloc(HEADERS_MAX);
    if (!text)
        return amp_fail_memory(err);
    if (read_headers(path, text, HEADERS_MAX, err) < 0)
        return -1;
    int number = 0;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) {
        number++;
        size_t n = strlen(line);
        if (n > 0 && line[n - 1] == '\r')
            line[--n] = 0;
        if (n == 0 || *line == '#')
            continue;
        const char *colon = strchr(line, ':');
        if (!colon || colon == line || strcspn(line, " \t") < (size_t)(colon - line) ||
            strchr(line, '\r') || is_ours(line))
            return amp_fail(err, AMP_USAGE, bad_headers, "%s:%d: not a header to send", path,
                            number);
        if (add_header(&h->headers, line, err) < 0)
            return -1;
    }
    return 0;
}

static void set_up(struct http *h, const struct http_options *opt)
{
    CURL *c = h->curl;
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (opt->ca) {
        curl_easy_setopt(c, CURLOPT_CAINFO, opt->ca);
        curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
    }
    curl_easy_setopt(c, CURLOPT_PROXY, "");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)opt->timeout_ms);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(opt->timeout_ms < CONNECT_MS ? opt->timeout_ms : CONNECT_MS));
    curl_easy_setopt(c, CURLOPT_USERAGENT, "amp-port-http");
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, count_answer);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
    curl_easy_setopt(c, CURLOPT_POST, 1L);
}

static int http_init(struct http *h, const struct http_options *opt, struct amp_error *err)
{
    h->url = opt->url;
    h->curl = curl_easy_init();
    h->base = curl_url();
    if (!h->curl || !h->base)
        return amp_fail_memory(err);
    if (curl_url_set(h->base, CURLUPART_URL, opt->url, 0) != CURLUE_OK)
        return amp_fail(err, AMP_USAGE, bad_url, "not a URL: %.200s", opt->url);
    if (opt->ca && access(opt->ca, R_OK) < 0)
        return amp_fail_errno(err, AMP_USAGE, "cannot read %s", opt->ca);
    set_up(h, opt);
    if (add_header(&h->headers, "Expect:", err) < 0)
        return -1;
    return opt->headers ? take_headers(h, opt->headers, err) : 0;
}

int http_new(const struct http_options *opt, struct http **out, struct amp_error *err)
{
    struct http *h = calloc(1, sizeof(*h));
    if (!h || curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        free(h);
        return amp_fail(err, AMP_UNAVAILABLE, no_curl, "libcurl does not start");
    }
    if (http_init(h, opt, err) < 0) {
        http_free(h);
        return -1;
    }
    *out = h;
    return 0;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    curl_slist_free_all(h->headers);
    curl_url_cleanup(h->base);
    curl_easy_cleanup(h->curl);
    curl_global_cleanup();
    free(h);
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
    char *x = NULL, *y = NULL;
    bool same = curl_url_get(a, part, &x, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                curl_url_get(b, part, &y, CURLU_DEFAULT_PORT) == CURLUE_OK && strcasecmp(x, y) == 0;
    curl_free(x);
    curl_free(y);
    return same;
}

static bool same_origin(const struct http *h, const char *url)
{
    CURLU *u = curl_url();
    bool same = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
                same_part(h->base, u, CURLUPART_SCHEME) && same_part(h->base, u, CURLUPART_HOST) &&
                same_part(h->base, u, CURLUPART_PORT);
    curl_url_cleanup(u);
    return same;
}

/* Errors that a repetition does not fix. After others the outcome may be unknown; a repetition with
 * the same key is harmless. */
static bool is_final(CURLcode rc)
{
    return rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE ||
           rc == CURLE_UNSUPPORTED_PROTOCOL || rc == CURLE_URL_MALFORMAT ||
           rc == CURLE_SSL_ISSUER_ERROR;
}

static void read_outcome(struct http *h, CURLcode rc, struct http_outcome *how)
{
    long status = 0;
    curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
    /* An answer that is too long is cut; its status is valid. */
    bool cut = rc == CURLE_WRITE_ERROR && h->got > ANSWER_MAX;
    if (rc != CURLE_OK && !cut) {
        long sent = 0;
        curl_easy_getinfo(h->curl, CURLINFO_REQUEST_SIZE, &sent);
        how->unknown = sent > 0;
        how->what = is_final(rc) ? HTTP_NO : HTTP_AGAIN;
        snprintf(how->why, sizeof(how->why), "%s", curl_easy_strerror(rc));
        return;
    }
    snprintf(how->why, sizeof(how->why), "the server answered %ld", status);
    if (status >= 200 && status < 300) {
        how->what = HTTP_DONE;
        return;
    }
    /* 409: the server still processes a request with this key. */
    bool again = status == 408 || status == 409 || status == 425 || status == 429 ||
                 (status >= 500 && status != 501 && status != 505);
    how->what = again ? HTTP_AGAIN : HTTP_NO;
    curl_off_t seconds = 0;
    if (again && curl_easy_getinfo(h->curl, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK &&
        seconds > 0)
        how->after_ms = seconds < AFTER_MAX_MS / 1000 ? (int64_t)seconds * 1000 : AFTER_MAX_MS;
}

/* Returns 1 with the next URL in *url, 0 if there is none. */
static int follow_redirect(struct http *h, CURLcode rc, char **url, struct http_outcome *how)
{
    long status = 0;
    char *to = NULL;
    curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
    if (rc != CURLE_OK || (status != 301 && status != 302 && status != 307 && status != 308) ||
        curl_easy_getinfo(h->curl, CURLINFO_REDIRECT_URL, &to) != CURLE_OK || !to)
        return 0;
    if (same_origin(h, to)) {
        free(*url);
        *url = strdup(to);
        return *url != NULL;
    }
    snprintf(how->why, sizeof(how->why), "the server answered %ld, to another origin", status);
    return 0;
}

/* Makes the request to *url, and follows redirections. */
static void request_perform(struct http *h, char **url, struct http_outcome *how)
{
    for (int hops = 0; hops <= REDIRECTS; hops++) {
        h->got = 0;
        curl_easy_setopt(h->curl, CURLOPT_URL, *url);
        CURLcode done = curl_easy_perform(h->curl);
        *how = (struct http_outcome){0};
        read_outcome(h, done, how);
        if (follow_redirect(h, done, url, how) == 0)
            break;
    }
}

int http_post(struct http *h, struct amp_span key, struct amp_span body, struct http_outcome *how,
              struct amp_error *err)
{
    char line[300];
    AMP_FREE char *url = strdup(h->url);
    struct curl_slist *own = NULL;
    int rc = -1;
    snprintf(line, sizeof(line), "Idempotency-Key: %.*s", (int)(key.n < 256 ? key.n : 256), key.p);
    if (!url)
        return amp_fail_memory(err);
    if (add_header(&own, line, err) < 0 ||
        add_header(&own,
                   body.n > 0 && (*body.p == '{' || *body.p == '[')
                       ? "Content-Type: application/json"
                       : "Content-Type: text/plain; charset=utf-8",
                   err) < 0)
        goto out;
    for (const struct curl_slist *s = h->headers; s; s = s->next)
        if (add_header(&own, s->data, err) < 0)
            goto out;
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, own);
    curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
    curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, body.p);
    request_perform(h, &url, how);
    rc = 0;
out:
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(own);
    return rc;
}
