/* Checks amp.json against its published schema. */
#include "shared/config_schema.h"

#include <string.h>

#include <amp/json/tape.h>
#include <amp/schema/schema.h>

#define SCHEMA "config/amp.json"
/* Marks a section in the schema. */
#define MARK "x-state-directory"

int amp_config_check(struct amp_span text, struct amp_error *err)
{
    return amp_schema_check_text(SCHEMA, text, err);
}

static bool section_marked(const struct amp_tape *t, struct amp_span section)
{
    uint32_t tok = amp_tape_get(t, 0, AMP_SPAN("properties"));
    if (tok != AMP_TOK_NONE)
        tok = amp_tape_get(t, tok, section);
    if (tok != AMP_TOK_NONE)
        tok = amp_tape_get(t, tok, AMP_SPAN(MARK));
    return tok != AMP_TOK_NONE && t->tok[tok].type == AMP_JSON_TRUE;
}

bool amp_config_state_may_set(struct amp_span key)
{
    const struct amp_schema_file *f = amp_schema_file_find(AMP_SPAN(SCHEMA));
    const char *dot = memchr(key.p, '.', key.n);
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape t = {0};
    amp_tape_init(&t, NULL);
    return f && amp_tape_scan(&t, f->text.p, f->text.n, &fault) == 0 &&
           section_marked(&t, (struct amp_span){key.p, dot ? (size_t)(dot - key.p) : key.n});
}
