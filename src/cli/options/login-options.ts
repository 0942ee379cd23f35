import { type Log, isLoopbackHost } from '../../core/index.ts'
import { FileError, readBounded } from '../../files/index.ts'
import type { LoginCredentialsOptions } from '../../login/index.ts'
import { openBrowser } from '../browser.ts'
import { type Io, UsageError } from '../../compose/index.ts'
import { loginOutbound, openUserStore } from '../../compose/login/index.ts'
import { FILE, HTTP_URL, TEXT } from './option-values.ts'
import type { OptionSpec, Parsed } from './options.ts'

/** Time for a login in the browser, in milliseconds. */
const PATIENCE_MS = 5 * 60_000
const MAX_SECRET_BYTES = 64 * 1024

/** Trust anchors for the MCP server. */
export const CA_FILE: OptionSpec = {
  type: 'string',
  is: FILE,
  value: 'FILE',
  help: "PEM file of CA certificates, instead of the system's.",
}

/** Options of commands that log in. */
export const LOGIN_OPTIONS = {
  'client-id': {
    type: 'string',
    is: TEXT,
    value: 'ID',
    help: 'OAuth client ID. Default: dynamic client registration.',
  },
  'client-secret-file': {
    type: 'string',
    is: FILE,
    value: 'FILE',
    help: 'Client secret file, with --client-id.',
  },
  'client-metadata-url': {
    type: 'string',
    is: HTTP_URL,
    value: 'URL',
    help: 'URL of a client ID metadata document, if the authorization server supports it.',
  },
} as const satisfies Record<string, OptionSpec>

/** Login settings from options and environment. Throws `UsageError`. */
export function loginOptionsOf(
  parsed: Parsed,
  endpoint: URL,
  caFile: string | undefined,
  io: Io,
  log: Log,
): LoginCredentialsOptions {
  if (endpoint.protocol === 'http:' && !isLoopbackHost(endpoint.hostname))
    throw new UsageError('--url must be https to log in; plain http is allowed for loopback only')
  const [id, secretFile, metadata] = ['client-id', 'client-secret-file', 'client-metadata-url'].map((name) =>
    parsed.text(name),
  )
  if (secretFile !== undefined && id === undefined) throw new UsageError('--client-secret-file requires --client-id')
  if (metadata !== undefined && new URL(metadata).protocol !== 'https:')
    throw new UsageError('--client-metadata-url must be https')
  const secret = secretFile === undefined ? undefined : secretIn(secretFile)
  return {
    endpoint,
    outbound: loginOutbound(endpoint, caFile, io.env),
    store: openUserStore(io.env),
    client: id === undefined ? undefined : { id, secret },
    clientMetadataUrl: metadata,
    openBrowser: (url) => openBrowser(url, 'log in', io),
    now: () => Date.now(),
    patienceMs: PATIENCE_MS,
    log,
  }
}

function secretIn(file: string): string {
  try {
    return readBounded(file, MAX_SECRET_BYTES).toString('utf8').trimEnd()
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    throw new UsageError(`--client-secret-file is ${error.problem.replaceAll('_', ' ')}`)
  }
}
