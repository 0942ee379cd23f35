import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type Answering,
  documents,
  oauth,
  type Folder,
  openFolder,
  type Site,
  site,
} from '../../../support/examine/check/rig.ts'

let folder: Folder
const open: Site[] = []
const serve = async (answers: Readonly<Record<string, Answering>>): Promise<Site> => {
  const made = await site(answers)
  open.push(made)
  return made
}
beforeAll(async () => {
  folder = await openFolder()
  await folder.write('secrets/client/secret', 'sesame')
  await folder.write('secrets/seal/good', 'k'.repeat(32))
  await folder.write('secrets/seal/short', 'k')
})
afterAll(async () => {
  await Promise.all(open.map((each) => each.close()))
  await folder.remove()
})

const ISSUER = 'https://idp.invalid'
const client = { clientId: 'me', clientSecretRef: { name: 'client', key: 'secret' } }
const rejectsCode: Answering = ({ headers }) =>
  headers.authorization === `Basic ${Buffer.from('me:sesame').toString('base64')}`
    ? { status: 400, body: { error: 'invalid_grant' } }
    : { status: 401, body: { error: 'invalid_client' } }

interface Tested {
  readonly provider: object
  /** URL of the backend of the only route. */
  readonly target?: string
  readonly more?: object
  readonly args?: readonly string[]
}

/** Checks one provider that the only route uses. */
async function check({ provider, target, more = {}, args = [] }: Tested) {
  const backend = target ?? `${(await serve({})).url}/mcp`
  const connections = {
    keySecretRefs: [{ name: 'seal', key: 'good' }],
    login: [{ issuerUrl: ISSUER, ...client }],
    providers: [{ name: 'svc', ...provider }],
    ...more,
  }
  const spec = { listen: { address: '127.0.0.1:8080' }, auth: oauth(ISSUER), connections }
  const header = { type: 'bearerToken', bearerToken: { connectionName: 'svc' } }
  await folder.write('proxy.yaml', documents({ target: backend }, header, spec))
  const { checks, out } = await folder.check(undefined, ...args)
  if (checks.length === 0) throw new Error(out)
  expect(out).not.toContain('sesame')
  /** Results about one subject, without connections to hosts. */
  const of = (subject: string) =>
    checks
      .filter((one) => one.subject === subject)
      .map(({ check: name, status, detail, remedy = '' }) => ({ name, status, detail, remedy }))
  return { checks, of }
}
const line = (name: string, status: string, detail: string | RegExp, remedy?: string) => ({
  name,
  status,
  detail: (typeof detail === 'string' ? expect.stringContaining(detail) : expect.stringMatching(detail)) as string,
  remedy: (remedy === undefined ? expect.any(String) : expect.stringContaining(remedy)) as string,
})

describe('extauth check of an OAuth 2.0 connection', () => {
  const service = (changed: Readonly<Record<string, Answering>> = {}) =>
    serve({ '/authorize': () => ({ body: '<html></html>' }), '/token': rejectsCode, ...changed })
  const oauth2 = (url: string) => ({
    type: 'oauth2',
    oauth2Config: { authorizationEndpoint: `${url}/authorize`, tokenEndpoint: `${url}/token`, ...client },
  })

  it('tests secrets, keys, login page, client and refresh', async () => {
    const { checks, of } = await check({ provider: oauth2((await service()).url) })
    expect(of('svc')).toEqual([
      line('upstream', 'ok', /^users are redirected to http:.*\/authorize$/),
      line('upstream.client', 'ok', 'accepts the client me and rejects an invalid code'),
      line('upstream.refresh', 'ok', 'treated as an expired grant'),
    ])
    expect(of('keys and store')).toEqual([line('connections', 'ok', 'usable')])
    expect(checks.filter(({ check: name }) => name === 'secret').map(({ subject }) => subject)).toContain('seal/good')
    expect(checks.find(({ check: name }) => name === 'mcp')?.detail).toBe(
      'needs a caller with a connected account ("svc")',
    )
  })

  it('names the redirect URI that the service does not know', async () => {
    const { url } = await service({ '/token': () => ({ status: 400, body: { error: 'redirect_uri_mismatch' } }) })
    const found = (await check({ provider: oauth2(url) })).of('svc')
    expect(found).toContainEqual(
      line(
        'upstream.client',
        'failed',
        'redirect_uri_mismatch',
        'Register the redirect URI http://127.0.0.1:8080/connect/callback',
      ),
    )
  })

  it('says that the proxy does not start with a key that is too short', async () => {
    const more = { keySecretRefs: [{ name: 'seal', key: 'short' }] }
    const { of } = await check({ provider: oauth2((await service()).url), more })
    expect(of('keys and store')).toEqual([line('connections', 'failed', '32 bytes')])
  })

  it('tests only connections of the named route', async () => {
    const provider = oauth2((await service()).url)
    expect((await check({ provider, args: ['--route', 'r'] })).of('svc')).toHaveLength(3)
    const second = { name: 'other', ...oauth2('http://127.0.0.1:1') }
    const more = { providers: [{ name: 'svc', ...provider }, second] }
    expect((await check({ provider, more, args: ['--route', 'r'] })).of('other')).toEqual([])
    expect((await check({ provider, more })).of('other')).toHaveLength(1)
  })
})

