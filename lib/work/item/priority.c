/* Priorities and the words for them. */
#include "work/item/priority.h"

#include <strings.h>

#include "base/codes.h"
#include "work/item/queue.h"

/* AOP and AOF say a word, AMP a risk. */
static const struct {
    const char *word;
    int64_t priority;
} words[] = {
    {"critical", -15}, {"high", -5}, {"normal", 0}, {"medium", 0}, {"low", 10},
};

int amp_priority_of_word(struct amp_span word, int64_t *out, struct amp_error *err)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncasecmp(words[i].word, word.p, word.n) == 0 && !words[i].word[word.n]) {
            *out = words[i].priority;
            return 0;
        }
    return amp_fail(err, AMP_NO, bad_priority,
                    "\"%.*s\" is not a priority: critical, high, normal, medium or low",
                    AMP_CLIP(word, 40));
}

int64_t amp_priority_aged(int64_t priority, int64_t waited_ms, int64_t ageing_ms)
{
    int64_t aged = ageing_ms > 0 && waited_ms > 0 ? priority - waited_ms / ageing_ms : priority;

    return aged < AMP_QUEUE_HIGHEST ? AMP_QUEUE_HIGHEST : aged;
}
