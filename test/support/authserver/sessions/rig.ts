import { createUpstreamSessions, type UpstreamSessions } from '../../../../src/authserver/index.ts'
import { Secret, type Claims, type UpstreamTokens } from '../../../../src/core/index.ts'
import {
  createMemoryStore,
  createSeal,
  createSealingKeys,
  StoreError,
  type Store,
} from '../../../../src/storage/index.ts'
import type { Upstream, UpstreamLogin, UpstreamTokenSet } from '../../../../src/upstreams/index.ts'
import {
  createCaller,
  createManualClock,
  createRecordingLog,
  createRecordingMetrics,
  createTestSecrets,
  START_MS,
} from '../../ports.ts'

export const ISSUER = 'https://mcp.example.com'
export const TSID = 'AAAAAAAAAAAAAAAAAAAAAA'
export const HOUR = 3_600_000

/** An upstream that counts its refreshes and does what a test says. */
export interface TestUpstream extends Upstream {
  refreshes: number
  /** Deadline of the last one, by `performance.now()`. */
  endsAtMs: number
  /** Behavior of a refresh; default: tokens `access-N`, `refresh-N`, valid for an hour. */
  onRefresh: (tokens: UpstreamTokenSet, count: number) => Promise<Partial<UpstreamTokenSet> & { claims?: Claims }>
}

export const tokenSet = (values: Partial<UpstreamTokenSet> = {}): UpstreamTokenSet => ({
  accessToken: new Secret('access-0'),
  refreshToken: new Secret('refresh-0'),
  idToken: undefined,
  expiresAtMs: START_MS + HOUR,
  idTokenExpiresAtMs: undefined,
  scopes: ['openid'],
  ...values,
})

export function createTestUpstream(name: string, now: () => number): TestUpstream {
  const upstream: TestUpstream = {
    name,
    identityProvider: `https://${name}.example.com`,
    refreshes: 0,
    endsAtMs: Infinity,
    onRefresh: () => Promise.resolve({}),
    authorizationUrl: () => Promise.reject(new Error('not here')),
    finish: () => Promise.reject(new Error('not here')),
    async refresh(tokens, subject, endsAtMs): Promise<UpstreamLogin> {
      upstream.refreshes += 1
      upstream.endsAtMs = endsAtMs
      const count = upstream.refreshes
      const { claims = {}, ...values } = await upstream.onRefresh(tokens, count)
      const fresh = {
        accessToken: new Secret(`access-${count}`),
        refreshToken: new Secret(`refresh-${count}`),
        expiresAtMs: now() + HOUR,
      }
      return { tokens: { ...tokens, ...fresh, ...values }, subject, claims }
    },
    close: () => Promise.resolve(),
  }
  return upstream
}

/** A store with failures on demand, which records its messages. */
export interface TestStore extends Store {
  readonly failing: Set<keyof Store>
  /** Done once, but the answer is lost. */
  losing: keyof Store | undefined
  readonly calls: string[]
  /** Everything that was ever written, as text. */
  readonly written: string[]
}

export function createTestStore(store: Store): TestStore {
  const calls: string[] = []
  const written: string[] = []
  const state: Pick<TestStore, 'failing' | 'losing' | 'calls' | 'written'> = {
    failing: new Set(),
    losing: undefined,
    calls,
    written,
  }
  const target = Object.assign(Object.create(store) as Store, state)
  return new Proxy<TestStore>(target, {
    get(_target, name: keyof Store) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function' || name === 'subscribe' || name === 'health') return value
      return async (...args: unknown[]): Promise<unknown> => {
        calls.push(name)
        if (target.failing.has(name)) throw new StoreError('unavailable')
        written.push(...args.map((arg) => (Buffer.isBuffer(arg) ? arg.toString('latin1') : String(arg))))
        const answer: unknown = await (value as (...args: unknown[]) => unknown).apply(store, args)
        if (target.losing !== name) return answer
        target.losing = undefined
        throw new StoreError('timeout')
      }
    },
  })
}

/** A store with one or more replicas of the sessions. */
export function createRig() {
  const clock = createManualClock()
  const log = createRecordingLog()
  const metrics = createRecordingMetrics()
  const memory = createMemoryStore({ clock, log })
  const secrets = createTestSecrets({ 'as/hmac': 'x'.repeat(32), 'as/next': 'y'.repeat(32) })
  const handle = (key: string) => secrets.handle({ name: 'as', key })
  const upstreams = new Map(['corp', 'github'].map((name) => [name, createTestUpstream(name, () => clock.now())]))
  const corp = upstreams.get('corp')
  const github = upstreams.get('github')
  if (corp === undefined || github === undefined) throw new Error('unreachable')

  const replica = async (store: Store = memory, hmac: readonly string[] = ['hmac']) => {
    const sessions = createUpstreamSessions({
      issuer: ISSUER,
      upstreams,
      claimNames: ['name', 'email', 'email_verified', 'groups'],
      longestTokenMs: HOUR,
      store,
      seal: createSeal(createSealingKeys(hmac.map(handle)), clock),
      clock,
      log,
      metrics,
    })
    await sessions.opened()
    return sessions
  }

  return {
    clock,
    log,
    metrics,
    memory,
    corp,
    github,
    replica,
    /** A session of alice with the tokens of `corp` in it. */
    async login(sessions: UpstreamSessions, tokens: Partial<UpstreamTokenSet> = {}, claims: Claims = {}) {
      await sessions.create({
        tsid: TSID,
        subject: 'alice',
        clientId: 'editor',
        firstProvider: 'corp',
        resource: 'https://mcp.example.com/github',
        endsAtMs: clock.now() + 30 * 24 * HOUR,
      })
      await sessions.addLeg(TSID, 'corp', { tokens: tokenSet(tokens), subject: 'user-1', claims })
    },
    access: async (sessions: UpstreamTokens, caller = alice()) =>
      (await sessions.current(caller, 'corp', 'access_token')).token.reveal(),
  }
}

export const alice = (values: { subject?: string; issuer?: string; clientId?: string; tsid?: string } = {}) =>
  createCaller({
    issuer: values.issuer ?? ISSUER,
    subject: values.subject ?? 'alice',
    claims: { client_id: values.clientId ?? 'editor', tsid: values.tsid ?? TSID },
  })

/** Lets everything that is ready run. */
export const settle = () => new Promise((resolve) => setTimeout(resolve, 5))
