/* AMP's nack, and the refusal of a line, which also answers lines of no known protocol. */
#include <string.h>

#include <amp/compose.h>

#include "base/codes.h"
#include "message/protocol/amp/amp.h"
#include "message/protocol/compose/refuse.h"
#include "json/record.h"

enum { SENTENCE_MOST = 2048 };

bool amp_is_task_id(struct amp_span s)
{
    static const char form[] = "T-dddd-ddd";
    bool good = s.n == sizeof form - 1;
    for (size_t i = 0; good && i < s.n; i++)
        good = form[i] == 'd' ? s.p[i] >= '0' && s.p[i] <= '9' : s.p[i] == form[i];
    return good;
}

void amp_record_open(struct amp_jw *w, const char *type, struct amp_buf *out)
{
    amp_jw_init(w, out);
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "protocol_version", AMP_VERSION_WORD);
    amp_jw_member_text(w, "type", type);
}

int amp_compose_nack(const struct amp_view *of, enum amp_ack_stage failed_stage, const char *from,
                     const char *code, const char *message, const char *rule, bool retryable,
                     int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_span none = {"", 0};
    struct amp_jw w;
    amp_record_open(&w, "nack", out);
    amp_jw_member_str(&w, "ref_msg_id", of->id.n <= AMP_NACK_REF_MAX ? of->id : none);
    amp_jw_member_str(&w, "task_id", amp_is_task_id(of->task) ? of->task : none);
    amp_jw_member_text(&w, "from", from);
    amp_jw_member_text(&w, "failed_stage", amp_ack_stage_name(failed_stage));
    amp_jw_member_text(&w, "code", code);
    amp_jw_member_text(&w, "message", message);
    amp_jw_member_text(&w, "rule", rule && *rule ? rule : code);
    amp_jw_member_bool(&w, "retryable", retryable);
    amp_rec_time(&w, "timestamp", now_ms);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

enum amp_refuse_result amp_amp_refuse(const struct amp_view *v, const struct amp_finding *first,
                                      int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    /* A refusal is not refused: two gates would answer each other forever. */
    if (v->protocol == AMP_PROTO_AMP && v->kind == AMP_KIND_NACK)
        return AMP_REFUSE_NONE;
    AMP_BUF struct amp_buf said = {.max = SENTENCE_MOST};
    return amp_compose_nack(v, AMP_STAGE_REJECTED, "system", first->code,
                            amp_refuse_sentence(first, " ", &said).p, first->rule,
                            amp_code_is(first->code, undecided), now_ms, out, err) < 0
               ? AMP_REFUSE_FAILED
               : AMP_REFUSE_WRITTEN;
}
