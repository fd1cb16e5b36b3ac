/* What the parts of the corpus generator share. */
#ifndef BENCH_CORPUS_H
#define BENCH_CORPUS_H

#include <stddef.h>

unsigned corpus_pick(unsigned n); /* below n, always the same row */
void corpus_put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
size_t corpus_used(void); /* bytes of the line so far */
void corpus_words(unsigned n);
void corpus_text(unsigned n); /* a JSON string of n words */
void corpus_uuid(void);       /* a JSON string */
void corpus_time(void);       /* a JSON string, with Z */

/* One message without its line end; `type` is below 10. */
void corpus_amp(const char *kind, unsigned type);
void corpus_sw4rm(unsigned type);
void corpus_aop(unsigned type);
void corpus_aof(unsigned type);
void corpus_rtp(unsigned type);

#endif
