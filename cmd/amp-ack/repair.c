/* amp-ack repair: repairs a state directory after a failed write or damage. */
#include <string.h>
#include <unistd.h>

#include "pass.h"

int ack_repair(int argc, char **argv)
{
    struct amp_error err = {0};
    AMP_BUF struct amp_buf said = {0};
    amp_buf_init(&said, 1 << 20);
    if (!ack_state)
        amp_die_no_state();
    if (ack_person_or_self(NULL, "repair a state directory", &err) < 0)
        return amp_complain(&err);
    int rc = amp_store_repair(ack_state, &said, &err);
    for (char *line = said.data, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end)
            end = line + strlen(line);
        amp_note("%.*s", (int)(end - line), line);
        if (!*end)
            break;
    }
    return rc < 0 ? amp_complain(&err) : 0;
}
