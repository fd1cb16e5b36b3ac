/*
 * SW4RM §17.7: the nodes of a workflow form a graph without a circle. Kahn's algorithm, in time
 * proportional to nodes and dependencies; node names are found by their keyed hashes, so no
 * document can make it slower.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/sw4rm/sw4rm.h"
#include "json/hash.h"

enum { NONE = UINT32_MAX, SHOWN_MOST = 8 };

struct graph {
    struct amp_check *c;
    const struct amp_tape *t;
    uint32_t n;        /* nodes */
    uint32_t *key;     /* of each node: the token of its name */
    uint32_t *depends; /* the token of its dependencies, or AMP_TOK_NONE */
    uint32_t *open;    /* how many of them are not done */
    uint32_t *slots;   /* table of names: node + 1 */
    uint32_t mask;
    uint32_t *first, *next, *who; /* edges by the node that is waited for */
};

static bool get(struct graph *g, uint32_t **out, size_t n)
{
    *out = amp_pool_get(g->c->arena, (n ? n : 1) * sizeof **out);
    if (!*out)
        g->c->failed = true;
    return *out != NULL;
}

static bool is_array(const struct amp_tape *t, uint32_t tok)
{
    return tok != AMP_TOK_NONE && t->tok[tok].type == AMP_JSON_ARRAY;
}

/* The node of a name, or NONE. */
static uint32_t find(const struct graph *g, struct amp_span name)
{
    uint32_t hash = amp_json_hash32(amp_json_hash_key(), name.p, name.n);
    for (uint32_t at = hash & g->mask; g->slots[at]; at = (at + 1) & g->mask) {
        uint32_t node = g->slots[at] - 1;
        if (g->t->tok[g->key[node]].count == hash && amp_tok_is(g->t, g->key[node], name))
            return node;
    }
    return NONE;
}

/* The nodes and their names. Returns how many dependencies there are. */
static size_t take_nodes(struct graph *g, uint32_t nodes)
{
    const struct amp_tape *t = g->t;
    uint32_t key = nodes + 1;
    size_t edges = 0;
    for (uint32_t i = 0; i < g->n; i++, key = t->tok[key + 1].next) {
        g->key[i] = key;
        g->depends[i] = amp_tape_get(t, key + 1, AMP_SPAN("dependencies"));
        if (is_array(t, g->depends[i]))
            edges += t->tok[g->depends[i]].count;
        else
            g->depends[i] = AMP_TOK_NONE;
        uint32_t at = t->tok[key].count & g->mask;
        while (g->slots[at])
            at = (at + 1) & g->mask;
        g->slots[at] = i + 1;
    }
    return edges;
}

static void circle_of_one(struct graph *g, uint32_t tok)
{
    struct amp_fault f = {.severity = AMP_SEV_ERROR,
                          .code = "workflow_cycle_detected",
                          .rule = "workflow_cycle",
                          .tok = tok,
                          .expected = "dependencies on other nodes",
                          .show_found = true};
    amp_check_add(g->c, &f, "is the node itself");
}

/* Each dependency becomes an edge; unknown ones and those on oneself are told. */
static bool take_edges(struct graph *g)
{
    const struct amp_tape *t = g->t;
    uint32_t edge = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->depends[i] == AMP_TOK_NONE)
            continue;
        for (uint32_t d = g->depends[i] + 1; d < t->tok[g->depends[i]].next; d = t->tok[d].next) {
            struct amp_span name;
            if (t->tok[d].type != AMP_JSON_STRING)
                continue;
            if (amp_fill_text(t, d, g->c->arena, &name, NULL) < 0)
                return !(g->c->failed = true);
            uint32_t on = find(g, name);
            if (on == NONE) {
                struct amp_fault f = {.severity = AMP_SEV_ERROR,
                                      .code = "validation_error",
                                      .rule = "workflow_dependencies",
                                      .tok = d,
                                      .expected = "a node of this workflow",
                                      .show_found = true};
                amp_check_add(g->c, &f, "is not a node of this workflow");
            } else if (on == i) {
                circle_of_one(g, d);
            } else {
                g->who[edge] = i;
                g->next[edge] = g->first[on];
                g->first[on] = ++edge; /* 0 ends a list */
                g->open[i]++;
            }
        }
    }
    return true;
}