it('tests the login of callers: discovery, login page and client, not a refresh', async () => {
  const idp: Site = await serve({
    '/.well-known/openid-configuration': () => ({
      body: {
        issuer: idp.url,
        authorization_endpoint: `${idp.url}/authorize`,
        token_endpoint: `${idp.url}/token`,
        jwks_uri: `${idp.url}/jwks`,
        response_types_supported: ['code'],
      },
    }),
    '/authorize': () => ({ status: 400 }),
    '/token': rejectsCode,
    '/jwks': () => ({ body: { keys: [] } }),
  })
  const connections = {
    login: [{ issuerUrl: idp.url, ...client }],
    providers: [{ name: 'svc', type: 'secret', secret: { label: 'key' } }],
  }
  const header = { type: 'bearerToken', bearerToken: { connectionName: 'svc' } }
  const { url } = await serve({})
  const spec = { listen: { address: '127.0.0.1:8080' }, auth: oauth(idp.url), connections }
  await folder.write('proxy.yaml', documents({ target: `${url}/mcp` }, header, spec))
  const { checks } = await folder.check(undefined)
  const subject = `login-${new URL(idp.url).host}`
  const found = checks.filter((one) => one.subject === subject).map((one) => [one.check, one.status, one.remedy])
  expect(found).toEqual([
    ['upstream', 'warning', expect.stringContaining('http://127.0.0.1:8080/connect/callback')],
    ['upstream.keys', 'failed', expect.any(String)],
    ['upstream.client', 'ok', undefined],
  ])
})

describe('extauth check of a key', () => {
  const test = async (answer: Answering, expects?: object) => {
    const { url } = await serve({ '/me': answer })
    const secret = {
      label: 'API key',
      pattern: 'lin_[a-z]+',
      test: { url: `${url}/me`, prefix: 'Bearer ', ...expects },
    }
    return (await check({ provider: { type: 'secret', secret } })).of('svc')
  }

  it('sends the test request with an invalid key', async () => {
    let sent: string | undefined
    const found = await test(({ headers }) => ((sent = headers.authorization), { status: 401 }))
    expect(found).toEqual([line('upstream.key', 'ok', 'rejects an invalid key with 401')])
    expect(sent).toMatch(/^Bearer extauth-check-0+$/)
  })

  it.each([
    [200, 'counts as valid', 'requires the key'],
    [404, 'returns 404', 'Correct the URL'],
    [503, 'returns 503', 'Check the service'],
  ])('reports status %i', async (status, detail, remedy) => {
    expect(await test(() => ({ status }))).toEqual([line('upstream.key', 'failed', detail, remedy)])
  })

  it('reports a connection that is cut', async () => {
    expect(await test(() => ({ cut: true }))).toEqual([
      line('upstream.key', 'failed', 'no response', 'Check the service'),
    ])
  })

  it('skips a provider without a test, and one that cannot be reached', async () => {
    const provider = { type: 'secret', secret: { label: 'API key' } }
    expect((await check({ provider })).of('svc')).toEqual([line('upstream.key', 'skipped', 'no secret.test')])
    const lost = { type: 'secret', secret: { label: 'API key', test: { url: 'http://127.0.0.1:1/me' } } }
    expect((await check({ provider: lost })).of('svc')).toEqual([
      line('upstream.key', 'skipped', 'not tried: no connection'),
    ])
  })
})

