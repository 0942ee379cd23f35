import { describe, expect, test } from 'vitest'
import {
  ANONYMOUS,
  Failure,
  Secret,
  type Caller,
  type ConnectedAccounts,
  type HeaderCredential,
  type UpstreamToken,
  after,
  monotonicNow,
} from '../../../src/core/index.ts'
import { createConnectedSource } from '../../../src/obtain/connected.ts'
import { createSubjectTokenSource } from '../../../src/obtain/subject-token-source.ts'
import { createCaller } from '../../support/ports.ts'

const tokenOf = (text: string): UpstreamToken => ({
  token: new Secret(text),
  freshUntilMs: Infinity,
  expiresAtMs: undefined,
})

/** Connections whose token is `current`, replaced by the next of `others` when it is rejected. */
function connectionsOf(current: string | undefined, ...others: readonly string[]) {
  const state = { token: current === undefined ? undefined : tokenOf(current), others: [...others], id: 1 }
  const missing = () => new Failure('not_connected', { connection: { provider: 'github', problem: 'missing' } })
  const accounts: ConnectedAccounts = {
    current() {
      if (state.token === undefined) throw missing()
      return state.token
    },
    async reject() {
      const next = state.others.shift()
      state.token = next === undefined ? undefined : tokenOf(next)
      return next !== undefined
    },
    async widen(_caller, provider, scopes) {
      throw new Failure('not_connected', { connection: { provider, problem: 'insufficient_scope', scopes } })
    },
    keyParts: () => [String(state.id)],
  }
  return { accounts, state }
}

const caller: Caller = createCaller({ issuer: 'https://idp.example.com', subject: 'alice' })
const noToken = () => new Secret('unused')
const header = { name: 'X-Api-Key', prefix: 'Key ', provider: 'github' }
const textOf = (credential: unknown) => {
  const { name, value } = credential as HeaderCredential
  return `${name}: ${value.reveal()}`
}

describe('the credential of a connected account in a header', () => {
  test('is given at once where the connection is cached', () => {
    const source = createConnectedSource(header, connectionsOf('one').accounts)
    expect(textOf(source.obtain(caller, noToken))).toBe('x-api-key: Key one')
    expect(source.obtain(caller, noToken)).toBe(source.obtain(caller, noToken))
    expect(textOf(source.obtain(ANONYMOUS, noToken))).toBe('x-api-key: Key one')
  })

  test('a disconnected account gives nothing to a caller that had a credential', async () => {
    const { accounts, state } = connectionsOf('one')
    const source = createConnectedSource(header, accounts)
    await source.obtain(caller, noToken)
    state.token = undefined
    expect(() => source.obtain(caller, noToken)).toThrow(expect.objectContaining({ code: 'not_connected' }))
  })

  test('a rejected token is replaced, and the account is asked for again when the last one is rejected', async () => {
    const source = createConnectedSource(header, connectionsOf('one', 'two').accounts)
    const first = (await source.obtain(caller, noToken)) as HeaderCredential
    expect(await source.reject(caller, first)).toBe(true)
    const second = (await source.obtain(caller, noToken)) as HeaderCredential
    expect(textOf(second)).toBe('x-api-key: Key two')
    expect(await source.rejectedAgain?.(caller, second)).toMatchObject({
      code: 'not_connected',
      connection: { provider: 'github', problem: 'ended' },
    })
  })

  test('missing scopes are requested', async () => {
    const source = createConnectedSource(header, connectionsOf('one').accounts)
    expect(await source.widen?.(caller, ['repo'])).toMatchObject({
      code: 'not_connected',
      connection: { problem: 'insufficient_scope', scopes: ['repo'] },
    })
  })

  test('without connections the type can’t run', () => {
    expect(() => createConnectedSource(header, undefined)).toThrow(
      expect.objectContaining({ code: 'type_not_runnable' }),
    )
  })
})

describe('the token of a connected account as a subject token', () => {
  const upstream = {
    provider: 'github',
    kind: 'access_token',
    issuer: undefined,
    isExplicit: true,
    isConnection: true,
  } as const
  const alice = createCaller({ issuer: 'https://idp.example.com', subject: 'alice' })
  const soon = () => after(monotonicNow(), 10_000)

  test('is sent instead of the caller’s, and changes the cache key when the account is connected again', async () => {
    const { accounts, state } = connectionsOf('one')
    const source = createSubjectTokenSource({ named: 'github', upstream }, { connections: accounts })
    expect(await source.show(alice, new Secret('own'), soon(), async ({ token }) => token.reveal())).toBe('one')
    expect(source.keyParts(alice)).toEqual(['connection', 'github'])
    expect(source.changing?.changingParts?.(alice)).toEqual(['1'])
    state.id = 2
    expect(source.changing?.changingParts?.(alice)).toEqual(['2'])
  })

  test('one that the service rejects twice ends the connection', async () => {
    const { accounts } = connectionsOf('one', 'two')
    const source = createSubjectTokenSource({ named: 'github', upstream }, { connections: accounts })
    const shown: string[] = []
    const use = async ({ token }: { readonly token: Secret }): Promise<never> => {
      shown.push(token.reveal())
      throw new Failure('invalid_token', { detail: 'invalid_grant' })
    }
    await expect(source.show(alice, new Secret('own'), soon(), use)).rejects.toMatchObject({
      code: 'not_connected',
      connection: { problem: 'ended' },
    })
    expect(shown).toEqual(['one', 'two'])
  })
})
