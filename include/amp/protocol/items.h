/* The items of the lists in a body. */
#ifndef AMP_PROTOCOL_ITEMS_H
#define AMP_PROTOCOL_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

struct amp_spans {
    const struct amp_span *v;
    uint32_t n;
};

enum amp_tri { AMP_TRI_NULL, AMP_TRI_FALSE, AMP_TRI_TRUE }; /* criteria: null means not judged */

struct amp_subtask {
    struct amp_span id, description;
    int64_t estimated_lines;
};
struct amp_issue {
    bool blocking; /* critical or major */
    struct amp_span severity, file, description, suggested_fix;
    int64_t line;
};
struct amp_criterion {
    struct amp_span criterion, evidence;
    enum amp_tri passed;
};
struct amp_fix {
    struct amp_span file, change_type;
    int64_t diff_lines;
};

AMP_API_END

#endif
