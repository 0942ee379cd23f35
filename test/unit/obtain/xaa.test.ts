import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterEach, describe, expect, test } from 'vitest'
import { ANONYMOUS, asFailure } from '../../../src/core/index.ts'
import { createManualClock, START_MS } from '../../support/ports.ts'
import { tokenOf } from '../../support/shown-tokens.ts'
import { createSockets } from '../../support/sockets.ts'
import { json } from '../../support/obtain/harness.ts'
import { idCaller, openXaa, parameter, SECRETS } from '../../support/obtain/xaa-rig.ts'
import { asserted, granted, ID_JAG_TYPE, jag, jwt, RESOURCE, TARGET } from '../../support/obtain/xaa-tokens.ts'

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

  test.each([
    [undefined, TARGET],
    ['issuer', TARGET],
    ['tokenEndpoint', 'the token endpoint'],
    ['urn:of:us', 'urn:of:us'],
  ])('what our client signs there for assertionAudience %s is for %s', async (assertionAudience, audience) => {
    const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    const { header, target } = await openXaa(sockets, {
      secrets: { ...SECRETS, 'target/key': key.export({ type: 'pkcs8', format: 'pem' }).toString() },
      spec: {
        targetClientId: undefined,
        targetClientSecretRef: undefined,
        targetClientAuth: {
          method: 'privateKeyJwt',
          clientId: 'us-there',
          key: { secretRef: { name: 'target', key: 'key' } },
          assertionAudience,
        },
      },
    })
    await header(idCaller())
    const [sent] = target.received
    const { aud } = decodeJwt((sent && parameter(sent, 'client_assertion')) ?? '')
    expect(aud).toBe(audience === 'the token endpoint' ? target.url : audience)
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

  test('an assertion ends when it says, however long it is said to live', async () => {
    const { stage, obtain, idp, clock } = await openXaa(sockets)
    idp.answer = json(asserted(jag({ exp: START_MS / 1_000 + 60 }), { expires_in: 300 }))
    const caller = idCaller()
    expect(await stage.reject(await obtain(caller))).toBe(true)
    clock.advance(55_000)
    await obtain(caller)
    expect(idp.received).toHaveLength(2)
  })

  test.each([1, 2, 5, 10])(
    'an assertion of %i s serves each request that waits for it, however slow the clock',
    async (life) => {
      // Time goes on between any two looks at the clock.
      const manual = createManualClock()
      const clock = { ...manual, now: () => (manual.advance(1), manual.now()) }
      const { header, idp } = await openXaa(sockets, { clock })
      idp.answer = (request, response) =>
        json(asserted(jag({ exp: Math.floor(manual.now() / 1_000) + 1 + life }), { expires_in: 300 }))(
          request,
          response,
        )
      for (const index of range(20))
        expect(await header(idCaller({ subject: `caller-${index}` }))).toMatch(/^authorization: Bearer token-of-alice/)
    },
  )

  test('an assertion of ten seconds or less is kept for half of its life', async () => {
    const { stage, obtain, idp, clock } = await openXaa(sockets)
    idp.answer = json(asserted(jag({ exp: START_MS / 1_000 + 10 })))
    const caller = idCaller()
    expect(await stage.reject(await obtain(caller))).toBe(true)
    clock.advance(3_000)
    const second = await obtain(caller)
    expect(idp.received).toHaveLength(1)
    clock.advance(2_000)
    idp.answer = json(asserted(jag({ exp: START_MS / 1_000 + 60 })))
    expect(await stage.reject(second)).toBe(true)
    await obtain(caller)
    expect(idp.received).toHaveLength(2)
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

  test('that is rejected again is 403, without another request for ten seconds', async () => {
    const { header, idp, target, rig } = await openXaa(sockets)
    target.answer = refuse
    const caller = idCaller()
    for (const _ of range(5)) expect(await header(caller).catch(codeOf)).toBe('exchange_denied')
    expect([idp.received.length, target.received.length]).toEqual([2, 2])
    expect(rig.log.lines.filter((line) => line.includes('token for an identity assertion rejected'))).toHaveLength(1)
    expect(rig.output()).not.toMatch(/s3cret|eyJ/)
  })
})

test.each([
  ['identity provider', 'idp', 'identity assertion failed'],
  ['target', 'target', 'token for an identity assertion failed'],
] as const)('a failure names the endpoint of the %s', async (name, party, line) => {
  for (const answer of [json({ error: 'invalid_client' }, 401), json({}, 503), json({ access_token: 'x' })]) {
    const { header, rig, ...parties } = await openXaa(sockets, { outbound: { retry: false } })
    parties[party].answer = answer
    const failure = await header(idCaller()).catch((error: unknown) => asFailure(error))
    expect(failure).toMatchObject({ detail: expect.stringContaining(`token endpoint of the ${name}`) as string })
    expect(rig.log.lines.filter((one) => one.includes(line))).toHaveLength(1)
  }
})

describe('asked once are', () => {
  test('an identity provider that refused an ID token, for ten seconds', async () => {
    const { header, idp, clock } = await openXaa(sockets)
    idp.answer = json({ error: 'invalid_grant' }, 400)
    for (const _ of range(5)) expect(await header(idCaller()).catch(codeOf)).toBe('invalid_token')
    expect(idp.received).toHaveLength(1)
    clock.advance(10_000)
    expect(await header(idCaller()).catch(codeOf)).toBe('invalid_token')
    expect(idp.received).toHaveLength(2)
  })

  test('both, where the target wants something else than another assertion', async () => {
    const { header, idp, target } = await openXaa(sockets)
    target.answer = json({ error: 'invalid_scope' }, 400)
    expect(await header(idCaller()).catch(codeOf)).toBe('config_error')
    expect([idp.received.length, target.received.length]).toEqual([1, 1])
  })
})

describe('whose own token is no ID token for us', () => {
  const wrong: readonly (readonly [string, Parameters<typeof idCaller>[0]])[] = [
    ['is for another client', { claims: { aud: 'others' } }],
    ['has no audience', { claims: { aud: null } }],
    ['is for several others', { claims: { aud: ['a', 'b'] } }],
    ['is for one whose name only begins so', { claims: { aud: 'us2' } }],
    ['is opaque', { format: 'opaque' }],
    ['has no subject', { subject: '' }],
    ['is an access token of Keycloak', { claims: { typ: 'Bearer' } }],
    ['is an access token', { token: jwt({ aud: 'us', sub: 'alice' }, { typ: 'at+jwt' }) }],
    ['is an access token with scope', { claims: { scope: 'openid' } }],
    ['is an access token with scp', { claims: { scp: 'User.Read' } }],
    ['is a logout token', { token: jwt({ aud: 'us', sub: 'alice' }, { typ: 'application/logout+jwt' }) }],
  ]
  test.each(wrong)('it %s: 403, and nothing is sent', async (_what, options) => {
    const { header, idp, target } = await openXaa(sockets)
    await expect(header(idCaller(options))).rejects.toMatchObject({ code: 'no_id_token' })
    expect([idp.received, target.received]).toEqual([[], []])
  })

  test('an anonymous caller has none', async () => {
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

test('an identity provider that is down delays no caller with a cached assertion', async () => {
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
