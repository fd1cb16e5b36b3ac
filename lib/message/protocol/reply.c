/* Answers of agents: the parts that the protocols share. */
#include "message/protocol/reply.h"

#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/words.h"

AMP_WORDS(act_names, AMP_REPLY_ACTS);

const char *amp_reply_act_name(enum amp_reply_act act)
{
    return act_names[act];
}

int amp_reply_act_find(struct amp_span name)
{
    return amp_word_find(act_names, name);
}

static const char *protocol_title(enum amp_protocol p)
{
    static const char *const titles[AMP_PROTO_COUNT] = {
#define X(id, name, title) [AMP_PROTO_##id] = title,
        AMP_PROTOCOL_LIST(X)
#undef X
    };
    return (unsigned)p < AMP_PROTO_COUNT && titles[p] ? titles[p] : "this protocol";
}

int amp_reply_unsupported(const struct amp_view *of, const struct amp_reply_said *said,
                          const char *hint, struct amp_error *err)
{
    return amp_fail(err, AMP_NO, unsupported_reply,
                    "%s has no message that says '%s' about a %.*s%s%s",
                    protocol_title(of->protocol), amp_reply_act_name(said->act),
                    AMP_CLIP(of->type, 60), *hint ? ": " : "", hint);
}

int amp_reply_missing(const char *member, const char *hint, struct amp_error *err)
{
    return amp_fail(err, AMP_NO, missing_field, "the answer needs %s: %s", member, hint);
}

json_t *amp_reply_payload(const struct amp_reply_said *said)
{
    return said->data ? json_deep_copy(said->data) : json_object();
}

void amp_reply_default(json_t *object, const char *key, json_t *value)
{
    if (json_object_get(object, key))
        json_decref(value);
    else
        json_object_set_new(object, key, value);
}

const char *amp_reply_text(const struct amp_reply_said *said)
{
    return said->text ? said->text : "";
}

json_t *amp_reply_why(const struct amp_reply_said *said)
{
    const char *text = amp_reply_text(said), *code = said->code ? said->code : "";
    return json_sprintf("%s%s%s", code, *code && *text ? ": " : "", text);
}

json_t *amp_reply_files(const struct amp_reply_said *said)
{
    json_t *list = said->n_files > 0 ? json_array() : NULL;
    for (uint32_t i = 0; list && i < said->n_files; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "path", said->files[i].path,
                                              "sha256", said->files[i].sha256, "bytes",
                                              (json_int_t)said->files[i].bytes));
    return list;
}

json_t *amp_reply_span(struct amp_span s)
{
    return json_stringn(s.p ? s.p : "", s.n);
}

json_t *amp_reply_time(int64_t ms)
{
    char text[AMP_TIME_MAX];
    amp_time_format(ms, text);
    return json_string(text);
}
