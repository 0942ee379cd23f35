import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ANONYMOUS, asFailure } from '../../../src/core/index.ts'
import { createCaller, createManualClock } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig, issued, json, startEndpoint, TENANT } from '../../support/obtain/harness.ts'

const sockets = createSockets()
let endpoint: Awaited<ReturnType<typeof startEndpoint>>

/** A successful answer of Entra ID, about whose token was shown. */
const granted = (assertion: string, more: object = {}) => ({
  token_type: 'Bearer',
  scope: 'api://backend/read',
  expires_in: 3600,
  ext_expires_in: 7200,
  access_token: `for-${assertion}`,
  ...more,
})
const assertionOf = (form: readonly (readonly [string, string])[]) => new Map(form).get('assertion') ?? ''

beforeEach(async () => {
  endpoint = await startEndpoint(sockets, (request, response) =>
    json(granted(assertionOf(request.form)))(request, response),
  )
})
afterEach(() => sockets.closeAll())

const SECRETS = { 'idp/secret': 's3cret', 'idp/other': 'other' }
const range = (length: number) => Array.from({ length }, (_, index) => index)

function open(more: Readonly<Record<string, unknown>> = {}) {
  const clock = createManualClock()
  const rig = createRig(sockets, { clock, secrets: SECRETS })
  const spec = { tokenUrl: endpoint.url, audience: 'api://backend', ...more }
  return { clock, rig, ...rig.obo(spec) }
}
const codeOf = (promise: Promise<unknown>) => promise.catch((error: unknown) => asFailure(error).code)

describe('what is sent', () => {
  test.each<[string, Record<string, unknown>, string]>([
    ['everything that was granted at the audience', {}, 'api://backend/.default'],
    [
      'an audience that ends with a slash keeps it',
      { audience: 'https://api.example/' },
      'https://api.example//.default',
    ],
    ['scopes', { audience: undefined, scopes: ['api://a/read', 'api://a/write'] }, 'api://a/read api://a/write'],
    ['scopes win over the audience', { scopes: ['api://a/read'] }, 'api://a/read'],
    ['no scopes', { scopes: [] }, 'api://backend/.default'],
  ])('%s', async (_what, spec, scope) => {
    expect(await open(spec).header(createCaller({ token: 'callers' }))).toBe('authorization: Bearer for-callers')
    const [request] = endpoint.received
    expect(request).toMatchObject({
      method: 'POST',
      path: `/token/${TENANT}/oauth2/v2.0/token`,
      form: [
        ['grant_type', 'urn:ietf:params:oauth:grant-type:jwt-bearer'],
        ['scope', scope],
        ['requested_token_use', 'on_behalf_of'],
        ['assertion', 'callers'],
        ['client_id', 'us'],
        ['client_secret', 's3cret'],
      ],
    })
    expect(request?.headers.authorization).toBeUndefined()
  })

  test('nothing without a caller', async () => {
    expect(await codeOf(open().header(ANONYMOUS))).toBe('config_error')
    expect(endpoint.received).toEqual([])
  })

  test.each<[string, Record<string, unknown>, 'jwt' | 'opaque']>([
    ['the token belongs to an application', { idtyp: 'app' }, 'jwt'],
    ['the token belongs to an application, with scopes', { idtyp: 'app', scp: 'read' }, 'jwt'],
    ['has no scp', { scp: undefined, roles: ['Backend.Read'] }, 'jwt'],
    ['has an empty scp', { scp: '' }, 'jwt'],
    ['has an scp that is no text', { scp: ['read'] }, 'jwt'],
    ['has an scp that is null', { scp: null }, 'jwt'],
    ['is opaque, and nothing is said of scp', { scp: undefined, scope: 'read' }, 'opaque'],
  ])('nothing where the token %s', async (_what, claims, format) => {
    const { header } = open()
    const caller = createCaller({ claims: claims as Record<string, string>, format })
    for (const _ of range(3)) expect(await codeOf(header(caller))).toBe('not_a_user_token')
    expect(endpoint.received).toEqual([])
  })
})

describe('how long a token is used', () => {
  test.each<[string, object, Record<string, unknown>, number]>([
    ['until min(30 s, 10 %) before its end', {}, {}, 3_570],
    ['ext_expires_in is not read', { ext_expires_in: 1 }, {}, 3_570],
    ['less cacheSkew', {}, { cacheSkew: '10m' }, 2_970],
    ['a tenth of its life at least', {}, { cacheSkew: '2h' }, 330],
    ['not longer than the caller’s own', { expires_in: 1e9 }, {}, 86_370],
  ])('%s', async (_what, members, spec, seconds) => {
    endpoint.answer = (request, response) => json(granted('x', members))(request, response)
    const { header, rig } = open(spec)
    await header(createCaller())
    expect(rig.cache.list().groups[0]?.soonestEndSeconds).toBe(seconds)
  })

  test('another client secret is another client', async () => {
    const { header, rig } = open()
    await header(createCaller())
    rig.secrets.get('idp/secret').set('new')
    await header(createCaller())
    expect(endpoint.received.map(({ form }) => new Map(form).get('client_secret'))).toEqual(['s3cret', 'new'])
  })
})

describe('whose token it is', () => {
  test('one of another config is not used: tenant, client and scopes tell them apart', async () => {
    const rig = createRig(sockets, { secrets: SECRETS })
    const caller = createCaller()
    const specs = [
      {},
      { tenantId: 'fabrikam.example' },
      { clientId: 'them', clientSecretRef: { name: 'idp', key: 'secret' } },
      { scopes: ['api://backend/read'] },
    ]
    for (const spec of specs) {
      const { header } = rig.obo({ tokenUrl: endpoint.url, audience: 'api://backend', ...spec })
      await header(caller)
      await header(caller)
    }
    expect(endpoint.received).toHaveLength(specs.length)
  })

  test('a backend that refuses one causes one more request', async () => {
    const { stage, obtain } = open()
    const caller = createCaller()
    expect(await stage.reject(await obtain(caller))).toBe(true)
    await obtain(caller)
    expect(endpoint.received).toHaveLength(2)
  })
})

test('what was shown and got stands nowhere', async () => {
  const { header, rig } = open()
  await header(createCaller({ token: 'SECRET-OF-CALLER' }))
  endpoint.answer = json({ error: 'invalid_grant', error_description: 'SECRET' }, 400)
  await codeOf(header(createCaller({ token: 'SECRET-OF-CALLER-2' })))
  expect(rig.output()).not.toMatch(/SECRET|s3cret/)
})

test('an answer of RFC 8693 does as well', async () => {
  endpoint.answer = json(issued('exchanged'))
  expect(await open().header(createCaller())).toBe('authorization: Bearer exchanged')
})
