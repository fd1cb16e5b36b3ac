/* Answers about the tool's knowledge: the codes and the schemas. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <amp/protocol/meaning.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "validate.h"

enum { WIDTH = 78, HEADING = 10, SCHEMA_MOST = 16 * 1024 * 1024 };

static int print(const char *text)
{
    struct amp_error err;
    return amp_out(amp_span_str(text), &err) < 0 ? amp_complain(&err) : AMP_OK;
}

static const char *severity_of(const struct amp_meaning *m)
{
    return m->severity == AMP_SEV_ERROR ? "error" : "warning";
}

/* A row of the table that programs read. */
static int explain_row(enum amp_protocol p, const struct amp_meaning *m)
{
    char line[1600];
    snprintf(line, sizeof line, "%s\t%s\t%s\t%s\t%s\t%s\n", m->code, severity_of(m),
             p == AMP_PROTO_NONE ? "any" : amp_protocol_name(p), m->means, m->source, m->fix);
    return print(line);
}

/* Text within the width, behind a heading that the lines below leave free. */
static int paragraph(const char *heading, const char *text)
{
    char line[WIDTH + 2];
    size_t room = WIDTH - HEADING;
    while (*text) {
        size_t n = strlen(text);
        if (n > room) {
            n = room;
            while (n > 0 && text[n] != ' ')
                n--;
            if (n == 0)
                n = strcspn(text, " ");
        }
        if (n > room)
            n = room;
        snprintf(line, sizeof line, "%-*s%.*s\n", HEADING, heading, (int)n, text);
        if (print(line) != AMP_OK)
            return AMP_IOERR;
        text += n;
        text += strspn(text, " ");
        heading = "";
    }
    return AMP_OK;
}

static const char *title_of(enum amp_protocol p)
{
    static const char *const titles[AMP_PROTO_COUNT] = {[AMP_PROTO_NONE] = "any protocol",
#define X(id, name, title) [AMP_PROTO_##id] = (title),
                                                        AMP_PROTOCOL_LIST(X)
#undef X
    };
    return titles[p];
}

/* One code of one protocol, for people. */
static int explain(enum amp_protocol p, const struct amp_meaning *m, bool first)
{
    char head[120];
    snprintf(head, sizeof head, "%s%s (%s, %s)\n", first ? "" : "\n", m->code, severity_of(m),
             title_of(p));
    int status = print(head);
    if (status == AMP_OK)
        status = paragraph("", m->means);
    if (status == AMP_OK)
        status = paragraph("  Source:", m->source);
    return status == AMP_OK ? paragraph("  Fix:", m->fix) : status;
}

/* No such name: the one that was meant, where one is near. */
__attribute__((noreturn)) static void unknown(const char *what, const char *asked,
                                              const struct amp_nearest *near, const char *option)
{
    if (near->word[0])
        amp_die_usage("unknown %s: %s (did you mean `%s`?); 'amp-validate %s' lists them", what,
                      asked, near->word, option);
    amp_die_usage("unknown %s: %s; 'amp-validate %s' lists them", what, asked, option);
}

int info_explain(const char *code)
{
    bool all = strcmp(code, "all") == 0, found = false;
    struct amp_nearest near;
    amp_nearest_init(&near, amp_span_str(code));
    for (int p = 0; p < AMP_PROTO_COUNT; p++)
        for (const struct amp_meaning *m = amp_meanings((enum amp_protocol)p); m->code; m++) {
            amp_nearest_try(&near, amp_span_str(m->code));
            if (!all && strcasecmp(m->code, code) != 0)
                continue;
            int status = all ? explain_row((enum amp_protocol)p, m)
                             : explain((enum amp_protocol)p, m, !found);
            if (status)
                return status;
            found = true;
        }
    if (!found)
        unknown("code", code, &near, "--explain all");
    return AMP_OK;
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
    struct amp_nearest near;
    amp_nearest_init(&near, amp_span_str(name));
    for (size_t i = 0; i < amp_schema_files_count; i++) {
        const char *path = amp_schema_files[i].path;
        struct amp_error err;
        amp_nearest_try(&near, (struct amp_span){path, strlen(path) - strlen(".json")});
        if (strncmp(path, name, n) != 0 || (strcmp(path + n, ".json") != 0 && path[n] != '/'))
            continue;
        found = true;
        AMP_BUF struct amp_buf text = {0};
        amp_buf_init(&text, SCHEMA_MOST);
        if (amp_schema_bundle(&amp_schema_files[i], &text, &err) < 0 ||
            amp_out(amp_buf_span(&text), &err) < 0)
            return amp_complain(&err);
    }
    if (!found)
        unknown("schema", name, &near, "--list");
    return AMP_OK;
}
