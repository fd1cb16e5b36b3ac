/* Lines that may go the short way: glance.c. */
#ifndef AMP_ROUTE_GLANCE_H
#define AMP_ROUTE_GLANCE_H

#include <stdbool.h>

#include <amp/base/buf.h>

struct router;

/* Whether all that may go the short way is to be glanced at, and for what. */
void glance_set(struct router *r);
void glance_begin(struct router *r); /* before the lines that were read, */
void glance_end(struct router *r);   /* and before more are read */
/* The next line that amp_lines_next gave: gives it to its port where it can. */
bool glance_take(struct router *r, struct amp_span line);
void glance_free(struct router *r);

#endif
