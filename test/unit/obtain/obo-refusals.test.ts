import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { asFailure, FAILURES, type Failure } from '../../../src/core/index.ts'
import { challengeFor, stepUpChallengeFor } from '../../../src/http/index.ts'
import { createCaller, createManualClock } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { bodyOf, CLAIMS, ENTRA_ANSWERS, type EntraCase, TRACES } from '../../support/obtain/entra-answers.ts'
import { createRig, type Answer, json, startEndpoint } from '../../support/obtain/harness.ts'

const sockets = createSockets()
let endpoint: Awaited<ReturnType<typeof startEndpoint>>

beforeEach(async () => {
  endpoint = await startEndpoint(sockets, json({}))
})
afterEach(() => sockets.closeAll())

const GOOD = json({ token_type: 'Bearer', expires_in: 3600, access_token: 'good' })
const REFUSED_MS = 600_000

function open(answer: Answer) {
  endpoint.answer = answer
  const clock = createManualClock()
  const rig = createRig(sockets, { clock, secrets: { 'idp/secret': 's3cret' }, outbound: { retry: false } })
  const { header } = rig.obo({ tokenUrl: endpoint.url, audience: 'api://backend' })
  const ask = (token = 'callers') =>
    header(createCaller({ token })).then(
      (seen): { seen: string; failure?: never } => ({ seen }),
      (error: unknown): { seen?: never; failure: Failure } => ({ failure: asFailure(error) }),
    )
  return { clock, rig, ask }
}
const authority = () => new URL(endpoint.url).href
/** The addresses of the table are those of this endpoint. */
const said = (text: string) => text.replaceAll(authority(), 'https://login.example')

const faultOf = ({ code }: EntraCase) => FAILURES[code].fault
const isOfCaller = (row: EntraCase) => faultOf(row) === 'caller_token' || faultOf(row) === 'caller_rights'

describe('what the caller gets, and the log says', () => {
  test.each(ENTRA_ANSWERS)('$status $error $codes with claims $more.claims is $code', async (row) => {
    const { code, status } = row
    const { ask, rig } = open(json(bodyOf(row), status))
    const { failure } = await ask()
    expect(failure?.code).toBe(code)
    expect(said(failure?.detail ?? '')).toContain(row.says)
    // Codes and identifiers, where the body was read; never the texts.
    if (code !== 'identity_provider_unavailable') expect(failure?.detail).toContain(TRACES)
    expect(rig.output()).not.toContain('Timestamp')
    const [line = ''] = rig.log.lines
    expect(line).toContain(`"level":"${isOfCaller(row) ? 'info' : 'warn'}"`)
    expect(said(line)).toContain(row.says)

    const own = failure && challengeFor(failure, { realm: 'r', resourceMetadata: 'https://p/meta', requiredScopes: [] })
    expect(own !== undefined).toBe(faultOf(row) === 'caller_token')
    const stepUp = failure && stepUpChallengeFor(failure)
    const place = `authorization_uri="${authority()}/contoso.example/oauth2/v2.0/authorize"`
    const encoded = Buffer.from(CLAIMS).toString('base64')
    const claimed =
      row.more?.['claims'] === undefined
        ? 'error="interaction_required"'
        : `error="insufficient_claims", claims="${encoded}"`
    expect(stepUp).toBe(code === 'interaction_required' ? `Bearer realm="", ${place}, ${claimed}` : undefined)
    if (stepUp !== undefined) expect(own).toContain('error="invalid_token"')
  })
})

