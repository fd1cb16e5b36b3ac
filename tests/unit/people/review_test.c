/* Scope patterns, diff ranges, counting a patch, reading an answer. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../tap.h"
#include "message/protocol/amp/compose.h"
#include "people/question/question.h"
#include "work/git/repository/patch.h"

static void test_scope(void)
{
    static const struct {
        const char *action, *path;
        bool forbidden;
    } cases[] = {
        {"modify Info.plist", "App/Info.plist", true},
        {"modify Info.plist.", "Info.plist", true},
        {"modify Info.plist", "App/Other.plist", false},
        {"touch anything in src/core/", "src/core/a.c", true},
        {"touch anything in src/core/", "src/core2/a.c", false},
        {"change src/*.h", "src/a.h", true},
        {"change *.lock files", "deps/yarn.lock", true},
        {"edit \"Makefile.am\"", "Makefile.am", true},
        {"edit main.c", "lib/main.c", true},
        {"delete CoreData entities", "CoreData", false},
        {"no hacks, e.g. sleeps", "e.g", false},
        {"use version 2.0", "2.0", false},
        {"see https://example.org/a", "a", false},
        {"./build.sh must stay", "build.sh", true},
    };
    static const char *const patterns[] = {"migrations/", "*.sql", NULL};
    const struct amp_spans none = {NULL, 0};
    char by[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct amp_span one = amp_span_str(cases[i].action);
        const struct amp_spans actions = {&one, 1};
        TAP_OK(amp_scope_forbids(amp_span_str(cases[i].path), NULL, &actions, by, sizeof by) ==
                   cases[i].forbidden,
               "\"%s\" against %s", cases[i].action, cases[i].path);
    }
    TAP_OK(amp_scope_forbids(AMP_SPAN("migrations/1.txt"), patterns, &none, by, sizeof by),
           "below a directory");
    TAP_STR(by, "migrations/", "names the pattern");
    TAP_OK(amp_scope_forbids(AMP_SPAN("x/y.sql"), patterns, &none, by, sizeof by), "by suffix");
    TAP_OK(!amp_scope_forbids(AMP_SPAN("x/migrations"), patterns, &none, by, sizeof by), "neither");
}

static void test_url(void)
{
    char base[80], commit[80];

    TAP_OK(amp_diff_url_parse(AMP_SPAN("file:///srv/r#a#main...abc"), base, 80, commit, 80),
           "a local range");
    TAP_STR(base, "main", "its base");
    TAP_STR(commit, "abc", "its commit");
    TAP_OK(!amp_diff_url_parse(AMP_SPAN("https://x/compare/a...b"), base, 80, commit, 80),
           "nothing is fetched");
    TAP_OK(!amp_diff_url_parse(AMP_SPAN("file:///srv/r#...b"), base, 80, commit, 80), "no base");
    TAP_OK(!amp_diff_url_parse(AMP_SPAN("file:///srv/r#a..."), base, 80, commit, 80), "no commit");
    TAP_OK(!amp_diff_url_parse(AMP_SPAN(""), base, 80, commit, 80), "nothing");
}

static void test_patch(void)
{
    static const char text[] =
        "diff --git a/a b.c b/a b.c\n"
        "index 1..2 100644\n--- a/a b.c\n+++ b/a b.c\n"
        "@@ -1,3 +1,3 @@ f\n context\n-old\n+new\n context\n"
        "@@ -9 +9,2 @@\n same\n+--- not a header\n"
        "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n"
        "@@ -0,0 +1,2 @@\n+x\n+diff --git a/z b/z\n"
        "diff --git a/i.png b/i.png\nBinary files a/i.png and b/i.png differ\n";
    char path[] = "/tmp/review_test.XXXXXX";
    struct amp_patch p;
    struct amp_error err;
    int fd = mkstemp(path);

    if (fd < 0 || amp_write_all(fd, amp_span_str(text), &err))
        abort();
    close(fd);
    TAP_INT(amp_patch_read(path, &p, &err), 0, "a patch is read");
    TAP_INT(p.n, 3, "three files");
    TAP_STR(p.v[0].path, "a b.c", "a name with a space");
    TAP_INT(p.v[0].lines, 3, "lines of all hunks");
    TAP_OK(!p.v[0].created && p.v[1].created, "which one is new");
    TAP_INT(p.v[1].lines, 2, "a header inside a hunk is a line");
    TAP_OK(p.v[2].binary, "a binary file");
    amp_patch_release(&p);
    unlink(path);
}

static void test_answer(void)
{
    struct amp_operator_answer a;
    struct amp_question amp = {.protocol = AMP_PROTO_AMP}, sw4rm = {.protocol = AMP_PROTO_SW4RM};
    char resume[] = "  Resume  go on \r\n", back[] = "rollback abc123 try again",
         bare[] = "rollback", word[] = "resumed", empty[] = "";

    TAP_OK(amp_answer_parse(&amp, resume, &a) && !strcmp(a.action, "resume"), "resume");
    TAP_STR(a.note, "go on", "with its note");
    TAP_OK(amp_answer_parse(&amp, back, &a) && a.does == AMP_ACTION_ROLLBACK, "rollback");
    TAP_STR(a.commit, "abc123", "its commit");
    TAP_STR(a.note, "try again", "its note");
    TAP_OK(amp_answer_parse(&amp, bare, &a) && !*a.commit, "no commit is empty");
    TAP_OK(!amp_answer_parse(&amp, word, &a), "no other word");
    TAP_OK(!amp_answer_parse(&amp, empty, &a), "nothing is no answer");

    char deny[] = "Deny too risky", all[] = "approve all of it", queue[] = "queue_tasks",
         other[] = "resume", more[] = "approval";
    sw4rm.message = amp_json_load(
        AMP_SPAN("{\"payload\":{\"proposed_actions\":[\"QUEUE_TASKS\",\"approve all\",7]}}"), NULL);
    TAP_OK(amp_answer_parse(&sw4rm, deny, &a), "an action of SW4RM");
    TAP_STR(a.action, "deny", "spelled as the protocol does");
    TAP_STR(a.note, "too risky", "with its rationale");
    TAP_OK(amp_answer_parse(&sw4rm, all, &a), "a proposed action of two words");
    TAP_STR(a.action, "approve all", "before the shorter one");
    TAP_STR(a.note, "of it", "and its rationale");
    TAP_OK(amp_answer_parse(&sw4rm, queue, &a), "a proposed action in other letters");
    TAP_STR(a.action, "QUEUE_TASKS", "spelled as it was proposed");
    TAP_OK(!amp_answer_parse(&sw4rm, other, &a), "a word of AMP is none of SW4RM's");
    TAP_OK(!amp_answer_parse(&sw4rm, more, &a), "nor is the start of another word");

    char yes[] = "y looks right", redo[] = "redo with tests", no[] = "no", all_of[] = "yes all";
    TAP_OK(amp_answer_parse(&amp, yes, &a) && !strcmp(a.action, "resume"), "a person's word");
    TAP_STR(a.note, "looks right", "with its note");
    TAP_OK(amp_answer_parse(&amp, redo, &a) && a.does == AMP_ACTION_REQUEUE, "redo");
    TAP_OK(amp_answer_action(&amp, " No!") == NULL, "not the start of another word");
    TAP_OK(amp_answer_action(&amp, " No")->is & AMP_ACTION_GRAVE, "no loses work");
    TAP_OK(!amp_answer_parse(&sw4rm, redo, &a), "an action that the question does not offer");
    json_decref(sw4rm.message);
    sw4rm.message = amp_json_load(
        AMP_SPAN("{\"payload\":{\"proposed_actions\":[\"no\",\"deny all\",\"yes all\"]}}"), NULL);
    TAP_OK(amp_answer_parse(&sw4rm, no, &a) && !strcmp(a.action, "no"), "a proposed one is first");
    TAP_OK(amp_answer_action(&sw4rm, "no") == NULL, "and has no row");
    TAP_OK(amp_answer_action(&sw4rm, "deny all") == NULL, "also if it begins like one");
    TAP_OK(amp_answer_parse(&sw4rm, all_of, &a) && !strcmp(a.action, "yes all"),
           "the longer proposed one");
    amp_question_release(&sw4rm);
}

/* A real number has the digits that it needs; a text stays. */
static void test_reals(void)
{
    const char *text =
        "[0.9,\"0.90000000000000002\",\"\\\"0.90000000000000002\",0.30000000000000004,"
        "{\"0.10000000000000001\":-0.1},9.3e-05,100.0,1e300,1e16]";
    AMP_BUF struct amp_buf out = {0};
    struct amp_error err;
    amp_buf_init(&out, 4096);
    json_t *j = amp_json_load(amp_span_str(text), &err);
    TAP_OK(j && amp_json_dump(j, &out, &err) == 0 && amp_buf_add(&out, "", 1, &err) == 0, "dumped");
    TAP_STR(out.data,
            "[0.9,\"0.90000000000000002\",\"\\\"0.90000000000000002\",0.30000000000000004,"
            "{\"0.10000000000000001\":-0.1},9.3e-05,100.0,1e+300,1e+16]",
            "with the fewest digits");
    json_decref(j);
}

int main(void)
{
    test_scope();
    test_url();
    test_patch();
    test_answer();
    test_reals();
    return tap_done();
}
