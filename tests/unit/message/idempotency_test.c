/* An operation is done once: who may pass, who is answered, whose outcome counts. */
#include <stdlib.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/operation/idempotency.h"
#include "message/delivery/record/operation_key.h"
#include "message/delivery/settle/answer.h"

static struct amp_error err;
static struct amp_store *store;
static struct amp_idem_answer answer;
static int64_t now = 1000000;

static struct amp_view view_of(const char *producer, const char *token, const char *id)
{
    static struct amp_span to[] = {{"bob", 3}};
    return (struct amp_view){.protocol = AMP_PROTO_SW4RM,
                             .kind = AMP_KIND_OTHER,
                             .line = {"{\"x\":1}", 7},
                             .type = {"DATA", 4},
                             .id = amp_span_str(id),
                             .from = amp_span_str(producer),
                             .token = amp_span_str(token),
                             .correlation = {"flow", 4},
                             .to = to,
                             .n_to = 1,
                             .has_sequence = true,
                             .sequence = 7};
}

static const char *claim_view(const struct amp_view *v)
{
    struct amp_idem_options opt = {.now_ms = now, .window_ms = AMP_IDEM_WINDOW_MS, .actor = "test"};
    if (amp_idem_claim(store, v, &opt, &answer, &err) < 0)
        return err.code;
    return amp_idem_word(answer.verdict);
}

static const char *claim(const char *producer, const char *token, const char *id)
{
    struct amp_view v = view_of(producer, token, id);
    return claim_view(&v);
}

/* Claims and records, as who passes it does. */
static const char *pass(const char *producer, const char *token, const char *id)
{
    struct amp_view v = view_of(producer, token, id);
    const char *word = claim_view(&v);
    if (answer.verdict < AMP_IDEM_RUNNING && amp_message_record(store, &v, now, NULL, &err) < 0)
        return err.code;
    return word;
}

static const char *ack(const char *id, enum amp_ack_stage stage, const char *by, const char *code)
{
    struct amp_message_answer a = {.stage = stage, .by = by, .code = amp_span_str(code)};
    if (stage == AMP_STAGE_FULFILLED)
        a.result = AMP_SPAN("{\"n\":1}");
    return amp_settle_answer(store, amp_span_str(id), &a, now, NULL, &err) < 0 ? err.code : "ok";
}

static void once(void)
{
    TAP_STR(pass("cli", "t1", "m1"), "claim", "a new token");
    TAP_STR(pass("cli", "t1", "m1"), "redelivered", "the same message");
    TAP_STR(pass("cli", "t1", "m2"), "already_in_progress", "another attempt while it is out");
    TAP_SPAN(amp_buf_span(&answer.original), "m1", "names the first");
    TAP_STR(answer.status, "SENT", "and how far it came");
    ack("m1", AMP_STAGE_READ, "bob", "");
    TAP_STR(pass("cli", "t1", "m2"), "already_in_progress", "while it is at work");
    TAP_STR(answer.status, "READ", "its state");
    TAP_STR(ack("m1", AMP_STAGE_FULFILLED, "eve", ""), "permission_denied", "a stranger's outcome");
    TAP_STR(pass("cli", "t1", "m2"), "already_in_progress", "changes nothing");
    now += 5;
    int64_t end = now;
    TAP_STR(ack("m1", AMP_STAGE_FULFILLED, "bob", ""), "ok", "the holder's outcome");
    now += 100;
    TAP_STR(pass("cli", "t1", "m3"), "duplicate_detected", "then it is known");
    TAP_SPAN(amp_buf_span(&answer.original), "m1", "by the first attempt");
    TAP_SPAN(amp_buf_span(&answer.result), "{\"n\":1}", "with its result");
    TAP_OK(answer.at_ms == end && strcmp(answer.status, "FULFILLED") == 0, "its time and state");
    TAP_STR(pass("cli", "t1", "m1"), "duplicate_detected", "to the first attempt as well");
    TAP_STR(pass("eve", "t1", "e1"), "claim", "a token belongs to its producer");
    now = end + AMP_IDEM_WINDOW_MS - 1;
    TAP_STR(pass("cli", "t1", "m4"), "duplicate_detected", "just within the window");
    now++;
    TAP_STR(pass("cli", "t1", "m5"), "claim", "and past it: done again");
    TAP_STR(pass("cli", "t1", "m6"), "already_in_progress", "once");
    TAP_SPAN(amp_buf_span(&answer.original), "m5", "under a new first attempt");
}

