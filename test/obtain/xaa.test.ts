import { afterEach, describe, expect, test } from 'vitest'
import { ANONYMOUS, asFailure, Failure, Secret } from '../../src/core/index.ts'
import { createCaller, START_MS } from '../support/ports.ts'
import { tokenOf } from '../support/shown-tokens.ts'
import { createSockets } from '../support/sockets.ts'
import { json } from './harness.ts'
import { idCaller, openXaa, parameter } from './xaa-rig.ts'
import { asserted, granted, ID_JAG_TYPE, jag, jwt, RESOURCE, TARGET } from './xaa-tokens.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const range = (length: number) => Array.from({ length }, (_, index) => index)
const codeOf = (error: unknown): string => asFailure(error).code

describe('what is sent', () => {
  test('an ID token for an assertion, and the assertion for a token', async () => {
    const { header, idp, target } = await openXaa(sockets)
    const caller = idCaller()
    expect(await header(caller)).toBe('authorization: Bearer token-of-alice-at-https://idp.example')
    const assertion = jag({ sub: 'alice', act: 'https://idp.example' })
    expect(idp.received.map(({ form, headers }) => [headers.authorization, form])).toEqual([
      [
        `Basic ${Buffer.from('us:idp-s3cret').toString('base64')}`,
        [
          ['grant_type', 'urn:ietf:params:oauth:grant-type:token-exchange'],
          ['requested_token_type', ID_JAG_TYPE],
          ['audience', TARGET],
          ['resource', RESOURCE],
          ['subject_token_type', 'urn:ietf:params:oauth:token-type:id_token'],
          ['subject_token', tokenOf(caller).reveal()],
        ],
      ],
    ])
    expect(target.received.map(({ form, headers }) => [headers.authorization, form])).toEqual([
      [
        `Basic ${Buffer.from('us-there:target-s3cret').toString('base64')}`,
        [
          ['grant_type', 'urn:ietf:params:oauth:grant-type:jwt-bearer'],
          ['assertion', assertion],
        ],
      ],
    ])
  })

  test.each<[string, object, readonly string[], readonly string[]]>([
    ['no scopes', { scopes: [], accessTokenScopes: [] }, [], []],
    ['scopes of the assertion', { scopes: ['a', 'b'] }, ['scope=a b'], []],
    ['scopes of the token', { accessTokenScopes: ['c', 'd'] }, [], ['scope=c d']],
    ['the ID token by its URN', { subjectTokenType: 'urn:ietf:params:oauth:token-type:id_token' }, [], []],
    [
      'the secret of a record in the body',
      {
        targetClientId: undefined,
        targetClientSecretRef: undefined,
        targetClientAuth: {
          method: 'clientSecretPost',
          clientId: 'us-there',
          secretRef: { name: 'target', key: 'secret' },
        },
      },
      [],
      ['client_id=us-there', 'client_secret=target-s3cret'],
    ],
    [
      'a public client at the identity provider',
      { idpClientId: undefined, idpClientSecretRef: undefined, idpClientAuth: { method: 'none', clientId: 'us' } },
      ['client_id=us'],
      [],
    ],
  ])('%s', async (_what, spec, first, second) => {
    const { header, idp, target } = await openXaa(sockets, { spec: { ...spec } })
    await header(idCaller())
    const others = ['grant_type', 'requested_token_type', 'audience', 'resource', 'subject_token_type', 'subject_token']
    const sent = ({ received }: typeof idp) =>
      received.flatMap(({ form }) =>
        form.filter(([name]) => ![...others, 'assertion'].includes(name)).map((pair) => pair.join('=')),
      )
    expect([sent(idp), sent(target)]).toEqual([first, second])
  })
})

