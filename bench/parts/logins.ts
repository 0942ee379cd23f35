import { authConfig, configFolder, freePort, proxyConfig } from '../../test/e2e/run.ts'
import { extauth } from '../../test/e2e/process.ts'
import { claimsOfNow, newSigningKey } from '../../test/e2e/authserver/fleet.ts'
import { LIMITS, logIn, type LoginRig, redeem, register, type Tokens, upstreamOf } from '../../test/authserver/rig.ts'
import { startIdp } from '../../test/upstreams/idp.ts'
import { createSockets } from '../../test/support/sockets.ts'
import { TLS } from '../../test/support/tls.ts'
import { startIssuer } from '../callers.ts'
import { measureLoad, type Subject } from '../measure.ts'
import { cpuOf, type Generator, memoryOf } from '../processes.ts'
import { loginsTable } from '../report.ts'

const CALLERS = 100
const AT_ONCE = 8
/** Until what the start left behind is given back (docs/adr/0306). */
const IDLE_MS = 20_000
const SHAPE = { size: 1024, connections: 16 }
const FOREIGN = 'bearerToken, a token of another issuer'
const OWN = 'bearerToken, a token of our own'
const INJECT = 'upstreamInject, a token of our own'

export interface LoginsOptions {
  readonly rounds: number
  readonly roundMs: number
}

/**
 * What callers who logged in at the embedded authorization server cost against those of another issuer, as whole requests through
 * the real proxy, and what a login costs from the authorization request to the tokens. Gives a table.
 */
export async function runLogins(generator: Generator, backend: string, options: LoginsOptions): Promise<string> {
  const sockets = createSockets()
  const issuer = await startIssuer()
  try {
    const idp = await startIdp(sockets)
    idp.claims = claimsOfNow()
    const url = `http://127.0.0.1:${await freePort()}`
    const folder = await configFolder({
      'secrets/idp/secret': 'of us',
      'secrets/idp/ca': TLS.ca.toString(),
      'secrets/as/hmac': Buffer.alloc(32, 0xa5),
      'secrets/as/signing': newSigningKey(),
      'secrets/bench/token': 'a-token',
      'as.json': authConfig('as', {
        type: 'embeddedAuthServer',
        embeddedAuthServer: {
          issuer: url,
          upstreamProviders: [upstreamOf(idp)],
          hmacSecretRefs: [{ name: 'as', key: 'hmac' }],
          signingKeySecretRefs: [{ name: 'as', key: 'signing' }],
          limits: LIMITS,
        },
      }),
      'bearer.json': authConfig('bearer', {
        type: 'bearerToken',
        bearerToken: { tokenSecretRef: { name: 'bench', key: 'token' } },
      }),
      'inject.json': authConfig('inject', { type: 'upstreamInject', upstreamInject: { providerName: 'corp' } }),
      'proxy.json': proxyConfig({ secretsDirectory: './secrets', routes: routesTo(backend, url, issuer) }),
    })
    sockets.closing({ close: folder.remove })
    const args = ['--config', folder.directory, '--listen', url.replace('http://', ''), '--admin', '127.0.0.1:0']
    const proxy = extauth(['proxy', ...args])
    sockets.closing({ close: () => (proxy.process.kill('SIGKILL'), proxy.ended) })
    await proxy.line('listening')
    const pid = proxy.process.pid ?? 0
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
    const idleMiB = memoryOf(pid) / (1024 * 1024)

    const logins = async (path: string, count: number) => {
      const rig = rigOf(idp, url, `${url}${path}`)
      const client = await register(rig)
      const tokens: Tokens[] = []
      const startedAt = performance.now()
      const before = cpuOf(pid)
      const worker = async (): Promise<void> => {
        while (tokens.length < count) {
          const { answer, pkce } = await logIn(rig, client)
          const response = await redeem(rig, client, answer.get('code') ?? '', pkce)
          if (response.status !== 200) throw new Error(`a login failed: ${await response.text()}`)
          tokens.push((await response.json()) as Tokens)
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, worker))
      const perSecond = (1000 * tokens.length) / (performance.now() - startedAt)
      const cpuMs = (cpuOf(pid) - before) / 1e6 / tokens.length
      return { authorizations: tokens.map((one) => `Bearer ${one.access_token}`), perSecond, cpuMs }
    }
    // The first compile the code.
    const own = await logins('/own', CALLERS)
    const inject = await logins('/inject', CALLERS)
    const warm = await logins('/inject', 2 * CALLERS)

    const foreign = issuer.tokens(CALLERS).map((token) => `Bearer ${token}`)
    const subjects: Subject[] = [
      { name: FOREIGN, url: `${url}/foreign`, pid, authorizations: foreign },
      { name: OWN, url: `${url}/own`, pid, authorizations: own.authorizations },
      { name: INJECT, url: `${url}/inject`, pid, authorizations: inject.authorizations },
    ]
    for (const subject of subjects) await generator.ask({ kind: 'load', ...SHAPE, ms: 1500, ...subject })
    const shape = { ...SHAPE, ms: options.roundMs }
    const figures = await measureLoad(generator, subjects, FOREIGN, shape, options.rounds)
    const against = await measureLoad(generator, subjects.slice(1), OWN, shape, options.rounds)
    return loginsTable(options.rounds, {
      figures,
      budgets: [
        { what: 'a token of our own / one of another issuer', value: ratio(figures, OWN), most: 1.05 },
        { what: '`upstreamInject` / `bearerToken`', value: ratio(against, INJECT), most: 1.08 },
      ],
      loginsPerSecond: warm.perSecond,
      cpuMsPerLogin: warm.cpuMs,
      idleMiB,
    })
  } finally {
    await sockets.closeAll()
    issuer.close()
  }
}

const ratio = (figures: Awaited<ReturnType<typeof measureLoad>>, name: string): number =>
  figures.get(name)?.pairedRatio ?? Number.NaN

const rigOf = (idp: LoginRig['idp'], issuer: string, resource: string): LoginRig => ({
  issuer,
  idp,
  clock: Date,
  resources: [{ url: resource }],
  server: { addresses: { authorizeUrl: `${issuer}/oauth/authorize` } },
})

function routesTo(backend: string, url: string, issuer: { readonly url: string; readonly audience: string }) {
  const foreign = {
    mode: 'oauth',
    oauth: {
      resourceUrl: issuer.audience,
      providers: [
        {
          name: 'bench',
          issuerUrl: issuer.url,
          audience: issuer.audience,
          jwksUrl: `${issuer.url}/jwks`,
          allowPrivateIP: true,
        },
      ],
    },
  }
  const route = (name: string, config: string, more: object) => ({
    name,
    path: `/${name}`,
    target: `${backend}/mcp`,
    externalAuthConfigRef: { name: config },
    ...more,
  })
  const login = (name: string) => ({
    resourceUrl: `${url}/${name}`,
    authServerRef: { kind: 'MCPExternalAuthConfig', name: 'as' },
  })
  return [
    route('foreign', 'bearer', { auth: foreign }),
    route('own', 'bearer', login('own')),
    route('inject', 'inject', login('inject')),
  ]
}
