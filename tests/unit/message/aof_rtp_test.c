/* AOF/1 and the Runtime Protocol: what a view holds of each kind, and refusals, which have to be
 * good messages themselves. Lines are written with ' for ". */
#include <stdlib.h>

#include <amp/protocol/protocol.h>

#include "../tap.h"
#include "message/protocol/spec.h"

static struct amp_reader *reader;
static struct amp_finding first;
static char code[64], field[64], message[200];
static char text[4096];

static void note(void *ctx, const struct amp_finding *f)
{
    if (code[0] || f->severity == AMP_SEV_WARNING)
        return;
    snprintf(code, sizeof code, "%s", f->code);
    snprintf(field, sizeof field, "%s", f->field);
    snprintf(message, sizeof message, "%s", f->message);
    first = *f;
    first.code = code;
    first.field = field;
    first.message = message;
}

static int look(const char *line, struct amp_view *v)
{
    struct amp_error err;
    code[0] = '\0';
    snprintf(text, sizeof text, "%s", line);
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    int got = amp_reader_line(reader, amp_span_str(text), NULL, v, note, NULL, &err);
    if (got < 1)
        printf("# %s %s %s\n", code, field, message);
    return got;
}

#define AOF(type, payload)                                                                         \
    "{'protocol':'aof','version':1,'type':'" type "','taskId':'TASK-2026-02-09-060',"              \
    "'parentTaskId':'TASK-2026-02-09-057','fromAgent':'a','toAgent':'b',"                          \
    "'sentAt':'1970-01-01T00:00:01Z','messageId':'m-1','payload':{" payload "}}"

#define HANDOFF                                                                                    \
    "'taskId':'TASK-2026-02-09-060','parentTaskId':'TASK-2026-02-09-057','fromAgent':'a',"         \
    "'toAgent':'q','acceptanceCriteria':['c1','c2'],'expectedOutputs':['o'],'contextRefs':['x'],"  \
    "'constraints':['n'],'dueBy':'1970-01-01T00:00:02Z'"

static void handoff_body(const struct amp_view *v)
{
    const struct amp_body *b = &v->body;
    TAP_INT(v->kind, AMP_KIND_HANDOFF, "a hand-over");
    TAP_SPAN(b->handoff.parent, "TASK-2026-02-09-057", "its parent");
    TAP_SPAN(b->handoff.to, "q", "who is asked");
    TAP_INT(b->handoff.criteria.n, 2, "its criteria");
    TAP_SPAN(b->handoff.outputs.v[0], "o", "its outputs");
    TAP_SPAN(b->handoff.context.v[0], "x", "its context");
    TAP_SPAN(b->handoff.constraints.v[0], "n", "its constraints");
    TAP_INT(b->handoff.due_ms, 2000, "when it is due");
    TAP_INT(v->expires_ms, 2000, "in the view too");
}

static void aof_messages(void)
{
    struct amp_view v;
    TAP_INT(look(AOF("handoff.request", HANDOFF), &v), 1, "handoff.request");
    TAP_SPAN(v.id, "m-1", "its id");
    TAP_INT(v.created_ms, 1000, "its time");
    TAP_SPAN(v.correlation, "TASK-2026-02-09-057", "its correlation");
    handoff_body(&v);
    TAP_INT(look(AOF("handoff.accepted", "'taskId':'TASK-2026-02-09-060','accepted':true"), &v), 1,
            "handoff.accepted");
    TAP_INT(v.kind, AMP_KIND_ACK, "an ack");
    TAP_INT(v.body.ack.stage, AMP_STAGE_READ, "of what was taken up");
    TAP_INT(look(AOF("handoff.rejected",
                     "'taskId':'TASK-2026-02-09-060','accepted':false,'reason':'no'"),
                 &v),
            1, "handoff.rejected");
    TAP_INT(v.kind, AMP_KIND_NACK, "a nack");
    TAP_SPAN(v.body.ack.note, "no", "its reason");
    TAP_INT(look(AOF("status.update", "'taskId':'TASK-2026-02-09-060','agentId':'g','status':"
                                      "'blocked','notes':'n','blockers':['k']"),
                 &v),
            1, "status.update");
    TAP_INT(v.kind, AMP_KIND_PROGRESS, "progress");
    TAP_SPAN(v.body.progress.agent, "g", "its agent");
    TAP_SPAN(v.body.progress.status, "blocked", "its status");
    TAP_SPAN(v.body.progress.note, "n", "its note");
    TAP_SPAN(v.body.progress.blockers.v[0], "k", "its blocker");
}

