/* Keywords that check nothing. Their own values have to be right all the same: a schema that says
 * "readOnly": "yes" is a wrong schema. */
#include "schema/compile/keywords.h"

static enum amp_json_type type_of(const struct amp_node *n, uint32_t tok)
{
    return (enum amp_json_type)n->doc->tape.tok[tok].type;
}

AMP_KEYWORD_FN(amp_kw_text)
{
    if (type_of(n, value) == AMP_JSON_STRING)
        return 0;
    return amp_schema_wrong_value(c, n->doc, value, "a string is expected", NULL);
}

AMP_KEYWORD_FN(amp_kw_flag)
{
    if (type_of(n, value) == AMP_JSON_TRUE || type_of(n, value) == AMP_JSON_FALSE)
        return 0;
    return amp_schema_wrong_value(c, n->doc, value, "true or false is expected", NULL);
}

AMP_KEYWORD_FN(amp_kw_list)
{
    if (type_of(n, value) == AMP_JSON_ARRAY)
        return 0;
    return amp_schema_wrong_value(c, n->doc, value, "an array is expected", NULL);
}

AMP_KEYWORD_FN(amp_kw_vocabulary)
{
    const struct amp_tape *t = &n->doc->tape;
    if (type_of(n, value) != AMP_JSON_OBJECT)
        return amp_schema_wrong_value(c, n->doc, value, "an object of vocabularies is expected",
                                      NULL);
    for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k + 1].next)
        if (amp_kw_flag(c, n, k + 1))
            return -1;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_content_schema)
{
    return amp_node_child(c, n, value) ? 0 : -1;
}
