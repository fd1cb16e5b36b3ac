/* The code and the sentence for a schema violation. */
#include <stdio.h>
#include <string.h>

#include <amp/schema/schema.h>

#include "base/codes.h"
#include "message/protocol/check/check.h"
#include "message/protocol/spec.h"

/* Field patterns: "[]" is any index; "*part*" is a part of the field. */
static bool field_fits(const char *pattern, const char *field)
{
    if (strcmp(pattern, "*") == 0)
        return true;
    if (*pattern == '*') {
        char part[64];
        snprintf(part, sizeof part, "%.*s", (int)strlen(pattern) - 2, pattern + 1);
        return strstr(field, part) != NULL;
    }
    while (*pattern) {
        if (pattern[0] == '[' && pattern[1] == ']' && *field == '[') {
            pattern += 2;
            field = strchr(field, ']');
            if (!field)
                return false;
            field++;
        } else if (*pattern++ != *field++) {
            return false;
        }
    }
    return *field == '\0';
}

static const struct amp_code_row *row_of(const struct amp_code_row *row, const char *field,
                                         const char *keyword)
{
    for (; row->code; row++)
        if ((row->keyword[0] == '*' || strcmp(row->keyword, keyword) == 0) &&
            field_fits(row->field, field))
            return row;
    return NULL;
}

static const char *type_of(const struct amp_tape *t, uint32_t tok)
{
    enum amp_json_type type = (enum amp_json_type)t->tok[tok].type;
    if (type == AMP_JSON_NULL)
        return "is null";
    if (type == AMP_JSON_TRUE || type == AMP_JSON_FALSE)
        return "is a boolean";
    if (type == AMP_JSON_NUMBER)
        return t->tok[tok].flags & AMP_TOK_FRACTION ? "is a number with a fraction" : "is a number";
    if (type == AMP_JSON_STRING)
        return "is a string";
    return type == AMP_JSON_ARRAY ? "is an array" : "is an object";
}

static const struct {
    const char *keyword, *text;
} sentences[] = {
    {"required", "is missing"},
    {"dependentRequired", "is missing"},
    {"dependencies", "is missing"},
    {"additionalProperties", "is not a field of this message"},
    {"unevaluatedProperties", "is not a field of this message"},
    {"enum", "is not one of the allowed values"},
    {"const", "is not the allowed value"},
    {"pattern", "is malformed"},
    {"format", "is malformed"},
    {"minimum", "is too small"},
    {"exclusiveMinimum", "is too small"},
    {"maximum", "is too large"},
    {"exclusiveMaximum", "is too large"},
    {"minLength", "is too short"},
    {"maxLength", "is too long"},
    {"minItems", "has too few items"},
    {"maxItems", "has too many items"},
    {"minProperties", "has too few fields"},
    {"maxProperties", "has too many fields"},
    {"uniqueItems", "is given twice"},
    {"multipleOf", "is not such a multiple"},
    {"anyOf", "matches no alternative"},
    {"oneOf", "does not match exactly one alternative"},
    {"not", "is excluded"},
    {"items", "is one element too many"},
    {"additionalItems", "is one element too many"},
    {"unevaluatedItems", "is one element too many"},
    {"contains", "has no such element"},
    {"minContains", "has too few such elements"},
    {"maxContains", "has too many such elements"},
    {"false", "is not allowed"},
};

/* own: the schema is the user's, so the line need not be a message. */
static const char *sentence_of(const struct amp_tape *t, const struct amp_violation *v, bool own)
{
    if (strcmp(v->keyword, "type") == 0)
        return type_of(t, v->tok);
    if (strcmp(v->keyword, "minLength") == 0 && t->tok[v->tok].len == 0)
        return "is empty";
    if (strcmp(v->keyword, "minItems") == 0 && t->tok[v->tok].count == 0)
        return "is empty";
    if (own && (strcmp(v->keyword, "additionalProperties") == 0 ||
                strcmp(v->keyword, "unevaluatedProperties") == 0))
        return "is not an allowed field";
    for (unsigned i = 0; i < AMP_SPEC_COUNT(sentences); i++)
        if (strcmp(sentences[i].keyword, v->keyword) == 0)
            return sentences[i].text;
    return "does not fit";
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

/* The first sentence of a description, as a part of another sentence. */
static void describe_shortly(struct amp_span description, char *out, size_t size)
{
    amp_span_copy(first_sentence(description), out, size);
    /* It starts in lower case, except abbreviations. */
    bool article = out[0] == 'A' && out[1] == ' ';
    if (article || (out[0] >= 'A' && out[0] <= 'Z' && out[1] >= 'a' && out[1] <= 'z'))
        out[0] = (char)(out[0] - 'A' + 'a');
}

void amp_check_violation(struct amp_check *c, const struct amp_violation *v,
                         const struct amp_code_row *codes)
{
    bool missing = strcmp(v->keyword, "required") == 0;
    bool absent = missing || strcmp(v->keyword, "dependentRequired") == 0 ||
                  strcmp(v->keyword, "dependencies") == 0;
    bool stranger = strcmp(v->keyword, "additionalProperties") == 0 ||
                    strcmp(v->keyword, "unevaluatedProperties") == 0;
    struct amp_fault fault = {.severity = AMP_SEV_ERROR,
                              .code = "",
                              .rule = v->keyword,
                              .tok = v->tok,
                              .expected = missing ? NULL : v->expected,
                              .show_found = !absent};
    if (absent)
        fault.name = v->name;
    unsigned before = c->n;
    char hint[180] = "", meaning[160] = "";
    if (missing)
        describe_shortly(v->about, meaning, sizeof meaning);
    if (meaning[0])
        snprintf(hint, sizeof hint, " (%s)", meaning);
    if (v->nearest && v->nearest[0])
        snprintf(hint, sizeof hint, "; did you mean `%s`?", v->nearest);
    if (stranger && hint[0])
        fault.expected = NULL; /* the list of properties would hide the hint */
    amp_check_add(c, &fault, "%s%s", sentence_of(c->v->tape, v, !c->schema), hint);
    if (c->n == before)
        return;
    struct amp_finding *f = &c->found[before];
    const struct amp_code_row *row = row_of(codes, f->field, v->keyword);
    f->code = row ? row->code : AMP_CODE(bad_value);
    /* One rule for all missing fields, whichever keyword of a built-in schema requires them. */
    f->rule = absent && c->schema ? "required" : amp_check_text(c, amp_span_str(v->keyword), 60);
    if (!c->schema) /* the schema is the user's; rule and code name a built-in one */
        f->schema_at = amp_check_text(c, v->schema_at, 400);
    if (row && row->expected)
        f->expected = row->expected;
}
