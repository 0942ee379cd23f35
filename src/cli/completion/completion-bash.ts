import type { CompletedCommand } from './completed.ts'
import { shellQuote } from '../shell-quote.ts'

/** Returns a completion function for bash 3.2 or newer. It does not need bash-completion. */
export function bashCompletion(commands: readonly CompletedCommand[]): string {
  const names = commands.filter(({ name }) => !name.includes(' ')).map(({ name }) => name)
  const nested = commands.filter(({ name }) => name.includes(' ')).map(({ name }) => shellQuote(name))
  const values = commands.flatMap(({ name, options }) =>
    options.flatMap(({ flag, short, value }) => {
      if (value === undefined) return []
      const flags = [flag, ...(short === undefined ? [] : [short])].map((each) => shellQuote(`${name} ${each}`))
      return [`    ${flags.join(' | ')}) ${offer(value.completes)}; return ;;`]
    }),
  )
  const words = commands.map(({ name, options, subcommands, completes }) => {
    const flags = options.map(({ flag }) => flag)
    const others = subcommands.map((one) => one.name)
    return `    ${shellQuote(name)}) words=${shellQuote([...others, ...flags].join(' '))}; [[ $cur == -* ]] || { ${offer(completes)}; } ;;`
  })
  return `# bash completion for extauth. Use: source <(extauth completion bash)
_extauth() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} command=\${COMP_WORDS[1]} words=
  local IFS=$' \\t\\n'
  COMPREPLY=()
  # "=" is a word of its own: --log-format=json.
  if [[ $cur == = ]]; then cur=
  elif [[ $prev == = ]]; then prev=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${shellQuote([...names, '--help', '--version'].join(' '))} -- "$cur"))
    return
  fi
  if ((COMP_CWORD > 2)); then
    case "$command \${COMP_WORDS[2]}" in
      ${nested.join(' | ')}) command="$command \${COMP_WORDS[2]}" ;;
    esac
  fi
  case "$command $prev" in
${values.join('\n')}
  esac
  case $command in
${words.join('\n')}
  esac
  COMPREPLY+=($(compgen -W "$words" -- "$cur"))
}
_extauth_paths() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen "$1" -- "$cur"))
}
complete -F _extauth extauth
`
}

/** Commands that put the candidates of a kind into COMPREPLY. */
function offer(completes: CompletedCommand['completes']): string {
  if (completes === undefined) return ':'
  if (completes === 'file') return '_extauth_paths -f'
  if (completes === 'directory') return '_extauth_paths -d'
  return `COMPREPLY=($(compgen -W ${shellQuote(completes.join(' '))} -- "$cur"))`
}
