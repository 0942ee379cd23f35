import type { CompletedCommand, CompletedOption } from './completed.ts'
import { shellQuote } from '../shell-quote.ts'

/** Returns a completion function for zsh, to source or to install as `_extauth` in a directory of `fpath`. */
export function zshCompletion(commands: readonly CompletedCommand[]): string {
  const top = commands.filter(({ name }) => !name.includes(' '))
  const cases = top.map((command) => {
    const nested = command.subcommands.map(({ name }) => {
      const own = commands.find((one) => one.name === `${command.name} ${name}`)
      return `        ${name}) shift words; (( CURRENT-- )); ${own === undefined ? ':' : arguments_(own)}; return ;;`
    })
    const choose =
      nested.length === 0
        ? ''
        : `
      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        local -a subcommands=(${command.subcommands.map(described).join(' ')})
        _describe -t commands 'command' subcommands
        return
      fi
      case $words[2] in
${nested.join('\n')}
      esac`
    return `    ${command.name})${choose}
      ${arguments_(command)} ;;`
  })
  return `#compdef extauth
# zsh completion for extauth. Use: source <(extauth completion zsh)
_extauth() {
  if (( CURRENT == 2 )); then
    local -a commands=(${top.map(described).join(' ')})
    _describe -t commands 'command' commands
    return
  fi
  shift words; (( CURRENT-- ))
  case $words[1] in
${cases.join('\n')}
  esac
}
if [[ $funcstack[1] == _extauth ]]; then _extauth "$@"; else compdef _extauth extauth; fi
`
}

const described = ({ name, summary }: { readonly name: string; readonly summary: string }): string =>
  shellQuote(`${name}:${summary.replaceAll(':', String.raw`\:`)}`)

function arguments_({ options, completes }: CompletedCommand): string {
  const others = completes === undefined ? [] : [`'*:argument:${action(completes)}'`]
  return ['_arguments -s', ...options.flatMap(optionSpecs), ...others].join(' ')
}

function optionSpecs({ flag, short, help, isRepeated, value }: CompletedOption): string[] {
  // The short and the long form exclude each other, unless the option may be repeated.
  const before = isRepeated ? '*' : short === undefined ? '' : `(${flag} ${short})`
  const about = `[${help.replaceAll(/[[\]:\\]/g, String.raw`\$&`)}]`
  const flags = [flag, ...(short === undefined ? [] : [short])]
  if (value === undefined) return flags.map((each) => shellQuote(`${before}${each}${about}`))
  const message = value.name.replaceAll(/[:\\]/g, String.raw`\$&`)
  return flags.map((each) =>
    shellQuote(`${before}${each}${each === flag ? '=' : '+'}${about}:${message}:${action(value.completes)}`),
  )
}

function action(completes: CompletedCommand['completes']): string {
  if (completes === undefined) return ' '
  if (completes === 'file') return '_files'
  if (completes === 'directory') return '_files -/'
  return `(${completes.join(' ')})`
}
