/* The recipients of messages for all agents. */
#include "work/agent/publish.h"

#include <amp/json/writer.h>

#include "message/delivery/record/record.h"
#include "message/protocol/routing.h"
#include "message/protocol/view/object.h"
#include "work/agent/agent.h"
#include "work/agent/record.h"

#define LIST_MAX (1u << 20)

struct listing {
    const struct amp_view *v;
    struct amp_jw w;
    uint32_t n;
};

static int agent_add(void *ctx, struct amp_span name, const struct amp_agent_rec *rec,
                     struct amp_error *err)
{
    struct listing *l = ctx;
    if (!amp_reach_active(rec->reach.state) || amp_span_eq(name, l->v->from))
        return 0;
    amp_jw_str(&l->w, name);
    l->n++;
    return 0;
}

static uint32_t list_of(const struct amp_tape *t)
{
    uint32_t payload = amp_object_get(t, 0, "payload", AMP_JSON_OBJECT);
    return payload == AMP_TOK_NONE ? AMP_TOK_NONE
                                   : amp_object_get(t, payload, "toAgents", AMP_JSON_ARRAY);
}

/* The list of the message's record. 1; 0: it is not recorded, or has none. */
static int recorded_list(struct amp_store *s, const struct amp_view *v, struct amp_buf *out,
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    struct amp_message_rec rec;
    struct amp_span message;
    amp_tape_init(&t, NULL);
    if (v->id.n == 0)
        return 0;
    if (amp_message_find(s, v->id, &mem, &rec, err) < 0)
        return -1;
    if (!rec.found || amp_line_message(rec.line, &message, NULL) < 0 ||
        amp_tape_scan(&t, message.p, message.n, &fault) < 0)
        return 0;
    uint32_t list = list_of(&t);
    if (list == AMP_TOK_NONE)
        return 0;
    struct amp_span text = amp_tok_source(&t, list);
    return amp_buf_add(out, text.p, text.n, err) < 0 ? -1 : 1;
}

static int registry_list(struct amp_store *s, const struct amp_view *v, struct amp_buf *out,
                         struct amp_error *err)
{
    struct listing l = {.v = v};
    amp_jw_init(&l.w, out);
    amp_jw_open(&l.w, '[');
    if (amp_agent_records(s, agent_add, &l, err) < 0)
        return -1;
    amp_jw_close(&l.w, ']');
    return amp_jw_end(&l.w, err) < 0 ? -1 : l.n > 0;
}

int amp_publish_line(struct amp_store *s, const struct amp_view *v, struct amp_buf *out,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf list = {.max = LIST_MAX};
    bool inside = v->text.p >= v->line.p && v->text.p + v->text.n <= v->line.p + v->line.n;
    if (!amp_routing_of(v->protocol)->expands_all || v->n_to != 1 ||
        !amp_span_is(v->to[0], "all") || v->sig.key.n > 0 || !v->json || !inside)
        return 0;
    uint32_t tok = list_of(v->tape);
    if (tok == AMP_TOK_NONE)
        return 0;
    int rc = recorded_list(s, v, &list, err);
    if (rc == 0)
        rc = registry_list(s, v, &list, err);
    if (rc <= 0)
        return rc;
    struct amp_span old = amp_tok_source(v->tape, tok);
    const char *end = v->line.p + v->line.n;
    return amp_buf_add(out, v->line.p, (size_t)(old.p - v->line.p), err) < 0 ||
                   amp_buf_add(out, list.data, list.len, err) < 0 ||
                   amp_buf_add(out, old.p + old.n, (size_t)(end - old.p) - old.n, err) < 0
               ? -1
               : 1;
}