describe('extauth check of a remote MCP server', () => {
  /** An MCP server and its authorization server in one; `registered` counts clients. */
  const server = async (metadata: object = {}, resource: object = {}) => {
    const counted = { registered: 0 }
    const made: Site = await serve({
      '/mcp': () => ({
        status: 401,
        headers: {
          'www-authenticate': `Bearer resource_metadata="${made.url}/.well-known/oauth-protected-resource/mcp", scope="notes"`,
        },
      }),
      '/.well-known/oauth-protected-resource/mcp': () => ({
        body: { resource: `${made.url}/mcp`, authorization_servers: [made.url], ...resource },
      }),
      '/.well-known/oauth-authorization-server': () => ({
        body: {
          issuer: made.url,
          authorization_endpoint: `${made.url}/authorize`,
          token_endpoint: `${made.url}/token`,
          registration_endpoint: `${made.url}/register`,
          response_types_supported: ['code'],
          code_challenge_methods_supported: ['S256'],
          ...metadata,
        },
      }),
      '/register': () => ({ status: (counted.registered += 1) && 201, body: { client_id: 'new' } }),
      '/authorize': () => ({ body: '<html></html>' }),
      '/token': rejectsCode,
    })
    return { target: `${made.url}/mcp`, url: made.url, counted }
  }
  const mcp = (more: object = {}) => ({ type: 'mcp', mcp: more })

  it('names each step of the discovery, and registers no client', async () => {
    const { target, url, counted } = await server()
    const { of } = await check({ provider: mcp(), target })
    expect(of('svc')).toEqual([
      line('upstream.resource', 'ok', `URL of its challenge: authorization server ${url}, scopes announced: notes`),
      line('upstream.server', 'ok', 'PKCE with S256'),
      line('upstream.client', 'skipped', 'the first connection registers the client'),
    ])
    expect(counted.registered).toBe(0)
  })

  it('prefers the metadata document of the proxy', async () => {
    const { target } = await server({ client_id_metadata_document_supported: true })
    const more = { baseUrl: 'https://mcp.example.com' }
    expect((await check({ provider: mcp(), target, more })).of('svc')).toContainEqual(
      line('upstream.client', 'ok', 'https://mcp.example.com/.well-known/oauth-client/svc.json'),
    )
  })

  it('tests a configured client at the login page and the token endpoint', async () => {
    const { target } = await server({ registration_endpoint: undefined })
    const found = (await check({ provider: mcp(client), target })).of('svc').slice(2)
    expect(found).toEqual([
      line('upstream', 'ok', 'users are redirected to'),
      line('upstream.client', 'ok', 'accepts the client me and rejects an invalid code'),
    ])
  })

  it.each<[string, object, object, ReturnType<typeof line>[]]>([
    [
      'metadata for a different resource',
      {},
      { resource: 'https://other.example.com/mcp' },
      [line('upstream.resource', 'failed', 'different resource', 'RFC 9728')],
    ],
    [
      'no authorization server',
      {},
      { authorization_servers: [] },
      [line('upstream.resource', 'failed', 'names no authorization server')],
    ],
    [
      'an issuer that is not the requested one',
      { issuer: 'https://other.example.com' },
      {},
      [line('upstream.resource', 'ok', ''), line('upstream.server', 'failed', 'unavailable', 'issuer')],
    ],
    [
      'no PKCE',
      { code_challenge_methods_supported: ['plain'] },
      {},
      [line('upstream.resource', 'ok', ''), line('upstream.server', 'failed', 'PKCE with S256', 'S256')],
    ],
    [
      'no way to become a client',
      { registration_endpoint: undefined },
      {},
      [
        line('upstream.resource', 'ok', ''),
        line('upstream.server', 'ok', ''),
        line('upstream.client', 'failed', 'neither client metadata documents nor registration', 'clientId'),
      ],
    ],
  ])('reports %s', async (_what, metadata, resource, expected) => {
    const { target } = await server(metadata, resource)
    expect((await check({ provider: mcp(), target })).of('svc')).toEqual(expected)
  })
})
