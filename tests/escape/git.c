/* Attempts through git: moving refs of the main repository, and leaving something that a git of
 * others runs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "escape.h"

#define COMMIT "cd \"$TREE\" && C=$(git commit-tree -p HEAD -m evil 'HEAD^{tree}') && "

/* Every attempt on a ref has a branch of its own, t-NAME, which is on main at the start. */
#define REF_ATTEMPT(name, script)                                                                  \
    static int name(const struct world *w, char *proof)                                            \
    {                                                                                              \
        (void)proof;                                                                               \
        return shell(script, w) == 0 ? 0 : -EPERM;                                                 \
    }                                                                                              \
    static bool name##_judge(const struct world *w)                                                \
    {                                                                                              \
        return shell("[ \"$(git -C \"$DIR/repo\" rev-parse refs/heads/t-" #name                    \
                     ")\" != \"$(git -C \"$DIR/repo\" rev-parse refs/heads/t-base)\" ]",           \
                     w) == 0;                                                                      \
    }

REF_ATTEMPT(update_ref, COMMIT "git update-ref refs/heads/t-update_ref $C")
REF_ATTEMPT(symbolic_ref, COMMIT "git update-ref refs/heads/mine $C; "
                                 "git symbolic-ref refs/heads/t-symbolic_ref refs/heads/mine")
REF_ATTEMPT(git_dir, "export GIT_DIR=\"$DIR/repo/.git\"; C=$(git commit-tree -m evil "
                     "'main^{tree}') && git update-ref refs/heads/t-git_dir $C")
REF_ATTEMPT(ref_file, COMMIT "echo $C >\"$DIR/repo/.git/refs/heads/t-ref_file\"")
REF_ATTEMPT(common_dir, COMMIT "echo $C >\"$(git rev-parse --git-common-dir)/refs/heads/"
                               "t-common_dir\"")
REF_ATTEMPT(branch_force, COMMIT "git branch -f t-branch_force $C")
REF_ATTEMPT(fetch_into, COMMIT "git fetch . $C:refs/heads/t-fetch_into")
REF_ATTEMPT(push_path, COMMIT "git push --no-verify \"$DIR/repo\" $C:refs/heads/t-push_path")
REF_ATTEMPT(push_url, COMMIT "git -c remote.origin.pushurl=\"$DIR/repo\" push --no-verify origin "
                             "$C:refs/heads/t-push_url")
REF_ATTEMPT(send_pack, COMMIT "git send-pack \"$DIR/repo\" $C:refs/heads/t-send_pack")
REF_ATTEMPT(config_count, COMMIT "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath "
                                 "GIT_CONFIG_VALUE_0=/dev/null git update-ref "
                                 "refs/heads/t-config_count $C")
REF_ATTEMPT(fast_import, "cd \"$TREE\" && printf 'reset refs/heads/t-fast_import\\ncommit "
                         "refs/heads/t-fast_import\\ncommitter a <a> 0 +0000\\ndata 1\\nx\\n' | "
                         "git fast-import --force --quiet")

static int push_origin(const struct world *w, char *proof)
{
    (void)proof;
    return shell(COMMIT "git push --no-verify \"$DIR/origin.git\" $C:refs/heads/evil", w) == 0
               ? 0
               : -EPERM;
}
static bool push_origin_judge(const struct world *w)
{
    return access(at(w->dir, "origin.git/refs/heads/evil"), F_OK) == 0;
}

