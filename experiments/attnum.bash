# SPDX-License-Identifier: BSD-3-Clause
# Completion of attnum's command line in bash. It knows no verb, option or name by itself: it asks the
# program that is being typed, so it fits every version.

# The verbs.
_attnum_verbs() {
    "$1" --help 2>/dev/null | sed -n 's/^  attnum \([a-z][a-z]*\) .*/\1/p'
}

# _attnum_names PROGRAM KIND: what `attnum list KIND` names.
_attnum_names() {
    "$1" list "$2" --format csv 2>/dev/null | sed -n '2,$s/^[^,]*,\([^,]*\),.*/\1/p'
}

# _attnum_choices OPTION COMMAND...: the values that a refusal of "?" names. With --help nothing runs,
# should "?" be taken.
_attnum_choices() {
    local option=$1
    shift
    "$@" "$option" '?' --help 2>&1 >/dev/null |
        sed -n "s/^attnum: $option '?': expected \(one of \)\{0,1\}//p" |
        sed -n 's/ or a number.*//; /^[a-z0-9-]*\(, [a-z0-9-]*\)*$/s/, /\n/gp'
}

# _attnum_files PREFIX EXTENSION: folders, and files of this extension (all if it is empty).
_attnum_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(
        compgen -d -- "$1"
        compgen -f -X "!*$2" -- "$1" | while IFS= read -r file; do [ -d "$file" ] || printf '%s\n' "$file"; done
    )
}

# _attnum_offer PREFIX WORD...: the words that start with it; in a list, after its last comma.
_attnum_offer() {
    local before= current=$1
    shift
    case $current in
    *,*)
        before=${current%,*},
        current=${current##*,}
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$*" -- "$current")
}

# _attnum_value OPTION ARGUMENT PREFIX COMMAND...: what --help calls FOLDER or FILE is one; the rest has
# names, or none.
_attnum_value() {
    local option=$1 argument=$2 current=$3
    shift 3
    case $option:$argument in
    --input:*)
        _attnum_offer "$current" "$(_attnum_names "$1" inputs)"
        [ ${#COMPREPLY[@]} -gt 0 ] && [ -n "$current" ] || {
            local names=("${COMPREPLY[@]}")
            _attnum_files "$current" .npy
            COMPREPLY+=("${names[@]}")
        }
        ;;
    --operator:*)
        case ${current##*,} in
        */*) _attnum_offer "$current" "$(_attnum_names "$1" variants)" ;;
        *) _attnum_offer "$current" "$(_attnum_names "$1" operators)" ;;
        esac
        ;;
    *:FOLDER*) _attnum_files "$current" / ;;
    *:*FILE*) _attnum_files "$current" "$(printf '%s' "$argument" | sed -n 's/.*FILE\(\.[a-z]*\).*/\1/p')" ;;
    *) _attnum_offer "$current" "$(_attnum_choices "$option" "$@")" ;;
    esac
}

# _attnum_operand USAGE PREFIX PROGRAM: a word that is no option, by the verb's usage line; that of an
# experiment has none.
_attnum_operand() {
    case $1 in
    '' | run*) _attnum_offer "$2" all "$(_attnum_names "$3" experiments)" ;;
    *KIND*) _attnum_offer "$2" "$("$3" list --format csv 2>/dev/null | sed '1d; s/,.*//' | sort -u)" ;;
    *\[ID*) _attnum_offer "$2" "$(_attnum_names "$3" claims)" ;;
    *FOLDER*) _attnum_files "$2" / ;;
    *.npy*) _attnum_files "$2" .npy ;;
    *.csv*) _attnum_files "$2" .csv ;;
    esac
}

_attnum() {
    local program=${COMP_WORDS[0]} verb=${COMP_WORDS[1]-} current=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD
    COMPREPLY=()
    command -v "$program" >/dev/null || return 0
    if [ "$COMP_CWORD" -eq 1 ]; then
        _attnum_offer "$current" "$(_attnum_verbs "$program") --help --version"
        return 0
    fi
    # bash parts words at "=" and ":"; only what follows the last of these is completed
    case $current in = | :) current= ;; *) at=$((at - 1)) ;; esac
    while [ "${COMP_WORDS[at]}" = : ] && [ "$at" -gt 3 ]; do
        at=$((at - 2))
    done
    [ "${COMP_WORDS[at]}" != = ] || at=$((at - 1))

    local command=("$program" "$verb") word help argument
    if [ "$verb" = run ]; then # its options are those of the experiments named
        for word in "${COMP_WORDS[@]:2}"; do
            case $word in all | [a-z]*/[a-z]*) "$program" run "$word" --help >/dev/null 2>&1 && command+=("$word") ;; esac
        done
    fi
    help=$("${command[@]}" --help 2>/dev/null) || return 0
    word=${COMP_WORDS[at]}
    # an argument follows its option after one space, a flag's help two
    argument=$(printf '%s\n' "$help" | awk -v start="  $word " \
        'index($0, start) == 1 && substr($0, length(start) + 1, 1) != " " { print $2 }')
    case $word:$argument:$current in
    --?*:?*:*) _attnum_value "$word" "$argument" "$current" "${command[@]}" ;;
    *:*:-*) _attnum_offer "$current" "$(printf '%s\n' "$help" | sed -n 's/^  \(--[a-z][a-z0-9-]*\).*/\1/p')" ;;
    *) _attnum_operand "$(printf '%s\n' "$help" | sed -n 's/^usage: attnum //p')" "$current" "$program" ;;
    esac
}

complete -F _attnum attnum
