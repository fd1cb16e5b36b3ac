/*
 * Runs a directory in the form of the JSON-Schema-Test-Suite: draft2020-12/ and draft7/, the
 * required files, optional/ and optional/format, remotes/ served as http://localhost:1234/. Prints
 * TAP, one line a file.
 *
 *     jsonschema DIR [-v] [FILE...]     -v names every case; FILE as draft7/ref.json
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/schema/output.h>

enum { MOST_REMOTES = 512 };

static const char remote_uri[] = "http://localhost:1234/";
static char *dir;
static bool verbose;
static int tests, failed;
static struct amp_schema_run *run;

/* Texts that schemas were compiled from live until the end. */
static struct {
    char *path;
    struct amp_span text;
} remotes[MOST_REMOTES];
static size_t n_remotes;

static bool read_file(const char *path, struct amp_span *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    size_t cap = 1 << 20, n = 0;
    char *p = malloc(cap);
    while (p && (n += fread(p + n, 1, cap - n, f)) == cap)
        p = realloc(p, cap *= 2);
    fclose(f);
    *out = (struct amp_span){p, n};
    return p != NULL;
}

static int resolve(void *ctx, struct amp_span uri, struct amp_span *text)
{
    char path[1000];
    size_t prefix = sizeof remote_uri - 1;
    if (uri.n < prefix || memcmp(uri.p, remote_uri, prefix) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/remotes/%.*s", dir, (int)(uri.n - prefix), uri.p + prefix);
    for (size_t i = 0; i < n_remotes; i++)
        if (!strcmp(remotes[i].path, path)) {
            *text = remotes[i].text;
            return 0;
        }
    if (n_remotes == MOST_REMOTES || !read_file(path, text))
        return -1;
    remotes[n_remotes].path = strdup(path);
    remotes[n_remotes++].text = *text;
    return 0;
}

static uint32_t member(const struct amp_tape *t, uint32_t tok, const char *key)
{
    return amp_tape_get(t, tok, amp_span_str(key));
}

static void count_violation(void *ctx, const struct amp_violation *v)
{
    if (v->keyword[0] && v->expected[0])
        ++*(int *)ctx;
}

/* Both forms of the standard output agree with the check and are JSON. */
static bool output(const struct amp_schema *s, const struct amp_tape *t, uint32_t data, int want)
{
    static const enum amp_output forms[] = {AMP_OUTPUT_FLAG, AMP_OUTPUT_BASIC};
    struct amp_json_fault fault;
    struct amp_tape read;
    struct amp_buf out;
    bool ok = true;
    amp_tape_init(&read, NULL);
    for (size_t i = 0; s && i < sizeof forms / sizeof *forms; i++) {
        amp_buf_init(&out, 64 << 20);
        int got = amp_schema_output(s, run, t, data, forms[i], &out, NULL);
        ok &= got == want && amp_tape_scan(&read, out.data, out.len, &fault) == 0;
        ok &= i == 0 || got == 1 || member(&read, 0, "errors") != AMP_TOK_NONE;
        if (verbose)
            printf("# %.*s\n", (int)out.len, out.data);
        amp_buf_release(&out);
    }
    amp_tape_release(&read);
    return ok;
}

/* One group: its schema against each of its tests. Returns how many went wrong. */
static int run_group(const struct amp_tape *t, uint32_t group, const struct amp_schema_options *opt,
                     const char *file, int *cases)
{
    struct amp_error err;
    struct amp_span name = amp_tok_source(t, member(t, group, "description"));
    uint32_t list = member(t, group, "tests");
    struct amp_schema *s =
        amp_schema_compile(amp_tok_source(t, member(t, group, "schema")), opt, &err);
    int bad = 0;
    if (!s)
        printf("# %s %.*s: %s: %s\n", file, (int)name.n, name.p, err.code, err.what);
    for (uint32_t k = list + 1; k < t->tok[list].next; k = t->tok[k].next) {
        struct amp_span what = amp_tok_source(t, member(t, k, "description"));
        uint32_t data = member(t, k, "data");
        int want = t->tok[member(t, k, "valid")].type == AMP_JSON_TRUE, told = 0;
        int got = s ? amp_schema_check(s, run, t, data, &err) : -1;
        int why = s ? amp_schema_explain(s, run, t, data, 0, count_violation, &told, &err) : -1;
        bool ok =
            got == want && (got ? why == 0 : why > 0) && told == why && output(s, t, data, got);
        ++*cases;
        bad += !ok;
        if (!ok || verbose)
            printf("# %s: %s %.*s: %.*s: %d, %d violations, wanted %d\n", ok ? "ok" : "FAILED",
                   file, (int)name.n, name.p, (int)what.n, what.p, got, why, want);
    }
    amp_schema_free(s);
    return bad;
}

static void run_file(const char *file, bool draft7, bool formats)
{
    char path[1000];
    struct amp_span text;
    struct amp_tape t;
    struct amp_json_fault fault;
    struct amp_schema_options opt = {.resolve = resolve, .formats = formats, .draft7 = draft7};
    int cases = 0, bad = 0;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    amp_tape_init(&t, NULL);
    if (!read_file(path, &text) || amp_tape_scan(&t, text.p, text.n, &fault)) {
        printf("not ok %d - %s cannot be read\n", ++tests, file);
        failed++;
        return;
    }
    for (uint32_t k = 1; k < t.n; k = t.tok[k].next)
        bad += run_group(&t, k, &opt, file, &cases);
    printf("%sok %d - %s (%d of %d)\n", bad ? "not " : "", ++tests, file, cases - bad, cases);
    failed += bad != 0;
    amp_tape_release(&t);
    free((char *)(uintptr_t)text.p);
}

static int only_json(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 5 && !strcmp(e->d_name + n - 5, ".json");
}

/* Not claimed: drafts other than the two, and that the contents of strings are checked. */
static bool claimed(const char *file, bool draft7)
{
    return strcmp(file, "cross-draft.json") != 0 && !(draft7 && !strcmp(file, "content.json"));
}

static void run_dir(const char *sub, bool draft7, bool formats)
{
    char path[1000];
    struct dirent **names;
    snprintf(path, sizeof path, "%s/%s", dir, sub);
    int n = scandir(path, &names, only_json, alphasort);
    if (n <= 0) {
        printf("not ok %d - no cases in %s\n", ++tests, sub);
        failed++;
        return;
    }
    for (int i = 0; i < n; i++) {
        if (claimed(names[i]->d_name, draft7)) {
            snprintf(path, sizeof path, "%s/%s", sub, names[i]->d_name);
            run_file(path, draft7, formats);
        }
        free(names[i]);
    }
    free(names);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: jsonschema DIR [-v] [FILE...]\n");
        return 64;
    }
    dir = argv[1];
    run = amp_schema_run_new(NULL);
    int i = 2;
    if (i < argc && !strcmp(argv[i], "-v")) {
        verbose = true;
        i++;
    }
    if (i < argc) {
        for (; i < argc; i++)
            run_file(argv[i], !strncmp(argv[i], "draft7", 6), strstr(argv[i], "optional/format/"));
    } else {
        run_dir("draft2020-12", false, false);
        run_dir("draft7", true, false);
        run_dir("draft2020-12/optional", false, false);
        run_dir("draft7/optional", true, false);
        run_dir("draft2020-12/optional/format", false, true);
        run_dir("draft7/optional/format", true, true);
    }
    printf("1..%d\n", tests);
    for (size_t k = 0; k < n_remotes; k++) {
        free(remotes[k].path);
        free((char *)(uintptr_t)remotes[k].text.p);
    }
    amp_schema_run_free(run);
    return failed ? 1 : 0;
}