/* Takes away node after node that waits for nothing. Returns how many stay. */
static uint32_t run_down(struct graph *g, uint32_t *queue)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t i = 0; i < g->n; i++)
        if (g->open[i] == 0)
            queue[tail++] = i;
    while (head < tail)
        for (uint32_t e = g->first[queue[head++]]; e; e = g->next[e - 1])
            if (--g->open[g->who[e - 1]] == 0)
                queue[tail++] = g->who[e - 1];
    return g->n - tail;
}

/* A node that a node in a circle, or behind one, waits for. */
static uint32_t waits_for(const struct graph *g, uint32_t node)
{
    const struct amp_tape *t = g->t;
    for (uint32_t d = g->depends[node] + 1; d < t->tok[g->depends[node]].next; d = t->tok[d].next) {
        struct amp_span name;
        if (t->tok[d].type != AMP_JSON_STRING || amp_fill_text(t, d, g->c->arena, &name, NULL) < 0)
            continue;
        uint32_t on = find(g, name);
        if (on != NONE && on != node && g->open[on] > 0)
            return on;
    }
    return NONE;
}

/* Names one circle among the nodes that stayed: "a → b → a". */
static void tell_circle(struct graph *g, uint32_t *seen)
{
    uint32_t at = 0, start, shown = 0;
    char path[SHOWN_MOST * 50];
    size_t len = 0;
    while (g->open[at] == 0)
        at++;
    memset(seen, 0, g->n * sizeof *seen);
    for (; at != NONE && !seen[at]; at = waits_for(g, at))
        seen[at] = 1;
    if (at == NONE)
        return;
    start = at;
    do {
        if (shown++ < SHOWN_MOST)
            len += (size_t)snprintf(path + len, sizeof path - len, "%s → ",
                                    amp_check_text(g->c, amp_tok_raw(g->t, g->key[at]), 32));
        at = waits_for(g, at);
    } while (at != start && at != NONE && len < sizeof path - 50);
    struct amp_fault f = {.severity = AMP_SEV_ERROR,
                          .code = "workflow_cycle_detected",
                          .rule = "workflow_cycle",
                          .tok = g->depends[start],
                          .expected = "dependencies without a cycle",
                          .show_found = true};
    amp_check_add(g->c, &f, "is in a cycle: %s%s%s", path, shown > SHOWN_MOST ? "… → " : "",
                  amp_check_text(g->c, amp_tok_raw(g->t, g->key[start]), 32));
}

/* A node's node_id is the key that it stands under; so no two have the same. */
static void names(struct graph *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        struct amp_span id;
        uint32_t tok = amp_tape_get(g->t, g->key[i] + 1, AMP_SPAN("node_id"));
        if (tok == AMP_TOK_NONE || g->t->tok[tok].type != AMP_JSON_STRING)
            continue;
        if (amp_fill_text(g->t, tok, g->c->arena, &id, NULL) < 0) {
            g->c->failed = true;
            return;
        }
        if (amp_tok_is(g->t, g->key[i], id))
            continue;
        struct amp_fault f = {.severity = AMP_SEV_ERROR,
                              .code = "validation_error",
                              .rule = "workflow_ids",
                              .tok = tok,
                              .expected = amp_check_text(g->c, amp_tok_raw(g->t, g->key[i]), 60),
                              .show_found = true};
        amp_check_add(g->c, &f,
                      find(g, id) == NONE ? "differs from the node's key"
                                          : "is the id of another node");
    }
}

void amp_sw4rm_workflow_rules(struct amp_check *c)
{
    struct graph g = {.c = c, .t = c->v->tape};
    uint32_t nodes = amp_tape_get(g.t, c->v->payload, AMP_SPAN("nodes")), *queue;
    if (nodes == AMP_TOK_NONE || g.t->tok[nodes].type != AMP_JSON_OBJECT)
        return;
    g.n = g.t->tok[nodes].count;
    for (g.mask = 7; g.mask < g.n * 2; g.mask = g.mask * 2 + 1)
        ;
    if (!get(&g, &g.key, g.n) || !get(&g, &g.depends, g.n) || !get(&g, &g.open, g.n) ||
        !get(&g, &g.first, g.n) || !get(&g, &queue, g.n) || !get(&g, &g.slots, (size_t)g.mask + 1))
        return;
    size_t edges = take_nodes(&g, nodes);
    names(&g);
    if (edges == 0 || !get(&g, &g.next, edges) || !get(&g, &g.who, edges) || !take_edges(&g))
        return;
    if (run_down(&g, queue) > 0)
        tell_circle(&g, queue);
}
