# Completion of kiln's commands, options and their values, for bash. All of it comes from the
# program's own --help, so nothing here has to follow a change of the commands.
_kiln() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} each help values
  local command=()
  for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do  # as in `kiln cache stat`
    [[ $each =~ ^[a-z]+$ ]] || break
    command+=("$each")
  done
  help=$("${COMP_WORDS[0]}" "${command[@]}" --help 2>/dev/null) || return
  # "  --dt TEXT:{f32,f64,f16,bf16}=f32"
  values=$(sed -n "s/^ *$before TEXT:{\([^}]*\)}.*/\1/p" <<<"$help")
  case $before in  # too many for --help
    --arch | --describe-device) values=$("${COMP_WORDS[0]}" info --list architectures 2>/dev/null) ;;
    --engine) values=$("${COMP_WORDS[0]}" info --list engines 2>/dev/null) ;;
    --family) values=$("${COMP_WORDS[0]}" info --list families 2>/dev/null) ;;
  esac
  if [[ $before == --* && -n $values ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${values//,/ }" -- "$word")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W \
      "$(grep -oE '^  (-[a-z],)?--[a-z0-9-]+' <<<"$help" | grep -oE -e '--.*')" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -W \
      "$(sed -n '/^Subcommands:/,$ s/^  \([a-z]*\) .*/\1/p' <<<"$help")" -- "$word")
  fi
}
complete -o default -F _kiln kiln
