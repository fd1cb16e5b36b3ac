/* Who refuses a line, and the number of the refusal among what it says. Each thread is an outbox of
 * its own: lines leave in the order of the threads' work, not of the moments when they were made.
 */
#ifndef AMP_PROTOCOL_REFUSE_H
#define AMP_PROTOCOL_REFUSE_H

#include <stdint.h>

#define AMP_REFUSER "amp-validate"

#define AMP_REFUSER_MAX 32
int64_t amp_refuse_number(int64_t now_ms, char who[AMP_REFUSER_MAX]);

#endif
