/* Landings: which moves of a branch the records explain. */
#include "../scratch.h"
#include "../tap.h"
#include "work/task/landing/landing.h"

static struct amp_store *s;
static struct amp_error err;

static void land(const char *task, const char *from, const char *to, bool ends)
{
    const struct amp_landing l = {.task = amp_span_str(task),
                                  .repo = AMP_SPAN("/repo"),
                                  .branch = AMP_SPAN("main"),
                                  .from = amp_span_str(from),
                                  .to = amp_span_str(to),
                                  .commit = amp_span_str(to),
                                  .tree = AMP_SPAN("t"),
                                  .person = AMP_SPAN("ann"),
                                  .by = AMP_SPAN("login"),
                                  .at_ms = 1};

    TAP_INT(amp_landing_step(s, AMP_LANDING_EV_BEGIN, &l, &err), 0, task);
    if (ends)
        TAP_INT(amp_landing_step(s, AMP_LANDING_EV_MOVED, &l, &err), 0, task);
}

static int moved(const char *from, const char *to)
{
    return amp_landings_moved(s, "main", from, to, &err);
}

int main(void)
{
    if (amp_store_open(scratch(), NULL, &s, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    /* The records are read in the order of the tasks, which is not that of the landings. */
    land("T-2026-003", "a", "b", true);
    land("T-2026-002", "b", "c", true);
    land("T-2026-004", "c", "d", true);
    land("T-2026-005", "d", "e", false);
    TAP_INT(moved("a", "b"), 1, "one landing, after which the branch was moved on");
    TAP_INT(moved("b", "d"), 1, "two of four");
    TAP_INT(moved("a", "d"), 1, "three");
    TAP_INT(moved("c", "e"), 1, "one that is being carried out counts");
    TAP_INT(moved("b", "a"), 0, "back");
    TAP_INT(moved("a", "x"), 0, "to a commit that no landing names");
    TAP_INT(amp_landings_moved(s, "other", "a", "b", &err), 0, "another branch");
    amp_store_close(s);
    return tap_done();
}
