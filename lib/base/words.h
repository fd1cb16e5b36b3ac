/*
 * Words of an enum, from the list that makes the enum:
 *
 *     #define AMP_LANES(X) X(BULK, "bulk") X(URGENT, "urgent")
 *     AMP_WORDS(names, AMP_LANES);      static const char *const names[], in the order of the list;
 *                                       NULL ends it, as it does the choices of an option
 *     amp_word_find(names, word)
 *
 * AMP_WORDS_OF_NAMES takes the names for the words: X(BULK).
 */
#ifndef AMP_BASE_WORDS_H
#define AMP_BASE_WORDS_H

#include <amp/base/buf.h>

#define AMP_WORDS_ROW(name, word, ...) word,
#define AMP_WORDS_NAME(name, ...)      #name,
#define AMP_WORDS(names, list)         static const char *const names[] = {list(AMP_WORDS_ROW) NULL}
#define AMP_WORDS_OF_NAMES(names, list)                                                            \
    static const char *const names[] = {list(AMP_WORDS_NAME) NULL}

/* The index of a word in a list that NULL ends; -1: it is not in the list. */
static inline int amp_word_find(const char *const *words, struct amp_span word)
{
    for (int i = 0; words[i]; i++)
        if (amp_span_is(word, words[i]))
            return i;
    return -1;
}

#endif
