/* amp_shell_split: the words are those that sh, bash and dash give to a program, and what a shell
 * would expand or interpret is refused. */
#include "base/process/quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"

#define OUTPUT_MAX 65536
#define SPLIT      AMP_CLEANUP(amp_shell_split_release) struct amp_shell_split

/* The words, each followed by '|'. */
static void words_are(const char *line, const char *want)
{
    static int n;
    SPLIT s = {0};
    struct amp_error err;
    AMP_BUF struct amp_buf out = {.max = OUTPUT_MAX};
    int rc = amp_shell_split(amp_span_str(line), &s, &err);
    for (size_t i = 0; rc == 0 && i < s.n; i++)
        amp_buf_fmt(&out, &err, "%s|", s.v[i]);
    TAP_OK(rc == 0 && s.v[s.n] == NULL && amp_span_is(amp_buf_span(&out), want),
           "line %d has the right words%s%s", ++n, rc ? ": " : "", rc ? err.what : "");
}

static void refused_for(const char *line, const char *what)
{
    static int n;
    SPLIT s = {0};
    struct amp_error err = {0};
    int rc = amp_shell_split(amp_span_str(line), &s, &err);
    TAP_OK(rc < 0 && err.status == AMP_DATAERR && strcmp(err.code, "bad_command") == 0 &&
               strncmp(err.what, what, strlen(what)) == 0 && s.n == 0 && s.v == NULL,
           "line %d is refused: %s", ++n, err.what);
}

/* Lines made of these parts, compared with what the shells do. */
static const char *const parts[] = {
    "a", " ", "'", "\"", "\\", "\n", "b",  "=",   "{",  ",", "..", "}", "~", "/",    ":",    "-",
    "#", "[", "]", "!",  "%",  "^",  "\t", "x y", "''", "$", "`",  "*", "+", "\\\n", "1..2", "é"};

static void line_make(unsigned *seed, char *out, size_t size)
{
    size_t n = 0, most = 1 + (size_t)rand_r(seed) % 9;
    out[0] = '\0';
    for (size_t i = 0; i < most; i++) {
        const char *part = parts[(size_t)rand_r(seed) % (sizeof parts / sizeof *parts)];
        n += (size_t)snprintf(out + n, size - n, "%s", part);
    }
}