describe('both are kept', () => {
  test('each is asked for once by many requests of one caller', async () => {
    const { header, idp, target, rig } = await openXaa(sockets)
    const caller = idCaller()
    await Promise.all(range(100).map(() => header(caller)))
    expect([idp.received.length, target.received.length]).toEqual([1, 1])
    expect(rig.cache.list().groups).toMatchObject([{ type: 'xaa', count: 2 }])
    expect(rig.output()).not.toMatch(/s3cret|token-of-alice|eyJ/)
  })

  test('another token of the target takes the same assertion, until it has ten seconds left', async () => {
    const { header, stage, obtain, idp, target, clock } = await openXaa(sockets)
    const caller = idCaller()
    expect(await stage.reject(await obtain(caller))).toBe(true)
    await header(caller)
    expect([idp.received.length, target.received.length]).toEqual([1, 2])
    clock.advance(290_000)
    expect(await stage.reject(await obtain(caller))).toBe(true)
    await header(caller)
    expect([idp.received.length, target.received.length]).toEqual([2, 3])
  })

  test('an assertion that ends sooner is used once', async () => {
    const { header, idp, rig, clock } = await openXaa(sockets)
    idp.answer = json(asserted(jag({ exp: START_MS / 1_000 + 5 })))
    expect(await header(idCaller())).toMatch(/^authorization: Bearer token-of-alice/)
    clock.advance(10)
    expect(rig.cache.list().entries).toBe(1)
  })

  test('a secret of either leg that changes retires both', async () => {
    const { header, rig, idp, target } = await openXaa(sockets)
    const caller = idCaller()
    await header(caller)
    rig.secrets.get('target/secret').set('new')
    await header(caller)
    expect([idp.received.length, target.received.length, rig.cache.list().entries]).toEqual([2, 2, 2])
  })

  test('what is purged of a caller is both', async () => {
    const { header, rig } = await openXaa(sockets)
    await header(idCaller())
    expect(rig.cache.purge({ subject: 'alice' }).purged).toBe(2)
  })
})

describe('a refused assertion', () => {
  const refuse = json({ error: 'invalid_grant' }, 400)

  test('is replaced once, and the token is asked for once more', async () => {
    const { header, idp, target } = await openXaa(sockets)
    target.answer = (request, response) =>
      (target.received.length === 1 ? refuse : json(granted('second')))(request, response)
    expect(await header(idCaller())).toBe('authorization: Bearer second')
    expect([idp.received.length, target.received.length]).toEqual([2, 2])
  })

  test('that is refused again is 403, and for ten seconds nobody asks again', async () => {
    const { header, idp, target, rig } = await openXaa(sockets)
    target.answer = refuse
    const caller = idCaller()
    for (const _ of range(5)) expect(await header(caller).catch(codeOf)).toBe('exchange_denied')
    expect([idp.received.length, target.received.length]).toEqual([2, 2])
    expect(rig.log.lines.filter((line) => line.includes('token for an identity assertion refused'))).toHaveLength(1)
    expect(rig.output()).not.toMatch(/s3cret|eyJ/)
  })
})

describe('whose own token is no ID token for us', () => {
  const wrong: readonly (readonly [string, Parameters<typeof idCaller>[0]])[] = [
    ['is for another client', { claims: { aud: 'others' } }],
    ['is for nobody', { claims: { aud: null } }],
    ['is for several others', { claims: { aud: ['a', 'b'] } }],
    ['is for one whose name only begins so', { claims: { aud: 'us2' } }],
    ['is opaque', { format: 'opaque' }],
    ['has no subject', { subject: '' }],
    ['is an access token of Keycloak', { claims: { typ: 'Bearer' } }],
    ['is an access token', { token: jwt({ aud: 'us', sub: 'alice' }, { typ: 'at+jwt' }) }],
    ['is a logout token', { token: jwt({ aud: 'us', sub: 'alice' }, { typ: 'application/logout+jwt' }) }],
  ]
  test.each(wrong)('it %s: 403, and nothing is sent', async (_what, options) => {
    const { header, idp, target } = await openXaa(sockets)
    await expect(header(idCaller(options))).rejects.toMatchObject({ code: 'no_id_token' })
    expect([idp.received, target.received]).toEqual([[], []])
  })

  test('nobody in particular has none', async () => {
    const { header } = await openXaa(sockets)
    await expect(header(ANONYMOUS)).rejects.toMatchObject({ code: 'config_error' })
  })

  test('one of several audiences is enough, and so is the type JWT', async () => {
    const { header } = await openXaa(sockets)
    const claims = { aud: ['us', 'others'], sub: 'alice', iss: 'i', typ: 'ID' }
    expect(await header(idCaller({ claims, token: jwt(claims, { typ: 'JWT' }) }))).toBe(
      'authorization: Bearer token-of-alice-at-i',
    )
  })
})

