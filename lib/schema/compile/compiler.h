/* The state of one compilation: its documents, their resources, and the nodes to compile. */
#ifndef AMP_SCHEMA_COMPILE_COMPILER_H
#define AMP_SCHEMA_COMPILE_COMPILER_H

#include "schema/compile/index.h"
#include "schema/compile/program.h"

enum amp_draft { AMP_DRAFT_NONE, AMP_DRAFT_7 = 1, AMP_DRAFT_2020 = 2 };

enum {
    VOCAB_CORE = 1,
    VOCAB_APPLICATOR = 2,
    VOCAB_UNEVALUATED = 4,
    VOCAB_VALIDATION = 8,
    VOCAB_FORMAT_ASSERTION = 16,
    VOCAB_OTHER = 32, /* format-annotation, content, meta-data: without rules */
    VOCAB_USUAL = VOCAB_CORE | VOCAB_APPLICATOR | VOCAB_UNEVALUATED | VOCAB_VALIDATION,
};

/* One schema text. */
struct amp_schema_document {
    struct amp_schema_document *next;
    struct amp_tape tape;
    struct amp_span text;
    struct amp_span asked;  /* the URI it was loaded for */
    uint32_t root;          /* the resource of its root */
    uint32_t *resource;     /* by token: 1 + the resource of a subschema, 0: none found */
    struct amp_node **node; /* by token */
    struct amp_node *nodes; /* all that were compiled */
    struct amp_members *members;
    struct amp_reference *references;    /* to other documents */
    uint32_t users;                      /* schemas that need its tape and `node` */
    uint32_t found_in;                   /* amp_program.search */
    struct amp_schema_document *reached; /* the next one that this search found */
    bool compared;                       /* checks compare with its tokens, so the tape stays */
    bool has_parts;                      /* has a resource besides its root, so `resource` stays */
};

struct amp_reference {
    struct amp_reference *next;
    struct amp_schema_document *to;
};

/* The index of a large object. */
struct amp_members {
    struct amp_members *next;
    uint32_t object;
    struct amp_hash_index keys;
};

/* A part of a document that has its own URI. */
struct amp_resource {
    struct amp_schema_document *doc;
    uint32_t tok;
    struct amp_span uri;
    enum amp_draft draft;
    unsigned vocabulary;
};

struct amp_anchor {
    uint32_t resource, tok;
    struct amp_span name;
    bool dynamic;
    struct amp_schema_document *doc;
};

struct amp_compiler {
    struct amp_schema *schema;
    struct amp_program *program;
    const struct amp_schema_options *opt;
    struct amp_error *err;
    struct amp_node **nodes; /* found in this compilation, in this order */
    uint32_t n_nodes;
    size_t cap_nodes;
    bool in_set;
    uint32_t metas;
    uint32_t remarks;
    uint64_t work; /* steps of searches without an index */
    bool dynamic_refs;
};

/* The target of a reference. */
struct amp_target {
    struct amp_schema_document *doc;
    uint32_t tok, resource;
    const struct amp_anchor *anchor; /* if the reference has an anchor's name */
};

/* document.c: the draft whose metaschema has this URI (without #), or AMP_DRAFT_NONE. */
enum amp_draft amp_draft_find(struct amp_span uri);
struct amp_schema_document *amp_document_load(struct amp_compiler *c, struct amp_span text,
                                              struct amp_span uri, enum amp_draft draft);
void amp_document_free(struct amp_schema_document *d);
/* Makes the tape and the tables by token, if they were freed. */
int amp_document_open(struct amp_schema_document *d, struct amp_error *err);
/* Records that one document refers to another. */
int amp_document_refer(struct amp_compiler *c, struct amp_schema_document *from,
                       struct amp_schema_document *to);
/* Adds `by` to the users of all documents that this one leads to. Documents without users free what
 * only explanations need. -1, with nothing changed, if memory is short. */
int amp_document_use(struct amp_program *p, struct amp_schema_document *d, int by,
                     struct amp_error *err);
/* Finds the resources and anchors in the schema at a token. */
int amp_document_walk(struct amp_compiler *c, struct amp_schema_document *d, uint32_t tok,
                      uint32_t resource);

