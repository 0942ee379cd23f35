import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { asFailure, type Failure } from '../../../src/core/index.ts'
import { createCaller, createManualClock, START_MS } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig, issued, json, startEndpoint } from '../../support/obtain/harness.ts'

const sockets = createSockets()
let endpoint: Awaited<ReturnType<typeof startEndpoint>>

beforeEach(async () => {
  endpoint = await startEndpoint(sockets, json(issued('issued')))
})
afterEach(() => sockets.closeAll())

const START_S = START_MS / 1000
const callerWith = (claims: Readonly<Record<string, string | number>>, token = 'one') => createCaller({ token, claims })

function open() {
  const clock = createManualClock()
  const { header } = createRig(sockets, { clock }).exchange({ tokenUrl: endpoint.url, audience: 'a' })
  const failureOf = async (caller: ReturnType<typeof createCaller>): Promise<Failure> =>
    header(caller).then(
      () => expect.fail('nothing failed'),
      (error: unknown) => asFailure(error),
    )
  return { clock, header, failureOf }
}

describe('invalid_request', () => {
  // Keycloak's answer to the token of an ended session.
  beforeEach(() => {
    endpoint.answer = json({ error: 'invalid_request', error_description: 'Invalid token' }, 400)
  })

  test.each([
    [START_S - 121, 401],
    [START_S - 120, 403],
    [START_S, 403],
    [START_S + 60, 403],
    ['long ago', 403],
  ])('of a token issued at %s is %i', async (iat, status) => {
    const failure = await open().failureOf(callerWith({ iat }))
    expect(failure.status).toBe(status)
    expect(failure.challenge).toEqual(status === 401 ? { error: 'invalid_token' } : undefined)
  })

  test('of a token of unknown age is 403: a login would bring another such', async () => {
    expect(await open().failureOf(callerWith({}))).toMatchObject({ code: 'exchange_denied' })
  })

  test.each(['invalid_target', 'access_denied', 'unauthorized_client'])(
    '%s of an old token stays 403',
    async (error) => {
      endpoint.answer = json({ error }, 400)
      expect(await open().failureOf(callerWith({ iat: START_S - 3600 }))).toMatchObject({ code: 'exchange_denied' })
    },
  )
})

describe('invalid_request for a token without iat', () => {
  test('is 403 while the token is new here, and a login helps once it is older', async () => {
    endpoint.answer = json({ error: 'invalid_request' }, 400)
    const { clock, failureOf } = open()
    const refused = () => failureOf(callerWith({}))
    expect(await refused()).toMatchObject({ code: 'exchange_denied' })
    clock.advance(120_000)
    expect(await refused()).toMatchObject({ code: 'exchange_denied' })
    clock.advance(10_001)
    expect(await refused()).toMatchObject({ code: 'invalid_token', challenge: { error: 'invalid_token' } })
  })

  test('counts from the first use, refused or not', async () => {
    const { clock, header, failureOf } = open()
    endpoint.answer = json(issued('issued', { expires_in: 60 }))
    await header(callerWith({}))
    clock.advance(120_001)
    endpoint.answer = json({ error: 'invalid_request' }, 400)
    expect(await failureOf(callerWith({}))).toMatchObject({ code: 'invalid_token' })
  })
})

describe('a refused token', () => {
  test.each(['invalid_grant', 'invalid_token', 'invalid_request'])(
    'with %s is exchanged once in ten seconds for all requests, with the same challenge',
    async (error) => {
      endpoint.answer = json({ error }, 400)
      const { clock, failureOf } = open()
      const refused = () => failureOf(callerWith({ iat: START_S - 3600 }))
      for (let request = 0; request < 50; request += 1) {
        expect(await refused()).toMatchObject({ code: 'invalid_token', challenge: { error: 'invalid_token' } })
      }
      expect(endpoint.received).toHaveLength(1)
      clock.advance(9_999)
      await refused()
      expect(endpoint.received).toHaveLength(1)
      clock.advance(1)
      await refused()
      expect(endpoint.received).toHaveLength(2)
    },
  )

  test('does not block a caller with a new token', async () => {
    const { header, failureOf } = open()
    endpoint.answer = json({ error: 'invalid_grant' }, 400)
    await failureOf(callerWith({ iat: START_S - 3600 }))
    endpoint.answer = json(issued('issued'))
    expect(await header(callerWith({ iat: START_S }, 'two'))).toBe('authorization: Bearer issued')
  })
})
