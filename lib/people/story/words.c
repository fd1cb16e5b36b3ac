/* The state of a task in the words of the person who waits for it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "people/story/story.h"

#define WORDS_MAX 120 /* bytes of a text of others */

struct words {
    char *out;
    size_t n;
};

static void words_add(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void words_add(struct words *w, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(w->out + w->n, AMP_BRIEF_WORDS_MAX - w->n, fmt, ap);
    va_end(ap);
    if (n > 0)
        w->n = w->n + (size_t)n < AMP_BRIEF_WORDS_MAX ? w->n + (size_t)n : AMP_BRIEF_WORDS_MAX - 1;
}

/* Adds the first line of a text of others, at most WORDS_MAX bytes and no part of a character. */
static void text_add(struct words *w, struct amp_span text)
{
    size_t n = 0;

    while (n < text.n && n < WORDS_MAX && text.p[n] != '\n' && text.p[n])
        n++;
    while (n < text.n && n > 0 && (text.p[n] & 0xc0) == 0x80)
        n--;
    words_add(w, "%.*s", (int)n, text.p);
}

static const char *ordinal(uint32_t n)
{
    uint32_t last = n % 100 / 10 == 1 ? 0 : n % 10;

    return last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th";
}

/* The agent at work, and for how long: " (executor-2, 4 min)". */
static void agent_add(struct words *w, const struct amp_brief *b, int64_t now_ms)
{
    int64_t s = b->since_ms && now_ms > b->since_ms ? (now_ms - b->since_ms) / 1000 : 0;

    if (!b->working)
        return;
    words_add(w, " (");
    text_add(w, b->agent);
    if (!b->since_ms)
        words_add(w, ")");
    else if (s < 60)
        words_add(w, ", %d s)", (int)s);
    else if (s < 7200)
        words_add(w, ", %d min)", (int)(s / 60));
    else
        words_add(w, ", %lld h)", (long long)(s / 3600));
}

struct amp_span amp_story_reason(struct amp_span blocker)
{
    const size_t n = strlen(AMP_TASK_UNFINISHED);

    return amp_span_starts(blocker, AMP_TASK_UNFINISHED)
               ? (struct amp_span){blocker.p + n, blocker.n - n}
               : blocker;
}

static void failure_add(struct words *w, const struct amp_brief *b)
{
    struct amp_span why = amp_story_reason(b->reason);

    if (why.n)
        words_add(w, ": ");
    text_add(w, why);
}

static void question_add(struct words *w, const struct amp_brief *b)
{
    static const char needs[] = "needs your ";
    struct amp_span why = b->question_why;
    bool failed = amp_span_is(why, "failed");

    if (failed || amp_span_is(why, "not complete")) {
        words_add(w, failed ? "failed" : "not complete");
        failure_add(w, b);
        return;
    }
    words_add(w, "asks you: ");
    size_t at = w->n;
    if (amp_span_starts(why, needs))
        why = (struct amp_span){why.p + strlen(needs), why.n - strlen(needs)};
    text_add(w, why);
    /* Without words of the coordinator it is a word of the protocol. */
    for (; w->out[at]; at++)
        if (w->out[at] == '_')
            w->out[at] = ' ';
}

static void state_add(struct words *w, const struct amp_brief *b, int64_t now_ms)
{
    bool again = b->state == AMP_TASK_REWORK;

    switch (b->state) {
    case AMP_TASK_INCOMPLETE:
        words_add(w, "asks you: acceptance criteria");
        return;
    case AMP_TASK_DISPATCHED:
    case AMP_TASK_REWORK:
        if (b->place)
            words_add(w, "queued%s (%u%s)", again ? " for rework" : "", b->place,
                      ordinal(b->place));
        else
            words_add(w, again ? "reworking" : "working");
        agent_add(w, b, now_ms);
        return;
    case AMP_TASK_IN_REVIEW:
        words_add(w, "in review");
        agent_add(w, b, now_ms);
        return;
    case AMP_TASK_DONE:
        words_add(w, "%s", b->landing == AMP_LANDING_NONE ? "approved" : amp_brief_state(b));
        return;
    case AMP_TASK_FAILED:
        words_add(w, "failed");
        failure_add(w, b);
        return;
    case AMP_TASK_TERMINATED:
        words_add(w, b->cancelled ? "cancelled" : "ended by you");
        return;
    default:
        words_add(w, "%s", b->state == AMP_TASK_WAITING ? "waits for you" : amp_brief_state(b));
    }
}

const char *amp_brief_words(const struct amp_brief *b, int64_t now_ms,
                            char out[AMP_BRIEF_WORDS_MAX])
{
    struct words w = {out, 0};

    *out = '\0';
    if (b->questions && !b->ended)
        question_add(&w, b);
    else
        state_add(&w, b, now_ms);
    if (b->paused && !b->ended)
        words_add(&w, ", paused");
    return out;
}

const char *amp_part_words(uint8_t state)
{
    static const char *const words[AMP_QA_STATE_COUNT] = {
        [AMP_QA_PENDING] = "not begun",   [AMP_QA_WORKING] = "sent out",
        [AMP_QA_IN_REVIEW] = "in review", [AMP_QA_REWORK] = "reworking",
        [AMP_QA_HELD] = "waits for you",  [AMP_QA_APPROVED] = "approved",
        [AMP_QA_ABANDONED] = "given up",
    };

    return words[state];
}
