# fish completion for an amp tool. The tool prints its own option table (TOOL [VERB] --options), so
# nothing here knows an option. Installed once for each tool, with its name in the last line.

# The values of some kinds that the tool knows.
function __amp_tools_values
    set -l tool $argv[1]
    set -l kinds $argv[2]
    set -l prefix $argv[3]
    set -l cur $argv[4]
    set -l verb $argv[5..]
    set -l state
    set -l before (commandline -opc)
    for i in (seq (count $before))
        switch $before[$i]
            case -s --state
                set state --state $before[(math $i + 1)]
            case '--state=*'
                set state $before[$i]
        end
    end
    for row in ($tool $verb $state --values $kinds -- $cur 2>/dev/null)
        echo $prefix$row
    end
end

function __amp_tools_complete
    set -l tool $argv[1]
    set -l before (commandline -opc)[2..]
    set -l cur (commandline -ct)
    set -l table ($tool --options 2>/dev/null)
    # The verb, one word or two, is the longest that stands before the cursor.
    set -l best ''
    set -l said " $before "
    for row in $table
        set -l f (string split \t -- $row)
        if test "$f[1]" = verb; and string match -q -- "* $f[2] *" $said
            if test (string length -- $f[2]) -gt (string length -- "$best")
                set best $f[2]
            end
        end
    end
    set -l verb
    set -l operands -
    if test -n "$best"
        set verb (string split ' ' -- $best)
        set table ($tool (string split ' ' -- $best) --options 2>/dev/null)
    end
    set -l prev $before[-1]
    set -l prefix ''
    if string match -q -- '--*=*' $cur
        set prev (string split -m 1 = -- $cur)[1]
        set prefix "$prev="
        set cur (string split -m 1 = -- $cur)[2]
    end
    for row in $table
        set -l f (string split \t -- $row)
        test "$f[1]" = operands; and set operands $f[2]
        test "$f[1]" = option; or continue
        test "$prev" = "--$f[3]"; or test "$prev" = "-$f[2]"; or continue
        switch $f[4]
            case flag
                continue
            case '*\?'
                test -n "$prefix"; or continue
        end
        if test -n "$f[10]"; and test "$f[10]" != -
            __amp_tools_values $tool $f[10] "$prefix" "$cur" $verb
            return
        end
        switch $f[4]
            case 'choice*'
                printf '%s\n' $prefix(string split , -- $f[6])
            case dir
                __fish_complete_directories $cur
            case path list
                __fish_complete_path $cur
            case rest
                __fish_complete_subcommand --fcs-skip=(count $before)
        end
        return
    end
    if string match -q -- '-*' $cur
        for row in $table
            set -l f (string split \t -- $row)
            test "$f[1]" = option; or continue
            printf '%s\t%s\n' "--$f[3]" "$f[7]"
            test "$f[2]" = -; or printf '%s\t%s\n' "-$f[2]" "$f[7]"
        end
        return
    end
    if test -z "$best"
        # Of a verb of two words the first, then the second; in the order of the groups.
        for row in $table
            set -l f (string split \t -- $row)
            test "$f[1]" = verb; or continue
            set -l w (string split ' ' -- $f[2])
            if test (count $w) -eq 2; and test "$prev" = "$w[1]"
                printf '%s\t%s\n' $w[2] "$f[4]"
            else
                printf '%s\t%s\n' $w[1] "$f[4]"
            end
        end
    end
    if test "$operands" != -
        __amp_tools_values $tool $operands '' "$cur" $verb
        return
    end
    __fish_complete_path $cur
end

complete -c @TOOL@ -f -k -a '(__amp_tools_complete (commandline -opc)[1])'
