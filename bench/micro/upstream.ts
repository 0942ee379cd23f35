/**
 * What upstream sessions cost, through the real stage `obtain`, the real sessions and the memory store:
 *
 *   node bench/micro/upstream.ts
 *
 * Budgets: with the same callers on both, a warm `upstreamInject` adds at most the CPU of one SHA-256 of 1 KiB over
 * `bearerToken`; a session takes at most 2 KiB in the store beyond its tokens; 200 requests at four replicas that need one
 * expired token make one refresh. Exit code 1 when exceeded.
 */
import { hash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createUpstreamSessions, type UpstreamSessions } from '../../src/authserver/index.ts'
import { createCredentialCache } from '../../src/cache/index.ts'
import { openMetrics } from '../../src/report/metrics.ts'
import { Secret, type AuthenticatedCaller, type Claims, type Credential, type Known } from '../../src/core/index.ts'
import { createIdentityPool, createObtain, type ObtainDeps } from '../../src/obtain/index.ts'
import { createMemoryStore, createSeal, createSealingKeys, type Store } from '../../src/storage/index.ts'
import type { Upstream } from '../../src/upstreams/index.ts'

const ROUNDS = 31
const CALLS = 20_000
const CALLERS = 1_000
const SESSIONS = 100_000
const TOKEN_BYTES = 1024
const ISSUER = 'https://mcp.example.com'
const HOUR_MS = 3_600_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
const out = (text: string) => process.stdout.write(`${text}\n`)
const quiet = () => undefined
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }

let nowMs = Date.now()
const clock = { now: () => nowMs }
const metrics = openMetrics({ processMetrics: false })
const text = (name: string) => `${name}.`.padEnd(TOKEN_BYTES, 'x')

let refreshes = 0
const upstream: Upstream = {
  name: 'corp',
  identityProvider: 'https://id.example.com',
  authorizationUrl: () => Promise.reject(new Error('not here')),
  finish: () => Promise.reject(new Error('not here')),
  async refresh(tokens, subject) {
    refreshes += 1
    await new Promise((resolve) => setTimeout(resolve, 20))
    const accessToken = new Secret(text(`refreshed-${refreshes}`))
    return { tokens: { ...tokens, accessToken, expiresAtMs: nowMs + HOUR_MS }, subject, claims: {} }
  },
  close: () => Promise.resolve(),
}

async function openSessions(store: Store): Promise<UpstreamSessions> {
  const sessions = createUpstreamSessions({
    issuer: ISSUER,
    upstreams: new Map([['corp', upstream]]),
    claimNames: ['name', 'email', 'email_verified', 'preferred_username', 'groups', 'roles', 'acr', 'amr'],
    longestTokenMs: HOUR_MS,
    store,
    seal: createSeal(createSealingKeys([]), clock),
    clock,
    log,
    metrics,
  })
  await sessions.opened()
  return sessions
}

const tsidOf = (index: number): string => String(index).padStart(22, 'A')

async function logIn(sessions: UpstreamSessions, index: number): Promise<void> {
  const tsid = tsidOf(index)
  const session = {
    subject: `subject-${index}-`.padEnd(43, 's'),
    clientId: 'client-'.padEnd(22, 'c'),
    firstProvider: 'corp',
  }
  await sessions.create({ tsid, ...session, resource: `${ISSUER}/mcp`, endsAtMs: nowMs + 720 * HOUR_MS })
  const tokens = {
    accessToken: new Secret(text(`access-${index}`)),
    refreshToken: new Secret(text(`refresh-${index}`)),
    idToken: new Secret(text(`id-${index}`)),
    expiresAtMs: nowMs + HOUR_MS,
    idTokenExpiresAtMs: nowMs + HOUR_MS,
    scopes: ['openid', 'offline_access'],
  }
  const claims = { name: 'Alice Example', email: 'alice@example.com', groups: ['admins', 'developers'] }
  await sessions.addLeg(tsid, 'corp', { tokens, subject: `user-${index}`, claims })
}

function callerOf(index: number): AuthenticatedCaller {
  const subject = `subject-${index}-`.padEnd(43, 's')
  const own = { iss: ISSUER, sub: subject, client_id: 'client-'.padEnd(22, 'c'), tsid: tsidOf(index) }
  const claims = Object.assign(Object.create(null) as object, own) as Claims
  const names = { provider: 'as', issuer: ISSUER, subject, identity: `sub:${subject}`, claims, format: 'jwt' } as const
  return { kind: 'authenticated', ...names, expiresAtMs: undefined, tokenDigest: new Secret(`h.${index}.s`).digest() }
}

