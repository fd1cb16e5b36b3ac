/* Edit distance over short words; everything longer gets no suggestion. */
#include "protocol/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MOST = 48 };

struct nearest {
    struct amp_span found;
    char word[WORD_MOST];
    unsigned distance;
};

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Letters are compared without case: a word in the wrong case is the nearest of all. */
static unsigned distance(struct amp_span a, struct amp_span b)
{
    unsigned row[WORD_MOST + 1];
    for (size_t j = 0; j <= b.n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a.n; i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.n; j++) {
            unsigned up = row[j];
            bool same = tolower((unsigned char)a.p[i - 1]) == tolower((unsigned char)b.p[j - 1]);
            row[j] = least(least(row[j] + 1, row[j - 1] + 1), corner + !same);
            corner = up;
        }
    }
    return row[b.n];
}

static void consider(struct nearest *best, struct amp_span word)
{
    if (word.n == 0 || word.n >= WORD_MOST || best->found.n >= WORD_MOST)
        return;
    unsigned d = distance(best->found, word);
    bool near = d <= 2 && d * 2 <= word.n;
    if (near && d < best->distance) {
        best->distance = d;
        amp_span_copy(word, best->word, sizeof best->word);
    }
}

static void say(const struct nearest *best, char *out, size_t size)
{
    if (best->word[0])
        snprintf(out, size, "; did you mean \"%s\"?", best->word);
}

void amp_suggest_word(const char *expected, struct amp_span found, char *out, size_t size)
{
    struct nearest best = {.found = found, .distance = WORD_MOST};
    const char *p = expected;
    while (*p) {
        size_t n = strcspn(p, ", \"");
        consider(&best, (struct amp_span){p, n});
        p += n;
        p += strspn(p, ", \"");
    }
    say(&best, out, size);
}

void amp_suggest_field(const char *schema_path, struct amp_span schema_at, struct amp_span found,
                       char *out, size_t size)
{
    struct nearest best = {.found = found, .distance = WORD_MOST};
    const struct amp_schema_file *file =
        schema_path ? amp_schema_file_find(amp_span_str(schema_path)) : NULL;
    size_t n = schema_at.n;
    char at[512];
    while (n > 0 && schema_at.p[n - 1] != '/')
        n--;
    if (!file || n == 0 || n + sizeof "properties" > sizeof at)
        return;
    memcpy(at, schema_at.p, n);
    memcpy(at + n, "properties", sizeof "properties");
    struct amp_tape t;
    struct amp_json_fault fault;
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, file->text.p, file->text.n, &fault) == 0) {
        uint32_t object = amp_tape_pointer(&t, 0, amp_span_str(at));
        if (object != AMP_TOK_NONE && t.tok[object].type == AMP_JSON_OBJECT)
            for (uint32_t k = object + 1; k < t.tok[object].next; k = t.tok[k + 1].next)
                consider(&best, amp_tok_raw(&t, k));
        say(&best, out, size);
    }
    amp_tape_release(&t);
}
