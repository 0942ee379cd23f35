import { spawn } from 'node:child_process'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { openWorld } from '../test/support/e2e/authserver/world.ts'
import { createSockets } from '../test/support/sockets.ts'
import { TLS } from '../test/support/tls.ts'
import type { Python } from './python.ts'

interface Answer {
  readonly ask?: string
  readonly result?: {
    readonly tools: number
    readonly errors: readonly boolean[]
    readonly isRenewed: boolean
    readonly scope: string | null
    readonly client: string
  }
  readonly error?: string
}

const LONGEST_MS = 120_000

/**
 * The official Python client (`mcp` of PyPI) from the bare URL of a route to tool results, in both revisions of the protocol:
 * registered, at a route that demands scopes, and known by its metadata document; each login renews its token. Gives what was
 * wrong, a sentence each.
 */
export async function askPythonClient(python: Python): Promise<readonly string[]> {
  const sockets = createSockets()
  const wrong: string[] = []
  try {
    const world = await openWorld(sockets, {
      spec: { clientMetadata: { allowPrivateIP: true, caBundleRef: { name: 'idp', key: 'ca' } } },
      routes: ({ proxy, backend }) =>
        [[], ['mcp:use']].map((requiredScopes, index) => {
          const name = ['inject', 'mcp'][index] ?? ''
          const externalAuthConfigRef = { name: index === 0 ? 'inject' : 'static' }
          const target = `${backend}/${index === 0 ? 'open' : 'plain'}`
          const resourceUrl = `${proxy}/${name}`
          return { name, path: `/${name}`, target, externalAuthConfigRef, resourceUrl, requiredScopes }
        }),
    })
    const origin = await sockets.https(TLS.server, (_request, response) => {
      const document = {
        client_id: `${origin}/client.json`,
        client_name: 'Python client',
        redirect_uris: ['http://localhost:33333/callback'],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'none',
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
    })
    const script = path.join(import.meta.dirname, 'login.py')
    const child = spawn(python.executable, [script], { stdio: ['pipe', 'pipe', 'ignore'], timeout: LONGEST_MS })
    sockets.closing({ close: () => child.kill() })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const next = async (): Promise<Answer> => {
      const { value, done } = await lines.next()
      return done === true ? { error: 'it has ended' } : (JSON.parse(value) as Answer)
    }
    for (const mode of ['legacy', '2026-07-28']) {
      for (const [name, route, document] of [
        ['registered', '/inject', undefined],
        ['at a route that demands a scope', '/mcp', undefined],
        ['known by its metadata document', '/inject', `${origin}/client.json`],
      ] as const) {
        child.stdin.write(`${JSON.stringify({ url: world.url + route, mode, document })}\n`)
        let answer = await next()
        for (; answer.ask !== undefined; answer = await next()) {
          child.stdin.write(`${(await world.userAt(answer.ask)).href}\n`)
        }
        const { result, error } = answer
        const tell = (what: string) => wrong.push(`${mode}, ${name}: ${what}`)
        if (result === undefined) {
          tell(error ?? 'no result')
          continue
        }
        if (result.tools === 0 || result.errors.some(Boolean)) tell('no tool result')
        if (!result.isRenewed) tell('its token was not renewed')
        if (route === '/mcp' && result.scope?.split(' ').includes('mcp:use') !== true) tell('it has not got the scope')
        if (document !== undefined && result.client !== document) tell('it has registered')
      }
    }
    return wrong
  } finally {
    await sockets.closeAll()
  }
}
