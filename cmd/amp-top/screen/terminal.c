/* Whether there is a terminal that can show a screen. <term.h> defines short words as macros, so
 * this is a file of its own. */
#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "screen.h"

#include <term.h>

bool top_screen_possible(void)
{
    const char *term = getenv("TERM");
    int why;
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
           strcmp(term, "dumb") != 0 && setupterm(term, STDOUT_FILENO, &why) == OK &&
           cursor_address && clear_screen;
}
