import { CredentialRefusal } from '../core/index.ts'
import { newLogin } from '../login/index.ts'
import { EXIT, type Io, UsageError } from '../compose/index.ts'
import { loggedCommand } from './command.ts'
import type { loginOutbound } from '../compose/login/index.ts'
import { CA_FILE, LOGIN_OPTIONS, loginOptionsOf } from './options/login-options.ts'
import { HTTP_URL } from './options/option-values.ts'
import type { CommandSpec } from './options/options.ts'

export const LOGIN_SPEC: CommandSpec = {
  name: 'extauth login',
  summary: 'Logs in to an MCP server in the browser, so that `extauth stdio --login` need not ask.',
  options: {
    url: { type: 'string', is: HTTP_URL, value: 'URL', help: 'The MCP server. Required.' },
    'ca-file': CA_FILE,
    ...LOGIN_OPTIONS,
  },
  notes:
    'Tokens are stored in $XDG_STATE_HOME/extauth, readable only by you.\n\nExit codes: 0 logged in, 1 failed, 2 usage.',
}

/** `extauth login`: logs in again even if a login is stored, unless the server needs none. */
export const runLogin = loggedCommand(LOGIN_SPEC, 'warn', async ({ options: parsed, io, log }) => {
  const url = parsed.text('url')
  if (url === undefined) throw new UsageError('needs --url URL')
  const endpoint = new URL(url)
  const options = loginOptionsOf(parsed, endpoint, parsed.text('ca-file'), io, log)
  try {
    const challenge = await challengeOf(endpoint, options.outbound)
    if (challenge === undefined) {
      io.stdout(`${endpoint.origin}${endpoint.pathname} requires no login.\n`)
      return EXIT.fine
    }
    await Promise.race([newLogin(options, challenge), stopped(io)])
    io.stdout(`Logged in at ${endpoint.origin}${endpoint.pathname}.\n`)
    return EXIT.fine
  } finally {
    await options.outbound.close()
  }
})

const stopped = async (io: Io): Promise<never> => {
  await io.stop
  throw new CredentialRefusal('login_failed', 'The login was stopped.')
}

/**
 * Returns the server's challenge to a request without a token; undefined if it accepts the request. Throws if no
 * server responds.
 */
async function challengeOf(endpoint: URL, outbound: ReturnType<typeof loginOutbound>): Promise<string | undefined> {
  const place = `${endpoint.origin}${endpoint.pathname}`
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  try {
    const answer = await outbound.request({ method: 'POST', url: endpoint.href, headers, body })
    const { status } = answer
    // Other statuses are an MCP server's: without a session or before `initialize`, most refuse a ping with 400.
    if (status === 404 || status === 410 || status >= 500)
      throw new CredentialRefusal('login_failed', `${place} returned ${status}; expected an MCP server. Check the URL.`)
    return status === 401 ? (answer.headers['www-authenticate'] ?? '') : undefined
  } catch (error) {
    if (error instanceof CredentialRefusal) throw error
    throw new CredentialRefusal('login_failed', `${place} is unreachable. Check the URL and the network.`)
  }
}
