import { type Log, isLoopbackHost } from '../../core/index.ts'
import { FileError, readBounded } from '../../files/index.ts'
import type { LoginCredentialsOptions } from '../../login/index.ts'
import { openBrowser } from '../browser.ts'
import { type Io, UsageError } from '../../compose/index.ts'
import { loginOutbound, openUserStore } from '../../compose/login/index.ts'
import { FILE, HTTP_URL, TEXT } from './option-values.ts'
import type { OptionSpec, Parsed } from './options.ts'

/** How long a person in front of a browser may take, in milliseconds. */
const PATIENCE_MS = 5 * 60_000
const MAX_SECRET_BYTES = 64 * 1024

/** Whom to trust at the MCP server. */
export const CA_FILE: OptionSpec = {
  type: 'string',
  is: FILE,
  value: 'FILE',
  help: "PEM authorities instead of the system's.",
}

/** Options of whatever logs in. */
export const LOGIN_OPTIONS = {
  'client-id': {
    type: 'string',
    is: TEXT,
    value: 'ID',
    help: 'A client that the authorization server knows, for the login. Default: one is registered.',
  },
  'client-secret-file': {
    type: 'string',
    is: FILE,
    value: 'FILE',
    help: 'With --client-id: its secret, if it has one.',
  },
  'client-metadata-url': {
    type: 'string',
    is: HTTP_URL,
    value: 'URL',
    help: 'Client ID metadata document for the login, where the authorization server takes such.',
  },
} as const satisfies Record<string, OptionSpec>

/** What a login needs, from the options and the environment. Throws `UsageError`. */
export function loginOptionsOf(
  parsed: Parsed,
  endpoint: URL,
  caFile: string | undefined,
  io: Io,
  log: Log,
): LoginCredentialsOptions {
  if (endpoint.protocol === 'http:' && !isLoopbackHost(endpoint.hostname))
    throw new UsageError('--url must be https where one logs in: plain http is for this machine only')
  const [id, secretFile, metadata] = ['client-id', 'client-secret-file', 'client-metadata-url'].map((name) =>
    parsed.text(name),
  )
  if (secretFile !== undefined && id === undefined) throw new UsageError('--client-secret-file is for --client-id')
  if (metadata !== undefined && new URL(metadata).protocol !== 'https:')
    throw new UsageError('--client-metadata-url must be https')
  const secret = secretFile === undefined ? undefined : secretIn(secretFile)
  return {
    endpoint,
    outbound: loginOutbound(endpoint, caFile, io.env),
    store: openUserStore(io.env),
    client: id === undefined ? undefined : { id, secret },
    clientMetadataUrl: metadata,
    openBrowser: (url) => openBrowser(url, io),
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
