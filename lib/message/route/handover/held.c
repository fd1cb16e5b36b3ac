/* Messages that stay in the inbox, because their task or their agent is suspended. */
#include "message/route/handover/held.h"

#include <stdio.h>
#include <string.h>

#include "message/delivery/facts.h"
#include "message/route/parcel.h"

#define HELD_MAX (1u << 20)

int amp_held_open(struct amp_inbox_held *h, struct amp_store *s, const char *agent,
                  struct amp_error *err)
{
    *h = (struct amp_inbox_held){.store = s, .name = agent};
    amp_buf_init(&h->said, HELD_MAX);
    amp_buf_init(&h->notes, 4 * (size_t)HELD_MAX);
    if (!(h->reader = amp_reader_new(NULL, err)))
        return -1;
    amp_pause_watch_open(&h->pauses, s);
    return 0;
}

void amp_held_close(struct amp_inbox_held *h)
{
    amp_reader_free(h->reader);
    amp_pause_watch_close(&h->pauses);
    amp_buf_release(&h->said);
    amp_buf_release(&h->notes);
}

/* Notes each message once, for amp_held_report after the turn, in which no write may block. */
static int held_note(struct amp_inbox_held *h, struct amp_span id, const char *why,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, HELD_MAX);
    if (amp_buf_fmt(&line, err, "\n%.*s\n", (int)id.n, id.p) < 0)
        return -1;
    if (h->said.len > 0 && memmem(h->said.data, h->said.len, line.data, line.len))
        return 0;
    if (h->said.len + line.len > HELD_MAX)
        amp_buf_reset(&h->said);
    return amp_buf_add(&h->said, line.data, line.len, err) < 0
               ? -1
               : amp_buf_fmt(&h->notes, err, "%.*s stays in the inbox: %s\n",
                             (int)(id.n < 200 ? id.n : 200), id.p, why);
}

void amp_held_report(struct amp_inbox_held *h,
                     void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2))))
{
    for (size_t at = 0; at < h->notes.len;) {
        const char *text = h->notes.data + at, *end = memchr(text, '\n', h->notes.len - at);
        size_t n = end ? (size_t)(end - text) : h->notes.len - at;
        note("%.*s", (int)n, text);
        at += n + 1;
    }
    amp_buf_reset(&h->notes);
}

/* Holds new work while its task or the agent is suspended. */
int amp_held_check(void *ctx, struct amp_span text, struct amp_error *err)
{
    struct amp_inbox_held *h = ctx;
    struct amp_view v;
    const struct amp_pause *by;
    const struct amp_message_facts *facts = amp_store_facts(h->store);
    struct amp_check_options any = {0};
    char why[AMP_FACTS_WHY];
    int rc = amp_reader_line(h->reader, text, &any, &v, NULL, NULL, err);
    if (rc < 0)
        return -1;
    int paused =
        amp_pause_look(&h->pauses, rc ? v.task : AMP_SPAN(""), amp_span_str(h->name), &by, err);
    if (paused) {
        char said[AMP_PAUSE_SAID_MAX];
        h->holds = true;
        if (paused > 0)
            amp_pause_say(by, said);
        return paused < 0 || held_note(h, rc ? v.id : AMP_SPAN("a message"), said, err) < 0 ? -1
                                                                                            : 1;
    }
    if (rc <= 0 || !facts || !amp_parcel_is_work(&v))
        return rc < 0 ? -1 : 0;
    int waits = facts->waits(h->store, v.task, h->name, why, err);
    if (waits <= 0)
        return waits;
    h->holds = true;
    return held_note(h, v.id, why, err) < 0 ? -1 : 1;
}
