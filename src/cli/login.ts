import { CredentialRefusal } from '../core/index.ts'
import { loginCredentials, revoke } from '../login/index.ts'
import { EXIT, type Io, UsageError } from '../compose/index.ts'
import { logOptions, openLogAsAsked } from './options/log-options.ts'
import { LOGIN_OPTIONS, loginOptionsOf, loginOutbound, openUserStore } from './options/login-options.ts'
import { FILE, HTTP_URL } from './options/option-values.ts'
import { type CommandSpec, type OptionSpec, parseOptions, renderHelp } from './options/options.ts'

const CA_FILE: OptionSpec = {
  type: 'string',
  is: FILE,
  value: 'FILE',
  help: "PEM authorities instead of the system's.",
}

/** The table of `extauth login`. */
export const LOGIN_SPEC: CommandSpec = {
  name: 'extauth login',
  summary: 'Logs you in at an MCP server in the browser, ahead of `extauth stdio --login`, which then asks no more.',
  options: {
    url: { type: 'string', is: HTTP_URL, value: 'URL', help: 'The MCP server. Required.' },
    'ca-file': CA_FILE,
    ...LOGIN_OPTIONS,
    ...logOptions('warn'),
  },
  notes:
    'Tokens are kept in $XDG_STATE_HOME/extauth, which only you can read.\n\nExit codes: 0 logged in, 1 failed, 2 usage.',
}

/** `extauth login`: always a new login, unless the one that is kept still works and asks for none. */
export async function runLogin(argv: readonly string[], io: Io): Promise<number> {
  const parsed = parseOptions(LOGIN_SPEC, argv, io.env)
  if (parsed === 'help') {
    io.stdout(renderHelp(LOGIN_SPEC))
    return EXIT.fine
  }
  const url = parsed.text('url')
  if (url === undefined) throw new UsageError('needs --url URL')
  const endpoint = new URL(url)
  const log = openLogAsAsked(parsed, 'warn', io)
  const options = loginOptionsOf(parsed, endpoint, parsed.text('ca-file'), io, log)
  try {
    const challenge = await challengeOf(endpoint, options.outbound)
    if (challenge === undefined) {
      io.stdout(`${endpoint.origin}${endpoint.pathname} asks for no login.\n`)
      return EXIT.fine
    }
    const credentials = loginCredentials(options)
    await Promise.race([credentials.refused(await credentials.current(), challenge, true), stopped(io)])
    io.stdout(`Logged in at ${endpoint.origin}${endpoint.pathname}.\n`)
    return EXIT.fine
  } catch (error) {
    if (!(error instanceof CredentialRefusal)) throw error
    io.stderr(`extauth login: ${error.message}\n`)
    return EXIT.failed
  } finally {
    log.flush()
    await options.outbound.close()
  }
}

const stopped = async (io: Io): Promise<never> => {
  await io.stop
  throw new CredentialRefusal('login_failed', 'The login was stopped.')
}

/** What the server says to somebody without a token; undefined when it does not mind. */
async function challengeOf(endpoint: URL, outbound: ReturnType<typeof loginOutbound>): Promise<string | undefined> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  try {
    const answer = await outbound.request({ method: 'POST', url: endpoint.href, headers, body })
    return answer.status === 401 ? (answer.headers['www-authenticate'] ?? '') : undefined
  } catch {
    throw new CredentialRefusal('login_failed', `${endpoint.origin}${endpoint.pathname} can not be reached.`)
  }
}

/** The table of `extauth logout`. */
export const LOGOUT_SPEC: CommandSpec = {
  name: 'extauth logout',
  summary: 'Forgets logins of `extauth stdio --login`, and revokes their tokens where the server can.',
  options: {
    url: { type: 'string', is: HTTP_URL, value: 'URL', help: 'Of this MCP server only. Default: all.' },
    'ca-file': CA_FILE,
  },
  notes: 'Exit codes: 0 forgotten (or there was none), 1 forgotten here but not revoked, 2 usage.',
}

/** `extauth logout`: what is kept here is gone in any case. */
export async function runLogout(argv: readonly string[], io: Io): Promise<number> {
  const parsed = parseOptions(LOGOUT_SPEC, argv, io.env)
  if (parsed === 'help') {
    io.stdout(renderHelp(LOGOUT_SPEC))
    return EXIT.fine
  }
  const url = parsed.text('url')
  const wanted = url === undefined ? undefined : new URL(url).href
  const store = openUserStore(io.env)
  const records = (await store.all()).filter(({ endpoint }) => wanted === undefined || endpoint === wanted)
  let exit: number = EXIT.fine
  for (const record of records) {
    const outbound = loginOutbound(new URL(record.endpoint), parsed.text('ca-file'), io.env)
    // First here: what is revoked at the server must not be used by anybody any more.
    await store.forget(record)
    try {
      const isRevoked = await revoke(record, outbound)
      io.stdout(
        `${record.endpoint}: ${isRevoked ? 'forgotten and revoked' : 'forgotten; its server revokes no tokens'}\n`,
      )
    } catch (error) {
      if (!(error instanceof CredentialRefusal)) throw error
      io.stderr(
        `extauth logout: ${record.endpoint}: forgotten here, but its tokens were not revoked. ${error.message}\n`,
      )
      exit = EXIT.failed
    } finally {
      await outbound.close()
    }
  }
  if (records.length === 0) io.stdout('There is no login to forget.\n')
  return exit
}
