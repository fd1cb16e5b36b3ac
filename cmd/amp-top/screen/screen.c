/* The terminal, with ncursesw. */
#define _XOPEN_SOURCE_EXTENDED 1
#include "screen.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "base/codes.h"

/* ---- a crash ---- */

static struct termios saved;
static volatile sig_atomic_t taken;

/* Gives the terminal back with what a signal handler may call. */
static void crash_handle(int sig)
{
    /* End of the alternate screen and of keypad mode, visible cursor, no attributes. */
    static const char sane[] = "\033[?1049l\033[?1l\033>\033[?25h\033[0m\r\n";
    if (taken) {
        ssize_t n = write(STDOUT_FILENO, sane, sizeof sane - 1);
        (void)n;
        tcsetattr(STDIN_FILENO, TCSANOW, &saved);
    }
    signal(sig, SIG_DFL);
    raise(sig);
}

static void crash_watch(bool on)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGQUIT};
    struct sigaction a = {.sa_flags = (int)SA_RESETHAND};
    sigemptyset(&a.sa_mask);
    a.sa_handler = on ? crash_handle : SIG_DFL;
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        sigaction(fatal[i], &a, NULL);
}

static void signals_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGWINCH);
    sigaddset(set, SIGTSTP);
    sigaddset(set, SIGCONT);
}

/* ---- colours ---- */

/* For 256 colours, for 8, and attributes that also serve without colours. */
static const struct {
    short rich, plain;
    attr_t attr, bare; /* bare: without colours */
} looks[TOP_TONES] = {
    [TOP_PLAIN] = {-1, -1, A_NORMAL, A_NORMAL},
    [TOP_DIM] = {245, COLOR_WHITE, A_NORMAL, A_DIM},
    [TOP_STRONG] = {-1, -1, A_BOLD, A_BOLD},
    [TOP_GOOD] = {77, COLOR_GREEN, A_NORMAL, A_NORMAL},
    [TOP_WARN] = {214, COLOR_YELLOW, A_NORMAL, A_BOLD},
    [TOP_BAD] = {203, COLOR_RED, A_BOLD, A_BOLD | A_UNDERLINE},
    [TOP_INFO] = {75, COLOR_CYAN, A_NORMAL, A_NORMAL},
    [TOP_ACCENT] = {81, COLOR_CYAN, A_BOLD, A_BOLD},
    [TOP_FRAME] = {239, COLOR_BLUE, A_NORMAL, A_DIM},
    [TOP_TITLE] = {254, COLOR_WHITE, A_BOLD, A_REVERSE},
};
/* Backgrounds: none, the selected row, the same without the focus, the bar. */
enum { BACK_NONE, BACK_SELECTED, BACK_MARKED, BACK_BAR, BACKS };

static short pair_of(int tone, int back)
{
    return (short)(1 + back * TOP_TONES + tone);
}

static void colors_make(struct top_screen *s)
{
    s->colors = 0;
    if (!s->color || !has_colors() || start_color() == ERR || COLOR_PAIRS < BACKS * TOP_TONES + 1)
        return;
    use_default_colors();
    bool rich = COLORS >= 256;
    static const short backs[2][BACKS] = {{-1, COLOR_BLUE, -1, COLOR_BLUE}, {-1, 24, 236, 24}};
    for (int back = 0; back < BACKS; back++)
        for (int tone = 0; tone < TOP_TONES; tone++) {
            short fore = rich ? looks[tone].rich : looks[tone].plain;
            /* Text on a background of its own colour would vanish. */
            if (backs[rich][back] == COLOR_BLUE && !rich && (fore == COLOR_BLUE || fore < 0))
                fore = COLOR_WHITE;
            if (rich && back == BACK_SELECTED && fore < 0)
                fore = 255;
            if (rich && back == BACK_SELECTED && tone == TOP_DIM)
                fore = 252;
            init_pair(pair_of(tone, back), fore, backs[rich][back]);
        }
    s->colors = rich ? 256 : 8;
}

static void look_of(const struct top_screen *s, uint8_t tone, attr_t *attr, short *pair)
{
    int t = tone & TOP_TONE_MASK;
    if (t >= TOP_TONES)
        t = TOP_PLAIN;
    int back = tone & TOP_SELECTED ? BACK_SELECTED
               : tone & TOP_MARKED ? BACK_MARKED
               : t == TOP_TITLE    ? BACK_BAR
                                   : BACK_NONE;
    *pair = 0;
    if (s->colors) {
        *attr = looks[t].attr;
        *pair = pair_of(t, back);
        if (s->colors < 256 && back == BACK_MARKED)
            *attr |= A_BOLD;
        return;
    }
    *attr = looks[t].bare;
    if (back == BACK_SELECTED)
        *attr |= A_REVERSE;
    if (back == BACK_MARKED)
        *attr |= A_UNDERLINE;
}

/* ---- opening ---- */

int top_screen_open(struct top_screen *s, bool color, struct amp_error *err)
{
    sigset_t set;
    *s = (struct top_screen){.color = color, .signals = -1};
    setlocale(LC_CTYPE, "");
    s->ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    if (tcgetattr(STDIN_FILENO, &saved) < 0)
        return amp_fail_errno(err, AMP_IOERR, "the terminal");
    signals_set(&set);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
        (s->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC)) < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot wait for signals");
    set_escdelay(25);
    if (!newterm(NULL, stdout, stdin)) {
        close(s->signals);
        return amp_fail(err, AMP_UNAVAILABLE, terminal, "the terminal cannot show a screen");
    }
    s->open = true;
    taken = 1;
    crash_watch(true);
    raw();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    leaveok(stdscr, TRUE);
    curs_set(0);
    colors_make(s);
    return 0;
}

