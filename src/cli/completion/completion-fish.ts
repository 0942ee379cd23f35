import type { CompletedCommand, CompletedOption } from './completed.ts'

/** Returns completions for fish 3 or newer. */
export function fishCompletion(commands: readonly CompletedCommand[]): string {
  const top = commands.filter(({ name }) => !name.includes(' '))
  const nested = commands.filter(({ name }) => name.includes(' '))
  const lines = commands.flatMap(({ name, options, subcommands, completes }) => [
    ...subcommands.map((one) => line(name, ['-a', quote(one.name), '-d', quote(one.summary)])),
    ...options.map((option) => line(name, optionWords(option))),
    ...(completes === undefined ? [] : [line(name, offered(completes))]),
  ])
  return `# fish completion for extauth. Use: extauth completion fish | source
function __extauth_command
  set -l words (commandline -opc)
  switch "$words[2..3]"
${nested.map(({ name }) => `    case ${quote(name)}\n      echo ${quote(name)}`).join('\n')}
    case '*'
      echo "$words[2]"
  end
end
function __extauth_is
  test (__extauth_command) = "$argv[1]"
end
complete -c extauth -e
complete -c extauth -f
${top.map(({ name, summary }) => line('', ['-a', quote(name), '-d', quote(summary)])).join('\n')}
${line('', ['-l', 'help', '-d', quote('Lists the commands.')])}
${lines.join('\n')}
`
}

const line = (command: string, words: readonly string[]): string =>
  `complete -c extauth -n ${quote(`__extauth_is ${quote(command)}`)} ${words.join(' ')}`

function optionWords({ flag, short, help, value }: CompletedOption): string[] {
  const words = ['-l', flag.slice(2), ...(short === undefined ? [] : ['-s', short.slice(1)]), '-d', quote(help)]
  return value === undefined ? words : [...words, ...(value.completes === undefined ? ['-x'] : taken(value.completes))]
}

/** Arguments of `complete` for an option with a value. */
function taken(completes: NonNullable<CompletedCommand['completes']>): string[] {
  return typeof completes === 'string' ? ['-r', ...offered(completes)] : ['-x', ...offered(completes)]
}

function offered(completes: NonNullable<CompletedCommand['completes']>): string[] {
  if (completes === 'file') return ['-F']
  if (completes === 'directory') return ['-a', quote('(__fish_complete_directories)')]
  return ['-a', quote(completes.join(' '))]
}

/** Quotes one word for fish: within quotes, only `\` and `'` are special. */
const quote = (text: string): string => `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`
