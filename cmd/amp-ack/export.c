/* amp-ack export: copies the older part of the log into an archive before retention removes it. */
#include <inttypes.h>

#include <amp/base/clock.h>

#include "message/store/archive/archive.h"
#include "pass.h"

static const char *until;
static int64_t hold_ms;

static const struct amp_opt export_opts[] = {
    {0, "until", AMP_OPT_STRING, &until, "TIME",
     .doc = "only segments that ended before TIME: RFC 3339 or an age (90s, 2h)"},
    {0, "hold", AMP_OPT_DURATION, &hold_ms, "TIME",
     .doc = "keep what is not archived for TIME, for the next export"},
    AMP_OPT_END,
};

static int archive_make(struct amp_store *s, const char *to, struct amp_error *err)
{
    struct amp_store_archived got;
    int64_t until_ms = amp_now_ms();
    if (until && ack_since(until, &until_ms, err) < 0)
        return -1;
    if (amp_store_archive(s, to, until_ms, &got, err) < 0)
        return -1;
    if (hold_ms && amp_store_pin(s, "archive", got.last + 1, amp_now_ms() + hold_ms, err) < 0)
        return -1;
    if (got.segments)
        amp_note("%s: frames %" PRIu64 " to %" PRIu64 " in %u segments, %u of them new", to,
                 got.first, got.last, got.segments, got.added);
    else
        amp_note("%s: no segment has ended before that time", to);
    return 0;
}

static int ack_export(struct amp_command *c, struct amp_error *err)
{
    return archive_make(c->store, c->argv[0], err);
}

const struct amp_verb export_verbs[] = {
    {"export", "DIR", "archive ended segments of the log before they are removed", export_opts,
     ack_export, .opens = AMP_OPENS_DAMAGED, .act = "export the log", .least = 1, .most = 1,
     .usage = "name the directory of the archive", .group = "Keeping", .who = AMP_WHO_PERSON},
    {0},
};