static void aof_files(void)
{
    struct amp_view v;
    TAP_INT(look("{'taskId':'TASK-2026-02-09-057','agentId':'g','completedAt':"
                 "'1970-01-01T00:00:03Z','outcome':'done','summaryRef':'s.md','tests':{'total':1,"
                 "'passed':1,'failed':0},'notes':'well','deliverables':['d']}",
                 &v),
            1, "run_result.json");
    TAP_INT(v.protocol, AMP_PROTO_AOF, "its protocol");
    TAP_SPAN(v.type, "run_result", "its type");
    TAP_SPAN(v.from, "g", "its agent");
    TAP_INT(v.created_ms, 3000, "its time");
    TAP_INT(v.kind, AMP_KIND_RESULT, "a result");
    TAP_INT(v.body.result.completion, AMP_COMPLETION_COMPLETE, "complete");
    TAP_SPAN(v.body.result.ref, "s.md", "its summary");
    TAP_SPAN(v.body.result.notes.v[0], "well", "its notes");
    TAP_SPAN(v.body.result.files_changed.v[0], "d", "its deliverables");
    TAP_INT(look("{" HANDOFF "}", &v), 1, "handoff.json");
    handoff_body(&v);
    TAP_SPAN(v.type, "handoff", "its type");
    TAP_INT(look("{'taskId':'TASK-2026-02-09-057','agentId':'g','lastHeartbeat':"
                 "'1970-01-01T00:00:03Z','beatCount':0,'expiresAt':'1970-01-01T00:00:04Z'}",
                 &v),
            1, "run_heartbeat.json");
    TAP_INT(v.kind, AMP_KIND_HEARTBEAT, "a heartbeat");
    TAP_INT(v.expires_ms, 4000, "until when it counts");
    TAP_INT(look("{'taskId':'TASK-2026-02-09-057','agentId':'g','startedAt':"
                 "'1970-01-01T00:00:03Z','status':'running'}",
                 &v),
            1, "run.json");
    TAP_SPAN(v.type, "run", "its type");
}

#define RTP(kind, payload)                                                                         \
    "{'eventId':'e','seq':7,'kind':'" kind "','sourceNodeId':'n','sourceAgentId':'a',"             \
    "'toAgentId':'b','corrId':'c','createdAt':'1970-01-01T00:00:01Z','payload':{" payload          \
    "},'trace':{'attempt':2}}"

static void rtp_events(void)
{
    struct amp_view v;
    TAP_INT(look(RTP("task_create", "'taskId':'t','title':'T','requesterAgentId':'r',"
                                    "'priority':'high','toAgents':['x','y']"),
                 &v),
            1, "task_create");
    TAP_INT(v.kind, AMP_KIND_DISPATCH, "a dispatch");
    TAP_SPAN(v.body.dispatch.description, "T", "the title, where there is no description");
    TAP_INT(v.n_to, 2, "its recipients");
    TAP_INT(v.priority, -5, "its priority");
    TAP_SPAN(v.task, "t", "its task");
    TAP_INT(v.sequence, 7, "its number");
    TAP_INT(v.attempt, 2, "its attempt");
    look(RTP("task_create", "'taskId':'t','title':'T','description':'D','requesterAgentId':'r',"
                            "'requiredCapabilities':['cap.x'],'toAgents':[]"),
         &v);
    TAP_SPAN(v.body.dispatch.description, "D", "the description");
    TAP_SPAN(v.to[0], "b", "an empty list leaves the envelope's recipient");
    TAP_INT(look(RTP("task_accept", "'taskId':'t','acceptedByAgentId':'x','etaAt':"
                                    "'1970-01-01T00:00:09Z','planSummary':'p'"),
                 &v),
            1, "task_accept");
    TAP_INT(v.kind, AMP_KIND_PROGRESS, "progress");
    TAP_INT(v.body.progress.eta_ms, 9000, "when it will be ready");
    TAP_SPAN(v.body.progress.agent, "x", "who took it");
    TAP_INT(look(RTP("task_update", "'taskId':'t','status':'in_progress','progress':60,'note':'z'"),
                 &v),
            1, "task_update");
    TAP_OK(v.body.progress.has_percent && v.body.progress.percent == 60, "60 per cent");
    TAP_SPAN(v.body.progress.note, "z", "its note");
    TAP_INT(look(RTP("task_complete", "'taskId':'t','completedByAgentId':'x','resultSummary':'s',"
                                      "'resultRef':'u','completedAt':'1970-01-01T00:00:09Z'"),
                 &v),
            1, "task_complete");
    TAP_INT(v.body.result.completion, AMP_COMPLETION_COMPLETE, "complete");
    TAP_SPAN(v.body.result.notes.v[0], "s", "its summary");
    TAP_SPAN(v.body.result.ref, "u", "where the result stands");
    TAP_INT(look(RTP("task_failed", "'taskId':'t','failedByAgentId':'x','failureClass':'timeout',"
                                    "'errorSummary':'w','failedAt':'1970-01-01T00:00:09Z'"),
                 &v),
            1, "task_failed");
    TAP_INT(v.body.result.completion, AMP_COMPLETION_FAILED, "failed");
    TAP_SPAN(v.body.result.failure, "timeout", "why");
    TAP_SPAN(v.body.result.blockers.v[0], "w", "in words");
    TAP_INT(look(RTP("ack", "'refEventId':'r','ackType':'failed_terminal','ackedByAgentId':'x',"
                            "'ackedAt':'1970-01-01T00:00:09Z','code':'bad_value'"),
                 &v),
            1, "ack");
    TAP_INT(v.kind, AMP_KIND_NACK, "failed_terminal is a nack");
    TAP_SPAN(v.body.ack.ref, "r", "of an event");
    TAP_SPAN(v.body.ack.code, "bad_value", "its code");
    TAP_INT(look("{'capabilityId':'cap.a','eligibleAgentIds':[],'policyVersion':'p','updatedAt':"
                 "'2026-02-25T16:30:05Z'}",
                 &v),
            1, "a record without a kind");
    TAP_SPAN(v.type, "capabilities.index", "is called after its place");
}

