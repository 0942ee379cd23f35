import { CredentialRefusal } from '../core/index.ts'
import { newLogin } from '../login/index.ts'
import { EXIT, type Io, UsageError } from '../compose/index.ts'
import { loggedCommand } from './command.ts'
import type { loginOutbound } from '../compose/login/index.ts'
import { CA_FILE, LOGIN_OPTIONS, loginOptionsOf } from './options/login-options.ts'
import { HTTP_URL } from './options/option-values.ts'
import type { CommandSpec } from './options/options.ts'

/** The table of `extauth login`. */
export const LOGIN_SPEC: CommandSpec = {
  name: 'extauth login',
  summary: 'Logs you in at an MCP server in the browser, ahead of `extauth stdio --login`, which then asks no more.',
  options: {
    url: { type: 'string', is: HTTP_URL, value: 'URL', help: 'The MCP server. Required.' },
    'ca-file': CA_FILE,
    ...LOGIN_OPTIONS,
  },
  notes:
    'Tokens are kept in $XDG_STATE_HOME/extauth, which only you can read.\n\nExit codes: 0 logged in, 1 failed, 2 usage.',
}

/** `extauth login`: always a new login, unless the server asks for none. */
export const runLogin = loggedCommand(LOGIN_SPEC, 'warn', async ({ options: parsed, io, log }) => {
  const url = parsed.text('url')
  if (url === undefined) throw new UsageError('needs --url URL')
  const endpoint = new URL(url)
  const options = loginOptionsOf(parsed, endpoint, parsed.text('ca-file'), io, log)
  try {
    const challenge = await challengeOf(endpoint, options.outbound)
    if (challenge === undefined) {
      io.stdout(`${endpoint.origin}${endpoint.pathname} asks for no login.\n`)
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

/** What the server says to somebody without a token; undefined when it does not mind. Throws where no server is. */
async function challengeOf(endpoint: URL, outbound: ReturnType<typeof loginOutbound>): Promise<string | undefined> {
  const place = `${endpoint.origin}${endpoint.pathname}`
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  try {
    const answer = await outbound.request({ method: 'POST', url: endpoint.href, headers, body })
    const { status } = answer
    // Anything else is an MCP server's: without a session, or before `initialize`, most refuse a ping with 400.
    if (status === 404 || status === 410 || status >= 500)
      throw new CredentialRefusal(
        'login_failed',
        `${place} answers ${status}: no MCP server is there, or it does not work.`,
      )
    return status === 401 ? (answer.headers['www-authenticate'] ?? '') : undefined
  } catch (error) {
    if (error instanceof CredentialRefusal) throw error
    throw new CredentialRefusal('login_failed', `${place} can not be reached.`)
  }
}
