import { backFrom, type Tokens } from '../../test/support/authserver/rig.ts'
import { Browser } from '../../test/support/authserver/browser.ts'
import { authConfig } from '../../test/support/e2e/run.ts'
import { createSockets } from '../../test/support/sockets.ts'
import type { Idp } from '../../test/support/upstreams/idp.ts'
import { loginAt, type LoginProxy, loginRoute, startLoginProxy } from '../login-proxy.ts'
import { measureLoad, type Subject } from '../measure.ts'
import type { Generator } from '../processes.ts'
import { table } from '../report.ts'

const CALLERS = 50
const SHAPE = { size: 1024, connections: 16 }
const [INJECT, CONNECTED] = ['upstreamInject, a login at the proxy', 'upstreamInject, a connected account']
const AUDIENCE = 'https://mcp.example.com/connected'
const MOST = 1.05
const LIFE_SECONDS = 6 * 3600
const LINK = /http:\S+\/connect\/[\w-]{32}/

/** Cost of requests with the live token of a connected account against those with the token of a login. Gives a table. */
export async function runAccounts(
  generator: Generator,
  backend: string,
  options: { readonly rounds: number; readonly roundMs: number },
): Promise<string> {
  const sockets = createSockets()
  try {
    const proxy = await startLoginProxy(sockets, (url, idp) => routesTo(backend, url, idp), {
      files: {
        'connected.json': authConfig('connected', {
          type: 'upstreamInject',
          upstreamInject: { providerName: 'github' },
        }),
      },
      spec: connectionsAt,
    })
    const logIn = await proxy.client('/inject')
    const logins: Tokens[] = []
    while (logins.length < CALLERS) logins.push(await logIn())
    const length = logins[0]?.access_token.length ?? 0
    const tokens: string[] = []
    while (tokens.length < CALLERS) tokens.push(await connect(proxy, `person-${tokens.length}`, length))
    const { url, pid } = proxy
    const bearer = (token: string): string => `Bearer ${token}`
    const subjects: Subject[] = [
      { name: INJECT, url: `${url}/inject`, pid, authorizations: logins.map((one) => bearer(one.access_token)) },
      { name: CONNECTED, url: `${url}/connected`, pid, authorizations: tokens.map(bearer) },
    ]
    for (const subject of subjects) await generator.ask({ kind: 'load', ...SHAPE, ms: 1500, ...subject })
    const figures = await measureLoad(generator, subjects, INJECT, { ...SHAPE, ms: options.roundMs }, options.rounds)
    const rows = [...figures].map(([name, one]) => [
      name,
      one.cpuMicros.toFixed(1),
      one.perSecond.toFixed(0),
      one.pairedRatio.toFixed(2),
      MOST.toFixed(2),
    ])
    const title = `**Connected accounts** (POST of 1 KiB each way, 16 connections, ${CALLERS} callers with tokens of ${length} bytes, ${options.rounds} rounds)`
    return `${title}\n\n${table(['', 'CPU µs/request', 'requests/s', '× the first', 'at most'], rows)}`
  } finally {
    await sockets.closeAll()
  }
}

const CA = { name: 'idp', key: 'ca' }
const clientOf = ({ url }: Idp) => ({ issuerUrl: url, clientId: 'us', clientSecretRef: { name: 'idp', key: 'secret' } })

const connectionsAt = (idp: Idp): object => ({
  connections: {
    login: [{ ...clientOf(idp), caBundleRef: CA }],
    providers: [{ name: 'github', type: 'oidc', caBundleRef: CA, oidcConfig: clientOf(idp) }],
  },
})

function routesTo(backend: string, url: string, idp: Idp): readonly object[] {
  const provider = { name: 'people', issuerUrl: idp.url, audience: AUDIENCE, caCertPath: 'secrets/idp/ca' }
  const auth = { mode: 'oauth', oauth: { resourceUrl: AUDIENCE, providers: [provider] } }
  return [
    loginRoute('inject', 'inject', { target: `${backend}/mcp`, ...loginAt(url, 'inject') }),
    loginRoute('connected', 'connected', { target: `${backend}/mcp`, auth }),
  ]
}

/** Connects an account of this person; gives an access token of that many bytes. */
async function connect({ url, idp }: LoginProxy, sub: string, length: number): Promise<string> {
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: idp.url, aud: AUDIENCE, sub, iat: now, exp: now + LIFE_SECONDS }
  const short = await idp.key.sign({ ...claims, more: '' })
  // Base64url takes four characters for three.
  const token = await idp.key.sign({
    ...claims,
    more: 'x'.repeat(Math.max(0, Math.floor(((length - short.length) * 3) / 4))),
  })
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } }
  const response = await fetch(`${url}/connected`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(call),
  })
  const text = await response.text()
  const link = LINK.exec(text)?.[0]
  if (link === undefined) throw new Error(`no link for connecting an account: ${response.status} ${text}`)
  const browser = new Browser()
  const rig = { idp, clock: Date }
  Object.assign(idp.claims, { sub })
  Object.assign(idp.user, { sub })
  const consent = await browser.get(backFrom(rig, await browser.get(link)))
  const done = await browser.get(backFrom(rig, await browser.press(consent, 'continue')))
  if (!done.html.includes('is connected')) throw new Error(`the account was not connected: ${done.html}`)
  // Pages are limited to five a second for each address.
  await new Promise((resolve) => setTimeout(resolve, 900))
  return token
}
