/* --explain, --list and --print-schema: the codes and the built-in schemas. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <amp/json/writer.h>
#include <amp/protocol/meaning.h>

#include "base/codes.h"
#include "base/nearest.h"
#include "base/values.h"
#include "cli/cli.h"
#include "message/protocol/codes/values.h"
#include "validate.h"

enum { WIDTH = 78, HEADING = 10, TEXT_MOST = 64 * 1024 * 1024 };

/* Writes the answer; returns the exit status. */
static const char *severity_of(const struct amp_meaning *m)
{
    return m->severity == AMP_SEV_ERROR ? "error" : "warning";
}

/* A row of the table that programs read. */
static int add_row(enum amp_protocol p, const struct amp_meaning *m, struct amp_buf *out,
                   struct amp_error *err)
{
    return amp_buf_fmt(out, err, "%s\t%s\t%s\t%s\t%s\t%s\n", m->code, severity_of(m),
                       p == AMP_PROTO_NONE ? "any" : amp_protocol_name(p), m->means, m->source,
                       m->fix);
}

/* Adds the row as an object. */
static int add_object(enum amp_protocol p, const struct amp_meaning *m, struct amp_buf *out,
                      struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "code", m->code);
    amp_jw_member_text(&w, "severity", severity_of(m));
    amp_jw_member_text(&w, "protocol", p == AMP_PROTO_NONE ? "any" : amp_protocol_name(p));
    amp_jw_member_text(&w, "means", m->means);
    amp_jw_member_text(&w, "source", m->source);
    amp_jw_member_text(&w, "fix", m->fix);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

/* Text within the width, after a heading that has its own column. */
static int add_paragraph(const char *heading, const char *text, struct amp_buf *out,
                         struct amp_error *err)
{
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
        if (amp_buf_fmt(out, err, "%-*s%.*s\n", HEADING, heading, (int)n, text) < 0)
            return -1;
        text += n;
        text += strspn(text, " ");
        heading = "";
    }
    return 0;
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
static int add_meaning(enum amp_protocol p, const struct amp_meaning *m, struct amp_buf *out,
                       struct amp_error *err)
{
    if (amp_buf_fmt(out, err, "%s%s (%s, %s)\n", out->len ? "\n" : "", m->code, severity_of(m),
                    title_of(p)) < 0 ||
        add_paragraph("", m->means, out, err) < 0 ||
        add_paragraph("  Source:", m->source, out, err) < 0)
        return -1;
    return add_paragraph("  Fix:", m->fix, out, err);
}

/* An unknown name, with the one that was probably meant. */
__attribute__((noreturn)) static void
die_unknown(const char *what, const char *asked, const struct amp_nearest *near, const char *option)
{
    if (near->word[0])
        amp_die_usage("unknown %s: %s (did you mean `%s`?); 'amp-validate %s' lists them", what,
                      asked, near->word, option);
    amp_die_usage("unknown %s: %s; 'amp-validate %s' lists them", what, asked, option);
}

int info_explain(const char *code, bool json, struct amp_error *err)
{
    bool all = strcmp(code, "all") == 0;
    AMP_BUF struct amp_buf text = {0};
    struct amp_nearest near;
    int (*add)(enum amp_protocol, const struct amp_meaning *, struct amp_buf *,
               struct amp_error *) = json  ? add_object
                                     : all ? add_row
                                           : add_meaning;
    amp_buf_init(&text, TEXT_MOST);
    amp_nearest_init(&near, amp_span_str(code));
    for (enum amp_protocol p = AMP_PROTO_NONE; p < AMP_PROTO_COUNT; p++)
        for (const struct amp_meaning *m = amp_meanings(p); m->code; m++) {
            amp_nearest_try(&near, amp_span_str(m->code));
            if (!all && strcasecmp(m->code, code) != 0)
                continue;
            if (add(p, m, &text, err) < 0)
                return -1;
        }
    if (text.len == 0)
        die_unknown("code", code, &near, "--explain all");
    return amp_out(amp_buf_span(&text), err);
}

int info_values(const struct amp_values_ask *ask, struct amp_error *err)
{
    int rc = 0;

    if (amp_span_is(ask->what, "code"))
        return amp_code_values(ask, err);
    if (!amp_span_is(ask->what, "schema"))
        return amp_fail(err, AMP_USAGE, bad_usage, "there are no values of the kind %.*s",
                        AMP_CLIP(ask->what, 40));
    for (size_t i = 0; rc == 0 && i < amp_schema_files_count; i++) {
        struct amp_span path = amp_span_str(amp_schema_files[i].path);
        path.n -= strlen(".json");
        rc = ask->fn(ask->ctx, path, AMP_SPAN(""), err);
    }
    return rc;
}

/* A schema with its title. */
static int schema_object(const struct amp_schema_file *f, struct amp_buf *out,
                         struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    AMP_BUF struct amp_buf arena = {.max = TEXT_MOST};
    struct amp_json_fault fault;
    struct amp_span title = {"", 0};
    struct amp_jw w;
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, f->text.p, f->text.n, &fault) < 0)
        return amp_fail_memory(err); /* the build embeds only JSON */
    uint32_t tok = amp_tape_get(&t, 0, AMP_SPAN("title"));
    if (tok != AMP_TOK_NONE && amp_tok_text(&t, tok, &arena, &title, err) < 0)
        return -1;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "schema", (struct amp_span){f->path, strlen(f->path) - strlen(".json")});
    amp_jw_some_str(&w, "title", title);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

int info_list(bool json, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, TEXT_MOST);
    for (size_t i = 0; i < amp_schema_files_count; i++) {
        const char *path = amp_schema_files[i].path;
        if ((json ? schema_object(&amp_schema_files[i], &text, err)
                  : amp_buf_fmt(&text, err, "%.*s\n", (int)(strlen(path) - strlen(".json")),
                                path)) < 0)
            return -1;
    }
    return amp_out(amp_buf_span(&text), err);
}

int info_schema(const char *name, struct amp_error *err)
{
    size_t n = strlen(name);
    AMP_BUF struct amp_buf text = {0};
    struct amp_nearest near;
    amp_buf_init(&text, TEXT_MOST);
    amp_nearest_init(&near, amp_span_str(name));
    for (size_t i = 0; i < amp_schema_files_count; i++) {
        const char *path = amp_schema_files[i].path;
        amp_nearest_try(&near, (struct amp_span){path, strlen(path) - strlen(".json")});
        if (strncmp(path, name, n) != 0 || (strcmp(path + n, ".json") != 0 && path[n] != '/'))
            continue;
        if (amp_schema_bundle(&amp_schema_files[i], &text, err) < 0)
            return -1;
    }
    if (text.len == 0)
        die_unknown("schema", name, &near, "--list");
    return amp_out(amp_buf_span(&text), err);
}
