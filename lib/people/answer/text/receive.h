/*
 * Answers by HTTP: one request in, one response out, for a program behind CGI, inetd or socat. GET
 * with a valid token shows what is asked and a form; it changes nothing, so a preview of the link
 * decides nothing. POST answers. Without a valid token a response says nothing about the state.
 */
#ifndef AMP_PEOPLE_ANSWER_TEXT_RECEIVE_H
#define AMP_PEOPLE_ANSWER_TEXT_RECEIVE_H

#include "people/answer/text/answer.h"

enum { AMP_RECEIVE_BODY_MAX = 1 << 18 };

struct amp_receive {
    struct amp_decider *decider;
    const char *where; /* the address of the sender, or what is known of it; for records */
    enum amp_token_answers tokens;
    int64_t now_ms; /* 0: the clock's */
};

/* A request; the spans are the caller's, empty where they are absent. */
struct amp_receive_request {
    struct amp_span method, query, type, body;
};

struct amp_receive_response {
    int status; /* of HTTP */
    bool html;  /* else plain text */
    bool head;  /* the body is not sent */
    struct amp_buf body;
};
void amp_receive_release(struct amp_receive_response *r);

/* Makes the response. Statuses: 200 the page, a decision, a vote or a deferral; 400 malformed; 403
 * not allowed with a token, or to this person; 404 no valid token; 405 neither GET, HEAD nor POST;
 * 409 the question is closed, or has another content; 410 the token was used or has expired; 413
 * the body is too long; 415 another kind of body; 422 not an answer to this question; 503 the state
 * cannot be used now. -1: out of memory. */
int amp_receive_answer(const struct amp_receive *r, const struct amp_receive_request *in,
                       struct amp_receive_response *out, struct amp_error *err);
/* Handles the bytes of a request in the same way; they end where the sender stopped. */
int amp_receive_bytes(const struct amp_receive *r, struct amp_span bytes,
                      struct amp_receive_response *out, struct amp_error *err);
/* The response to a request that could not be read: 400, 408 or 413. */
int amp_receive_refuse(struct amp_receive_response *out, int status, struct amp_error *err);
/* Finds how many bytes a request has. 1: *n is known; 0: the head is incomplete; -1: it is
 * malformed, or longer than allowed. */
int amp_receive_length(struct amp_span bytes, size_t *n);

/* Appends the response: a status line, or with cgi "Status:", the headers and the body. */
int amp_receive_write(const struct amp_receive_response *r, bool cgi, struct amp_buf *out,
                      struct amp_error *err);

#endif
