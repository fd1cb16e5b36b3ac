/* What a TASK's command changed, as measured before and after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "../tap.h"
#include "../tree.h"
#include "work/aop/artifact/artifact.h"

static char dir[256], place[300], state[320], file[320];

static void sh(const char *command)
{
    char text[4096];
    snprintf(text, sizeof text, "cd %s && { %s\n} 2>&1", dir, command);
    if (system(text) != 0)
        printf("# failed: %s\n", command);
}

/* The item of a path as "STATUS hash size"; "" if there is none. */
static const char *item(const struct amp_artifacts *a, const char *path)
{
    static char out[256];
    json_t *v;
    size_t i;
    out[0] = '\0';
    json_array_foreach (a->items, i, v) {
        const char *hash = json_string_value(json_object_get(v, "hash"));
        if (strcmp(json_string_value(json_object_get(v, "path")), path) == 0)
            snprintf(out, sizeof out, "%s %.15s %lld",
                     json_string_value(json_object_get(v, "status")), hash ? hash : "-",
                     (long long)json_integer_value(json_object_get(v, "size_bytes")));
    }
    return out;
}

int main(void)
{
    struct amp_error err = {0};
    struct amp_measure *before = NULL, *loaded = NULL, *after = NULL;
    struct amp_artifacts a;
    tree_temporary(dir, sizeof dir);
    snprintf(place, sizeof place, "%s/ws", dir);
    snprintf(state, sizeof state, "%s/ws/.state", dir);
    snprintf(file, sizeof file, "%s/before", dir);
    const struct amp_measure_of of = {.root = "C:\\ws\\", .place = place, .state = state};
    json_auto_t *task = json_loads(
        "{\"task\":{\"expected_outputs\":["
        "{\"type\":\"FILE\",\"path\":\"C:/ws/out/new\"},{\"type\":\"FILE\",\"path\":\"src/same\"},"
        "{\"type\":\"DIRECTORY\",\"path\":\"C:\\\\ws\\\\tree\"},{\"type\":\"FILE\",\"path\":"
        "\"gone\"},"
        "{\"type\":\"FILE\",\"path\":\"never\"},{\"type\":\"FILE\",\"path\":\"link/"
        "passwd\"},{\"type\":\"NOTE\"},"
        "{\"type\":\"FILE\",\"path\":\"src/"
        "mode\",\"rollback_snapshot\":{\"enabled\":true,\"snapshot_path\":"
        "\".snap/x\"}}]}}",
        0, NULL);
    sh("mkdir -p ws/src ws/tree/in ws/.git ws/.state; cd ws; echo same >src/same; echo t "
       ">tree/in/t; echo g >gone;"
       "echo m >src/mode; ln -s /etc link; echo other >other; echo touched >touched; echo del "
       ">'del é'; ln -s a l;"
       "truncate -s 300M big; truncate -s 1M big2; truncate -s 1M zbig");
    TAP_OK(amp_measure_take(&of, task, file, &before, &err) == 0, "the place is measured: %s",
           err.what);
    sh("cd ws; mkdir out .snap; printf abc >out/new; touch src/same touched; echo more "
       ">>tree/in/t; rm gone 'del é'; chmod 755 src/mode;"
       "echo changed >other; rm l; ln -s b l; printf 'x' >created; echo g >.git/config; echo s "
       ">.state/s; echo p >.snap/x; mkfifo pipe;"
       "printf 'y' >\"$(printf 'bad\\377')\"; printf z >>zbig; mkdir empty");
    TAP_OK(amp_measure_load(file, &loaded, &err) == 0, "the measure is read again: %s", err.what);
    TAP_OK(amp_measure_take(&of, task, NULL, &after, &err) == 0, "measured again: %s", err.what);
    TAP_OK(amp_measure_compare(&of, task, loaded, after, 0, &a, &err) == 0, "compared: %s",
           err.what);
    TAP_STR(item(&a, "C:/ws/out/new"), "CREATED sha256:ba7816bf 3", "created");
    TAP_STR(item(&a, "src/same"), "UNCHANGED sha256:a6328afc 5", "unchanged, although touched");
    TAP_OK(strncmp(item(&a, "C:\\ws\\tree"), "UPDATED sha256:", 15) == 0, "a directory: %s",
           item(&a, "C:\\ws\\tree"));
    TAP_STR(item(&a, "gone"), "DELETED - 0", "deleted");
    TAP_OK(strncmp(item(&a, "src/mode"), "UPDATED sha256:", 15) == 0, "its permissions only");
    char *missing = json_dumps(a.missing, JSON_COMPACT);
    TAP_STR(missing ? missing : "", "[\"never\",\"link/passwd\"]", "missing, also behind a link");
    free(missing);
    TAP_OK(strncmp(item(&a, "C:/ws/other"), "UPDATED sha256:", 15) == 0,
           "another file that changed");
    TAP_STR(item(&a, "C:/ws/del é"), "DELETED - 0", "another one that was deleted");
    TAP_STR(item(&a, "C:/ws/created"), "CREATED sha256:2d711642 1", "another one that was created");
    TAP_STR(item(&a, "C:/ws/l"), "UPDATED sha256:3e23e816 1", "a link, over its target");
    TAP_STR(item(&a, "C:/ws/pipe"), "CREATED - 0", "a FIFO has no hash");
    TAP_STR(item(&a, "C:/ws/bad\xef\xbf\xbd"), "CREATED sha256:a1fce436 1",
            "a name that is not UTF-8");
    TAP_OK(strncmp(item(&a, "C:/ws/zbig"), "UPDATED sha256:", 15) == 0,
           "one after a file that is too large to be hashed");
    TAP_INT(json_array_size(a.items), 12,
            "nothing else: not .git, the state, a snapshot, a touched file");
    amp_artifacts_release(&a);
    TAP_OK(amp_measure_compare(&of, task, loaded, after, 6, &a, &err) == 0 && a.omitted == 6 &&
               json_array_size(a.items) == 6,
           "a limit counts what is left out");
    amp_artifacts_release(&a);
    amp_measure_free(after);
    json_auto_t *outside =
        json_loads("{\"task\":{\"expected_outputs\":[{\"path\":\"../x\"}]}}", 0, NULL);
    after = NULL;
    TAP_OK(amp_measure_take(&of, outside, NULL, &after, &err) == -1 &&
               strcmp(err.code, "E_PERMISSION_DENIED") == 0,
           "an output outside is refused");
    struct amp_measure_of few = of;
    few.files = 5;
    TAP_OK(amp_measure_take(&few, task, NULL, &after, &err) == -1 &&
               strcmp(err.code, "E_CONTEXT_OVERFLOW") == 0,
           "more files than the limit are refused");
    sh(": >before");
    TAP_OK(amp_measure_load(file, &after, &err) == -1 && strcmp(err.code, "bad_tree") == 0,
           "a damaged measure is refused");
    amp_measure_free(before);
    amp_measure_free(loaded);
    tree_remove(dir);
    return tap_done();
}
