/*
 * The failure classes of Runtime Protocol v1. Senders use other words too: a word is converted to
 * lower snake case; if it is not a class then, it is read as the class that it hints at, or else
 * that the summary of the error hints at. The codes of these tools have classes of their own.
 */
#include <ctype.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/codes/classes.h"
#include "message/protocol/rtp/rtp.h"
#include "message/protocol/spec.h"

enum { TEXT_MOST = 1024 }; /* bytes of a text that are read */

#define X(word) word,
static const char *const classes[] = {AMP_RTP_FAILURE_LIST(X)};
#undef X

/* The first hint in the text decides; a hint between underscores is a complete word. */
static const struct {
    const char *hint, *class;
} hints[] = {
    {"approval", AMP_CODE(approval_required)},
    {"timeout", "timeout"},
    {"_sla_", "timeout"},
    {"_eta_", "timeout"},
    {"version", AMP_CODE(version_incompatible)},
    {"dependency", AMP_CODE(dependency_missing)},
    {"missing", AMP_CODE(dependency_missing)},
    {"auth", "authz_denied"},
    {"route", AMP_CODE(invalid_target)},
    {"target", AMP_CODE(invalid_target)},
    {"assignee", AMP_CODE(invalid_target)},
    {"policy", "policy_blocked"},
    {"transport", "transport_error"},
    {"network", "transport_error"},
    {"connection", "transport_error"},
};

/* "Dependency Missing", "dependency-missing" and "dependencyMissing" as "_dependency_missing_". */
static void snake_case(struct amp_span text, char out[TEXT_MOST + 3])
{
    size_t n = 0;
    bool lower = false;
    out[n++] = '_';
    for (size_t i = 0; i < text.n && n < TEXT_MOST; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (out[n - 1] != '_' && (!isalnum(c) || (isupper(c) && lower)))
            out[n++] = '_';
        if (isalnum(c))
            out[n++] = (char)tolower(c);
        lower = islower(c);
    }
    if (out[n - 1] != '_')
        out[n++] = '_';
    out[n] = '\0';
}

static const char *const of_codes[AMP_CODE_CLASSES] = {
    [AMP_CODE_FOREIGN] = NULL, /* the hints decide */
    [AMP_CODE_INTERNAL] = AMP_CODE(execution_error),
    [AMP_CODE_WORK] = AMP_CODE(execution_error),
    [AMP_CODE_CRASH] = AMP_CODE(execution_error),
    [AMP_CODE_ANSWER] = AMP_CODE(execution_error),
    [AMP_CODE_DEPENDENCY] = AMP_CODE(dependency_missing),
    [AMP_CODE_VALIDATION] = "failed_terminal",
    [AMP_CODE_PERMISSION] = "authz_denied",
    [AMP_CODE_SIZE] = "failed_terminal",
    [AMP_CODE_ROUTE] = AMP_CODE(invalid_target),
    [AMP_CODE_UNAVAILABLE] = "dependency_unavailable",
    [AMP_CODE_LIMIT] = "overloaded",
    [AMP_CODE_FULL] = "overloaded",
    [AMP_CODE_EXPIRED] = AMP_CODE(timeout),
    [AMP_CODE_TIMEOUT] = AMP_CODE(timeout),
    [AMP_CODE_DUPLICATE] = "failed_terminal",
    [AMP_CODE_PROGRESS] = "failed_terminal",
    [AMP_CODE_CANCELLED] = "failed_terminal",
    [AMP_CODE_PREEMPTED] = "overloaded",
    [AMP_CODE_BUDGET] = "policy_blocked",
    [AMP_CODE_DEPTH] = "policy_blocked",
};

/* The class that a text names, or else hints at; NULL: none. */
static const char *class_of(struct amp_span text)
{
    char word[TEXT_MOST + 3];
    snake_case(text, word);
    size_t n = strlen(word);
    for (unsigned i = 0; i < AMP_SPEC_COUNT(classes); i++)
        if (n == strlen(classes[i]) + 2 && strncmp(word + 1, classes[i], n - 2) == 0)
            return classes[i];
    word[n - 1] = '\0';
    const char *ours = of_codes[amp_code_class(word + 1)];
    if (ours)
        return ours;
    word[n - 1] = '_';
    for (unsigned i = 0; i < AMP_SPEC_COUNT(hints); i++)
        if (strstr(word, hints[i].hint))
            return hints[i].class;
    return NULL;
}

const char *amp_rtp_failure(struct amp_span word, struct amp_span summary)
{
    const char *class = class_of(word);
    if (!class)
        class = class_of(summary);
    return class ? class : AMP_CODE(execution_error);
}

void amp_rtp_failure_class(struct amp_check *c, uint32_t object, const char *pointer,
                           const char *also)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t tok = amp_object_get(t, object, "failureClass", AMP_JSON_STRING);
    if (tok == AMP_TOK_NONE || t->tok[tok].len == 0)
        return;
    for (unsigned i = 0; i < AMP_SPEC_COUNT(classes); i++)
        if (amp_tok_is(t, tok, amp_span_str(classes[i])))
            return;
    if (also && amp_tok_is(t, tok, amp_span_str(also)))
        return;
    uint32_t said = amp_object_get(t, object, "errorSummary", AMP_JSON_STRING);
    struct amp_span summary = said != AMP_TOK_NONE ? amp_tok_raw(t, said) : AMP_SPAN("");
    amp_check_rule(c, AMP_SEV_WARNING, AMP_CODE(inferred_failure_class), "failure_class", pointer,
                   "one of its fourteen words",
                   "is not a failure class of the protocol and is read as %s",
                   amp_rtp_failure(amp_tok_raw(t, tok), summary));
}