/* resolve.c: the number of an anchor, or AMP_TOK_NONE. */
uint32_t amp_anchor_find(const struct amp_compiler *c, uint32_t resource, struct amp_span name);
uint32_t amp_anchor_hash(uint32_t resource, struct amp_span name);
enum amp_resolved {
    AMP_RESOLVE_FAILED = -1, /* err is set */
    AMP_RESOLVED,
    AMP_RESOLVE_UNKNOWN,  /* no schema has this URI */
    AMP_RESOLVE_NO_PLACE, /* the schema has no such place */
};
enum amp_resolved amp_document_resolve(struct amp_compiler *c, uint32_t resource,
                                       struct amp_span ref, struct amp_target *out);
/* Finds the resource of a URI; loads its document if necessary. Returns 1, 0 if no schema has the
 * URI, or -1. */
int amp_resource_find(struct amp_compiler *c, struct amp_span uri, enum amp_draft draft,
                      uint32_t *out);

/* wrong.c: fails with a code and a sentence, after the place of a token. */
int amp_schema_wrong(struct amp_compiler *c, const struct amp_schema_document *d, uint32_t tok,
                     const char *code, const char *what);
/* Fails with invalid_schema, the value found, and the nearest of the words (NULL-terminated, or
 * NULL). */
int amp_schema_wrong_value(struct amp_compiler *c, const struct amp_schema_document *d,
                           uint32_t tok, const char *what, const char *const *words);
/* Reports a keyword that is probably a slip to opt->remark. */
void amp_schema_remark(struct amp_compiler *c, const struct amp_schema_document *d, uint32_t key,
                       enum amp_draft draft);
int amp_schema_not_json(struct amp_compiler *c, const struct amp_schema_document *d,
                        const struct amp_json_fault *fault);

/* files.c: the metaschemas of the drafts, or NULL. */
const struct amp_schema_file *amp_metaschema_find(struct amp_span uri);

/* keyword.c */
enum amp_walk { WALK_NONE, WALK_SCHEMA, WALK_LIST, WALK_MAP, WALK_EITHER, WALK_DEPENDENCIES };
struct amp_keyword {
    const char *name;
    uint8_t length, drafts, vocabulary, walk;
    /* Reads the value at a token and adds rules to the node. */
    int (*compile)(struct amp_compiler *c, struct amp_node *n, const struct amp_keyword *k,
                   uint32_t value);
    void *(*rules)(struct amp_compiler *c, struct amp_node *n); /* the group with the field */
    size_t field; /* the offset of the field that `compile` fills, if it serves several keywords */
};
struct amp_nearest;
/* The keyword of any draft that is nearest to an unknown one, or "". */
const char *amp_keyword_nearest(struct amp_span name, struct amp_nearest *near);
const struct amp_keyword *amp_keyword_find(const struct amp_tape *t, uint32_t key,
                                           enum amp_draft draft);

/* compile.c: the node of a token, which is compiled later, so long chains of references need no
 * stack. */
struct amp_node *amp_node_at(struct amp_compiler *c, struct amp_schema_document *d, uint32_t tok,
                             uint32_t resource);
/* A subschema of n at a token of its document. */
struct amp_node *amp_node_child(struct amp_compiler *c, const struct amp_node *n, uint32_t tok);
void *amp_compile_get(struct amp_compiler *c, size_t size); /* arena memory, or NULL with err */
/* The pattern at a token, or NULL with err (bad_pattern and its place). */
struct amp_pattern *amp_compile_pattern(struct amp_compiler *c, const struct amp_node *n,
                                        uint32_t tok, struct amp_span text);
int amp_compile_text(struct amp_compiler *c, const struct amp_node *n, uint32_t tok,
                     struct amp_span *out);
static inline const struct amp_resource *amp_node_resource(const struct amp_compiler *c,
                                                           const struct amp_node *n)
{
    return &c->program->resources[n->resource];
}

/* The groups of rules (struct amp_string_rules and so on), made at first use; NULL with err when
 * memory is short. */
void *amp_string_rules(struct amp_compiler *c, struct amp_node *n);
void *amp_number_rules(struct amp_compiler *c, struct amp_node *n);
void *amp_object_rules(struct amp_compiler *c, struct amp_node *n);
void *amp_array_rules(struct amp_compiler *c, struct amp_node *n);
void *amp_place_rules(struct amp_compiler *c, struct amp_node *n);

#endif
