/* Reads bindings and tool descriptions. */
#include "message/route/address/worktree.h"

#include "message/delivery/facts.h"
#include "message/delivery/inbox/inbox.h"
#include "json/record.h"

int amp_worktree_has(struct amp_store *s, struct amp_span agent, bool *yes, struct amp_error *err)
{
    const struct amp_message_facts *facts = amp_store_facts(s);
    char name[AMP_INBOX_AGENT_MAX];
    *yes = false;
    return facts && agent.n && amp_span_copy(agent, name, sizeof name)
               ? facts->bound(s, name, yes, err)
               : 0;
}

bool amp_worktree_is_work(const struct amp_view *v)
{
    return v->worktree.n > 0 && (v->kind == AMP_KIND_DISPATCH ||
                                 (v->kind == AMP_KIND_HANDOFF && !v->body.handoff.answered));
}

struct tool {
    struct amp_span name;
    bool needs;
};

static int tools_look(void *ctx, struct amp_span descriptor, struct amp_error *err)
{
    static const char *const places[] = {"/tools", "/payload/tools"};
    struct tool *tool = ctx;
    AMP_TAPE struct amp_tape t = {0};
    amp_rec_tape(&t);
    if (amp_rec_scan(&t, descriptor, "an agent's descriptor", err) < 0)
        return -1;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        uint32_t list = amp_tape_pointer(&t, 0, amp_span_str(places[p]));
        if (list == AMP_TOK_NONE || t.tok[list].type != AMP_JSON_ARRAY)
            continue;
        for (uint32_t i = list + 1; i < t.tok[list].next; i = t.tok[i].next) {
            uint32_t name = amp_tape_get(&t, i, AMP_SPAN("tool_name"));
            uint32_t needs = amp_tape_get(&t, i, AMP_SPAN("needs_worktree"));
            if (name != AMP_TOK_NONE && amp_tok_is(&t, name, tool->name) && needs != AMP_TOK_NONE &&
                t.tok[needs].type == AMP_JSON_TRUE)
                tool->needs = true;
        }
    }
    return 0;
}

int amp_worktree_caller_lacks(struct amp_store *s, const struct amp_view *v, struct amp_error *err)
{
    struct tool tool = {.name = v->body.tool_call.tool};
    bool bound;
    if (v->kind != AMP_KIND_TOOL_CALL)
        return 0;
    if (amp_worktree_has(s, v->from, &bound, err) < 0)
        return -1;
    if (bound)
        return 0;
    tool.needs =
        v->body.tool_call.needs_worktree || amp_span_is(v->body.tool_call.isolation, "worktree");
    const struct amp_message_facts *facts = amp_store_facts(s);
    if (!tool.needs && facts && facts->descriptors(s, tools_look, &tool, err) < 0)
        return -1;
    return tool.needs;
}
