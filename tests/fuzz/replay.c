/* Runs a fuzz target on files, without libFuzzer: replay DIR|FILE... Prints TAP, one line a
 * directory or file given; a finding ends the program by a signal. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) < 0) {
        perror(path);
        exit(74);
    }
    uint8_t *data = malloc((size_t)st.st_size + 1);
    size_t n = fread(data, 1, (size_t)st.st_size, f);
    fclose(f);
    fprintf(stderr, "%s\n", path); /* the last one is the one at fault */
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    return 1;
}

static long replay(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    long files = 0;
    if (!dir)
        return replay_file(path);
    while ((e = readdir(dir))) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            files += replay_file(name);
    }
    closedir(dir);
    return files;
}

int main(int argc, char **argv)
{
    int bad = 0;
    for (int i = 1; i < argc; i++) {
        long n = replay(argv[i]);
        printf("%sok %d - %ld inputs of %s\n", n ? "" : "not ", i, n, argv[i]);
        bad += n == 0;
    }
    printf("1..%d\n", argc - 1);
    return bad != 0;
}
