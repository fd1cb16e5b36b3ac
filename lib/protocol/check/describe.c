/* Looking a description up in the schema's text: slow, and only for lines that were refused. */
#include "protocol/check/describe.h"

#include <stdio.h>
#include <string.h>

enum { POINTER_MOST = 512 };

/* The string under a key of an object, or the empty span; raw, as schemas have no need of escapes
 * in what is shown here. */
static struct amp_span text_of(const struct amp_tape *t, uint32_t object, const char *key)
{
    uint32_t tok = AMP_TOK_NONE;
    if (object != AMP_TOK_NONE && t->tok[object].type == AMP_JSON_OBJECT)
        tok = amp_tape_get(t, object, amp_span_str(key));
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING)
        return (struct amp_span){"", 0};
    return amp_tok_raw(t, tok);
}

static struct amp_span first_sentence(struct amp_span s)
{
    for (size_t i = 0; i + 1 < s.n; i++)
        if (strchr(".;:", s.p[i]) && s.p[i + 1] == ' ')
            return (struct amp_span){s.p, i};
    if (s.n > 0 && s.p[s.n - 1] == '.')
        s.n--;
    return s;
}

static int scan(struct amp_tape *t, struct amp_span path)
{
    struct amp_json_fault fault;
    const struct amp_schema_file *file = amp_schema_file_find(path);
    return file ? amp_tape_scan(t, file->text.p, file->text.n, &fault) : -1;
}

/* "common.json#/$defs/x", relative to the schema's path, or "#/$defs/x". */
static struct amp_span follow(struct amp_tape *t, const char *schema_path, struct amp_span ref)
{
    const char *hash = memchr(ref.p, '#', ref.n), *slash = strrchr(schema_path, '/');
    char path[256];
    struct amp_span none = {"", 0};
    if (!hash || !slash)
        return none;
    struct amp_span file = {ref.p, (size_t)(hash - ref.p)};
    struct amp_span pointer = {hash + 1, ref.n - file.n - 1};
    if (file.n > 0)
        snprintf(path, sizeof path, "%.*s%.*s", (int)(slash + 1 - schema_path), schema_path,
                 (int)file.n, file.p);
    else
        snprintf(path, sizeof path, "%s", schema_path);
    if (scan(t, amp_span_str(path)) < 0)
        return none;
    return text_of(t, amp_tape_pointer(t, 0, pointer), "description");
}

/* The property beside the keyword, or, where a condition only demands it, in an object around it.
 */
static struct amp_span look(const struct amp_tape *t, struct amp_tape *other,
                            const char *schema_path, struct amp_span at, struct amp_span name)
{
    struct amp_span said = {"", 0};
    while (at.n > 0 && said.n == 0) {
        char pointer[POINTER_MOST];
        while (at.n > 0 && at.p[at.n - 1] != '/')
            at.n--;
        int len = snprintf(pointer, sizeof pointer, "%.*sproperties/%.*s", (int)at.n, at.p,
                           (int)name.n, name.p);
        if (at.n == 0 || len < 0 || (size_t)len >= sizeof pointer)
            break;
        uint32_t property = amp_tape_pointer(t, 0, amp_span_str(pointer));
        struct amp_span ref = text_of(t, property, "$ref");
        said = text_of(t, property, "description");
        if (said.n == 0 && ref.n > 0)
            said = follow(other, schema_path, ref);
        at.n--;
    }
    return said;
}

void amp_describe_shortly(struct amp_span description, char *out, size_t size)
{
    amp_span_copy(first_sentence(description), out, size);
    /* It goes on a sentence; an abbreviation keeps its capitals. */
    bool article = out[0] == 'A' && out[1] == ' ';
    if (article || (out[0] >= 'A' && out[0] <= 'Z' && out[1] >= 'a' && out[1] <= 'z'))
        out[0] = (char)(out[0] - 'A' + 'a');
}

void amp_describe(const char *schema_path, struct amp_span schema_at, struct amp_span name,
                  char *out, size_t size)
{
    struct amp_tape t, other;
    out[0] = '\0';
    amp_tape_init(&t, NULL);
    amp_tape_init(&other, NULL);
    if (scan(&t, amp_span_str(schema_path)) == 0)
        amp_describe_shortly(look(&t, &other, schema_path, schema_at, name), out, size);
    amp_tape_release(&t);
    amp_tape_release(&other);
}
