/* The state of a check in progress, shared by check.c, children.c and explain.c. */
#ifndef AMP_SCHEMA_CHECK_RUN_H
#define AMP_SCHEMA_CHECK_RUN_H

#include "base/codes.h"
#include "base/nearest.h"
#include "schema/compile/program.h"
#include "schema/format/pattern.h"

enum { RUN_DEPTH = 4000, RUN_SCOPE = 4096, RUN_NOTES = 512, RUN_BRANCHES = 3 };

/* The children of one object or array that have been checked: bits in run->bits from `at`. */
struct amp_marks {
    uint32_t at, count;
};

/* A violation as it is found; its texts are made when all are known. */
struct amp_note {
    const struct amp_node *node;
    const char *keyword;
    uint32_t tok;
    struct amp_span name;
    const void *detail; /* the value rules, bound or branch that failed */
};

/* The node that checks each member of an object of one shape, for one node; NULL if any value is
 * valid. Found once, then used for every line. */
enum { RUN_SHAPES = 256, RUN_SHAPE_KEYS = 24 };
struct amp_run_shape {
    const struct amp_node *node;
    uint64_t program, tape; /* ids of the program and of the tape's table of shapes */
    uint16_t shape;
    bool busy, turn; /* in use; of a pair's first: the second is replaced next */
    const struct amp_node *member[RUN_SHAPE_KEYS];
};

struct amp_schema_run {
    const struct amp_schema *schema;
    const struct amp_tape *t;
    struct amp_error *err;
    struct amp_matcher *matcher;
    struct amp_buf text; /* decoded strings */
    uint64_t *bits;
    uint32_t n_bits, cap_bits;
    uint32_t *slots; /* uniqueItems of many elements */
    size_t cap_slots;
    uint32_t depth, n_scope;
    uint32_t patterns; /* matched on the engine so far in this check */
    int64_t budget;    /* remaining steps: see amp_run_spend */
    bool failed;       /* could not be decided; err is set */
    bool explain;      /* continue and take notes */
    struct amp_note *notes;
    uint32_t n_notes;
    uint32_t branches;                      /* choices being explained inside each other */
    struct amp_buf pointer, expected, name; /* of the violation being reported */
    struct amp_nearest nearest;
    /* Large, so not cleared completely: see amp_schema_run_new. */
    uint32_t scope[RUN_SCOPE];               /* resources, outermost first */
    struct amp_run_shape shapes[RUN_SHAPES]; /* by node and shape */
};

static inline bool amp_node_is_false(const struct amp_node *n)
{
    return n->types == 0;
}

/* expected.c: fills r->expected and r->nearest. note->name is decoded. */
void amp_run_expected(struct amp_schema_run *r, const struct amp_note *note);
/* explain.c: no branch of an anyOf or oneOf holds: takes the notes of the one that was meant. */
void amp_explain_branches(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                          const struct amp_node_list *l, const char *keyword);
/* Begins a check of s over t, with its limits. err may be NULL. */
void amp_run_start(struct amp_schema_run *r, const struct amp_schema *s, const struct amp_tape *t,
                   struct amp_error *err);
/* Whether the value is valid; meaningless when r->failed. */
bool amp_run_node(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                  const struct amp_marks *m);
bool amp_run_object(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                    const struct amp_marks *m);
bool amp_run_array(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                   const struct amp_marks *m);

/* The target of a $dynamicRef in the present scope; the property of a key, or NULL. */
const struct amp_node *amp_run_dynamic(struct amp_schema_run *r, const struct amp_dynamic_ref *d);
const struct amp_property *amp_run_property(const struct amp_schema_run *r,
                                            const struct amp_object_rules *o, uint32_t key);

/* Decoded text of a string token, until the next call; false (and failed): memory is short. */
bool amp_run_text(struct amp_schema_run *r, uint32_t tok, struct amp_span *out);
bool amp_run_fail(struct amp_schema_run *r, const char *code, const char *what);
bool amp_run_fail_memory(struct amp_schema_run *r);
bool amp_run_pattern(struct amp_schema_run *r, const struct amp_pattern *p, struct amp_span text);

bool amp_marks_push(struct amp_schema_run *r, uint32_t count, struct amp_marks *out);
void amp_marks_pop(struct amp_schema_run *r, const struct amp_marks *m);
void amp_marks_merge(struct amp_schema_run *r, const struct amp_marks *to,
                     const struct amp_marks *from);
static inline void amp_mark(struct amp_schema_run *r, const struct amp_marks *m, uint32_t i)
{
    r->bits[m->at + i / 64] |= 1ull << (i % 64);
}
static inline bool amp_marked(const struct amp_schema_run *r, const struct amp_marks *m, uint32_t i)
{
    return r->bits[m->at + i / 64] >> (i % 64) & 1;
}

/* Takes a note. It has arguments instead of a struct, so that a valid value builds nothing. */
__attribute__((cold, noinline)) void amp_run_note(struct amp_schema_run *r,
                                                  const struct amp_node *n, const char *keyword,
                                                  uint32_t tok, const void *detail,
                                                  struct amp_span name);

/* Counts work, because several schemas for one value can double it at each level. False past the
 * limit. */
static inline bool amp_run_spend(struct amp_schema_run *r, uint32_t steps)
{
    r->budget -= steps;
    return r->budget >= 0 || amp_run_fail(r, AMP_CODE(schema_limit),
                                          "the schema needs more steps than the limit allows");
}

/* Records that a rule does not hold. True: the check stops, because it does not explain. */
static inline bool amp_run_stop_at(struct amp_schema_run *r, bool *ok, const struct amp_node *n,
                                   const char *keyword, uint32_t tok, const void *detail,
                                   struct amp_span name)
{
    *ok = false;
    if (!r->explain)
        return true;
    amp_run_note(r, n, keyword, tok, detail, name);
    return r->failed;
}

static inline bool amp_run_stop(struct amp_schema_run *r, bool *ok, const struct amp_node *n,
                                const char *keyword, uint32_t tok, const void *detail)
{
    return amp_run_stop_at(r, ok, n, keyword, tok, detail, (struct amp_span){"", 0});
}

/* Records a subschema's result. True: the check stops, because it failed and does not explain. */
static inline bool amp_run_stop_unless(const struct amp_schema_run *r, bool *ok, bool holds)
{
    if (holds)
        return false;
    *ok = false;
    return !r->explain;
}

/* amp_run_node for a leaf. */
bool amp_run_leaf(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok);

/* Checks a child. Many have only a type, and most concern no other value. */
static inline bool amp_run_child(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok)
{
    if (n->leaf) {
        if (n->only_type && (n->types >> r->t->tok[tok].type & 1))
            return true;
        return amp_run_leaf(r, n, tok);
    }
    return amp_run_node(r, n, tok, NULL);
}

#endif
