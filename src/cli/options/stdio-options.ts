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

export const STDIO_SPEC: CommandSpec = {
  name: 'extauth stdio',
  summary:
    'Bridges MCP over standard input and output to an HTTP server, for clients that can only start a command.\nLogs go to standard error.',
  options: {
    target: value(HTTP_URL, 'URL', 'MCP server URL; runs the pipeline of the proxy.'),
    'external-auth': value(FILE, 'FILE[#NAME]', 'Its MCPExternalAuthConfig.'),
    config: configOption('Configuration file or directory, instead of --target.'),
    route: value(TEXT, 'NAME', 'Route of --config; required if there are several.'),
    callers: value(FILE, 'FILE', 'File with an `auth` section, for manifests and the short form.'),
    'ignore-manifest-callers': { type: 'boolean', help: 'Ignores oidcConfig, authzConfig, … in manifests.' },
    'secrets-dir': value(DIRECTORY, 'DIR', 'Secrets directory with files NAME/KEY. Default ./secrets.'),
    namespace: value(NAMESPACE, 'NAME', 'Namespace to serve if the files have several.'),
    'api-group': value(API_GROUP, 'GROUP', 'API group of the resources. Default extauth.dev.'),
    'sts-endpoint': value(HTTP_URL, 'URL', 'STS endpoint. Default as for `extauth proxy`.'),
    url: value(HTTP_URL, 'URL', 'MCP server or proxy URL; connects directly.'),
    'ca-file': value(FILE, 'FILE', "With --url: PEM file of CA certificates, instead of the system's."),
    'token-file': value(FILE, 'FILE', 'Access token file, read for each request.'),
    header: {
      type: 'string',
      is: HEADER_LINE,
      multiple: true,
      value: 'NAME: VALUE',
      help: 'Header for each request. Other users of this machine can see arguments.',
    },
    login: {
      type: 'boolean',
      help: 'With --url: logs in with the browser when required and stores the tokens.',
    },
    ...LOGIN_OPTIONS,
    'drain-grace': value(
      DURATION,
      'DURATION',
      'Grace period for in-flight requests after standard input ends. Default 10s.',
    ),
  },
  notes: [
    'Standard output has MCP messages only. A failed request gets a JSON-RPC error: error.data.reason is the reason, and',
    'the message names the required change (docs/stdio.md).',
    'A page of the server that asks for an account is opened in the browser (BROWSER), unless the client opens pages.',
    'HTTPS_PROXY, HTTP_PROXY and NO_PROXY are honored.',
    '',
    'Examples:',
    '  extauth stdio --target https://mcp.example.com/mcp --external-auth auth.yaml',
    '  extauth stdio --config proxy.yaml --route github',
    '  extauth stdio --url https://proxy.example.com/github --token-file token',
    '  extauth stdio --url https://proxy.example.com/github --login',
    '',
    'Exit codes: 0 standard input ended or stopped on request, 1 configuration invalid, 2 usage.',
  ].join('\n'),
}

/** Options of `stdio`, validated without reading files. */
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

/** Throws `UsageError` for options that exclude each other. */
export function stdioOptionsOf(options: Parsed): StdioOptions {
  const [text, target, externalAuth] = [options.text('url'), options.text('target'), options.text('external-auth')]
  const hasConfig = options.list('config').length > 0
  if ([text !== undefined, target !== undefined, hasConfig].filter(Boolean).length !== 1)
    throw new UsageError('needs one of --target URL with --external-auth FILE, --config PATH, or --url URL')
  if ((target === undefined) !== (externalAuth === undefined))
    throw new UsageError('--target and --external-auth must be given together')
  const url = text === undefined ? undefined : new URL(text)
  const [caFile, tokenFile] = [options.text('ca-file'), options.text('token-file')]
  if (caFile !== undefined && url === undefined) throw new UsageError('--ca-file requires --url')
  const hasLogin = options.flag('login')
  if (hasLogin && (url === undefined || tokenFile !== undefined))
    throw new UsageError('--login requires --url and excludes --token-file')
  for (const name of Object.keys(LOGIN_OPTIONS))
    if (!hasLogin && options.text(name) !== undefined) throw new UsageError(`--${name} requires --login`)
  if (options.text('route') !== undefined && !hasConfig) throw new UsageError('--route requires --config')
  if (tokenFile === '-') throw new UsageError('--token-file must be a file: standard input carries messages')
  if (url?.protocol === 'http:' && tokenFile !== undefined && !isLoopbackHost(url.hostname))
    throw new UsageError('--url must be https to send a token; plain http is allowed for loopback only')
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

/** Headers that the bridge or HTTP sets. */
const OWN = /^(?:authorization|host|content-.*|accept|accept-encoding|expect|last-event-id|mcp-.*)$/

/** Header lines by name; the last line of a name wins. Throws `UsageError` for headers that the bridge sets. */
function headersOf(lines: readonly string[]): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const name = line.slice(0, line.indexOf(':')).toLowerCase()
    if (name === 'authorization') throw new UsageError('--header must not set Authorization; use --token-file')
    if (OWN.test(name) || HOP_BY_HOP.includes(name))
      throw new UsageError(`--header must not set ${name}; the bridge sets it`)
    headers[name] = line.slice(name.length + 1).trim()
  }
  return headers
}
