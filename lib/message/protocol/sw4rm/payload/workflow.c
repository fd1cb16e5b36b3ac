/*
 * SW4RM §17.7: the dependencies of a workflow's nodes have no cycle. Kahn's algorithm takes time
 * proportional to the nodes and dependencies. Node names are found by keyed hashes, so that no
 * document can cause many collisions.
 */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/sw4rm/sw4rm.h"
#include "json/hash.h"

enum { NONE = UINT32_MAX, SHOWN_MOST = 8 };

struct graph {
    struct amp_check *c;
    const struct amp_tape *t;
    uint32_t n;        /* nodes */
    uint32_t *key;     /* of each node: the token of its name */
    uint32_t *depends; /* the array of its dependencies, or AMP_TOK_NONE */
    uint32_t *open;    /* the number of dependencies that are left */
    uint32_t *slots;   /* hash table of names: node + 1; 0: free */
    uint32_t mask;
    uint32_t *first, *next,
        *who; /* lists of the nodes (who) that depend on a node; 0 ends a list */
};

static bool array_get(struct graph *g, uint32_t **out, size_t n)
{
    *out = amp_arena_get(g->c->arena, (n ? n : 1) * sizeof **out);
    if (!*out)
        g->c->failed = true;
    return *out != NULL;
}

/* The node of a name, or NONE. */
static uint32_t node_find(const struct graph *g, struct amp_span name)
{
    uint32_t hash = amp_json_hash32(amp_json_hash_key(), name.p, name.n);
    for (uint32_t at = hash & g->mask; g->slots[at]; at = (at + 1) & g->mask) {
        uint32_t node = g->slots[at] - 1;
        if (g->t->tok[g->key[node]].count == hash && amp_tok_is(g->t, g->key[node], name))
            return node;
    }
    return NONE;
}

/* Reads the nodes and their names. Returns the number of dependencies. */
static size_t nodes_read(struct graph *g, uint32_t nodes)
{
    const struct amp_tape *t = g->t;
    uint32_t key = nodes + 1;
    size_t edges = 0;
    for (uint32_t i = 0; i < g->n; i++, key = t->tok[key + 1].next) {
        g->key[i] = key;
        g->depends[i] = amp_object_get(t, key + 1, "dependencies", AMP_JSON_ARRAY);
        if (g->depends[i] != AMP_TOK_NONE)
            edges += t->tok[g->depends[i]].count;
        uint32_t at = t->tok[key].count & g->mask;
        while (g->slots[at])
            at = (at + 1) & g->mask;
        g->slots[at] = i + 1;
    }
    return edges;
}

/* Makes an edge of each dependency; reports unknown nodes and a node that depends on itself. */
static void edges_read(struct graph *g)
{
    const struct amp_tape *t = g->t;
    uint32_t edge = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->depends[i] == AMP_TOK_NONE)
            continue;
        for (uint32_t d = g->depends[i] + 1; d < t->tok[g->depends[i]].next; d = t->tok[d].next) {
            struct amp_span name;
            if (!amp_check_string(g->c, d, &name))
                continue;
            uint32_t on = node_find(g, name);
            if (on == NONE) {
                amp_check_token(g->c, AMP_SEV_ERROR, AMP_CODE(validation_error),
                                "workflow_dependencies", d, "a node of this workflow",
                                "is not a node of this workflow");
            } else if (on == i) {
                amp_check_token(g->c, AMP_SEV_ERROR, AMP_CODE(workflow_cycle_detected),
                                "workflow_cycle", d, "dependencies on other nodes",
                                "is the node itself");
            } else {
                g->who[edge] = i;
                g->next[edge] = g->first[on];
                g->first[on] = ++edge;
                g->open[i]++;
            }
        }
    }
}

/* Removes the nodes without open dependencies, one by one. Returns the number of nodes left. */
static uint32_t nodes_remove(struct graph *g, uint32_t *queue)
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

/* A node left on which this node depends; NONE: memory is short. */
static uint32_t node_awaited(const struct graph *g, uint32_t node)
{
    const struct amp_tape *t = g->t;
    for (uint32_t d = g->depends[node] + 1; d < t->tok[g->depends[node]].next; d = t->tok[d].next) {
        struct amp_span name;
        if (!amp_check_string(g->c, d, &name))
            continue;
        uint32_t on = node_find(g, name);
        if (on != NONE && on != node && g->open[on] > 0)
            return on;
    }
    return NONE;
}

/* Reports one cycle among the nodes left: "a → b → a". */
static void cycle_report(struct graph *g, uint32_t *seen)
{
    uint32_t at = 0, start, shown = 0;
    char path[SHOWN_MOST * 50];
    size_t len = 0;
    while (g->open[at] == 0)
        at++;
    memset(seen, 0, g->n * sizeof *seen);
    for (; at != NONE && !seen[at]; at = node_awaited(g, at))
        seen[at] = 1;
    if (at == NONE)
        return;
    start = at;
    do {
        if (shown++ < SHOWN_MOST)
            len += (size_t)snprintf(path + len, sizeof path - len, "%s → ",
                                    amp_check_text(g->c, amp_tok_raw(g->t, g->key[at]), 32));
        at = node_awaited(g, at);
    } while (at != start && at != NONE && len < sizeof path - 50);
    amp_check_token(g->c, AMP_SEV_ERROR, AMP_CODE(workflow_cycle_detected), "workflow_cycle",
                    g->depends[start], "dependencies without a cycle", "is in a cycle: %s%s%s",
                    path, shown > SHOWN_MOST ? "… → " : "",
                    amp_check_text(g->c, amp_tok_raw(g->t, g->key[start]), 32));
}

/* A node's node_id is its key, so node_ids are unique. */
static void names_check(struct graph *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        struct amp_span id;
        uint32_t tok = amp_tape_get(g->t, g->key[i] + 1, AMP_SPAN("node_id"));
        if (!amp_check_string(g->c, tok, &id) || amp_tok_is(g->t, g->key[i], id))
            continue;
        amp_check_token(g->c, AMP_SEV_ERROR, AMP_CODE(validation_error), "workflow_ids", tok,
                        amp_check_text(g->c, amp_tok_raw(g->t, g->key[i]), 60), "%s",
                        node_find(g, id) == NONE ? "differs from the node's key"
                                                 : "is the id of another node");
    }
}

void amp_sw4rm_workflow_rules(struct amp_check *c)
{
    struct graph g = {.c = c, .t = c->v->tape};
    uint32_t nodes = amp_object_get(g.t, c->v->payload, "nodes", AMP_JSON_OBJECT), *queue;
    if (nodes == AMP_TOK_NONE)
        return;
    g.n = g.t->tok[nodes].count;
    for (g.mask = 7; g.mask < g.n * 2; g.mask = g.mask * 2 + 1)
        ;
    if (!array_get(&g, &g.key, g.n) || !array_get(&g, &g.depends, g.n) ||
        !array_get(&g, &g.open, g.n) || !array_get(&g, &g.first, g.n) ||
        !array_get(&g, &queue, g.n) || !array_get(&g, &g.slots, (size_t)g.mask + 1))
        return;
    size_t edges = nodes_read(&g, nodes);
    names_check(&g);
    if (edges == 0 || !array_get(&g, &g.next, edges) || !array_get(&g, &g.who, edges))
        return;
    edges_read(&g);
    if (!c->failed && nodes_remove(&g, queue) > 0)
        cycle_report(&g, queue);
}
