import { isLoopbackHost } from '../../core/index.ts'
import { HOP_BY_HOP } from '../../http/index.ts'
import { parseGoDuration } from '../../fields/index.ts'
import { LOGIN_OPTIONS } from './login-options.ts'
import { API_GROUP, DIRECTORY, DURATION, FILE, HEADER_LINE, HTTP_URL, NAMESPACE, TEXT } from './option-values.ts'
import type { CommandSpec, OptionSpec, Parsed } from './options.ts'
import { configOption } from './source-options.ts'
import { UsageError } from '../../compose/index.ts'

const value = (is: Extract<OptionSpec, { type: 'string' }>['is'], name: string, help: string): OptionSpec => ({
  type: 'string',
  is,
  value: name,
  help,
})

/** The table of its options. */
export const STDIO_SPEC: CommandSpec = {
  name: 'extauth stdio',
  summary:
    'Speaks MCP on standard input and output for clients that can only start a command, and carries it to a server behind\nHTTP. Logs go to standard error.',
  options: {
    target: value(HTTP_URL, 'URL', 'To this MCP server, with the pipeline of the proxy in between …'),
    'external-auth': value(FILE, 'FILE[#NAME]', '… and this MCPExternalAuthConfig.'),
    config: configOption('The same with a file or directory of manifests …'),
    route: value(TEXT, 'NAME', '… and this route of theirs; needed where there are several.'),
    callers: value(FILE, 'FILE', 'An `auth` section, for manifests and the short form.'),
    'ignore-manifest-callers': { type: 'boolean', help: 'Leaves alone what manifests say about who may call.' },
    'secrets-dir': value(DIRECTORY, 'DIR', 'Secrets, one file NAME/KEY each. Default ./secrets.'),
    namespace: value(NAMESPACE, 'NAME', 'Serves this namespace where the files have several.'),
    'api-group': value(API_GROUP, 'GROUP', 'API group of the resources. Default extauth.dev.'),
    'sts-endpoint': value(HTTP_URL, 'URL', 'STS for all; else as for `extauth proxy`.'),
    url: value(HTTP_URL, 'URL', 'To the MCP server at this address, such as a proxy, as it is.'),
    'ca-file': value(FILE, 'FILE', "With --url: PEM authorities instead of the system's."),
    'token-file': value(
      FILE,
      'FILE',
      'File with the access token for the server or the route; read again for each request.',
    ),
    header: {
      type: 'string',
      is: HEADER_LINE,
      multiple: true,
      value: 'NAME: VALUE',
      help: 'Goes along with each request to the server or the route. Arguments can be seen by others on this machine.',
    },
    login: {
      type: 'boolean',
      help: 'With --url: logs you in in the browser when the server asks for it, and keeps the tokens (extauth logout).',
    },
    ...LOGIN_OPTIONS,
    'drain-grace': value(
      DURATION,
      'DURATION',
      'How long running requests may go on after the end of standard input. Default 10s.',
    ),
  },
  notes: [
    'Standard output has messages and nothing else. What goes wrong on the way is the answer to the request that it',
    'happened to: error.data.reason says what, the message says what to do (docs/stdio.md).',
    'HTTPS_PROXY, HTTP_PROXY and NO_PROXY are honoured.',
    '',
    'Examples:',
    '  extauth stdio --target https://mcp.example.com/mcp --external-auth auth.yaml',
    '  extauth stdio --config proxy.yaml --route github',
    '  extauth stdio --url https://proxy.example.com/github --token-file token',
    '  extauth stdio --url https://proxy.example.com/github --login',
    '',
    'Exit codes: 0 standard input ended or stopped on request, 1 configuration refused, 2 usage.',
  ].join('\n'),
}

/** What is asked for, checked as far as it can be without reading anything. */
export interface StdioOptions {
  readonly url: URL | undefined
  readonly caFile: string | undefined
  readonly tokenFile: string | undefined
  readonly hasLogin: boolean
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds. */
  readonly graceMs: number
}

const DEFAULT_GRACE_MS = 10_000

/** Throws `UsageError` for what does not go together. */
export function stdioOptionsOf(options: Parsed): StdioOptions {
  const [text, target, externalAuth] = [options.text('url'), options.text('target'), options.text('external-auth')]
  const hasConfig = options.list('config').length > 0
  if ([text !== undefined, target !== undefined, hasConfig].filter(Boolean).length !== 1)
    throw new UsageError('needs one of --target URL with --external-auth FILE, --config PATH, or --url URL')
  if ((target === undefined) !== (externalAuth === undefined))
    throw new UsageError('--target and --external-auth belong together')
  const url = text === undefined ? undefined : new URL(text)
  const [caFile, tokenFile] = [options.text('ca-file'), options.text('token-file')]
  if (caFile !== undefined && url === undefined) throw new UsageError('--ca-file is for --url')
  const hasLogin = options.flag('login')
  if (hasLogin && (url === undefined || tokenFile !== undefined))
    throw new UsageError('--login is for --url, and without --token-file')
  for (const name of Object.keys(LOGIN_OPTIONS))
    if (!hasLogin && options.text(name) !== undefined) throw new UsageError(`--${name} is for --login`)
  if (options.text('route') !== undefined && !hasConfig) throw new UsageError('--route is for --config')
  if (tokenFile === '-') throw new UsageError('--token-file - is not possible: messages come on standard input')
  if (url?.protocol === 'http:' && tokenFile !== undefined && !isLoopbackHost(url.hostname))
    throw new UsageError('--url must be https where a token goes: plain http is for this machine only')
  const grace = options.text('drain-grace')
  return {
    url,
    caFile,
    tokenFile,
    hasLogin,
    headers: headersOf(options.list('header')),
    graceMs: (grace === undefined ? undefined : parseGoDuration(grace)) ?? DEFAULT_GRACE_MS,
  }
}

/** Written by the bridge itself, or by HTTP. */
const OWN = /^(?:authorization|host|content-.*|accept|accept-encoding|expect|last-event-id|mcp-.*)$/

/** Header lines by name; the last of a name counts. Throws `UsageError` for what nobody but the bridge may say. */
function headersOf(lines: readonly string[]): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const name = line.slice(0, line.indexOf(':')).toLowerCase()
    if (name === 'authorization') throw new UsageError('--header takes no Authorization: the token is for --token-file')
    if (OWN.test(name) || HOP_BY_HOP.includes(name))
      throw new UsageError(`--header can not set ${name}: the bridge does`)
    headers[name] = line.slice(name.length + 1).trim()
  }
  return headers
}
