/*
 * Words of an enum, from the list that makes the enum:
 *
 *     #define AMP_LANES(X) X(BULK, "bulk") X(URGENT, "urgent")
 *     AMP_WORDS(names, AMP_LANES);      static const char *const names[], in the order of the list
 *     amp_word_find(names, AMP_LANE_COUNT, word)
 *
 * AMP_WORDS_OF_NAMES takes the names for the words: X(BULK).
 */
#ifndef AMP_BASE_WORDS_H
#define AMP_BASE_WORDS_H

#include <amp/base/buf.h>

#define AMP_WORDS_ROW(name, word, ...)  word,
#define AMP_WORDS_NAME(name, ...)       #name,
#define AMP_WORDS(names, list)          static const char *const names[] = {list(AMP_WORDS_ROW)}
#define AMP_WORDS_OF_NAMES(names, list) static const char *const names[] = {list(AMP_WORDS_NAME)}

/* The index of a word; -1: it is none of the n. */
static inline int amp_word_find(const char *const *words, int n, struct amp_span word)
{
    for (int i = 0; i < n; i++)
        if (amp_span_is(word, words[i]))
            return i;
    return -1;
}

#endif