/* The words that a shell gives to printf for each accepted line, all in one process. */
static bool shell_agrees(const char *shell, unsigned seed, int rounds)
{
    AMP_BUF struct amp_buf script = {.max = 4u << 20}, want = {.max = 4u << 20};
    AMP_BUF struct amp_buf got = {.max = 8u << 20};
    char path[] = "/tmp/split_test.XXXXXX", command[128], line[256], chunk[4096];
    struct amp_error err;
    int accepted = 0;
    for (int i = 0; i < rounds; i++) {
        SPLIT s = {0};
        line_make(&seed, line, sizeof line);
        AMP_BUF struct amp_buf full = {.max = 4096};
        amp_buf_fmt(&full, &err, "printf '<%%s>' -%s", line);
        if (amp_shell_split(amp_buf_span(&full), &s, &err) < 0)
            continue;
        accepted++;
        amp_buf_fmt(&script, &err, "%s\necho\n", full.data);
        for (size_t k = 2; k < s.n; k++)
            amp_buf_fmt(&want, &err, "<%s>", s.v[k]);
        amp_buf_str(&want, "\n", &err);
    }
    int fd = mkstemp(path);
    if (fd < 0)
        return false;
    FILE *f = fdopen(fd, "w");
    fwrite(script.data, 1, script.len, f);
    fclose(f);
    snprintf(command, sizeof command, "cd / && %s %s 2>&1", shell, path);
    f = popen(command, "r");
    for (size_t n; f && (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        amp_buf_add(&got, chunk, n, &err);
    bool ok = f && pclose(f) == 0 && accepted > rounds / 20 &&
              amp_span_eq(amp_buf_span(&got), amp_buf_span(&want));
    remove(path);
    return ok;
}

int main(void)
{
    static const char nul[] = "a\0b";
    SPLIT s = {0};
    struct amp_error err;

    words_are("grep -n 'config.get' src/module_x.py", "grep|-n|config.get|src/module_x.py|");
    words_are("  pytest\ttests/x.py \n", "pytest|tests/x.py|");
    words_are("a \"b c\"'d e'f\\ g \"\" ''", "a|b cd ef g|||");
    words_are("a \"\\$x \\` \\\" \\\\ \\n\\\n.\"", "a|$x ` \" \\ \\n.|");
    words_are("a '$x `y` * ? ; | \\ \"'", "a|$x `y` * ? ; | \\ \"|");
    words_are("a \\$ \\; \\* \\~ \\#", "a|$|;|*|~|#|");
    words_are("a\\\n b\\\nc", "a|bc|");
    words_are("[ -f x ]", "[|-f|x|]|");
    words_are("git show HEAD~1:a@{1} b#c x~1a\\=", "git|show|HEAD~1:a@{1}|b#c|x~1a=|");
    words_are("find . -exec stat {} +", "find|.|-exec|stat|{}|+|");
    words_are("env A=1 x", "env|A=1|x|");
    words_are("./a=b 1=2 '!' x", "./a=b|1=2|!|x|");
    words_are("C:/x/y.exe /c 100%", "C:/x/y.exe|/c|100%|");
    refused_for("", "an empty command");
    refused_for(" \n\t", "an empty command");
    refused_for("''", "an empty name");
    refused_for("a;b", "an operator of the shell at byte 2");
    refused_for("a && b", "an operator");
    refused_for("a | b", "an operator");
    refused_for("a >f", "an operator");
    refused_for("a <f", "an operator");
    refused_for("(a)", "an operator");
    refused_for("a\nb", "a second line at byte 2");
    refused_for("a $b", "an expansion ($) at byte 3");
    refused_for("a \"$(b)\"", "an expansion ($)");
    refused_for("a `b`", "a command in backticks");
    refused_for("a \"`b`\"", "a command in backticks");
    refused_for("a *.c", "a pattern");
    refused_for("a b?", "a pattern");
    refused_for("a [xy]", "a pattern");
    refused_for("a ~/x", "a home directory");
    refused_for("a --x=~/y", "a home directory");
    refused_for("a {b,c}", "a list in braces");
    refused_for("a {1..3}", "a list in braces");
    refused_for("a # b", "a comment");
    refused_for("A=1 b", "an assignment");
    refused_for("A+=1", "an assignment");
    refused_for("! a", "a reserved word");
    refused_for("if a", "a reserved word");
    refused_for("a 'b", "a ' without its end at byte 3");
    refused_for("a \"b", "a \" without its end at byte 3");
    refused_for("a \\", "a backslash at the end");
    refused_for("type C:\\x", "a backslash before a letter");
    refused_for("a b\r\n", "a carriage return");
    TAP_OK(amp_shell_split((struct amp_span){nul, sizeof nul - 1}, &s, &err) < 0,
           "a NUL byte is refused");
    AMP_BUF struct amp_buf many = {.max = 1u << 20};
    for (int i = 0; i <= AMP_SPLIT_WORDS_MAX; i++)
        amp_buf_str(&many, "a ", &err);
    TAP_OK(amp_shell_split(amp_buf_span(&many), &s, &err) < 0 && strstr(err.what, "4096"),
           "4,097 words are refused");
    many.len -= 2;
    TAP_OK(amp_shell_split(amp_buf_span(&many), &s, &err) == 0 && s.n == AMP_SPLIT_WORDS_MAX,
           "4,096 words are not");
    TAP_OK(shell_agrees("sh", 1, 4000), "sh reads the same words in lines that are accepted");
    TAP_OK(shell_agrees("bash", 2, 4000), "so does bash");
    return tap_done();
}
