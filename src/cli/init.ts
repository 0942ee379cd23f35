import path from 'node:path'
import { nearest } from '../core/index.ts'
import { AUTH_TYPES, type AuthType, TYPE_RECORDS, typeWrittenAs, WRITTEN_TYPES } from '../resources/index.ts'
import { FileExists, type InitFile, initFiles, writeNew } from './init-files.ts'
import { EXIT, UsageError } from '../compose/index.ts'
import { command, CommandFailed } from './command.ts'
import { labConfig } from './lab-config.ts'
import type { CommandSpec } from './options/options.ts'
import { ownCommand, printedPath } from './own-command.ts'
import { shellQuote } from './shell-quote.ts'

/** Names as written in files. */
const TYPE_NAMES: readonly string[] = WRITTEN_TYPES.map(({ name }) => name)

export const INIT_SPEC: CommandSpec = {
  name: 'extauth init',
  summary:
    'Writes a commented proxy.yaml and secrets folder for one type of external auth. It runs unchanged against the lab;\nlines to edit are marked "yours".',
  positionals: 'TYPE [DIR]',
  completes: TYPE_NAMES,
  options: {},
  notes: [
    `TYPE is one of ${TYPE_NAMES.join(', ')}.`,
    'DIR is the target folder, created if missing. Default: the current folder. Existing files are never',
    'overwritten.',
    'Secrets are written with mode 0600, in folders of mode 0700.',
    '',
    'Exit codes: 0 written, 1 a file exists already or cannot be written, 2 usage.',
  ].join('\n'),
}

export const runInit = command(INIT_SPEC, async ({ options, io }) => {
  const [name, directory = '.', ...more] = options.positionals
  if (name === undefined || more.length > 0 || directory === '')
    throw new UsageError('TYPE is required. See extauth init --help.')
  const type = typeOf(name)
  const files = await initFiles(type)
  try {
    await writeNew(directory, files)
  } catch (error) {
    if (error instanceof FileExists)
      throw new CommandFailed(
        `${error.path} exists already; nothing was written. Choose a different folder: ${retry(type)}`,
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
  throw new UsageError(`unknown type ${JSON.stringify(name)}.${hint} Expected one of ${TYPE_NAMES.join(', ')}.`)
}

/** The route of a first configuration, and the lab command that prints a token for it. */
const CALLS = {
  nothing: { route: '/mcp', token: undefined },
  token: { route: '/mcp', token: 'lab token --sub alice --groups admins' },
  login: { route: '/upstream', token: 'lab login --port 8088 --route /upstream --user alice' },
} as const

function whatNext(type: AuthType, directory: string, files: readonly InitFile[]): string {
  const extauth = ownCommand()
  const config = printedPath(path.join(directory, 'proxy.yaml'))
  const request = printedPath(path.join(labConfig(), 'show-request.curl'))
  const { route, token } = CALLS[TYPE_RECORDS[type].init.callersHave]
  const bearer = token === undefined ? '' : ` -H "Authorization: Bearer $(${extauth} ${token})"`
  const secrets = files.filter(({ name, isSecret }) => isSecret && !name.endsWith('.gitignore'))
  return [
    `Written to ${shellQuote(directory)}:`,
    ...files.map(({ name }) => `  ${name}`),
    '',
    'Try it against the lab, in three terminals, from this folder:',
    `  ${extauth} lab`,
    `  ${extauth} proxy --config ${config}`,
    `  curl -K ${request} http://127.0.0.1:8088${route}${bearer}`,
    '',
    'For your own servers, edit the lines of proxy.yaml marked "yours"' +
      (secrets.length === 0 ? '.' : ', and put your secrets into'),
    ...secrets.map(({ name }) => `  ${printedPath(path.join(directory, name))}`),
    'Before the next start, run',
    `  ${extauth} validate ${config}`,
    '',
  ].join('\n')
}
