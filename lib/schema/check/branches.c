/*
 * Which branch of an anyOf or oneOf was meant, when none holds: the one whose type fits, whose
 * fixed words (a "kind", a "type") are right, that came furthest, that has least against it, in
 * that order. When none is nearer than another, one note for the whole.
 */
#include <string.h>

#include "schema/check/run.h"

struct score {
    bool fits;      /* nothing against the value as a whole */
    uint32_t words; /* const and enum of its members that do not hold */
    uint32_t first; /* the first place at fault */
    uint32_t notes;
};

static struct score score_of(const struct amp_schema_run *r, uint32_t from, uint32_t tok)
{
    struct score s = {.fits = true, .first = AMP_TOK_NONE, .notes = r->n_notes - from};
    for (uint32_t i = from; i < r->n_notes; i++) {
        const struct amp_note *note = &r->notes[i];
        bool word = !strcmp(note->keyword, "const") || !strcmp(note->keyword, "enum");
        if (note->tok < s.first)
            s.first = note->tok;
        if (note->tok == tok &&
            (word || !strcmp(note->keyword, "type") || !strcmp(note->keyword, "false")))
            s.fits = false;
        s.words += word && note->tok != tok;
    }
    return s;
}

/* More than 0 when a is nearer. */
static int nearer(const struct score *a, const struct score *b)
{
    if (a->fits != b->fits)
        return a->fits - b->fits;
    if (!a->fits) /* none is meant */
        return 0;
    if (a->words != b->words)
        return a->words < b->words ? 1 : -1;
    if (a->first != b->first)
        return a->first > b->first ? 1 : -1;
    return (a->notes < b->notes) - (a->notes > b->notes);
}

void amp_explain_branches(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                          const struct amp_node_list *l, const char *keyword)
{
    uint32_t before = r->n_notes, best = 0;
    struct score most = {0};
    bool tie = true;
    /* Each level runs its branches twice, so the levels are few. */
    for (uint32_t i = 0; i < l->n && !r->failed && r->branches < RUN_BRANCHES; i++) {
        r->branches++;
        amp_run_node(r, l->at[i], tok, NULL);
        r->branches--;
        struct score s = score_of(r, before, tok);
        r->n_notes = before;
        if (s.first == AMP_TOK_NONE)
            continue;
        int than = i ? nearer(&s, &most) : 1;
        if (than > 0) {
            most = s;
            best = i;
        }
        tie = than > 0 ? !s.fits : tie || than == 0;
    }
    if (tie || r->failed) {
        amp_run_note(r, n, keyword, tok, l, (struct amp_span){"", 0});
    } else {
        r->branches++;
        amp_run_node(r, l->at[best], tok, NULL);
        r->branches--;
    }
}
