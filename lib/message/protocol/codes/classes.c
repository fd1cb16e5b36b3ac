/* The codes of each class, also those that AOP alone has. */
#include "message/protocol/codes/classes.h"

#include <string.h>
#include <strings.h>

#include "base/codes.h"

#define X(name) #name " "
static const char *const lists[AMP_CODE_CLASSES] = {
    [AMP_CODE_FOREIGN] = "",
    [AMP_CODE_INTERNAL] = AMP_CODES_INTERNAL(X),
    [AMP_CODE_WORK] = AMP_CODES_WORK(X),
    [AMP_CODE_CRASH] = AMP_CODES_CRASH(X),
    [AMP_CODE_ANSWER] = AMP_CODES_ANSWER(X),
    [AMP_CODE_DEPENDENCY] = AMP_CODES_DEPENDENCY(X),
    [AMP_CODE_VALIDATION] = AMP_CODES_VALIDATION(X) "protocol.message.unknown",
    [AMP_CODE_PERMISSION] = AMP_CODES_PERMISSION(X),
    [AMP_CODE_SIZE] = AMP_CODES_SIZE(X),
    [AMP_CODE_ROUTE] = AMP_CODES_ROUTE(X),
    [AMP_CODE_UNAVAILABLE] = AMP_CODES_UNAVAILABLE(X),
    [AMP_CODE_LIMIT] = AMP_CODES_LIMIT(X),
    [AMP_CODE_FULL] = AMP_CODES_FULL(X),
    [AMP_CODE_EXPIRED] = AMP_CODES_EXPIRED(X),
    [AMP_CODE_TIMEOUT] = AMP_CODES_TIMEOUT(X),
    [AMP_CODE_DUPLICATE] = AMP_CODES_DUPLICATE(X),
    [AMP_CODE_PROGRESS] = AMP_CODES_PROGRESS(X),
    [AMP_CODE_CANCELLED] = AMP_CODES_CANCELLED(X),
    [AMP_CODE_PREEMPTED] = AMP_CODES_PREEMPTED(X),
    [AMP_CODE_BUDGET] = AMP_CODES_BUDGET(X),
    [AMP_CODE_DEPTH] = AMP_CODES_DEPTH(X),
};
#undef X

enum amp_code_class amp_code_class(const char *code)
{
    size_t n = strlen(code);
    for (int i = 0; i < AMP_CODE_CLASSES; i++)
        for (const char *p = lists[i]; *p; p += strspn(p, " ")) {
            size_t len = strcspn(p, " ");
            if (len == n && strncasecmp(p, code, n) == 0)
                return (enum amp_code_class)i;
            p += len;
        }
    return AMP_CODE_FOREIGN;
}
