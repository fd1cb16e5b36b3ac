/* Sessions of AOP: the admission of TASKs (order, delegation, access), aborts, sums of costs, and
 * what is completed after a crash. Messages are written with ' for ". */
#include <string.h>

#include "../scratch.h"
#include "../tap.h"
#include "work/aop/private.h"
#include "work/aop/session/private.h"
#include "json/record.h"

static struct amp_store *s;
static struct amp_error err;
static struct amp_reader *reader;
static struct amp_session_voice voice;
static char text[16384];

/* Parts of a TASK; NULL: the default. */
struct given {
    const char *session, *task, *parent, *pattern, *rest; /* rest: of the TASK, "," first */
    const char *inner;                                    /* of task, "," first */
    int attempt;
    const char *created, *orchestrator;
};

static struct amp_view *task(const struct given *g)
{
    static struct amp_view v;
    char parent[200] = "", pattern[200] = "", line[16384];

    if (g->parent)
        snprintf(parent, sizeof parent, ",'parent_task_id':'%s'", g->parent);
    if (g->pattern)
        snprintf(pattern, sizeof pattern, ",'workflow_pattern':'%s'", g->pattern);
    snprintf(line, sizeof line,
             "{'aop_version':'2.0.2-C','schema_version':'2.0.2','protocol_family':'AOP',"
             "'message_type':'TASK','session':{'session_id':'%s','created_at':'%s',"
             "'orchestrator':'%s','origin':'CLI'%s},'target':{'agent_name':'Emma','role':"
             "'EXECUTOR','provider':'CODEX','model':'m1','capabilities':{'network_access':'FULL'}},"
             "'task':{'task_id':'%s'%s,'attempt':%d,"
             "'objective':'Read.','category':'ANALYSIS','complexity':'LOW','environment':"
             "{'workspace_root':'C:/w'}%s}%s}",
             g->session ? g->session : "S", g->created ? g->created : "2026-02-26T14:00:00Z",
             g->orchestrator ? g->orchestrator : "Cyclops", pattern, g->task, parent,
             g->attempt ? g->attempt : 1, g->inner ? g->inner : "", g->rest ? g->rest : "");
    for (char *p = line; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    snprintf(text, sizeof text, "%s", line);
    int rc = amp_reader_line(reader, amp_span_str(text), NULL, &v, NULL, NULL, &err);
    if (rc != 1)
        printf("# not a valid TASK: %s\n", text);
    return &v;
}

static enum amp_session_admission admit(const struct amp_view *v)
{
    voice.now_ms++;
    memset(&err, 0, sizeof err);
    return amp_session_admit(&voice, v, AMP_SIZE_FITS, &err);
}

/* The code of the refusal, or what the admission said. */
static const char *said(const struct given *g)
{
    static const char *const words[] = {"waits", "begins", "ended"};
    enum amp_session_admission a = admit(task(g));

    if (a != AMP_ADMIT_FAILED)
        return words[a];
    static char code[64];
    snprintf(code, sizeof code, "%s", err.code);
    return code;
}

static int begin(const struct given *g, const char *model, const char *after,
                 const struct amp_session_usage *used)
{
    return amp_session_begun(&voice, task(g), AMP_SPAN("CODEX"), amp_span_str(model), after, used,
                             &err);
}

static int finish(const struct given *g, const char *state, const char *signal, const char *code,
                  const char *usd)
{
    char line[2000], details[200] = "null";

    if (*code)
        snprintf(details, sizeof details, "{'error_code':'%s','message':'it failed'}", code);
    snprintf(line, sizeof line,
             "{'message_type':'RESPONSE','session_id':'%s','task_id':'%s','agent':{'name':'Emma',"
             "'provider':'CODEX','model':'m1'},'task_status':{'state':'%s','final_signal':'%s',"
             "'message':'said'},'error_details':%s,'cost_tracking':{'actual_cost_usd':%s,"
             "'tokens_input':10,'tokens_output':1}}",
             g->session ? g->session : "S", g->task, state, signal, details, usd);
    for (char *p = line; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return amp_session_ended(&voice, task(g), amp_span_str(line), NULL, NULL, 0, &err);
}

static int refuse(const struct given *g)
{
    char code[64];
    snprintf(code, sizeof code, "%s", err.code);
    return finish(g, amp_session_refused_state(code), "FAILURE", code, "0");
}

static struct amp_buf mem = {.max = AMP_REC_MAX};
static struct amp_session_task record(const char *session, const char *id)
{
    struct amp_session_task t = {.state = 99};
    amp_session_task_find(s, amp_span_str(session), amp_span_str(id), &mem, &t, &err);
    return t;
}

static const char *state(const char *session, const char *id)
{
    struct amp_session_task t = record(session, id);
    return t.state == 99 ? "none" : amp_session_task_fsm.states[t.state].name;
}

static struct amp_session session(const char *id)
{
    static struct amp_buf own = {.max = AMP_REC_MAX};
    struct amp_session x = {.state = 99};
    amp_session_find(s, amp_span_str(id), &own, &x, &err);
    return x;
}

#define T(...) (&(const struct given){__VA_ARGS__})

static void same_session(void)
{
    TAP_STR(said(T(.task = "A")), "begins", "a TASK makes its session");
    TAP_STR(said(T(.task = "A")), "begins", "asked again, it begins");
    TAP_STR(said(T(.task = "B", .orchestrator = "Other")), "E_SCHEMA_VALIDATION",
            "another orchestrator");
    TAP_STR(said(T(.task = "B", .created = "2026-02-26T14:00:01Z")), "E_SCHEMA_VALIDATION",
            "another time of creation");
    TAP_STR(state("S", "B"), "none", "a TASK that contradicts its session leaves no record");
    TAP_INT(finish(T(.task = "B"), "FAILED", "FAILURE", "E_SCHEMA_VALIDATION", "0"), 0,
            "its RESPONSE changes nothing:");
    TAP_STR(state("S", "B"), "none", "there is no record");
    TAP_STR(said(T(.task = "B", .created = "2026-02-26T15:00:00+01:00")), "begins",
            "the same time in another zone");
    TAP_STR(said(T(.task = "C", .pattern = "PARALLEL")), "begins", "the first pattern");
    TAP_STR(said(T(.task = "D", .pattern = "CHAIN")), "E_SCHEMA_VALIDATION", "another pattern");
    TAP_STR(said(T(.session = "1", .task = "A", .pattern = "SINGLE")), "begins", "SINGLE");
    TAP_STR(said(T(.session = "1", .task = "B")), "E_SCHEMA_VALIDATION", "a second root TASK");
    TAP_INT(refuse(T(.session = "1", .task = "B")), 0, "its refusal");
    TAP_STR(state("1", "B"), "FAILED", "is recorded");
}

static void chain(void)
{
#define C(name, ...) T(.session = "c", .task = name, .pattern = "CHAIN", __VA_ARGS__)
    TAP_STR(said(C("A")), "begins", "the first of a CHAIN");
    TAP_STR(said(C("B")), "waits", "the second waits");
    TAP_STR(said(C("C")), "waits", "so does the third");
    TAP_INT(begin(C("A"), "m1", "", NULL), 0, "the first begins");
    TAP_INT(finish(C("A"), "FAILED", "FAILURE", "E_UNKNOWN", "0.5"), 0, "and fails");
    TAP_STR(said(C("A")), "ended", "its attempt has ended");
    TAP_STR(said(C("C")), "waits", "the third waits for the second");
    TAP_STR(said(C("B")), "begins", "which begins after the failure");
    begin(C("B"), "m1", "", NULL);
    finish(C("B"), "ABORTED", "ABORTED", "E_COST_LIMIT_EXCEEDED", "0.1");
    TAP_STR(said(C("C")), "E_DEPENDENCY_FAILED", "after an aborted TASK the chain ends");
    refuse(C("C"));
    TAP_STR(state("c", "C"), "SKIPPED", "the third is skipped");
    TAP_STR(said(C("D")), "E_DEPENDENCY_FAILED", "and those after it");
    TAP_STR(said(C("A", .attempt = 2)), "begins", "another attempt at the first");
    TAP_STR(said(C("A")), "E_SCHEMA_VALIDATION", "after which the earlier one is late");
    TAP_STR(said(C("A", .attempt = 3)), "waits", "and the next one waits");
}

static void aborts(void)
{
    static const char policy[] = ",'execution_policy':{'on_failure':'ABORT_SESSION'}";
#define A(name, ...) T(.session = "a", .task = name, __VA_ARGS__)
    said(A("A", .rest = policy));
    said(A("B"));
    begin(A("A"), "m1", "", NULL);
    begin(A("B"), "m1", "", NULL);
    TAP_INT(finish(A("A", .rest = policy), "FAILED", "FAILURE", "E_TIMEOUT", "0"), 0, "it fails");
    TAP_INT(session("a").state, AMP_SESSION_ABORTED, "and aborts its session");
    TAP_SPAN(session("a").cause, "A", "which says by what");
    TAP_STR(said(A("C")), "E_DEPENDENCY_FAILED", "a later TASK is refused");
    refuse(A("C"));
    TAP_STR(state("a", "C"), "SKIPPED", "and skipped");
    TAP_STR(said(A("B")), "begins", "what has begun goes on");
    TAP_INT(finish(A("B"), "COMPLETED", "SUCCESS", "", "0"), 0, "to its end");

    /* The process is killed before the abort is recorded. */
    said(T(.session = "k", .task = "A", .rest = policy));
    begin(T(.session = "k", .task = "A"), "m1", "", NULL);
    const struct amp_session_change risk = {
        .event = AMP_SESSION_EV_RISK, .session = AMP_SPAN("k"), .task = AMP_SPAN("A")};
    TAP_INT(amp_session_step(&voice, &risk, &err), 0, "a TASK is about to fail");
    TAP_STR(said(T(.session = "k", .task = "B")), "begins", "until it fails, others begin");
    const struct amp_session_step fail = {
        .event = AMP_SESSION_TASK_EV_FAIL, .session = AMP_SPAN("k"), .task = AMP_SPAN("A")};
    TAP_INT(amp_session_task_step(&voice, &fail, NULL, NULL, &err), 0, "it has failed");
    TAP_INT(session("k").state, AMP_SESSION_OPEN, "the abort is not recorded");
    TAP_STR(said(T(.session = "k", .task = "C")), "E_DEPENDENCY_FAILED", "and still counts");
    TAP_STR(said(T(.session = "k", .task = "A", .rest = policy)), "ended", "its TASK comes again");
    TAP_INT(session("k").state, AMP_SESSION_ABORTED, "and the abort is completed");
}

static void delegation(void)
{
    static const char may[] = ",'constraints':{'delegation_allowed':true}";
#define H(name, up, ...) T(.session = "h", .task = name, .parent = up, __VA_ARGS__)
    said(H("A", NULL, .inner = may));
    TAP_STR(said(H("B", "A", .inner = may)), "waits", "a child waits for its parent to begin");
    begin(H("A", NULL), "m1", "", NULL);
    TAP_STR(said(H("B", "A", .inner = may)), "begins", "then it begins");
    begin(H("B", "A"), "m1", "", NULL);
    TAP_STR(said(H("C", "B", .inner = may)), "begins", "a third level");
    TAP_INT(record("h", "C").depth, 3, "has the depth 3");
    begin(H("C", "B"), "m1", "", NULL);
    TAP_STR(said(H("D", "C")), "E_MAX_DEPTH_EXCEEDED", "a fourth level is refused");
    refuse(H("D", "C"));
    TAP_STR(said(H("E", "D")), "E_MAX_DEPTH_EXCEEDED", "so is a fifth");
    TAP_STR(said(H("F", "F")), "E_MAX_DEPTH_EXCEEDED", "its own parent");
    TAP_STR(said(H("G", "none")), "E_DEPENDENCY_FAILED", "an unknown parent");
    TAP_STR(said(H("A", "C", .attempt = 2)), "waits", "another attempt waits for the first");
    finish(H("A", NULL), "COMPLETED", "SUCCESS", "", "0");
    TAP_STR(said(H("A", "C", .attempt = 2)), "E_SCHEMA_VALIDATION",
            "a later attempt has the same parent");
    TAP_STR(said(H("I", "A", .inner = may)), "begins", "a child of a completed parent");
    said(H("N", NULL));
    begin(H("N", NULL), "m1", "", NULL);
    TAP_STR(said(H("O", "N")), "E_PERMISSION_DENIED", "a parent that may not delegate");
    finish(H("N", NULL), "FAILED", "FAILURE", "E_UNKNOWN", "0");
    TAP_STR(said(H("P", "N")), "E_DEPENDENCY_FAILED", "a parent that failed");
}

static void access_of_children(void)
{
#define IN(read, write, net, extra)                                                                \
    ",'constraints':{'delegation_allowed':true},'access':{'filesystem':{'read_paths':[" read       \
    "],'write_paths':[" write "]},'network':'" net "'}" extra
#define X(name, up, ...) T(.session = "x", .task = name, .parent = up, __VA_ARGS__)
    said(X("A", NULL, .inner = IN("'C:/w'", "'C:/w/src'", "RESTRICTED", "")));
    begin(X("A", NULL), "m1", "", NULL);
    TAP_STR(said(X("B", "A", .inner = IN("'C:/w/src','C:\\\\w\\\\t'", "'src/a'", "NONE", ""))),
            "begins", "access within the parent's");
    TAP_STR(said(X("C", "A", .inner = IN("'C:/w'", "'C:/w/srcs'", "NONE", ""))),
            "E_PERMISSION_DENIED", "write access beside the parent's");
    TAP_STR(said(X("D", "A", .inner = IN("'C:/w/src/../../x'", "", "NONE", ""))),
            "E_PERMISSION_DENIED", "read access above the parent's");
    TAP_STR(said(X("E", "A", .inner = IN("'C:/w'", "", "FULL", ""))), "E_PERMISSION_DENIED",
            "more network than the parent");
    TAP_STR(said(X("F", "A")), "E_PERMISSION_DENIED", "no limit where the parent has one");
    TAP_STR(said(X("R", "A",
                   .inner = ",'access':{'network':'NONE'},'constraints':{'read_only_mode':true}")),
            "begins", "read-only, and the same workspace");
    said(X("G", NULL,
           .inner = ",'constraints':{'delegation_allowed':true},"
                    "'access':{'network':'NONE'}"));
    begin(X("G", NULL), "m1", "", NULL);
    TAP_STR(said(X("H", "G", .inner = ",'access':{'network':'NONE'}")), "begins",
            "a parent without a limit of files: its workspace");
}

static void sums(void)
{
    const struct given *g = T(.session = "m", .task = "A",
                              .inner = ",'budgets':{'max_cost_usd':0.30,'max_tokens':100}");
    const struct amp_session_usage first = {100, 20, 100001, 90000};

    said(g);
    begin(g, "m1", "", NULL);
    TAP_INT(amp_session_cost(&voice, task(g), &first, &err), 0, "a run reports what it used");
    begin(g, "m2", "E_TIMEOUT", NULL);
    struct amp_session_task t = record("m", "A");
    TAP_INT(t.n_tries, 2, "two runs");
    TAP_SPAN(t.tries[0].code, "E_TIMEOUT", "the first ended by its error");
    TAP_INT(t.tries[0].used.micros, 100001, "and keeps what it used");
    TAP_INT(finish(g, "COMPLETED", "SUCCESS", "", "0.300001"), 0, "the end");
    t = record("m", "A");
    struct amp_session_usage sum = amp_session_task_used(&t);
    TAP_INT(sum.micros, 300001, "the sum is that of the RESPONSE");
    TAP_INT(t.tries[1].used.micros, 200000, "the last run has the rest");
    TAP_INT(sum.tokens_in, 100, "tokens that were reported count");
    AMP_BUF struct amp_buf out = {.max = 1 << 16};
    TAP_INT(amp_session_response(s, task(g), &out, &err), 1, "the RESPONSE is kept");
    TAP_OK(strstr(out.data, "0.300001") != NULL, "as it is");
    TAP_STR(said(T(.session = "m", .task = "A", .attempt = 2)), "begins", "another attempt");
    begin(T(.session = "m", .task = "A", .attempt = 2), "m1", "", NULL);
    finish(T(.session = "m", .task = "A", .attempt = 2), "COMPLETED", "SUCCESS", "", "0.000001");
    t = record("m", "A");
    TAP_INT(amp_session_task_used(&t).micros, 300002, "adds to the sum");
    sum = (struct amp_session_usage){.micros = INT64_MAX - 1};
    amp_session_usage_add(&sum, &first);
    TAP_INT(sum.micros, INT64_MAX, "a sum does not overflow");
}

static void after_crash(void)
{
    /* The order is recorded, and the process is killed before the TASK is. */
    const struct amp_session x = {.id = AMP_SPAN("j"),
                                  .orchestrator = AMP_SPAN("Cyclops"),
                                  .created_ms = 1772114400000,
                                  .pattern = AMP_SPAN("CHAIN")};
    const struct given *a = T(.session = "j", .task = "A", .pattern = "CHAIN"),
                       *b = T(.session = "j", .task = "B", .pattern = "CHAIN"),
                       *c = T(.session = "j", .task = "C", .pattern = "CHAIN");
    TAP_STR(said(a), "begins", "the first of a chain");
    struct amp_buf after = {.max = 4096};
    const struct amp_session_task t = {.id = AMP_SPAN("B")};

    TAP_INT(amp_session_join(&voice, &x, &t, true, &after, &err), 0, "the second has its place");
    TAP_STR(said(c), "waits", "a third arrives");
    TAP_SPAN(record("j", "C").after, "B", "after the second");
    begin(a, "m1", "", NULL);
    finish(a, "COMPLETED", "SUCCESS", "", "0");
    TAP_STR(said(c), "waits", "which is not recorded");
    TAP_STR(said(b), "begins", "the second comes again");
    TAP_SPAN(record("j", "B").after, "A", "and is after the first");
    begin(b, "m1", "", NULL);
    finish(b, "COMPLETED", "SUCCESS", "", "0");
    TAP_STR(said(c), "begins", "then the third");
    amp_buf_release(&after);

    /* The RESPONSE is recorded, and the process is killed before the end is. */
    begin(c, "m1", "", NULL);
    const struct amp_session_entry e = {
        .type = AMP_SESSION_ENTRY_RESPONSE_RECEIVED,
        .session = AMP_SPAN("j"),
        .task = AMP_SPAN("C"),
        .attempt = 1,
        .json = AMP_SPAN("{\"payload\":{\"task_status\":{\"state\":\"COMPLETED\","
                         "\"final_signal\":\"SUCCESS\"}}}")};
    amp_session_entry_add(&voice, &e, "1.response", NULL, 0, &err);
    TAP_STR(said(c), "ended", "the end is completed");
    TAP_STR(state("j", "C"), "COMPLETED", "with the state of the RESPONSE");
}

struct listed {
    unsigned n, types[AMP_SESSION_ENTRY_COUNT];
    uint64_t last;
    bool ordered;
};
static int entry_count(void *ctx, const struct amp_session_entry *e, struct amp_error *why)
{
    struct listed *l = ctx;
    (void)why;
    l->ordered = l->n++ == 0 || (l->ordered && e->seq > l->last);
    l->last = e->seq;
    l->types[e->type]++;
    return 0;
}

static int entry_stop(void *ctx, const struct amp_session_entry *e, struct amp_error *why)
{
    (void)why;
    *(uint64_t *)ctx = e->seq;
    return 1;
}

static void entries(void)
{
    struct listed l = {0};
    const struct given *g = T(.session = "e", .task = "A");
    uint64_t first = 0;

    said(g);
    said(T(.session = "E", .task = "A")); /* another session among them */
    begin(g, "m1", "", NULL);
    for (int i = 0; i < 150; i++)
        amp_session_event(&voice, task(g), AMP_SPAN("{\"event\":\"HEARTBEAT\"}"), NULL, &err);
    amp_session_event(&voice, task(g), AMP_SPAN("{\"event\":\"ROLLBACK_INITIATED\"}"), "1.back",
                      &err);
    amp_session_event(&voice, task(g), AMP_SPAN("{\"event\":\"ROLLBACK_INITIATED\"}"), "1.back",
                      &err);
    finish(g, "COMPLETED", "SUCCESS", "", "0");
    TAP_INT(amp_session_entries(s, AMP_SPAN("e"), 0, entry_count, &l, &err), 0, "the entries");
    TAP_OK(l.ordered, "are in their order");
    TAP_INT(l.types[AMP_SESSION_ENTRY_EVENT], 150, "events");
    TAP_INT(l.types[AMP_SESSION_ENTRY_ROLLBACK_EVENT], 1, "one with a name is added once");
    TAP_INT(l.types[AMP_SESSION_ENTRY_TASK_DISPATCHED], 1, "a TASK");
    TAP_INT(l.types[AMP_SESSION_ENTRY_GUARD_RAIL_CHECK], 2, "two checks");
    TAP_INT(l.types[AMP_SESSION_ENTRY_RESPONSE_RECEIVED], 1, "a RESPONSE");
    amp_session_entries(s, AMP_SPAN("e"), 0, entry_stop, &first, &err);
    struct listed rest = {0};
    amp_session_entries(s, AMP_SPAN("e"), first, entry_count, &rest, &err);
    TAP_INT(rest.n, l.n - 1, "those after the first");
}

static void retention(void)
{
    uint32_t done = 0;
    const struct amp_session_change report = {.event = AMP_SESSION_EV_REPORT,
                                              .session = AMP_SPAN("m")};
    amp_session_step(&voice, &report, &err);
    TAP_INT(session("m").state, AMP_SESSION_REPORTED, "a session is reported");
    TAP_STR(said(T(.session = "m", .task = "Z")), "begins", "another TASK arrives");
    TAP_INT(session("m").state, AMP_SESSION_OPEN, "and it is open again");
    begin(T(.session = "m", .task = "Z"), "m1", "", NULL);
    int64_t later = voice.now_ms + AMP_SESSION_KEEP_MS + 1;
    TAP_INT(amp_session_sweep(s, later, "sweep", &done, &err), 0, "after the retention");
    TAP_STR(state("m", "Z"), "IN_PROGRESS", "a session with an open TASK stays");
    TAP_STR(state("1", "A"), "PENDING", "so does another");
    TAP_OK(session("e").state == 99 && record("e", "A").state == 99, "one that has ended is gone");
    struct listed l = {0};
    amp_session_entries(s, AMP_SPAN("e"), 0, entry_count, &l, &err);
    TAP_INT(l.n, 0, "with its entries");
}

int main(void)
{
    const struct amp_store_options opt = {.lock_timeout_ms = -1};
    char dir[100];

    snprintf(dir, sizeof dir, "%s/state", scratch());
    reader = amp_reader_new(NULL, &err);
    if (!reader || amp_store_open(dir, &opt, &s, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    voice = (struct amp_session_voice){s, "tester", 1772114400000};
    same_session();
    chain();
    aborts();
    delegation();
    access_of_children();
    sums();
    after_crash();
    entries();
    retention();
    amp_store_close(s);
    amp_reader_free(reader);
    amp_buf_release(&mem);
    return tap_done();
}
