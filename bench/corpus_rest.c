/* The messages of SW4RM, AOP, AOF and RTP in the corpus, after the protocols' own examples. */
#include "corpus.h"

#define put  corpus_put
#define pick corpus_pick
#define text corpus_text

static const char *const agents[] = {"planner", "frontend-1", "backend-2", "qa", "docs", "release"};
static const char *agent(void)
{
    return agents[pick(6)];
}

static size_t payload; /* where the payload of the SW4RM message begins */

static void sw4rm_envelope(const char *type)
{
    static unsigned sequence;
    put("{\"message_id\":");
    corpus_uuid();
    put(",\"producer_id\":\"%s\",\"correlation_id\":", agent());
    corpus_uuid();
    put(",\"sequence_number\":%u,\"retry_count\":%u,\"message_type\":\"%s\",\"content_type\":"
        "\"application/json\",\"timestamp\":",
        ++sequence, pick(2), type);
    corpus_time();
    put(",\"payload\":");
    payload = corpus_used();
    put("{");
}

/* The payload's own brace and, behind it, how long it is. */
static void sw4rm_end(void)
{
    put("}");
    put(",\"content_length\":%zu}", corpus_used() - payload);
}

static void tool_call(void)
{
    sw4rm_envelope("TOOL_CALL");
    put("\"call_id\":\"tool-%04x\",\"tool_name\":\"write_file\",\"provider_id\":\"fs\",\"args\":"
        "{\"path\":\"docs/chapter-%u.md\",\"mode\":420,\"content\":",
        pick(65536), pick(40));
    text(50 + pick(60));
    put("},\"content_type\":\"application/json\",\"execution_policy\":{\"timeout_ms\":%u,"
        "\"isolation\":\"worktree\",\"budget_cpu_ms\":20000,\"budget_wall_ms\":60000},"
        "\"stream\":false",
        1000 * (1 + pick(60)));
    sw4rm_end();
}

static void tool_result(void)
{
    sw4rm_envelope("TOOL_RESULT");
    put("\"call_id\":\"tool-%04x\",\"status\":\"OK\",\"content_type\":\"application/json\","
        "\"result_b64\":\"",
        pick(65536));
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (unsigned n = 400 + 4 * pick(150), i = 0; i < n; i++)
        put("%c", digits[pick(64)]);
    put("\"");
    sw4rm_end();
}

static void data(void)
{
    sw4rm_envelope("DATA");
    put("\"task_type\":\"CreateTicket\",\"title\":");
    text(8);
    put(",\"description\":");
    text(40 + pick(60));
    put(",\"labels\":[\"ui\",\"regression\",\"p%u\"],\"estimate_hours\":%u.5,\"fields\":{", pick(4),
        pick(12));
    for (unsigned i = 0, n = 2 + pick(5); i < n; i++)
        put("%s\"field_%u\":%u", i ? "," : "", i, pick(100000));
    put("}");
    sw4rm_end();
}

static void sw4rm_ack(void)
{
    static const char *const stages[] = {"RECEIVED", "READ", "FULFILLED"};
    sw4rm_envelope("ACKNOWLEDGEMENT");
    put("\"ack_for_message_id\":");
    corpus_uuid();
    put(",\"ack_stage\":\"%s\",\"note\":", stages[pick(3)]);
    text(8 + pick(12));
    sw4rm_end();
}

void corpus_sw4rm(unsigned type)
{
    if (type < 4)
        data();
    else if (type < 6)
        tool_call();
    else if (type < 8)
        tool_result();
    else
        sw4rm_ack();
}

static void aop_header(const char *type)
{
    put("{\"aop_version\":\"2.0.2-C\",\"schema_version\":\"2.0.2\",\"protocol_family\":\"AOP\","
        "\"message_type\":\"%s\",",
        type);
}

