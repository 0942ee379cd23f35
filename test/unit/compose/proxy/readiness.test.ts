import { X509Certificate } from 'node:crypto'
import { UnsecuredJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { readinessOf } from '../../../../src/compose/proxy/readiness.ts'
import { Failure, Secret, type Secrets } from '../../../../src/core/index.ts'
import { resolveProxy, type ResolvedProxy } from '../../../../src/load/index.ts'
import { TLS } from '../../../support/tls.ts'
import { externalAuth, load, OAUTH, proxy, route, SPECS } from '../../../support/load/documents/build.ts'

const NOW = Date.UTC(2026, 10, 23)

const exchange = {
  type: 'tokenExchange',
  tokenExchange: {
    ...SPECS.tokenExchange.tokenExchange,
    clientId: 'c',
    clientAuthMethod: 'private_key_jwt',
    clientKeySecretRef: { name: 'keys', key: 'pem' },
    caCertPath: 'ca.pem',
  },
}
const login = {
  type: 'embeddedAuthServer',
  embeddedAuthServer: {
    ...SPECS.embeddedAuthServer.embeddedAuthServer,
    hmacSecretRefs: [{ name: 'hmac', key: 'now' }],
  },
}

function configOf(...documents: readonly object[]): ResolvedProxy {
  const { config, problems } = resolveProxy(load(...documents))
  if (config === undefined) throw new Error(JSON.stringify(problems))
  return config
}

/** Everything is there but what is named. */
function without(...missing: readonly string[]) {
  const secrets: Secrets = {
    handle: ({ name, key }) => ({
      label: `${name}/${key}`,
      version: 1,
      current: () => {
        if (missing.includes(`${name}/${key}`)) throw new Failure('secret_unavailable')
        return new Secret('x')
      },
      refresh: () => Promise.resolve(false),
    }),
  }
  const certificate = (path: string) => () => (missing.includes(path) ? undefined : Buffer.from(''))
  const tokenFile = (path = '') => secrets.handle({ name: 'file', key: path })
  const providersWithoutKeys = () => missing.filter((name) => name.startsWith('provider '))
  return { clock: { now: () => NOW }, secrets, certificate, tokenFile, providersWithoutKeys }
}

describe('readiness', () => {
  const both = configOf(
    externalAuth(SPECS.bearerToken),
    externalAuth(exchange, 'exchange'),
    proxy({
      auth: OAUTH,
      routes: [
        route({ resourceUrl: 'https://mcp.example.com/a' }),
        route({ name: 'x', path: '/x', externalAuthConfigRef: { name: 'exchange' } }),
      ],
    }),
  )

  test('everything is there', () => {
    expect(readinessOf(both, without(), false)).toEqual({ ok: true })
  })

  test.each([
    ['keys/pem', 'clientKeySecretRef', 'secret_unavailable'],
    ['/etc/extauth/ca.pem', 'caCertPath', 'config_error'],
  ])('%s is missing: the other route still serves', (missing, field, reason) => {
    expect(readinessOf(both, without(missing), false)).toEqual({
      ok: true,
      degraded: true,
      detail: { unusable: [{ route: 'x', reason, field }] },
    })
  })

  const clientAuthOf = (clientAuth: object) =>
    configOf(
      externalAuth({ type: 'tokenExchange', tokenExchange: { ...SPECS.tokenExchange.tokenExchange, clientAuth } }),
      proxy({ auth: OAUTH, routes: [route({ resourceUrl: 'https://mcp.example.com/a' })] }),
    )
  const projected = clientAuthOf({ method: 'tokenFile', clientId: 'us', tokenFile: { path: '/run/token' } })
  const tokenFor = (seconds: number, left: number) => {
    const exp = NOW / 1_000 + left
    const text = new UnsecuredJWT({ iat: exp - seconds, exp }).encode()
    const current = () => new Secret(text)
    return () => ({ label: '/run/token', version: 1, current, refresh: () => Promise.resolve(false) })
  }

  test.each([
    ['an hour, a third of it left', 3_600, 1_200, false],
    ['an hour, in its last tenth', 3_600, 360, true],
    ['a month, two days left', 2_592_000, 172_800, false],
    ['a month, a day left', 2_592_000, 86_400, true],
    ['ended', 3_600, -1, true],
  ])('an own token with a lifetime of %s', (_what, seconds, left, isOverdue) => {
    const held = { ...without(), tokenFile: tokenFor(seconds, left) }
    const expires = new Date(NOW + left * 1_000).toISOString()
    const detail = { expiring: [{ config: 'token', kind: 'token', expires }] }
    expect(readinessOf(projected, held, false)).toEqual(isOverdue ? { ok: true, degraded: true, detail } : { ok: true })
  })

  test('an own certificate that expires within a day', () => {
    const tls = { certificateSecretRef: { name: 'tls', key: 'cert' }, keySecretRef: { name: 'tls', key: 'key' } }
    const config = clientAuthOf({ method: 'tlsClient', clientId: 'us', tls })
    const handle = without().secrets.handle({ name: 'tls', key: 'cert' })
    const secrets: Secrets = { handle: () => ({ ...handle, current: () => new Secret(TLS.client.cert.toString()) }) }
    const endMs = new X509Certificate(TLS.client.cert).validToDate.getTime()
    const at = (now: number) => readinessOf(config, { ...without(), secrets, clock: { now: () => now } }, false)
    expect(at(endMs - 86_400_001).degraded).toBeUndefined()
    expect(at(endMs - 86_400_000)).toMatchObject({ degraded: true, detail: { expiring: [{ kind: 'certificate' }] } })
  })

  test('an own token that cannot be read', () => {
    const held = without()
    const tokenFile = () => ({ ...held.tokenFile(), version: 0 })
    expect(readinessOf(projected, { ...held, tokenFile }, false)).toMatchObject({
      ok: false,
      detail: { unusable: [{ reason: 'secret_unavailable', field: 'clientAuth.tokenFile' }] },
    })
  })

  test('keys of an identity provider never came', () => {
    expect(readinessOf(both, without('provider a', 'keys/pem'), false)).toMatchObject({
      ok: true,
      degraded: true,
      detail: { unusable: [{ route: 'x' }], providersWithoutKeys: ['provider a'] },
    })
    expect(readinessOf(both, without('provider a'), false)).toEqual({
      ok: true,
      degraded: true,
      detail: { providersWithoutKeys: ['provider a'] },
    })
  })

  test.each([
    ['Bearer x', 1, true],
    ['x\n', 1, true],
    ['x', 1, false],
    // The previous value stays active.
    ['"x"', 2, false],
  ])('a secret that cannot be a header makes its route unusable: %j, version %i', (text, version, isUnusable) => {
    const secrets: Secrets = {
      handle: ({ name, key }) => ({
        label: `${name}/${key}`,
        version,
        current: () => new Secret(text),
        refresh: () => Promise.resolve(false),
      }),
    }
    const unusable = [{ route: 'a', reason: 'config_error', field: 'tokenSecretRef' }]
    expect(readinessOf(both, { ...without(), secrets }, false)).toEqual(
      isUnusable ? { ok: true, degraded: true, detail: { unusable } } : { ok: true },
    )
  })

  test('no route can serve', () => {
    expect(readinessOf(both, without('a/b', 'keys/pem'), false).ok).toBe(false)
    expect(readinessOf(both, without(), true)).toEqual({ ok: false, detail: { draining: true } })
  })

  test('the secrets of the authorization server count for the routes where callers log in', () => {
    const config = configOf(
      externalAuth(SPECS.bearerToken),
      externalAuth(login, 'server'),
      proxy({ authServerRef: { name: 'server' }, routes: [route()] }),
    )
    expect(readinessOf(config, without('hmac/now'), false).detail).toEqual({
      unusable: [{ route: 'a', reason: 'secret_unavailable', field: 'hmacSecretRefs.0' }],
    })
  })

  test('what an authorization server lacks, or has for one replica only, is said', () => {
    const authServers = [
      { name: 'default/a', readiness: () => ({ isReady: false, remarks: ['the store is down'] }) },
      { name: 'default/b', readiness: () => ({ isReady: true, remarks: ['one replica only'] }) },
      { name: 'default/c', readiness: () => ({ isReady: true, remarks: [] }) },
    ]
    expect(readinessOf(both, { ...without(), authServers }, false)).toEqual({
      ok: true,
      degraded: true,
      detail: {
        authServers: [
          { authServer: 'default/a', isReady: false, remarks: ['the store is down'] },
          { authServer: 'default/b', isReady: true, remarks: ['one replica only'] },
        ],
      },
    })
    expect(readinessOf(both, { ...without(), authServers: authServers.slice(1) }, false).degraded).toBeUndefined()
  })
})
