/* The open questions of a state directory. */
#include "../scratch.h"
#include "../tap.h"
#include "people/question/question.h"

static struct amp_error err;
static struct amp_store *store;

struct row {
    const char *to, *json;
};

static int row_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *e)
{
    const struct row *r = ctx;
    *c = (struct amp_store_change){
        .event = "test", .to = r->to, .json = amp_span_str(r->json), .actor = "test"};
    return 0;
}

static void put(const char *key, const char *to, const char *json)
{
    struct row r = {to, json};
    TAP_INT(amp_store_update(store, AMP_KEY(AMP_ESCALATION_KIND, amp_span_str(key)), NULL, row_fn,
                             &r, NULL, &err),
            0, "a record of a question");
}

static int count_fn(void *ctx, const struct amp_question *q)
{
    ++*(int *)ctx;
    return 0;
}

static int is_open_task(void *ctx, struct amp_span task, bool *ended, struct amp_error *e)
{
    *ended = false;
    return 0;
}

int main(void)
{
    int n = 0;
    bool dirty = false;
    if (amp_store_open(scratch(), NULL, &store, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    struct amp_hitl h = {
        .store = store, .actor = "test", .dirty = &dirty, .task_ended = is_open_task};
    put("b", "ASKED", "{\"task\":\"T-2026-002\",\"protocol\":\"amp\",\"arrived\":2}");
    TAP_INT(amp_question_each(&h, count_fn, &n, &err), 0, "all are read");
    TAP_INT(n, 1, "one");
    /* A record that cannot be read is not passed over, whatever those of another state are. */
    put("a", "OPEN", "{\"task\":1,\"protocol\":\"amp\",\"arrived\":\"soon\"}");
    err = (struct amp_error){0};
    n = 0;
    TAP_INT(amp_question_each(&h, count_fn, &n, &err), -1, "a record that is not one");
    TAP_INT(n, 0, "nothing is asked");
    TAP_STR(err.code, "bad_record", "it is named");
    amp_hitl_release(&h);
    amp_store_close(store);
    return tap_done();
}
