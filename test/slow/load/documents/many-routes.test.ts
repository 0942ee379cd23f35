import { expect, test } from 'vitest'
import { parseDocuments, resolveProxy } from '../../../../src/load/index.ts'
import { externalAuth, load, OAUTH, proxy, route as routeOf } from '../../../support/load/documents/build.ts'

const ROUTES = 10_000

/** Required fields of a route. */
const least = (number: number): string => `    - name: route-${number}
      path: /r/${number}
      target: https://backend-${number}.example.com/mcp
      externalAuthConfigRef:
        name: none
`
const route = (number: number): string => `${least(number)}      resourceUrl: https://mcp.example.com/r/${number}
      sseKeepAlive: 15s
      http2: false
      timeouts:
        connect: 5s
        firstByte: 60s
`
const CONFIG = (count: number, each: (number: number) => string): string => `apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: none }
spec: { type: unauthenticated }
---
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: p }
spec:
  auth: { mode: anonymous }
  routes:
${Array.from({ length: count }, (_, index) => each(index)).join('')}`

test('ten thousand routes in one file load', { timeout: 120_000 }, () => {
  const loaded = parseDocuments([{ path: 'proxy.yaml', text: CONFIG(ROUTES, route) }])
  expect(loaded.problems).toEqual([])
  const { config, problems } = resolveProxy(loaded, {})
  expect(problems?.slice(0, 3) ?? []).toEqual([])
  expect(config?.routes).toHaveLength(ROUTES)
})

test('more than that says how many there may be', { timeout: 120_000 }, () => {
  const { problems } = parseDocuments([{ path: 'proxy.yaml', text: CONFIG(ROUTES + 1, least) }])
  expect(problems.map(({ message }) => message)).toEqual([`too long, expected at most ${ROUTES} entries`])
})

/** How often a part of a document is looked at while a proxy with so many routes, each with a config of its own, is put together. */
function looksFor(count: number): number {
  const auths = Array.from({ length: count }, (_, index) =>
    externalAuth(
      { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: `s-${index}`, key: 'k' } } },
      `c-${index}`,
    ),
  )
  const routes = Array.from({ length: count }, (_, index) =>
    routeOf({ name: `r-${index}`, path: `/r/${index}`, externalAuthConfigRef: { name: `c-${index}` } }),
  )
  const documents = [
    ...auths,
    proxy({ auth: OAUTH, routes: routes.map((one) => ({ ...one, resourceUrl: 'https://x' })) }),
  ]
  const loaded = load(...documents)
  let looks = 0
  const counting = <T extends object>(value: T): T =>
    new Proxy(value, { get: (target, name) => (looks++, Reflect.get(target, name) as unknown) })
  const { config, problems = [] } = resolveProxy({
    ...loaded,
    auths: loaded.auths.map((auth) => ({ ...auth, document: counting(auth.document) })),
    namedSecrets: loaded.namedSecrets.map(counting),
  })
  expect(problems).toEqual([])
  expect(config?.places.secrets.map(({ at }) => at.routes)).toEqual(routes.map((_, index) => [`r-${index}`]))
  return looks
}

test('what is looked at to follow references grows with the routes, not with their square', () => {
  expect(looksFor(200)).toBeLessThan(2.5 * looksFor(100))
})
