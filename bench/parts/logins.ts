import type { Tokens } from '../../test/support/authserver/rig.ts'
import { createSockets } from '../../test/support/sockets.ts'
import { startIssuer } from '../callers.ts'
import { pause } from '../load/pace.ts'
import { loginAt, loginRoute, startLoginProxy } from '../login-proxy.ts'
import { measureLoad, type Subject } from '../measure.ts'
import { cpuOf, type Generator, memoryOf } from '../processes.ts'
import { loginsTable } from '../report.ts'

const CALLERS = 100
const AT_ONCE = 8
/** Pause after the start before idle memory is read. */
const IDLE_MS = 30_000
const SHAPE = { size: 1024, connections: 16 }
const FOREIGN = 'bearerToken, a token of another issuer'
const OWN = 'bearerToken, a token of our own'
const INJECT = 'upstreamInject, a token of our own'

export interface LoginsOptions {
  readonly rounds: number
  readonly roundMs: number
}

/**
 * Cost of callers of the embedded authorization server against those of another issuer, as whole requests through
 * the real proxy, and what a login costs from the authorization request to the tokens. Gives a table.
 */
export async function runLogins(generator: Generator, backend: string, options: LoginsOptions): Promise<string> {
  const sockets = createSockets()
  const issuer = await startIssuer()
  try {
    const proxy = await startLoginProxy(sockets, (url) => routesTo(backend, url, issuer))
    const { url, pid } = proxy
    await pause(IDLE_MS)
    const idleMiB = memoryOf(pid) / (1024 * 1024)

    const logins = async (path: string, count: number) => {
      const logIn = await proxy.client(path)
      const tokens: Tokens[] = []
      const startedAt = performance.now()
      const before = cpuOf(pid)
      const worker = async (): Promise<void> => {
        while (tokens.length < count) tokens.push(await logIn())
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
  return [
    loginRoute('foreign', 'bearer', { target: `${backend}/mcp`, auth: foreign }),
    loginRoute('own', 'bearer', { target: `${backend}/mcp`, ...loginAt(url, 'own') }),
    loginRoute('inject', 'inject', { target: `${backend}/mcp`, ...loginAt(url, 'inject') }),
  ]
}
