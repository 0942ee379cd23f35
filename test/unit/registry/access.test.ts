import { afterEach, describe, expect, it } from 'vitest'
import type { RegistryServer } from '../../../src/registry/index.ts'
import { protectedBy, RESOURCE_METADATA } from '../../support/registry/callers.ts'
import { entry, get, recordingLog, SERVERS, start } from '../../support/registry/setup.ts'

let server: RegistryServer | undefined
afterEach(async () => {
  await server?.drain(0)
  server = undefined
})

const open = async (publicPaths: readonly string[] = []): Promise<RegistryServer> => {
  server = await start([entry('com.example/a', '1.0.0')], { access: protectedBy(publicPaths) })
  return server
}
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const VERSIONS = `${SERVERS}/com.example%2Fa/versions`

describe('mode oauth', () => {
  it.each(['good', 'later'])('serves a caller with the token %s', async (token) => {
    const server = await open()
    for (const path of [SERVERS, VERSIONS, `${VERSIONS}/latest`])
      expect((await get(server, path, bearer(token))).status).toBe(200)
  })

  it('answers 401 without an error code to a request without credentials (RFC 6750 §3.1)', async () => {
    const server = await open()
    const got = await get(server, SERVERS)
    expect(got.status).toBe(401)
    expect(got.headers['www-authenticate']).toBe(
      `Bearer realm="mcp-registry", resource_metadata="${RESOURCE_METADATA}"`,
    )
    expect(got.json).toEqual({ error: 'invalid_token', error_description: expect.any(String) as string })
    expect(got.headers['cache-control']).toBe('no-store')
    expect(got.headers['access-control-expose-headers']).toContain('WWW-Authenticate')
  })

  it.each([
    ['expired', 401, 'error="invalid_token"'],
    ['wrong', 401, 'error="invalid_token"'],
    ['outage', 503, undefined],
    ['bug', 500, undefined],
  ])('answers the token %s with %i', async (token, status, challenge) => {
    const server = await open()
    const got = await get(server, SERVERS, bearer(token))
    expect(got.status).toBe(status)
    expect(got.text).not.toContain('secret text')
    if (challenge === undefined) expect(got.headers['www-authenticate']).toBeUndefined()
    else expect(got.headers['www-authenticate']).toContain(challenge)
    expect(got.headers['retry-after']).toBe(status === 503 ? '7' : undefined)
  })

  it('sees every Authorization line, and no other place for a token', async () => {
    const server = await open()
    const twice = await get(server, SERVERS, { headers: { Authorization: ['Bearer good', 'Bearer good'] } })
    expect(twice.status).toBe(400)
    expect(twice.headers['www-authenticate']).toContain('error="invalid_request"')
    expect((await get(server, SERVERS, { headers: { authorization: 'Basic Z29vZDo=' } })).status).toBe(401)
    expect((await get(server, SERVERS, { headers: { cookie: 'access_token=good' } })).status).toBe(401)
    for (const query of ['access_token=good', 'limit=1&access_token=x', 'access%5Ftoken=good', 'ACCESS_TOKEN=good'])
      expect([query, (await get(server, `${SERVERS}?${query}`, bearer('good'))).status]).toEqual([query, 400])
  })

  it.each([
    '/registry/unknown/v0.1/servers',
    '/registry/default/v0.1/servers/com.example%2Fnone/versions',
    '/registry/default/v0.1/servers?limit=0',
    '/registry/default/v0.1/servers?cursor=bad',
    '/nowhere',
    '/',
    '/.well-known',
    '/openapi.json/x',
    '/health',
    '/readiness',
    '/version',
    '/metrics',
  ])('does not say without a token what is at %s', async (path) => {
    const server = await open()
    expect((await get(server, path)).status).toBe(401)
    expect((await get(server, path, { method: 'HEAD' })).status).toBe(401)
    expect([400, 404]).toContain((await get(server, path, bearer('good'))).status)
  })

  it.each([
    ['/openapi.json', 200],
    ['/.well-known/oauth-protected-resource', 200],
    ['/.well-known/openid-configuration', 404],
    ['/.well-known/', 404],
    ['/.well-known/a/b/c', 404],
  ])('leaves %s open', async (path, status) => {
    const server = await open()
    expect((await get(server, path)).status).toBe(status)
    expect((await get(server, path, bearer('wrong'))).status).toBe(status)
  })

  it('opens the paths of publicPaths and what is below them, decided on the route that serves', async () => {
    const server = await open(['/registry/default/v0.1/servers'])
    for (const path of [SERVERS, `${SERVERS}?limit=1`, VERSIONS, SERVERS.replace('default', '%64efault')])
      expect([path, (await get(server, path)).status]).toEqual([path, 200])
    for (const path of ['/registry/defaul/v0.1/servers', '/registry/default', '/registry/default/v0.1/serversx'])
      expect([path, (await get(server, path)).status]).toEqual([path, 401])
  })

  it('checks the served name, not its spelling in the URL', async () => {
    const versions = `${SERVERS}/com.example%2Fopen/versions`
    const server = await open(['/registry/default/v0.1/servers/com.example%2Fopen'])
    for (const path of [versions, versions.replace('%2F', '%2f'), versions.replace('default', '%64efault')])
      expect([path, (await get(server, path)).status]).toEqual([path, 404])
    for (const path of ['closed', 'open2'].map((name) => versions.replace('open', name)))
      expect([path, (await get(server, path)).status]).toEqual([path, 401])
  })

  it('has nothing at an open path without a route', async () => {
    const server = await open(['/docs'])
    for (const path of ['/docs', '/docs/a', '/docs?x=1'])
      expect([path, (await get(server, path)).status]).toEqual([path, 404])
    for (const path of ['/docsx', '/', '/%64ocs']) expect([path, (await get(server, path)).status]).toEqual([path, 401])
  })

  it('answers a preflight without a token, and serves nothing by it', async () => {
    const server = await open()
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'GET' }
    const got = await get(server, SERVERS, { method: 'OPTIONS', headers })
    expect(got).toMatchObject({ status: 204, text: '' })
    expect(got.headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, HEAD, OPTIONS',
    })
    expect(got.headers['access-control-allow-headers']).toContain('Authorization')
  })

  it('logs who asked by a hash, never by name or token', async () => {
    const log = recordingLog()
    server = await start([entry('com.example/a', '1.0.0')], { access: protectedBy(), log })
    await get(server, SERVERS, bearer('good'))
    await get(server, SERVERS, bearer('wrong'))
    await server.drain(0)
    const text = log.lines.join('\n')
    expect(text).toMatch(/"caller":"[0-9a-f]{16}"/)
    expect(text).toContain('"reason":"invalid_token"')
    expect(text).not.toMatch(/alice|good|wrong|Bearer/)
  })
})

describe('mode anonymous', () => {
  it('requires no token, and reads none', async () => {
    server = await start([entry('com.example/a', '1.0.0')])
    for (const options of [{}, bearer('wrong'), { headers: { authorization: 'nonsense' } }])
      expect((await get(server, SERVERS, options)).status).toBe(200)
    const got = await get(server, `${SERVERS}?access_token=x`)
    expect([got.status, got.headers['www-authenticate']]).toEqual([400, undefined])
  })
})
