import { createHash, randomBytes } from 'node:crypto'
import { type Outbound, OutboundError, SYSTEM_CLOCK } from '../../src/core/index.ts'
import { openReceiver } from '../../src/login/index.ts'
import { createOutbound } from '../../src/net/index.ts'
import { postForm } from '../../src/oauth/index.ts'
import { EXIT, type Io } from '../../src/compose/index.ts'
import { LAB_PORTS } from './lab-ports.ts'
import { clickThrough } from './lab-pages.ts'
import { PORT, ROUTE_PATH, TEXT, type CommandSpec } from '../../src/cli/options/index.ts'
import { command, CommandFailed, ownCommand } from '../../src/cli/index.ts'

/** Where a command finds the proxy of the running lab. */
export const PROXY_PORT = {
  type: 'string',
  is: PORT,
  value: 'PORT',
  help: `Where the lab's proxy is. Default ${LAB_PORTS.proxy}.`,
} as const

/** The table of its options. */
export const LAB_LOGIN_SPEC: CommandSpec = {
  name: 'extauth lab login',
  summary:
    'Logs in at the running lab as an MCP client does (discovery, registration, PKCE), and prints the access token, and\nnothing else, to standard output.',
  options: {
    route: { type: 'string', is: ROUTE_PATH, value: 'PATH', help: 'Route that the token is for. Default /upstream.' },
    user: {
      type: 'string',
      is: TEXT,
      value: 'NAME',
      help: 'Press all buttons as this user, without a browser: alice, bob, carol.',
    },
    port: PROXY_PORT,
  },
  notes: [
    'Without --user the address to open in a browser is printed to standard error, and the command waits for it.',
    '',
    'Exit codes: 0 logged in, 1 the lab does not run or the login failed, 2 usage.',
  ].join('\n'),
}

/** How long a person in front of a browser may take. */
const BROWSER_MS = 5 * 60_000

/** `extauth lab login`: exit code 0 and the token on standard output, 1 when the lab does not run or the login fails. */
export const runLabLogin = command(LAB_LOGIN_SPEC, async ({ options, io }) => {
  const route = options.text('route') ?? '/upstream'
  const port = options.text('port') ?? String(LAB_PORTS.proxy)
  const clock = SYSTEM_CLOCK
  const outbound = createOutbound({ name: 'lab', clock, breaker: false, deadlineMs: 30_000 })
  try {
    io.stdout(`${await logIn(outbound, `http://127.0.0.1:${port}`, route, options.text('user'), io)}\n`)
    return EXIT.fine
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    throw labDoesNotRun()
  } finally {
    await outbound.close()
  }
})

/**
 * A token for a route of a running lab after a login as `user`, as an MCP client does it, all buttons pressed. Rejects when
 * the login fails.
 */
export async function logInAtRoute(proxyUrl: string, routePath: string, user: string): Promise<string> {
  const outbound = createOutbound({ name: 'lab', clock: SYSTEM_CLOCK, breaker: false, deadlineMs: 30_000 })
  const io = { stderr: () => undefined }
  try {
    return await logIn(outbound, proxyUrl, routePath, user, io)
  } finally {
    await outbound.close()
  }
}

/** From the route's address alone to a token for it. */
async function logIn(
  outbound: Outbound,
  proxy: string,
  route: string,
  user: string | undefined,
  io: Pick<Io, 'stderr'>,
): Promise<string> {
  const resource = await getJson(outbound, `${proxy}/.well-known/oauth-protected-resource${route}`)
  const issuer = textOf((resource['authorization_servers'] as unknown[] | undefined)?.[0])
  const server = await getJson(outbound, `${issuer}/.well-known/oauth-authorization-server`)
  const state = randomBytes(16).toString('base64url')
  const receiver = await openReceiver({ patienceMs: BROWSER_MS, accepts: (answer) => answer.get('state') === state })
  try {
    const client = await register(outbound, textOf(server['registration_endpoint']), receiver.url)
    const verifier = randomBytes(32).toString('base64url')
    const url = new URL(textOf(server['authorization_endpoint']))
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: client,
      redirect_uri: receiver.url,
      state,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      resource: textOf(resource['resource']),
    }).toString()
    if (user === undefined) io.stderr(`Open this address in a browser on this machine:\n\n  ${url.href}\n\n`)
    const answer =
      user === undefined
        ? await receiver.answer.catch(() => refuse('the browser did not return'))
        : await clickThrough(url, receiver.url, user, refuse)
    if (answer.get('state') !== state || answer.get('iss') !== issuer)
      throw new CommandFailed('the answer is for another login')
    const code = answer.get('code')
    if (code === null) throw new CommandFailed(`refused: ${answer.get('error') ?? 'no code came back'}`)
    const response = await postForm(outbound, {
      url: textOf(server['token_endpoint']),
      form: {
        grant_type: 'authorization_code',
        client_id: client,
        code,
        code_verifier: verifier,
        redirect_uri: receiver.url,
      },
    })
    return textOf(objectOf(response.body)['access_token'])
  } finally {
    receiver.close()
  }
}

/** The failure of a command that can't reach the lab. */
export const labDoesNotRun = (): CommandFailed =>
  new CommandFailed(`the lab does not run; start it with: ${ownCommand()} lab`)

/** Ends the command with this reason. */
export const refuse = (reason: string): never => {
  throw new CommandFailed(reason)
}

async function getJson(outbound: Outbound, url: string): Promise<Readonly<Record<string, unknown>>> {
  const { status, body } = await outbound.request({ method: 'GET', url, headers: { accept: 'application/json' } })
  if (status !== 200) throw new CommandFailed(`${new URL(url).pathname} answered ${status}; does the route exist?`)
  return objectOf(body)
}

async function register(outbound: Outbound, url: string, redirectUri: string): Promise<string> {
  const metadata = {
    client_name: 'extauth lab login',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code'],
    token_endpoint_auth_method: 'none',
  }
  const headers = { 'content-type': 'application/json' }
  const { body } = await outbound.request({ method: 'POST', url, headers, body: JSON.stringify(metadata) })
  return textOf(objectOf(body)['client_id'])
}

function objectOf(body: Buffer): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(body.toString('utf8')) as Readonly<Record<string, unknown>>
  } catch {
    throw new CommandFailed('an answer is not JSON')
  }
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  throw new CommandFailed('callers of this route do not log in at the proxy, or an answer lacks something')
}