static void keys(void)
{
    TAP_STR(pass("cli", "", "s1"), "claim", "without a token");
    TAP_STR(pass("cli", "", "s2"), "already_in_progress", "the number counts");
    TAP_STR(pass("ann", "", "s3"), "claim", "of one producer");
    TAP_STR(claim("cli", "\n7", "s4"), "claim", "no token looks like a number");
    TAP_STR(claim("cli\na", "b", "s5"), "claim", "nor like a longer name");
    TAP_STR(claim("cli", "a\nb", "s6"), "claim", "however it is cut");
    static char longest[5000];
    memset(longest, 'x', sizeof(longest) - 1);
    TAP_STR(claim("cli", longest, "s7"), "claim", "a token beyond a key's length");
    TAP_STR(pass("cli", longest, "s8"), "retry", "is known again");
    struct amp_view v = view_of("cli", "", "s9");
    v.has_sequence = false;
    struct amp_operation_key key;
    TAP_INT(amp_operation_key(&v, &key, &err), 0, "neither token nor number");
    v = view_of("cli", "t", "s9");
    v.type = AMP_SPAN("ACKNOWLEDGEMENT");
    amp_operation_key(&v, &key, &err);
    TAP_INT(key.key.n, 0, "an acknowledgement has no key");
    v.protocol = AMP_PROTO_AMP;
    v.type = AMP_SPAN("task_dispatch");
    amp_operation_key(&v, &key, &err);
    TAP_INT(key.key.n, 0, "and what is not deduplicated has no key");
}

