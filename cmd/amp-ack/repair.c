/* amp-ack repair: repairs a state directory after a failed write or damage. */
#include <string.h>

#include "pass.h"

static int ack_repair(struct amp_command *c, struct amp_error *err)
{
    AMP_BUF struct amp_buf said = {0};
    amp_buf_init(&said, 1 << 20);
    if (!c->state)
        amp_die_no_state();
    int rc = amp_store_repair(c->state, &said, err);
    for (char *line = said.data, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end)
            end = line + strlen(line);
        amp_note("%.*s", (int)(end - line), line);
        if (!*end)
            break;
    }
    return rc;
}

const struct amp_verb repair_verbs[] = {
    {"repair", "", "repair a state directory after a failed write", NULL, ack_repair,
     .act = "repair a state directory", .who = AMP_WHO_PERSON},
    {0},
};