void top_screen_close(struct top_screen *s)
{
    if (!s->open)
        return;
    endwin();
    taken = 0;
    crash_watch(false);
    close(s->signals);
    s->open = false;
}

void top_screen_size(const struct top_screen *s, int *w, int *h)
{
    struct winsize size;
    (void)s;
    *w = COLS;
    *h = LINES;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        *w = size.ws_col;
        *h = size.ws_row;
    }
}

/* ---- drawing ---- */

static void cell_draw(const struct top_screen *s, int y, int x, const struct top_cell_text *c)
{
    wchar_t wide[CCHARW_MAX + 1] = {0};
    cchar_t cell;
    attr_t attr;
    short pair;
    mbstate_t state = {0};
    const char *p = c->text;
    look_of(s, c->tone, &attr, &pair);
    if (s->ascii) {
        wide[0] = (unsigned char)*p < 0x80 ? (wchar_t)*p : L'?';
    } else if (mbsnrtowcs(wide, &p, strlen(p), CCHARW_MAX, &state) == (size_t)-1) {
        wide[0] = L'?';
        wide[1] = 0;
    }
    /* A character that the C library takes for another width would shift the line. */
    bool half = x + 1 < COLS && !c[1].text[0];
    int columns = wcwidth(wide[0]);
    if (columns != (half ? 2 : 1)) {
        wide[0] = L'?';
        wide[1] = 0;
    }
    for (int i = 1; wide[i]; i++)
        if (wcwidth(wide[i]) != 0)
            wide[i] = 0;
    if (setcchar(&cell, wide, attr, pair, NULL) == OK)
        mvadd_wch(y, x, &cell);
    if (half && columns != 2)
        mvaddch(y, x + 1, ' ' | attr | (chtype)COLOR_PAIR(pair));
}

void top_screen_draw(const struct top_screen *s, const struct top_grid *g)
{
    if (is_term_resized(g->h, g->w))
        resizeterm(g->h, g->w);
    for (int y = 0; y < g->h; y++)
        for (int x = 0; x < g->w; x++)
            if (g->cell[y * g->w + x].text[0])
                cell_draw(s, y, x, &g->cell[y * g->w + x]);
    refresh();
}

void top_screen_redraw(const struct top_screen *s)
{
    (void)s;
    clearok(curscr, TRUE);
}

/* ---- keys ---- */

/* Readable without a byte: the other side of the terminal is gone. */
static bool input_has_ended(void)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    int n = 0;
    return poll(&in, 1, 0) == 1 && (ioctl(STDIN_FILENO, FIONREAD, &n) < 0 || n == 0);
}

int top_screen_key(struct top_screen *s)
{
    static const struct {
        wint_t code;
        int key;
    } keys[] = {{KEY_UP, TOP_KEY_UP},         {KEY_DOWN, TOP_KEY_DOWN},
                {KEY_LEFT, TOP_KEY_LEFT},     {KEY_RIGHT, TOP_KEY_RIGHT},
                {KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
                {KEY_HOME, TOP_KEY_HOME},     {KEY_END, TOP_KEY_END},
                {KEY_BTAB, TOP_KEY_BACK_TAB}, {KEY_ENTER, TOP_KEY_ENTER},
                {KEY_RESIZE, TOP_KEY_RESIZE}, {KEY_BACKSPACE, TOP_KEY_BACKSPACE}};
    wint_t c;
    (void)s;
    errno = 0;
    int rc = get_wch(&c);
    if (rc == ERR)
        return errno == EIO || input_has_ended() ? TOP_KEY_CLOSED : TOP_KEY_NONE;
    if (rc == KEY_CODE_YES) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (keys[i].code == c)
                return keys[i].key;
        return TOP_KEY_NONE;
    }
    switch (c) {
    case '\t':
        return TOP_KEY_TAB;
    case '\r':
    case '\n':
        return TOP_KEY_ENTER;
    case 27:
        return TOP_KEY_ESCAPE;
    case 127:
    case 8:
        return TOP_KEY_BACKSPACE;
    default:
        return (int)c;
    }
}

/* ---- stop and continue ---- */

void top_screen_stop(struct top_screen *s)
{
    sigset_t stop;
    struct sigaction before, usual = {.sa_handler = SIG_DFL};
    (void)s;
    endwin();
    taken = 0;
    sigemptyset(&usual.sa_mask);
    sigaction(SIGTSTP, &usual, &before);
    /* The complete job stops, as the terminal would do it. */
    kill(0, SIGTSTP);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    sigaction(SIGTSTP, &before, NULL);
    taken = 1;
    top_screen_redraw(s);
    refresh();
}

bool top_screen_signals(struct top_screen *s)
{
    struct signalfd_siginfo info;
    bool draw = false;
    while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGTSTP)
            top_screen_stop(s);
        if (info.ssi_signo == SIGCONT)
            top_screen_redraw(s);
        draw = true;
    }
    return draw;
}
