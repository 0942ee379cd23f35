import path from 'node:path'
import { nearest } from '../core/index.ts'
import { AUTH_TYPES, type AuthType, TYPE_RECORDS, typeWrittenAs, WRITTEN_TYPES } from '../resources/index.ts'
import { FileExists, type InitFile, initFiles, writeNew } from './init-files.ts'
import { EXIT, UsageError } from '../compose/index.ts'
import { command, CommandFailed } from './command.ts'
import { LAB_CONFIG } from './lab-config.ts'
import type { CommandSpec } from './options/options.ts'
import { ownCommand, printedPath } from './own-command.ts'
import { shellQuote } from './shell-quote.ts'

/** As files have them. */
const TYPE_NAMES: readonly string[] = WRITTEN_TYPES.map(({ name }) => name)

/** The table of its options. */
export const INIT_SPEC: CommandSpec = {
  name: 'extauth init',
  summary:
    'Writes a commented proxy.yaml for one type of external auth, with its secrets folder. It runs as it is against the\nlab; what is yours to change is marked.',
  positionals: 'TYPE [DIR]',
  completes: TYPE_NAMES,
  options: {},
  notes: [
    `TYPE is one of ${TYPE_NAMES.join(', ')}.`,
    'DIR is the folder to write to, made where it is missing, with those above it. Default: this one. Nothing that is there',
    'is overwritten.',
    'Secrets are files that only their owner can read, in folders that only their owner can enter.',
    '',
    'Exit codes: 0 written, 1 something is there already or cannot be written, 2 usage.',
  ].join('\n'),
}

/** `extauth init TYPE [DIR]`. */
export const runInit = command(INIT_SPEC, async ({ options, io }) => {
  const [name, directory = '.', ...more] = options.positionals
  if (name === undefined || more.length > 0 || directory === '')
    throw new UsageError('expected TYPE and perhaps a folder. See extauth init --help.')
  const type = typeOf(name)
  const files = await initFiles(type)
  try {
    await writeNew(directory, files)
  } catch (error) {
    if (error instanceof FileExists)
      throw new CommandFailed(
        `${error.path} is there already; nothing was written. Name another folder: ${retry(type)}`,
      )
    const { code, path: file = directory } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new CommandFailed(`${file} cannot be written (${code}); nothing was written.`)
  }
  io.stdout(whatNext(type, directory, files))
  return EXIT.fine
})

const retry = (type: AuthType): string => `${ownCommand()} init ${type} DIR`

function typeOf(name: string): AuthType {
  const known = typeWrittenAs(name)
  if (known !== undefined) return known
  const begun = AUTH_TYPES.filter((type) => type.toLowerCase().startsWith(name.toLowerCase()))
  const meant = begun.length === 1 ? begun[0] : nearest(name, TYPE_NAMES)
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`
  throw new UsageError(`there is no type ${JSON.stringify(name)}.${hint} It is one of ${TYPE_NAMES.join(', ')}.`)
}

/** The route of a first configuration, and how its callers get a token of the lab. */
const CALLS = {
  nothing: { route: '/mcp', token: undefined },
  token: { route: '/mcp', token: 'lab token --sub alice --groups admins' },
  login: { route: '/upstream', token: 'lab login --port 8088 --route /upstream --user alice' },
} as const

function whatNext(type: AuthType, directory: string, files: readonly InitFile[]): string {
  const extauth = ownCommand()
  const config = printedPath(path.join(directory, 'proxy.yaml'))
  const request = printedPath(path.join(LAB_CONFIG, 'show-request.curl'))
  const { route, token } = CALLS[TYPE_RECORDS[type].init.callersHave]
  const bearer = token === undefined ? '' : ` -H "Authorization: Bearer $(${extauth} ${token})"`
  const secrets = files.filter(({ name, isSecret }) => isSecret && !name.endsWith('.gitignore'))
  return [
    `Written to ${shellQuote(directory)}:`,
    ...files.map(({ name }) => `  ${name}`),
    '',
    'It runs as it is against the lab. In three terminals, from this folder:',
    `  ${extauth} lab`,
    `  ${extauth} proxy --config ${config}`,
    `  curl -K ${request} http://127.0.0.1:8088${route}${bearer}`,
    '',
    'For your own servers, change the lines of proxy.yaml that are marked with "yours"' +
      (secrets.length === 0 ? '.' : ', and put your secrets into'),
    ...secrets.map(({ name }) => `  ${printedPath(path.join(directory, name))}`),
    'Before you start it again, see what it says to',
    `  ${extauth} validate ${config}`,
    '',
  ].join('\n')
}
