/* The formats that can be asserted. */
#ifndef SCHEMA_FORMAT_H
#define SCHEMA_FORMAT_H

#include "schema/program.h"

struct amp_format {
    const char *name;
    amp_format_fn check; /* over decoded text */
    const char *wanted;  /* for people */
};

const struct amp_format *amp_format_find(struct amp_span name);

/* format_time.c */
bool amp_format_date_time(const char *p, size_t n);
bool amp_format_date(const char *p, size_t n);
bool amp_format_time(const char *p, size_t n);
bool amp_format_duration(const char *p, size_t n);

#endif
