#compdef anneal
# Completion of anneal for zsh: source <(anneal completion zsh), or save it as _anneal in a directory of $fpath
_anneal() {
    local line files=0
    local -a whole open
    while IFS= read -r line; do
        case $line in
            :files) files=1 ;;
            *=$'\t'*) open+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
            *) whole+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done < <("${words[1]}" __complete "${(@)words[2,CURRENT-1]}" "@${words[CURRENT]}" 2>/dev/null)
    (( $#whole )) && _describe anneal whole
    (( $#open )) && _describe anneal open -S ''
    (( files )) && _files
    return 0
}
if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
    _anneal "$@"
else
    compdef _anneal anneal
fi
