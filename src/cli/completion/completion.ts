import type { CompletedCommand, CompletedOption } from './completed.ts'
import { command, type Command, type Commands, specsOf } from '../command.ts'
import { bashCompletion } from './completion-bash.ts'
import { fishCompletion } from './completion-fish.ts'
import { zshCompletion } from './completion-zsh.ts'
import { EXIT, UsageError } from '../../compose/index.ts'
import type { CommandSpec } from '../options/options.ts'

const SHELLS: Readonly<Record<string, (commands: readonly CompletedCommand[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
}

export const COMPLETION_SPEC: CommandSpec = {
  name: 'extauth completion',
  summary: 'Prints a shell completion script for extauth.',
  positionals: Object.keys(SHELLS).join('|'),
  completes: Object.keys(SHELLS),
  options: {},
  notes: [
    'Run it in a session, or add it to the startup file of the shell:',
    '  bash  source <(extauth completion bash)',
    '  zsh   source <(extauth completion zsh)        (after compinit)',
    '  fish  extauth completion fish | source',
    '',
    'Exit codes: 0 printed, 2 usage.',
  ].join('\n'),
}

/** Builds `extauth completion bash|zsh|fish` for these commands. */
export const completionOf = (commands: Commands): Command =>
  command(COMPLETION_SPEC, async ({ options, io }) => {
    const [shell = '', ...more] = options.positionals
    const render = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined
    if (render === undefined || more.length > 0)
      throw new UsageError(`expected one of ${Object.keys(SHELLS).join(', ')}. See extauth completion --help.`)
    io.stdout(render(await completedCommands(commands)))
    return EXIT.fine
  })

/** Lists all commands with options, from the option tables. */
export async function completedCommands(commands: Commands): Promise<CompletedCommand[]> {
  const all: CompletedCommand[] = []
  for (const [name, entry] of Object.entries(commands)) {
    const specs = await specsOf(entry)
    const [own, ...others] = specs.map((spec) => ({ spec, words: spec.name.replace(/^extauth /, '') }))
    const subcommands = others.map(({ spec, words }) => ({
      name: words.slice(name.length + 1),
      summary: firstSentence(spec.summary),
    }))
    all.push(completed(name, entry.summary, own?.spec, subcommands))
    for (const { spec, words } of others) all.push(completed(words, firstSentence(spec.summary), spec, []))
  }
  return all
}

function completed(
  name: string,
  summary: string,
  spec: CommandSpec | undefined,
  subcommands: CompletedCommand['subcommands'],
): CompletedCommand {
  const options = Object.entries(spec?.options ?? {}).map(([option, table]): CompletedOption => {
    const [flag, about] = [`--${option}`, firstSentence(table.help)]
    const short = table.short === undefined ? undefined : `-${table.short}`
    if (table.type === 'boolean') return { flag, short, help: about, isRepeated: false }
    const value = { name: table.value, completes: table.is.completes }
    return { flag, short, help: about, isRepeated: table.multiple === true, value }
  })
  const help = { flag: '--help', short: '-h', help: 'Prints this help.', isRepeated: false }
  return { name, summary, subcommands, options: [...options, help], completes: spec?.completes }
}

/** A candidate's description: what fits on its line. */
const firstSentence = (text: string): string => /^.*?[.:](?= |$)/s.exec(text)?.[0].replaceAll('\n', ' ') ?? text