describe('a refusal is kept', () => {
  test.each(ENTRA_ANSWERS.filter(isOfCaller))(
    'for ten minutes, but not for a new token: $error $codes is $code',
    async (row) => {
      const { ask, clock } = open(json(bodyOf(row), row.status))
      const first = await ask()
      endpoint.answer = GOOD
      clock.advance(REFUSED_MS - 1)
      const second = await ask()
      expect([second.failure?.code, second.failure?.detail, second.failure?.challenge]).toEqual([
        first.failure?.code,
        first.failure?.detail,
        first.failure?.challenge,
      ])
      expect(endpoint.received).toHaveLength(1)
      expect(await ask('another')).toEqual({ seen: 'authorization: Bearer good' })
      clock.advance(1)
      expect(await ask()).toEqual({ seen: 'authorization: Bearer good' })
    },
  )

  test.each(ENTRA_ANSWERS.filter((row) => faultOf(row) === 'configuration'))(
    'for ten seconds if an administrator can fix it: $error $codes',
    async (row) => {
      const { ask, clock } = open(json(bodyOf(row), row.status))
      await ask()
      endpoint.answer = GOOD
      clock.advance(9_999)
      expect((await ask()).failure?.code).toBe(row.code)
      clock.advance(1)
      expect(await ask()).toEqual({ seen: 'authorization: Bearer good' })
    },
  )
})

describe('what can’t be believed of an error', () => {
  const base = { error: 'invalid_grant' }
  const detailOf = async (body: object) => (await open(json(body, 400)).ask()).failure

  test.each<[string, object, string]>([
    ['nothing more', base, 'token endpoint answered 400 invalid_grant'],
    ['codes that are no list', { ...base, error_codes: 'SECRET' }, 'token endpoint answered 400 invalid_grant'],
    [
      'codes that are no numbers',
      { ...base, error_codes: ['SECRET', -1, 1.5, {}] },
      'token endpoint answered 400 invalid_grant',
    ],
    [
      'identifiers that are none',
      { ...base, trace_id: 'SECRET text', correlation_id: ['SECRET'] },
      'token endpoint answered 400 invalid_grant',
    ],
    [
      'an identifier that is too long',
      { ...base, trace_id: 'x'.repeat(65) },
      'token endpoint answered 400 invalid_grant',
    ],
    [
      'the code in the text alone',
      { ...base, error_description: 'AADSTS50173: SECRET' },
      'token endpoint answered 400 invalid_grant: the password was changed after the login (AADSTS50173)',
    ],
    [
      'a number elsewhere in the text',
      { ...base, error_description: 'see AADSTS50173: SECRET' },
      'token endpoint answered 400 invalid_grant',
    ],
  ])('%s', async (_what, body, detail) => {
    expect(await detailOf(body)).toMatchObject({ code: 'invalid_token', detail })
  })

  test('of very many codes the first sixteen', async () => {
    const codes = Array.from({ length: 1_000 }, (_, index) => index + 1)
    expect((await detailOf({ ...base, error_codes: codes }))?.detail).toMatch(/AADSTS16\)$/)
  })

  test.each<[string, unknown]>([
    ['no JSON', 'mfa"\r\nX-Evil: 1'],
    ['no object', '["mfa"]'],
    ['an object instead of its text', { access_token: {} }],
    ['a name twice', '{"a":1,"a":2}'],
    ['more than 4 KiB', JSON.stringify({ a: 'x'.repeat(4_096) })],
    ['empty', ''],
  ])('claims that are %s are none', async (_what, claims) => {
    const failure = await detailOf({ error: 'invalid_grant', error_codes: [50076], claims })
    expect(failure?.challenge).toEqual({
      error: 'invalid_token',
      stepUp: { authorizationUri: `${authority()}/contoso.example/oauth2/v2.0/authorize`, claims: undefined },
    })
    expect(await detailOf({ error: 'invalid_grant', claims })).toMatchObject({ code: 'invalid_token' })
  })
})

test('while an old token serves, a refusal is not asked for again and again', async () => {
  const { ask, clock, rig } = open(GOOD)
  await ask()
  endpoint.answer = json({ error: 'interaction_required', error_codes: [50076], claims: CLAIMS }, 400)
  clock.advance(0.86 * 3_600_000)
  for (let minute = 0; minute < 5; minute += 1) {
    expect(await ask()).toEqual({ seen: 'authorization: Bearer good' })
    await expect.poll(() => rig.cache.list().inFlight).toBe(0)
    clock.advance(60_000)
  }
  expect(endpoint.received).toHaveLength(2)
})
