/* An open question, read without changing anything: the functions of people/question/question.h
 * that load a question end it if its subject has ended. */
#ifndef TOP_QUESTIONS_H
#define TOP_QUESTIONS_H

#include "people/question/question.h"

struct top_question {
    struct amp_question q;
    struct amp_question_rec rec; /* its texts are in mem */
    struct amp_buf mem;
};
/* 1: it is open or deferred, and the caller releases it; 0: it is not; -1: failure. */
int top_question_load(struct amp_store *s, const char *key, struct top_question *out,
                      struct amp_error *err);
void top_question_release(struct top_question *q); /* also of a zeroed struct */
#define TOP_QUESTION AMP_CLEANUP(top_question_release) struct top_question

/* The member at a path of keys, "payload.description"; NULL: there is none. */
const json_t *top_member_at(const json_t *j, const char *path);

#endif