describe('a session', () => {
  const upstream = { provider: 'corp', kind: 'id_token', issuer: 'https://login.example', isExplicit: true } as const
  const open = async (tokens: readonly string[], reject = true) => {
    let count = 0
    const kinds: string[] = []
    const upstreamTokens = {
      current: (_caller: unknown, _provider: string, kind: string) => {
        kinds.push(kind)
        const token = new Secret(tokens[Math.min(count, tokens.length - 1)] ?? '')
        return Promise.resolve({ token, freshUntilMs: Infinity, expiresAtMs: undefined })
      },
      reject: () => ((count += 1), Promise.resolve(reject)),
      demand: () => Promise.reject(new Error('nothing is demanded')),
    }
    return { kinds, ...(await openXaa(sockets, { upstream, upstreamTokens })) }
  }
  const session = () => createCaller({ issuer: 'https://login.example', claims: { tsid: 'session-1' }, token: 'ours' })

  test('shows the ID token that the upstream gave', async () => {
    const { header, idp, kinds } = await open([jwt({ sub: 'alice', iss: 'corp' })])
    expect(await header(session())).toBe('authorization: Bearer token-of-alice-at-corp')
    expect(idp.received.map((request) => parameter(request, 'subject_token'))).toEqual([
      jwt({ sub: 'alice', iss: 'corp' }),
    ])
    expect(kinds).toEqual(['id_token'])
    expect(JSON.stringify(idp.received)).not.toContain('ours')
  })

  test('whose ID token is refused shows the next one', async () => {
    const [first, second] = [jwt({ sub: 'a', n: 1 }), jwt({ sub: 'a', iss: 'corp', n: 2 })]
    const { header, idp } = await open([first, second])
    idp.answer = (request, response) =>
      (parameter(request, 'subject_token') === first
        ? json({ error: 'invalid_grant' }, 400)
        : json(asserted(jag({ sub: 'a', act: 'corp' }))))(request, response)
    expect(await header(session())).toBe('authorization: Bearer token-of-a-at-corp')
  })

  test.each([
    ['whose ID tokens are all refused is over', { error: 'invalid_grant' }, 'no_session', 2],
    [
      'that is asked for a stronger login is not refreshed',
      { error: 'insufficient_user_authentication' },
      'insufficient_user_authentication',
      1,
    ],
  ])('%s', async (_what, body, code, requests) => {
    const { header, idp } = await open([jwt({ sub: 'a', n: 1 }), jwt({ sub: 'a', n: 2 })])
    idp.answer = json(body, 400)
    await expect(header(session())).rejects.toMatchObject({ code })
    expect(idp.received).toHaveLength(requests)
  })

  test('of another issuer has no upstream, whatever its token is', async () => {
    const { header, idp } = await open([jwt({ sub: 'a' })])
    await expect(header(idCaller())).rejects.toBeInstanceOf(Failure)
    expect(idp.received).toEqual([])
  })
})

test('an identity provider that is down holds up nobody whose assertion is there', async () => {
  const { header, stage, obtain, idp, target } = await openXaa(sockets, { outbound: { retry: false } })
  const caller = idCaller()
  const first = await obtain(caller)
  idp.answer = json({ error: 'down' }, 500)
  for (const batch of range(3)) {
    const strangers = range(30).map((index) => idCaller({ subject: `stranger-${batch}-${index}` }))
    const refused = await Promise.all(strangers.map((one) => header(one).catch(codeOf)))
    expect(new Set(refused)).toEqual(new Set(['identity_provider_unavailable']))
  }
  // Its circuit opened, and that of the target did not.
  expect([idp.received.length < 1 + 90, target.received.length]).toEqual([true, 1])
  expect(await stage.reject(first)).toBe(true)
  expect(await header(caller)).toBe('authorization: Bearer token-of-alice-at-https://idp.example')
  expect(target.received).toHaveLength(2)
})

test('while the target is down, an assertion is asked for once', async () => {
  const { header, idp, target, clock } = await openXaa(sockets, { outbound: { retry: false } })
  const caller = idCaller()
  target.answer = json({ error: 'down' }, 503)
  for (const _ of range(20)) {
    expect(await header(caller).catch(codeOf)).toBe('identity_provider_unavailable')
    clock.advance(2_000)
  }
  expect(idp.received).toHaveLength(1)
})
