/* Cases of the schema checker: a schema, then values that are valid, NULL, values that are not,
 * NULL. Each is checked, and the explaining pass has to agree. The suite of the JSON Schema project
 * is run by tests/conformance; this stands alone. */
#ifndef TESTS_SCHEMA_CASES_H
#define TESTS_SCHEMA_CASES_H

#include "schema_help.h"

static int run_cases(const char *const *cases, size_t n)
{
    size_t i = 0;
    amp_tape_init(&tape, NULL);
    run = amp_schema_run_new(NULL);
    while (i < n) {
        const char *text = cases[i++];
        struct amp_schema *s = compile(text);
        TAP_OK(s != NULL, "compiles: %.80s", text);
        for (int want = 1; want >= 0; want--, i++) {
            for (; cases[i]; i++) {
                struct told t = {.ordered = true};
                int got = s && load(cases[i]) ? amp_schema_check(s, run, &tape, 0, NULL) : -2;
                int told = s ? amp_schema_explain(s, run, &tape, 0, 0, tell, &t, NULL) : -2;
                TAP_OK(got == want && (want ? told == 0 : told > 0 && t.ordered),
                       "%s %.40s for %.60s", want ? "valid" : "invalid", cases[i], text);
            }
        }
        amp_schema_free(s);
    }
    amp_schema_run_free(run);
    amp_tape_release(&tape);
    return tap_done();
}

#endif