static void aop_task(void)
{
    aop_header("TASK");
    put("\"session\":{\"session_id\":\"AOP-SESSION-2026-02-26-%03u\",\"created_at\":", pick(1000));
    corpus_time();
    put(",\"orchestrator\":\"Cyclops\",\"origin\":\"CLI\",\"workflow_pattern\":\"CHAIN\"},"
        "\"target\":{\"agent_name\":\"Emma\",\"role\":\"EXECUTOR\",\"provider\":\"CODEX\","
        "\"model\":\"gpt-5.3-codex\",\"execution_profile\":\"balanced\"},\"task\":{\"task_id\":"
        "\"TASK-%03u\",\"attempt\":1,\"objective\":",
        pick(1000));
    text(20 + pick(40));
    put(",\"category\":\"CODE_REFACTORING\",\"complexity\":\"MEDIUM\",\"priority\":\"NORMAL\","
        "\"environment\":{\"workspace_root\":\"C:/workspace/project-x\",\"os\":\"win32\"},"
        "\"inputs\":[");
    for (unsigned i = 0, n = 1 + pick(3); i < n; i++)
        put("%s{\"type\":\"FILE\",\"path\":\"C:/workspace/project-x/src/module_%u.py\","
            "\"read_only\":true}",
            i ? "," : "", i);
    put("],\"constraints\":{\"max_tokens\":15000,\"max_cost_usd\":0.%u,\"read_only_mode\":false},"
        "\"access\":{\"filesystem\":{\"read_paths\":[\"C:/workspace/project-x\"],\"write_paths\":"
        "[\"C:/workspace/project-x/src\"]},\"network\":\"RESTRICTED\"}},\"execution_policy\":{"
        "\"timeout_seconds\":1800,\"max_retries\":1,\"retry_backoff_seconds\":[30,120,300],"
        "\"on_failure\":\"REPORT_AND_CONTINUE\"},\"guard_rails\":{\"require_minimal_report\":true,"
        "\"require_final_signal\":true}}",
        1 + pick(90));
}

static void aop_response(void)
{
    aop_header("RESPONSE");
    put("\"session_id\":\"AOP-SESSION-2026-02-26-%03u\",\"task_id\":\"TASK-%03u\",\"agent\":{"
        "\"name\":\"Emma\",\"provider\":\"CODEX\",\"model\":\"gpt-5.3-codex\"},\"task_status\":{"
        "\"state\":\"COMPLETED\",\"final_signal\":\"SUCCESS\",\"message\":\"Task completed.\"},"
        "\"execution_summary\":{\"summary\":",
        pick(1000), pick(1000));
    text(15 + pick(20));
    put(",\"actions\":[");
    for (unsigned i = 0, n = 2 + pick(4); i < n; i++) {
        put("%s", i ? "," : "");
        text(5 + pick(8));
    }
    put("],\"output_artifacts\":[{\"type\":\"FILE\",\"path\":\"C:/workspace/project-x/src/a.py\","
        "\"status\":\"UPDATED\",\"size_bytes\":%u}],\"warnings\":[],\"errors\":[]},\"timing\":{"
        "\"started_at\":\"2026-02-26T12:35:01Z\",\"completed_at\":\"2026-02-26T12:40:32Z\","
        "\"duration_seconds\":331,\"retries_attempted\":0},\"cost_tracking\":{"
        "\"actual_cost_usd\":0.18,\"tokens_input\":%u,\"tokens_output\":%u}}",
        pick(90000), pick(20000), pick(9000));
}

static void aop_event(void)
{
    put("{\"aop_version\":\"2.0.2-C\",\"message_type\":\"EVENT\",\"event\":\"PROGRESS_UPDATE\","
        "\"session_id\":\"AOP-SESSION-2026-02-26-%03u\",\"task_id\":\"TASK-%03u\",\"timestamp\":",
        pick(1000), pick(1000));
    corpus_time();
    put(",\"agent\":\"Emma\",\"progress\":{\"percentage\":%u,\"current_phase\":"
        "\"PHASE-IMPLEMENTATION\",\"current_checkpoint\":\"CP-IMPL-001\",\"message\":",
        pick(101));
    text(8 + pick(10));
    put(",\"estimated_time_remaining_seconds\":%u}}", pick(900));
}

void corpus_aop(unsigned type)
{
    if (type < 5)
        aop_task();
    else if (type < 8)
        aop_response();
    else
        aop_event();
}

static void aof_envelope(const char *type, unsigned task)
{
    put("{\"protocol\":\"aof\",\"version\":1,\"type\":\"%s\",\"projectId\":\"_inbox\",\"taskId\":"
        "\"TASK-2026-02-09-%03u\",\"fromAgent\":\"swe-backend\",\"toAgent\":\"swe-qa\",\"sentAt\":",
        type, task);
    corpus_time();
    put(",\"payload\":{");
}

static void handoff(void)
{
    unsigned task = pick(1000);
    aof_envelope("handoff.request", task);
    put("\"taskId\":\"TASK-2026-02-09-%03u\",\"parentTaskId\":\"TASK-2026-02-07-001\","
        "\"fromAgent\":\"swe-backend\",\"toAgent\":\"swe-qa\",\"acceptanceCriteria\":[",
        task);
    for (unsigned i = 0, n = 2 + pick(4); i < n; i++) {
        put("%s", i ? "," : "");
        text(6 + pick(10));
    }
    put("],\"expectedOutputs\":[\"tests/report.md\",\"docs/QA.md\"],\"contextRefs\":["
        "\"tasks/in-progress/TASK-2026-02-09-%03u.md\","
        "\"tasks/in-progress/TASK-2026-02-09-%03u/outputs/handoff.md\"],\"constraints\":[",
        task, task);
    text(12);
    put("],\"dueBy\":");
    corpus_time();
    put("}}");
}