/* The refusal of a line, read again. The view's text does not outlive the next line. */
static int refuse(const char *line, struct amp_buf *out, struct amp_view *v)
{
    struct amp_error err;
    amp_buf_reset(out);
    if (look(line, v) != 0)
        return -1;
    const struct amp_spec *s = amp_spec_of(v->protocol);
    int got = s->refuse(v, &first, 5000, out, &err);
    if (got != 0)
        return got;
    code[0] = '\0';
    struct amp_span answer = {out->data, out->len - 1};
    if (!TAP_OK(out->data[out->len - 1] == '\n', "the refusal is one line"))
        return -1;
    return amp_reader_line(reader, answer, NULL, v, note, NULL, &err) == 1 ? 0 : -1;
}

static void refusals(void)
{
    struct amp_view v;
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, 65536);
    TAP_INT(refuse(AOF("status.update", "'taskId':'TASK-2026-02-09-060','agentId':'g'"), &out, &v),
            0, "AOF: a valid answer");
    TAP_SPAN(v.type, "protocol.message.rejected", "an event");
    TAP_SPAN(v.task, "TASK-2026-02-09-060", "about the task");
    TAP_SPAN(v.body.ack.code, "invalid_envelope", "with the reason");
    TAP_SPAN(v.body.ack.ref, "m-1", "and the message");
    TAP_INT(v.kind, AMP_KIND_NACK, "a nack");
    TAP_INT(refuse(AOF("status.delete", ""), &out, &v), 0, "AOF: an unknown type");
    TAP_SPAN(v.type, "protocol.message.unknown", "has an event of its own");
    TAP_INT(refuse("AOF/1 {bad", &out, &v), 0, "AOF: no JSON");
    TAP_SPAN(v.body.ack.code, "invalid_json", "its reason");
    TAP_INT(refuse("{'eventId':0,'type':'protocol.message.rejected','actor':'r'}", &out, &v), 1,
            "AOF: a line of the log is not answered");
    TAP_INT(refuse(RTP("task_create", "'taskId':'t','title':'T','requesterAgentId':'r'"), &out, &v),
            0, "RTP: a valid answer");
    TAP_SPAN(v.type, "ack", "an ack");
    TAP_INT(v.kind, AMP_KIND_NACK, "failed_terminal");
    TAP_SPAN(v.body.ack.ref, "e", "about the event");
    TAP_SPAN(v.body.ack.code, "no_route", "with the protocol's own code");
    TAP_SPAN(v.correlation, "c", "in the same conversation");
    TAP_SPAN(v.to[0], "a", "to the sender");
    TAP_INT(refuse(RTP("task_claim", ""), &out, &v), 0, "RTP: an unknown kind is answered too");
    TAP_INT(refuse(RTP("ack", "'refEventId':'r'"), &out, &v), 1, "RTP: an ack is not answered");
    TAP_INT(refuse("{'kind':'message','sourceNodeId':'n'}", &out, &v), 1, "nor what has no id");
}

int main(void)
{
    struct amp_error err;
    reader = amp_reader_new(NULL, &err);
    if (!reader)
        return 1;
    aof_messages();
    aof_files();
    rtp_events();
    refusals();
    amp_reader_free(reader);
    return tap_done();
}
