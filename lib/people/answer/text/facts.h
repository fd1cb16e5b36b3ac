/* A channel or a page says this about a question. */
#ifndef AMP_PEOPLE_ANSWER_TEXT_FACTS_H
#define AMP_PEOPLE_ANSWER_TEXT_FACTS_H

#include "people/question/question.h"

#define AMP_FACTS(X)                                                                               \
    X(event)      /* asked, settled */                                                             \
    X(question)   /* the key of its record */                                                      \
    X(id)         /* of the message that asks */                                                   \
    X(invocation) /* the question's own name */                                                    \
    X(protocol)                                                                                    \
    X(task)                                                                                        \
    X(title)    /* one line */                                                                     \
    X(text)     /* the question; lines that others wrote begin with "| " */                        \
    X(answers)  /* the possible ones, in words */                                                  \
    X(history)  /* what happened to the task or message; as text, like the next ones */            \
    X(files)    /* of the diff, and its size */                                                    \
    X(diff)     /* its beginning */                                                                \
    X(effects)  /* what each answer does */                                                        \
    X(evidence) /* all of these, with headings */                                                  \
    X(arrived)                                                                                     \
    X(digest)                                                                                      \
    X(recipient)                                                                                   \
    X(token)                                                                                       \
    X(link)     /* the page of hitl-prompt receive, with the token */                              \
    X(decision) /* of a settled question */                                                        \
    X(operator)                                                                                    \
    X(channel) /* through which it was answered */
enum amp_fact {
#define X(name) AMP_FACT_##name,
    AMP_FACTS(X)
#undef X
        AMP_FACT_COUNT
};
extern const char *const amp_fact_names[AMP_FACT_COUNT];

struct amp_facts {
    struct amp_buf mem[AMP_FACT_COUNT]; /* NUL-terminated */
};
void amp_facts_init(struct amp_facts *f);
void amp_facts_release(struct amp_facts *f);
#define AMP_FACTS_AUTO AMP_CLEANUP(amp_facts_release)
/* Secrets in title, text and evidence are replaced (protocol/redact/redact.h). */
int amp_facts_set(struct amp_facts *f, enum amp_fact which, struct amp_span value,
                  struct amp_error *err);
const char *amp_facts_get(const struct amp_facts *f, enum amp_fact which); /* "" if unset */
/* Appends text of others, without control characters; `mark` begins each line. */
int amp_fact_mark(const char *mark, const char *text, struct amp_buf *out, struct amp_error *err);
/* The facts of an open question, without its evidence, recipient, token and link. */
int amp_facts_of(struct amp_facts *f, const struct amp_question *q, struct amp_error *err);

int amp_escape_html(struct amp_span text, struct amp_buf *out, struct amp_error *err);

#endif
