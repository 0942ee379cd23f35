import { readFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type Log, isLoopbackHost } from '../../core/index.ts'
import { FileError, readBounded } from '../../files/index.ts'
import { type LoginCredentialsOptions, openLoginStore } from '../../login/index.ts'
import { createOutbound } from '../../net/index.ts'
import { openBrowser } from '../browser.ts'
import { egressFrom, type Io, UsageError } from '../../compose/index.ts'
import { FILE, HTTP_URL, TEXT } from './option-values.ts'
import type { OptionSpec, Parsed } from './options.ts'

/** How long a person in front of a browser may take, in milliseconds. */
const PATIENCE_MS = 5 * 60_000
const REQUEST_MS = 15_000
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
    help: 'With a login: a client that the authorization server knows. Default: one is registered.',
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
    help: 'With a login: client ID metadata document, where the authorization server takes such.',
  },
} as const satisfies Record<string, OptionSpec>

/** Where the logins of the user are (XDG base directories). Throws `UsageError` when there is no such place. */
export function openUserStore(env: Io['env']) {
  const { XDG_STATE_HOME: state, LOCALAPPDATA: local } = env
  if (state !== undefined && path.isAbsolute(state)) return openLoginStore(path.join(state, 'extauth', 'logins'))
  if (process.platform === 'win32' && local !== undefined) return openLoginStore(path.join(local, 'extauth', 'logins'))
  const home = env['HOME'] ?? os.homedir()
  if (!path.isAbsolute(home)) throw new UsageError('there is no place for logins: set XDG_STATE_HOME or HOME')
  return openLoginStore(path.join(home, '.local', 'state', 'extauth', 'logins'))
}

/** A client for metadata, registration and tokens: the addresses come from servers, so it is guarded. */
export function loginOutbound(endpoint: URL, caFile: string | undefined, env: Io['env']) {
  const egressProxy = egressFrom(env)
  return createOutbound({
    name: 'login',
    clock: { now: () => Date.now() },
    deadlineMs: REQUEST_MS,
    breaker: false,
    // Whoever is on the internet may not send us into the network that we are in.
    guard: { allowPrivateIP: true, configuredUrls: isLoopbackHost(endpoint.hostname) ? [endpoint.href] : [] },
    ...(caFile === undefined ? {} : { caCert: () => readFileSync(caFile) }),
    ...(egressProxy === undefined ? {} : { egressProxy }),
  })
}

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
