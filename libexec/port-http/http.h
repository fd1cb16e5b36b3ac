/* Sends messages to a URL, one attempt at a time. */
#ifndef PORT_HTTP_HTTP_H
#define PORT_HTTP_HTTP_H

#include <amp/base/buf.h>

struct http_options {
    const char *url, *headers, *ca;
    int64_t timeout_ms;
};

enum http_class { HTTP_DONE, HTTP_AGAIN, HTTP_NO };

struct http_outcome {
    enum http_class what;
    int64_t after_ms; /* the delay that the server requests */
    bool unknown;     /* there was no answer, but the server may have the request */
    char why[200];
};

struct http;

/* Fails with USAGE if the URL or a file cannot be used. */
int http_new(const struct http_options *opt, struct http **out, struct amp_error *err);
void http_free(struct http *h);
int http_post(struct http *h, struct amp_span key, struct amp_span body, struct http_outcome *how,
              struct amp_error *err);
#endif
