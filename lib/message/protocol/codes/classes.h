/*
 * The kinds of failure that codes of these tools name. A protocol with its own list of codes has
 * a code for each class, so that no code gets another meaning on the wire.
 */
#ifndef AMP_MESSAGE_PROTOCOL_CODES_CLASSES_H
#define AMP_MESSAGE_PROTOCOL_CODES_CLASSES_H

enum amp_code_class {
    AMP_CODE_FOREIGN,     /* the code is the system's (the name of an errno) or somebody else's */
    AMP_CODE_INTERNAL,    /* the machinery failed */
    AMP_CODE_WORK,        /* the work was done, or tried, and failed */
    AMP_CODE_CRASH,       /* the process that did the work failed, or is gone */
    AMP_CODE_ANSWER,      /* the answer of the one who did the work is wrong or missing */
    AMP_CODE_DEPENDENCY,  /* something that the work needs is missing */
    AMP_CODE_VALIDATION,  /* the message is wrong, or does not fit the state */
    AMP_CODE_PERMISSION,  /* the sender may not do this */
    AMP_CODE_SIZE,        /* the message is too large */
    AMP_CODE_ROUTE,       /* there is no such recipient */
    AMP_CODE_UNAVAILABLE, /* the recipient takes nothing now, or cannot be started */
    AMP_CODE_LIMIT,       /* the recipient's limit of usage or rate is reached */
    AMP_CODE_FULL,        /* a buffer is full */
    AMP_CODE_EXPIRED,     /* its time was over before the work began */
    AMP_CODE_TIMEOUT,     /* the work took too long, or no answer came */
    AMP_CODE_DUPLICATE,   /* the same was done before */
    AMP_CODE_PROGRESS,    /* the same is being done */
    AMP_CODE_CANCELLED,   /* it is not wanted any more */
    AMP_CODE_PREEMPTED,   /* it had to yield */
    AMP_CODE_BUDGET,      /* what it may cost is spent */
    AMP_CODE_DEPTH,       /* it was delegated too often */
    AMP_CODE_CLASSES
};
/* Finds the class of a code in upper or lower case. */
enum amp_code_class amp_code_class(const char *code);

#endif