static void status(void)
{
    unsigned task = pick(1000);
    aof_envelope("status.update", task);
    put("\"taskId\":\"TASK-2026-02-09-%03u\",\"agentId\":\"swe-backend\",\"status\":\"blocked\","
        "\"progress\":",
        task);
    text(20 + pick(30));
    put(",\"blockers\":[");
    text(8);
    put("],\"notes\":");
    text(20 + pick(40));
    put("}}");
}

static void completion(void)
{
    unsigned task = pick(1000);
    aof_envelope("completion.report", task);
    put("\"taskId\":\"TASK-2026-02-09-%03u\",\"agentId\":\"swe-backend\",\"completedAt\":", task);
    corpus_time();
    put(",\"outcome\":\"partial\",\"summaryRef\":\"outputs/summary.md\",\"handoffRef\":"
        "\"outputs/handoff.md\",\"deliverables\":[\"src/foo.ts\",\"src/bar.ts\"],\"tests\":{"
        "\"total\":%u,\"passed\":%u,\"failed\":0},\"blockers\":[],\"notes\":",
        120, 120);
    text(30 + pick(50));
    put("}}");
}

void corpus_aof(unsigned type)
{
    if (type < 4)
        handoff();
    else if (type < 7)
        status();
    else
        completion();
}

static void rtp_id(const char *key, const char *prefix)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    put("\"%s\":\"%s_01", key, prefix);
    for (unsigned i = 0; i < 24; i++)
        put("%c", digits[pick(32)]);
    put("\"");
}

static void rtp_envelope(const char *kind)
{
    static unsigned sequence = 1800;
    put("{");
    rtp_id("eventId", "evt");
    put(",\"seq\":%u,\"kind\":\"%s\",\"sourceNodeId\":\"vps-jane\",\"sourceAgentId\":"
        "\"architect\",\"toAgentId\":\"mbp-jane\",",
        ++sequence, kind);
    rtp_id("corrId", "corr");
    put(",\"createdAt\":\"2026-02-25T16:22:%02u.123Z\",\"expiresAt\":\"2086-02-26T16:22:10.123Z\","
        "\"trace\":{\"attempt\":1,\"routingPolicyVersion\":\"rpv_2026_02_25_1\","
        "\"capabilityPolicyVersion\":\"cpv_2026_02_25_3\"},\"payload\":{",
        pick(60));
}

static void message(void)
{
    rtp_envelope("message");
    put("\"toAgents\":[\"mbp-jane\",\"vps-jane\"],\"subject\":");
    text(6);
    put(",\"body\":");
    text(40 + pick(70));
    put(",\"priority\":\"normal\",\"expectsReply\":false}}");
}

static void task_create(void)
{
    rtp_envelope("task_create");
    rtp_id("taskId", "tsk");
    put(",\"title\":");
    text(6);
    put(",\"description\":");
    text(40 + pick(50));
    put(",\"toAgents\":[],\"requiredCapabilities\":[\"cap.release.checklist\"],\"priority\":"
        "\"high\",\"requesterAgentId\":\"architect\",\"responseRequired\":true,\"deadlineAt\":"
        "\"2026-02-25T20:00:00.000Z\"}}");
}

static void task_update(void)
{
    rtp_envelope("task_update");
    rtp_id("taskId", "tsk");
    put(",\"status\":\"in_progress\",\"progress\":%u,\"note\":", pick(101));
    text(8 + pick(12));
    put(",\"revisedEtaAt\":\"2026-02-25T18:30:00.000Z\"}}");
}

static void rtp_ack(void)
{
    rtp_envelope("ack");
    rtp_id("refEventId", "evt");
    put(",\"refKind\":\"task_create\",\"ackType\":\"accepted\",\"ackedByNodeId\":\"vps-jane\","
        "\"ackedByAgentId\":\"executor-mbp\",\"ackedAt\":\"2026-02-25T16:31:00.000Z\",\"etaAt\":"
        "\"2026-02-25T18:00:00.000Z\"}}");
}

void corpus_rtp(unsigned type)
{
    if (type < 4)
        message();
    else if (type < 7)
        task_create();
    else if (type < 9)
        task_update();
    else
        rtp_ack();
}
