/* Answers about the tool's knowledge: the codes and the schemas. */
#include <stdio.h>
#include <string.h>

#include <amp/protocol/meaning.h>

#include "cli/cli.h"
#include "validate.h"

static int print(const char *text)
{
    struct amp_error err;
    return amp_out(amp_span_str(text), &err) < 0 ? amp_complain(&err) : AMP_OK;
}

/* One code of one protocol. */
static int explain(enum amp_protocol p, const struct amp_meaning *m)
{
    char line[1200];
    snprintf(line, sizeof line, "%s\t%s\t%s\t%s%s%s%s%s\n", m->code,
             m->severity == AMP_SEV_ERROR ? "error" : "warning",
             p == AMP_PROTO_NONE ? "any" : amp_protocol_name(p), m->means,
             m->source[0] ? " Source: " : "", m->source, m->mend[0] ? " Mend: " : "", m->mend);
    return print(line);
}

int info_explain(const char *code)
{
    bool all = strcmp(code, "all") == 0, found = false;
    for (int p = 0; p < AMP_PROTO_COUNT; p++)
        for (const struct amp_meaning *m = amp_meanings((enum amp_protocol)p); m->code; m++) {
            if (!all && strcmp(m->code, code) != 0)
                continue;
            int status = explain((enum amp_protocol)p, m);
            if (status)
                return status;
            found = true;
        }
    if (found)
        return AMP_OK;
    amp_warn("no such code: %s; 'amp-validate --explain all' lists them", code);
    return AMP_USAGE;
}

int info_list(void)
{
    for (size_t i = 0; i < amp_schema_files_count; i++) {
        char line[200];
        snprintf(line, sizeof line, "%.*s\n",
                 (int)(strlen(amp_schema_files[i].path) - strlen(".json")),
                 amp_schema_files[i].path);
        int status = print(line);
        if (status)
            return status;
    }
    return AMP_OK;
}

int info_schema(const char *name)
{
    size_t n = strlen(name);
    bool found = false;
    for (size_t i = 0; i < amp_schema_files_count; i++) {
        const char *path = amp_schema_files[i].path;
        struct amp_error err;
        if (strncmp(path, name, n) != 0 || (strcmp(path + n, ".json") != 0 && path[n] != '/'))
            continue;
        found = true;
        if (amp_out(amp_schema_files[i].text, &err) < 0)
            return amp_complain(&err);
    }
    if (found)
        return AMP_OK;
    amp_warn("no such schema: %s; 'amp-validate --list' lists them", name);
    return AMP_USAGE;
}