/* Leaves a setting in the repository. The judge runs the git of another, which follows it. */
#define CONFIG_ATTEMPT(name, script, trigger)                                                      \
    static int name(const struct world *w, char *proof)                                            \
    {                                                                                              \
        (void)proof;                                                                               \
        return shell("cd \"$TREE\" && RUN=\"touch $DIR/mark/" #name "\" && " script, w) == 0       \
                   ? 0                                                                             \
                   : -EPERM;                                                                       \
    }                                                                                              \
    static bool name##_judge(const struct world *w)                                                \
    {                                                                                              \
        shell("cd \"$DIR/repo\" && " trigger, w);                                                  \
        return access(at(w->dir, "mark/" #name), F_OK) == 0;                                       \
    }

CONFIG_ATTEMPT(fsmonitor, "git config core.fsmonitor \"$RUN; false\"", "git status")
CONFIG_ATTEMPT(filter,
               "git config filter.evil.clean \"$RUN; cat\" && echo '*.txt filter=evil' "
               ">>\"$(git rev-parse --git-common-dir)/info/attributes\"",
               "echo x >>file.txt; git add file.txt")
CONFIG_ATTEMPT(textconv,
               "git config diff.evil.textconv \"$RUN; cat\" && echo '*.md diff=evil' "
               ">>\"$(git rev-parse --git-common-dir)/info/attributes\"",
               "echo x >>file.md; git diff --no-ext-diff --textconv")
CONFIG_ATTEMPT(external_diff, "git config diff.external \"$RUN; :\"", "git diff")
CONFIG_ATTEMPT(ssh_command, "git config core.sshCommand \"$RUN; false\"",
               "git ls-remote ssh://example.invalid/x")
CONFIG_ATTEMPT(credential_helper, "git config credential.helper \"!$RUN; :\"",
               "printf 'protocol=https\\nhost=x\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill")
CONFIG_ATTEMPT(config_include,
               "printf '#!/bin/sh\\n%s\\n' \"$RUN\" >prog && chmod +x prog && printf "
               "'[gpg]\\n\\tprogram = %s\\n' \"$TREE/prog\" >inc && "
               "git config include.path \"$TREE/inc\"",
               "git commit -q --allow-empty -S -m x")
CONFIG_ATTEMPT(submodule_update,
               "git config submodule.sub.update \"!$RUN #\" && git config "
               "submodule.sub.active true && git config submodule.sub.url "
               "\"$DIR/origin.git\"",
               "git -c protocol.file.allow=always submodule update --init")
CONFIG_ATTEMPT(hook_file,
               "H=$(git rev-parse --git-common-dir)/hooks && mkdir -p \"$H\" && printf "
               "'#!/bin/sh\\n%s\\n' \"$RUN\" >\"$H/post-checkout\" && chmod +x "
               "\"$H/post-checkout\"",
               "git -c core.hooksPath=.git/hooks checkout -q t-base")
CONFIG_ATTEMPT(hooks_path,
               "mkdir -p hk && printf '#!/bin/sh\\n%s\\n' \"$RUN\" >hk/post-commit && "
               "chmod +x hk/post-commit && git config core.hooksPath \"$TREE/hk\"",
               "git commit -q --allow-empty -m x")

static int alternates(const struct world *w, char *proof)
{
    (void)proof;
    return spill(at(w->dir, "repo/.git/objects/info/alternates"), "/nonexistent\n");
}
static bool alternates_judge(const struct world *w)
{
    return unlink(at(w->dir, "repo/.git/objects/info/alternates")) == 0;
}

static int object_write(const struct world *w, char *proof)
{
    (void)proof;
    return spill(at(w->dir, "repo/.git/objects/planted"), "escaped");
}
static bool object_write_judge(const struct world *w)
{
    return marked(at(w->dir, "repo/.git/objects/planted"), "escaped");
}

static int worktree_move(const struct world *w, char *proof)
{
    (void)proof;
    return shell("cd \"$TREE\" && git worktree move \"$DIR/other2\" \"$DIR/moved\"", w) == 0
               ? 0
               : -EPERM;
}
static bool worktree_move_judge(const struct world *w)
{
    return access(at(w->dir, "other2"), F_OK) != 0;
}

static int worktree_remove(const struct world *w, char *proof)
{
    (void)proof;
    return shell("cd \"$TREE\" && git worktree remove --force \"$DIR/other3\"", w) == 0 ? 0
                                                                                        : -EPERM;
}
static bool worktree_remove_judge(const struct world *w)
{
    return access(at(w->dir, "other3"), F_OK) != 0;
}

static int other_head(const struct world *w, char *proof)
{
    (void)proof;
    return spill(at(w->dir, "repo/.git/worktrees/other/HEAD"), "ref: refs/heads/evil\n");
}
static bool other_head_judge(const struct world *w)
{
    return marked(at(w->dir, "repo/.git/worktrees/other/HEAD"), "refs/heads/evil");
}

/* The last one: afterwards the worktree is in another repository. */
static int git_file(const struct world *w, char *proof)
{
    (void)proof;
    return shell("cd \"$TREE\" && mkdir -p evil.git/objects evil.git/refs && echo 'ref: "
                 "refs/heads/x' >evil.git/HEAD && printf '[core]\\n\\trepositoryformatversion = "
                 "0\\n\\tfsmonitor = \"touch %s/mark/git_file; false\"\\n' \"$DIR\" "
                 ">evil.git/config && echo 'gitdir: evil.git' >.git.new && "
                 "mv -f .git.new .git && grep -q evil .git",
                 w) == 0
               ? 0
               : -EPERM;
}
static bool git_file_judge(const struct world *w)
{
    shell("cd \"$TREE\" && git status", w);
    return access(at(w->dir, "mark/git_file"), F_OK) == 0;
}

const struct attempt git_attempts[] = {
    {"update_ref", "git update-ref", update_ref, update_ref_judge, BOTH, false},
    {"symbolic_ref", "git symbolic-ref", symbolic_ref, symbolic_ref_judge, BOTH, false},
    {"git_dir", "GIT_DIR", git_dir, git_dir_judge, BOTH, false},
    {"ref_file", "a file in refs/", ref_file, ref_file_judge, BOTH, false},
    {"common_dir", "a file in refs/ of the common directory", common_dir, common_dir_judge, BOTH,
     false},
    {"branch_force", "git branch -f", branch_force, branch_force_judge, BOTH, false},
    {"fetch_into", "git fetch into a branch", fetch_into, fetch_into_judge, BOTH, false},
    {"push_path", "git push to a path", push_path, push_path_judge, BOTH, false},
    {"push_url", "git push with pushurl", push_url, push_url_judge, BOTH, false},
    {"send_pack", "git send-pack", send_pack, send_pack_judge, BOTH, false},
    {"config_count", "GIT_CONFIG_COUNT against the hooks", config_count, config_count_judge, BOTH,
     false},
    {"fast_import", "git fast-import", fast_import, fast_import_judge, BOTH, false},
    {"push_origin", "git push to the origin", push_origin, push_origin_judge, BOTH, false},
    {"fsmonitor", "core.fsmonitor", fsmonitor, fsmonitor_judge, BOTH, false},
    {"filter", "a clean filter", filter, filter_judge, BOTH, false},
    {"textconv", "textconv", textconv, textconv_judge, BOTH, false},
    {"external_diff", "diff.external", external_diff, external_diff_judge, BOTH, false},
    {"ssh_command", "core.sshCommand", ssh_command, ssh_command_judge, BOTH, false},
    {"credential_helper", "credential.helper", credential_helper, credential_helper_judge, BOTH,
     false},
    {"config_include", "include.path", config_include, config_include_judge, BOTH, false},
    {"submodule_update", "submodule.NAME.update", submodule_update, submodule_update_judge, BOTH,
     false},
    {"hook_file", "a hook", hook_file, hook_file_judge, BOTH, false},
    {"hooks_path", "core.hooksPath", hooks_path, hooks_path_judge, BOTH, false},
    {"alternates", "objects/info/alternates", alternates, alternates_judge, BOTH, false},
    {"object_write", "a file in objects/", object_write, object_write_judge, BOTH, false},
    {"worktree_move", "git worktree move", worktree_move, worktree_move_judge, BOTH, false},
    {"worktree_remove", "git worktree remove", worktree_remove, worktree_remove_judge, BOTH, false},
    {"other_head", "HEAD of another worktree", other_head, other_head_judge, BOTH, false},
    {"git_file", "the .git file of the worktree", git_file, git_file_judge, FULL, false},
    {0},
};
