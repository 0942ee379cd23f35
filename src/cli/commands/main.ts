import { nearest } from '../../core/index.ts'
import { COMMANDS } from './command-table.ts'
import { specsOf } from '../command.ts'
import { EXIT, type Io } from '../../compose/index.ts'
import { environmentName } from '../options/options.ts'

/** Runs `extauth`. Exit codes: 0 success, 1 refused or failed, 2 usage; `explain`: 3 no role. */
export async function main(argv: readonly string[], io: Io): Promise<number> {
  const [name, ...rest] = argv
  if (name === 'help' && rest.length > 0) return main([...rest, '--help'], io)
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    if (name === undefined) io.stderr(help())
    else io.stdout(help())
    return name === undefined ? EXIT.usage : EXIT.fine
  }
  if (name === '--version' || name === '-v') return main(['version'], io)
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (entry === undefined) {
    const meant = nearest(name, Object.keys(COMMANDS))
    const hint = meant === undefined ? '' : ` Did you mean ${meant}?`
    io.stderr(`extauth: unknown command ${JSON.stringify(name)}.${hint} See extauth --help.\n`)
    return EXIT.usage
  }
  const [word = '', ...more] = rest
  const own = Object.hasOwn(entry.commands ?? {}, word) ? entry.commands?.[word] : undefined
  const run = await (own ?? entry.load)()
  return run(own === undefined ? rest : more, io, allVariables)
}

/** The environment variables that set options, of all commands. */
async function allVariables(): Promise<ReadonlySet<string>> {
  const specs = (await Promise.all(Object.values(COMMANDS).map(specsOf))).flat()
  return new Set(specs.flatMap(({ options }) => Object.keys(options).map(environmentName)))
}

function help(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length)) + 2
  const lines = Object.entries(COMMANDS).map(([name, entry]) => `  ${name.padEnd(width)}${entry.summary}`)
  return `Authentication proxy for MCP servers: validates the caller, injects the credential of the backend.\n\nUsage: extauth COMMAND [options]\n\nCommands:\n${lines.join('\n')}\n\nextauth COMMAND --help shows the options of a command.\n`
}