static void retries(void)
{
    static const struct {
        const char *what;
        enum amp_ack_stage stages[3];
        int n;
        const char *code, *want;
    } cases[] = {
        {"timed out without a word", {AMP_STAGE_TIMED_OUT}, 1, "ack_timeout", "retry"},
        {"refused on the way", {AMP_STAGE_REJECTED}, 1, "BUFFER_FULL", "retry"},
        {"admitted, then refused on the way",
         {AMP_STAGE_RECEIVED, AMP_STAGE_REJECTED},
         2,
         "buffer_full",
         "retry"},
        {"refused by the agent", {AMP_STAGE_REJECTED}, 1, "validation_error", "duplicate_detected"},
        {"refused at work",
         {AMP_STAGE_READ, AMP_STAGE_REJECTED},
         2,
         "buffer_full",
         "duplicate_detected"},
        {"failed", {AMP_STAGE_READ, AMP_STAGE_FAILED}, 2, "internal_error", "duplicate_detected"},
        {"admitted late", {AMP_STAGE_TIMED_OUT, AMP_STAGE_RECEIVED}, 2, "", "already_in_progress"},
        {"fulfilled late", {AMP_STAGE_TIMED_OUT, AMP_STAGE_FULFILLED}, 2, "", "duplicate_detected"},
        {"failed, then fulfilled after all",
         {AMP_STAGE_READ, AMP_STAGE_FAILED, AMP_STAGE_FULFILLED},
         3,
         "",
         "duplicate_detected"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char token[16], first[16], second[16];
        snprintf(token, sizeof(token), "r%zu", i);
        snprintf(first, sizeof(first), "r%zu-1", i);
        snprintf(second, sizeof(second), "r%zu-2", i);
        pass("cli", token, first);
        for (int k = 0; k < cases[i].n; k++)
            ack(first, cases[i].stages[k], "bob", cases[i].code);
        TAP_OK(strcmp(pass("cli", token, second), cases[i].want) == 0, "%s: %s", cases[i].what,
               cases[i].want);
    }
    /* The earliest success of several attempts counts, also a late one. */
    TAP_STR(pass("cli", "r0", "r0-3"), "already_in_progress", "the second attempt is out");
    now += 10;
    int64_t early = now;
    ack("r0-1", AMP_STAGE_FULFILLED, "bob", "");
    now += 10;
    ack("r0-2", AMP_STAGE_FULFILLED, "bob", "");
    TAP_STR(pass("cli", "r0", "r0-4"), "duplicate_detected", "both were fulfilled");
    TAP_INT(answer.at_ms, early, "the earlier counts");
    TAP_STR(claim("cli", "lost", "l1"), "claim", "a claim whose message was never recorded");
    TAP_STR(claim("cli", "lost", "l2"), "retry", "keeps nobody");
    pass("cli", "free", "f1");
    TAP_STR(ack("f1", AMP_STAGE_FULFILLED, "eve", ""), "permission_denied",
            "nobody said READ: the recipient alone may tell the end");
    TAP_STR(ack("f1", AMP_STAGE_READ, "helper", ""), "ok", "another took it up");
    TAP_STR(ack("f1", AMP_STAGE_FAILED, "bob", "x"), "permission_denied", "then it is that one's");
    TAP_STR(ack("f1", AMP_STAGE_FULFILLED, "helper", ""), "ok", "to tell");
}

static void many_attempts(void)
{
    char id[16];
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof(id), "a%d", i);
        pass("cli", "many", id);
        ack(id, AMP_STAGE_REJECTED, "router", "buffer_full");
    }
    TAP_STR(pass("cli", "many", "a100"), "retry", "a hundred refusals later");
    TAP_SPAN(amp_buf_span(&answer.original), "a0", "the first is known");
    TAP_STR(pass("cli", "many", "a99"), "already_in_progress", "and the last is at work");
    ack("a100", AMP_STAGE_READ, "bob", "");
}

static void forgets(void)
{
    uint32_t gone = 99;
    struct amp_idem_options opt = {.window_ms = AMP_IDEM_WINDOW_MS, .actor = "test"};
    pass("cli", "gone", "g1");
    ack("g1", AMP_STAGE_READ, "bob", "");
    ack("g1", AMP_STAGE_FULFILLED, "bob", "");
    TAP_STR(pass("cli", "gone", "g2"), "duplicate_detected", "an outcome");
    pass("cli", "nobody", "n1");
    ack("n1", AMP_STAGE_TIMED_OUT, "router", "ack_timeout");
    opt.now_ms = now + AMP_IDEM_WINDOW_MS - 1;
    amp_idem_forget(store, &opt, &gone, &err);
    uint32_t before = gone;
    opt.now_ms++;
    TAP_INT(amp_idem_forget(store, &opt, &gone, &err), 0, "the sweep");
    TAP_OK(gone > 0 && before != 99, "forgets it past the window");
    struct amp_store_rec rec;
    amp_store_get(store, AMP_KEY("token", AMP_SPAN("cli"), AMP_SPAN("gone")), &rec, &err);
    TAP_OK(!rec.found, "its record is gone");
    amp_store_get(store, AMP_KEY("token", AMP_SPAN("cli"), AMP_SPAN("nobody")), &rec, &err);
    TAP_OK(!rec.found, "so is that of one which nobody took up");
    amp_store_get(store, AMP_KEY("token", AMP_SPAN("cli"), AMP_SPAN("many")), &rec, &err);
    TAP_OK(rec.found && rec.due_ms > opt.now_ms, "what is at work stays");
}

int main(void)
{
    struct amp_store_options opt = {.lock_timeout_ms = 5000};
    if (amp_store_open(scratch(), &opt, &store, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    amp_idem_answer_init(&answer);
    once();
    keys();
    retries();
    many_attempts();
    forgets();
    amp_idem_answer_release(&answer);
    amp_store_close(store);
    return tap_done();
}
