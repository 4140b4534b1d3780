# Completion of anneal for bash: source <(anneal completion bash)
_anneal() {
    local line=${COMP_LINE:0:COMP_POINT} IFS=$' \t\n' current reply
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current=${words[-1]}
    mapfile -t COMPREPLY < <("${words[0]}" __complete "${words[@]:1:${#words[@]}-2}" "@$current" 2>/dev/null | cut -f1)
    if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[-1]} == ":files" ]]; then
        unset 'COMPREPLY[-1]'
        compopt -o default
    fi
    [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    if [[ $current == *=* && $COMP_WORDBREAKS == *=* ]]; then # bash completes what follows the last =
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*=}"}"}")
    fi
}
complete -F _anneal anneal
