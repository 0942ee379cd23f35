import { nearest } from '../core/index.ts'
import { EXIT, type Io } from './io.ts'
import { UsageError } from './options.ts'
import { versionLine } from './version.ts'

/** Runs one command to its exit code. Commands are loaded when they are called, so that `validate` starts no server code. */
type Command = (argv: readonly string[], io: Io) => Promise<number>

interface Entry {
  readonly summary: string
  load(): Promise<Command>
}

const COMMANDS: Readonly<Record<string, Entry>> = {
  proxy: {
    summary: 'Runs the proxy in front of MCP servers.',
    load: async () => (await import('./proxy.ts')).runProxyCommand,
  },
  registry: {
    summary: 'Runs the registry server, which lists MCP servers to authenticated callers.',
    load: async () => (await import('./registry.ts')).runRegistry,
  },
  operator: {
    summary: 'Runs the Kubernetes operator: controller and admission webhooks.',
    load: async () => (await import('./operator.ts')).runOperatorCommand,
  },
  lab: {
    summary: 'Runs the proxy with local stand-ins for everything it talks to; `lab token` prints a token.',
    load: async () => (await import('./lab.ts')).runLab,
  },
  explain: {
    summary: 'Says which role and headers a caller would get, and why. No network.',
    load: async () => (await import('./explain.ts')).runExplain,
  },
  validate: {
    summary: 'Checks files and lists every problem with its place.',
    load: async () => (await import('./validate.ts')).runValidate,
  },
  schema: {
    summary: 'Prints the JSON Schemas and the CustomResourceDefinition.',
    load: async () => (await import('./schema.ts')).runSchema,
  },
  version: {
    summary: 'Prints the version.',
    load: async () => (_argv, io) => {
      io.stdout(`${versionLine()}\n`)
      return Promise.resolve(EXIT.fine)
    },
  },
}

/** The `extauth` command: exit code 0 fine, 1 refused or failed, 2 usage (`explain`: 3 no role). */
export async function main(argv: readonly string[], io: Io): Promise<number> {
  const [name, ...rest] = argv
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    if (name === undefined) io.stderr(help())
    else io.stdout(help())
    return name === undefined ? EXIT.usage : EXIT.fine
  }
  if (name === '--version') return main(['version'], io)
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (entry === undefined) {
    const meant = nearest(name, Object.keys(COMMANDS))
    const hint = meant === undefined ? '' : ` Did you mean ${meant}?`
    io.stderr(`extauth: there is no command ${JSON.stringify(name)}.${hint} See extauth --help.\n`)
    return EXIT.usage
  }
  try {
    const run = await entry.load()
    return await run(rest, io)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    io.stderr(`extauth ${name}: ${error.message}\n`)
    return EXIT.usage
  }
}

function help(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length)) + 2
  const lines = Object.entries(COMMANDS).map(([name, entry]) => `  ${name.padEnd(width)}${entry.summary}`)
  return `Gives each request to an MCP server the right credential for its caller.\n\nUsage: extauth COMMAND [options]\n\nCommands:\n${lines.join('\n')}\n\nextauth COMMAND --help shows the options of a command.\n`
}
