/* Records a session's view of a TASK: its members, and the directories of its access. */
#include <stdlib.h>

#include "base/codes.h"
#include "work/aop/session/private.h"

#define MEM_MAX ((size_t)8 << 20)

/* The text of a member, in mem, which has room for it. */
static struct amp_span text_at(const struct amp_view *v, const char *pointer, struct amp_buf *mem)
{
    uint32_t tok = amp_tape_pointer(v->tape, 0, amp_span_str(pointer));
    struct amp_error e;
    struct amp_span out;

    if (tok == AMP_TOK_NONE || v->tape->tok[tok].type != AMP_JSON_STRING ||
        amp_tok_text(v->tape, tok, mem, &out, &e) < 0)
        return AMP_SPAN("");
    return out;
}

static uint32_t list_count(const struct amp_view *v, const struct amp_aop_paths *p)
{
    return p->limited && p->list != AMP_TOK_NONE && v->tape->tok[p->list].type == AMP_JSON_ARRAY
               ? v->tape->tok[p->list].count
               : 0;
}

/* Adds the canonical form of a path. One without a canonical form grants nothing. */
static int dir_add(struct amp_session_read *r, struct amp_span root, struct amp_span path,
                   struct amp_span *dirs, uint32_t *n, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {.max = 1 << 20};
    struct amp_error why = {0};
    size_t at = r->mem.len;

    if (amp_aop_resolve(root, path, &out, &why) < 0)
        return why.status == AMP_NOPERM ? 0 : amp_fail_memory(err);
    if (amp_buf_add(&r->mem, out.data, out.len, err) < 0)
        return -1;
    dirs[(*n)++] = (struct amp_span){r->mem.data + at, out.len};
    return 0;
}

static int dirs_read(struct amp_session_read *r, const struct amp_view *v,
                     const struct amp_aop_paths *p, struct amp_span root, struct amp_span *dirs,
                     uint32_t *n, struct amp_error *err)
{
    if (!p->limited)
        return dir_add(r, root, root, dirs, n, err);
    if (list_count(v, p) == 0)
        return 0;
    for (uint32_t i = p->list + 1; i < v->tape->tok[p->list].next; i = v->tape->tok[i].next) {
        struct amp_span path;
        if (v->tape->tok[i].type != AMP_JSON_STRING)
            continue;
        if (amp_tok_text(v->tape, i, &r->mem, &path, err) < 0 ||
            dir_add(r, root, path, dirs, n, err) < 0)
            return -1;
    }
    return 0;
}

static int access_read(struct amp_session_read *r, const struct amp_view *v, struct amp_span root,
                       struct amp_error *err)
{
    struct amp_session_access *a = &r->t.access;
    const struct amp_aop_paths *read = &r->policy.read, *write = &r->policy.write;
    size_t n = (size_t)list_count(v, read) + list_count(v, write) + 2;

    r->dirs = calloc(n, sizeof *r->dirs);
    if (!r->dirs)
        return amp_fail_memory(err);
    a->read = r->dirs;
    a->write = r->dirs + list_count(v, read) + 1;
    a->network = (int64_t)r->policy.network.value;
    return dirs_read(r, v, read, root, a->read, &a->n_read, err) < 0 ||
                   dirs_read(r, v, write, root, a->write, &a->n_write, err) < 0
               ? -1
               : 0;
}

int amp_session_read_task(const struct amp_view *v, struct amp_session_read *r,
                          struct amp_error *err)
{
    *r = (struct amp_session_read){.t.attempt = v->has_attempt ? v->attempt : 1};
    amp_buf_init(&r->mem, MEM_MAX);
    amp_aop_policy(v, &r->policy);
    uint32_t at = amp_tape_pointer(v->tape, 0, AMP_SPAN("/task/environment/workspace_root"));
    size_t root_n = at == AMP_TOK_NONE ? 0 : v->tape->tok[at].len;
    size_t paths = (size_t)list_count(v, &r->policy.read) + list_count(v, &r->policy.write) + 2;
    /* No text is longer than in the message, and a canonical path repeats the workspace at most: so
     * the buffer does not move while spans point into it. */
    size_t room = 4 * v->text.n + paths * (root_n + 64) + 4096;
    if (room > MEM_MAX)
        return amp_fail(err, AMP_NO, E_CONTEXT_OVERFLOW,
                        "task.access.filesystem has more than %zu bytes of paths", MEM_MAX);
    if (amp_buf_reserve(&r->mem, room, err) < 0)
        return -1;
    struct amp_session *x = &r->x;
    struct amp_session_task *t = &r->t;
    x->id = t->session = v->correlation;
    x->created = text_at(v, "/session/created_at", &r->mem);
    x->created_ms = v->created_ms;
    x->orchestrator = v->from;
    x->origin = text_at(v, "/session/origin", &r->mem);
    x->pattern = text_at(v, "/session/workflow_pattern", &r->mem);
    t->id = v->task;
    t->parent = text_at(v, "/task/parent_task_id", &r->mem);
    t->agent = v->n_to > 0 ? v->to[0] : AMP_SPAN("");
    t->role = text_at(v, "/target/role", &r->mem);
    t->provider = text_at(v, "/target/provider", &r->mem);
    t->model = text_at(v, "/target/model", &r->mem);
    t->category = text_at(v, "/task/category", &r->mem);
    t->complexity = text_at(v, "/task/complexity", &r->mem);
    t->priority = text_at(v, "/task/priority", &r->mem);
    if (t->priority.n == 0)
        t->priority = AMP_SPAN("NORMAL");
    t->objective = text_at(v, "/task/objective", &r->mem);
    t->delegates = r->policy.delegation.value;
    t->aborts_session = r->policy.on_failure.value == AMP_AOP_ABORT_SESSION;
    return access_read(r, v, text_at(v, "/task/environment/workspace_root", &r->mem), err);
}

void amp_session_read_release(struct amp_session_read *r)
{
    amp_buf_release(&r->mem);
    free(r->dirs);
    r->dirs = NULL;
}
