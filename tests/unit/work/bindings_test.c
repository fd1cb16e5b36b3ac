/* What is reported about a binding that failed. */
#include "../scratch.h"
#include "../tap.h"
#include "work/git/bindings.h"

static struct amp_error err;

static int row_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *e)
{
    (void)ctx, (void)now, (void)e;
    *c = (struct amp_store_change){
        .event = "test",
        .to = "BIND_FAILED",
        .json = AMP_SPAN("{\"agent\":\"ann\",\"repo\":\"/r\",\"worktree\":\"/w\",\"other\":\"\","
                         "\"branch\":\"b\",\"reason\":\"worktree_locked\",\"why\":\"locked\","
                         "\"invocation\":\"\",\"tries\":1,\"since_ms\":1}"),
        .due_ms = 5};
    return 0;
}

static int entry_fn(void *ctx, const struct amp_store_entry *e, struct amp_error *failed)
{
    ++*(int *)ctx;
    TAP_INT(e->role, AMP_ROLE_message, "it is a message");
    TAP_OK(!e->wants_ack, "nobody acknowledges it");
    return 0;
}

/* What the stack holds is not what an entry says. */
static void __attribute__((noinline)) stack_fill(void)
{
    volatile char bytes[65536];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 3;
}

int main(void)
{
    struct amp_store *s;
    uint32_t done = 0;
    int n = 0;
    if (amp_store_open(scratch(), NULL, &s, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    TAP_INT(amp_store_update(s, AMP_KEY(AMP_BINDING_KIND, AMP_SPAN("ann")), NULL, row_fn, NULL,
                             NULL, &err),
            0, "a binding that failed");
    stack_fill();
    TAP_INT(amp_binding_expire(s, 10, "watch", "system", NULL, &done, &err), 0, "its time is over");
    TAP_INT(done, 1, "it is reported");
    TAP_INT(amp_store_outbox(s, "watch", entry_fn, &n, &err), 0, "the outbox");
    TAP_INT(n, 1, "one notice");
    amp_store_close(s);
    return tap_done();
}