function createStages(upstreamTokens: UpstreamSessions) {
  const secret = new Secret(text('static'))
  const handle = { label: 'a/b', current: () => secret, version: 1, refresh: () => Promise.resolve(false) }
  const deps: ObtainDeps = {
    clock,
    random: Math.random,
    metrics,
    log,
    secrets: { handle: () => handle },
    cache: createCredentialCache<Credential>({ clock, metrics, random: Math.random }),
    outbound: () => ({ request: () => Promise.reject(new Error('not here')), close: () => Promise.resolve() }),
    caCertificate: () => () => undefined,
    env: {},
    identities: createIdentityPool().hold(),
    tokenFile: () => handle,
    upstreamTokens,
  }
  const named = { namespace: 'default', source: { file: 'bench.yaml', line: 1 }, configHash: 'h' }
  const use = { provider: 'corp', kind: 'access_token', issuer: ISSUER, isExplicit: true } as const
  return {
    inject: createObtain(
      { ...named, name: 'inject', type: 'upstreamInject', spec: { providerName: 'corp' }, upstream: use },
      deps,
    ),
    bearer: createObtain(
      { ...named, name: 'bearer', type: 'bearerToken', spec: { tokenSecretRef: { name: 'a', key: 'b' } } },
      deps,
    ),
  }
}

/** CPU of a warm request beyond `bearerToken`, in SHA-256 of 1 KiB. */
async function measureWarm(): Promise<number> {
  const sessions = await openSessions(createMemoryStore({ clock, log }))
  for (let index = 0; index < CALLERS; index++) await logIn(sessions, index)
  const known = Array.from(
    { length: CALLERS },
    (_, index) => ({ caller: callerOf(index), matched: { authorization: [] } }) as unknown as Known,
  )
  const { inject, bearer } = createStages(sessions)
  for (const one of known) await inject.obtain(one)
  const kilobyte = Buffer.alloc(1024, 'x')
  const run = (call: (index: number) => unknown): number => {
    const started = process.cpuUsage()
    for (let index = 0; index < CALLS; index++) call(index)
    const { user, system } = process.cpuUsage(started)
    return (user + system) / CALLS
  }
  const caller = (index: number): Known => known[index % CALLERS] ?? ({} as Known)
  const figures = Array.from({ length: ROUNDS }, () => {
    const sha = run(() => hash('sha256', kilobyte))
    return (run((index) => inject.obtain(caller(index))) - run((index) => bearer.obtain(caller(index)))) / sha
  })
  await sessions.close()
  return median(figures)
}

/** Bytes of a session in the memory store, by the store's own count and on the heap, beyond its tokens. */
async function measureSessions(): Promise<{ counted: number; heap: number; perSecond: number }> {
  const store = createMemoryStore({ clock, log, maxBytes: 2 ** 31 })
  const sessions = await openSessions(store)
  const heap = (): number => {
    collect()
    collect()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const [before, bytes] = [heap(), store.bytes]
  const startedMs = performance.now()
  for (let index = 0; index < SESSIONS; index++) await logIn(sessions, index)
  const perSecond = SESSIONS / ((performance.now() - startedMs) / 1000)
  const beyond = (all: number) => all / SESSIONS - 3 * TOKEN_BYTES
  const figures = { counted: beyond(store.bytes - bytes), heap: beyond(heap() - before), perSecond }
  await sessions.close()
  return figures
}

/** Refreshes for 200 requests at four replicas. */
async function countRefreshes(): Promise<number> {
  const store = createMemoryStore({ clock, log })
  const keys = createSealingKeys([])
  const replicas = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const sessions = createUpstreamSessions({
        issuer: ISSUER,
        upstreams: new Map([['corp', upstream]]),
        claimNames: [],
        longestTokenMs: HOUR_MS,
        store,
        seal: createSeal(keys, clock),
        clock,
        log,
        metrics,
      })
      await sessions.opened()
      return sessions
    }),
  )
  const [first] = replicas
  if (first === undefined) throw new Error('unreachable')
  await logIn(first, 0)
  nowMs += HOUR_MS
  refreshes = 0
  const requests = Array.from({ length: 200 }, async (_, index) =>
    (replicas[index % 4] ?? first).current(callerOf(0), 'corp', 'access_token'),
  )
  await Promise.all(requests)
  return refreshes
}

const warm = await measureWarm()
out(`a warm upstreamInject beyond bearerToken: ${warm.toFixed(3)} × SHA-256 of 1 KiB (budget 1)`)
const made = await countRefreshes()
out(`refreshes for 200 requests at four replicas: ${made} (budget 1)`)
const { counted, heap, perSecond } = await measureSessions()
out(`a session beyond its tokens: ${counted.toFixed(0)} bytes counted, ${heap.toFixed(0)} on the heap (budget 2048)`)
out(`sessions kept per second: ${perSecond.toFixed(0)}`)
if (warm > 1 || made !== 1 || Math.max(counted, heap) > 2048) process.exitCode = 1
