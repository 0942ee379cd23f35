/**
 * What the type tokenExchange costs while its credential is cached, through the real stage `obtain` with the counters of
 * the real metrics, as ratios within one run:
 *
 *   node bench/micro/cache.ts
 *
 * Budgets: with the same callers on both, a cached exchange adds at most the CPU of three SHA-256 of 1 KiB over
 * `bearerToken`; an entry takes at most 700 bytes beyond the token; N callers make at most N × (1 + lifetimes passed)
 * exchanges, and only the first request of each waits. Exit code 1 when exceeded.
 *
 * A lifetime is what the cache uses of a credential: requests refresh it ahead, after 75 to 85 % of what its issuer says,
 * so that no request waits for the next. The figure by the issuer's lifetimes is printed too and has no budget.
 */
import { hash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createCredentialCache } from '../../src/cache/index.ts'
import { openMetrics } from '../../src/report/metrics.ts'
import {
  Secret,
  type AuthenticatedCaller,
  type Claims,
  type Clock,
  type Credential,
  type Known,
  type OutboundResponse,
} from '../../src/core/index.ts'
import { createIdentityPool, createObtain, type ObtainDeps } from '../../src/obtain/index.ts'
import { configHash } from '../../src/resources/index.ts'
import { tokenExchange } from '../../src/resources/token-exchange.ts'

const ROUNDS = 41
const CALLS = 20_000
const MEMORY_ROUNDS = 7
const ENTRIES = 10_000
const TOKEN_BYTES = 1024
const LIFETIME_SECONDS = 3600
/** Past everything that is measured: no caller has to come with another token. */
const TOKENS_END_MS = Date.now() + 365 * 86_400_000
/** The middle of where refreshes begin. */
const USED_SHARE = 0.8

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
const out = (text: string) => process.stdout.write(`${text}\n`)

/** Numbers in [0, 1), the same in each run. */
function createRandom(): () => number {
  let state = 1
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32
}

let serial = 0
function caller(): AuthenticatedCaller {
  const name = `user-${serial++}-5f0c1a2b3c4d`
  // Parsed, as from a token, so that nothing is shared between callers.
  const { iss: issuer, sub: subject } = JSON.parse(`{"iss":"https://id.example.com/realms/main","sub":"${name}"}`) as {
    iss: string
    sub: string
  }
  const claims = Object.assign(Object.create(null) as object, { iss: issuer, sub: subject }) as Claims
  const names = { issuer, subject, identity: `sub:${subject}` }
  const known = { kind: 'authenticated', provider: 'idp', ...names, claims, format: 'jwt' } as const
  return { ...known, expiresAtMs: TOKENS_END_MS, tokenDigest: new Secret(`h.${name}.s`).digest() }
}
const callersOf = (count: number): readonly AuthenticatedCaller[] => Array.from({ length: count }, caller)
const knownOf = (of: AuthenticatedCaller): Known =>
  ({ caller: of, matched: { authorization: [`Bearer ${of.tokenDigest}`] } }) as unknown as Known

/** The stages of one config of each type around one cache, and a token endpoint that answers at once. */
function createStages(clock: Clock) {
  let exchanges = 0
  const answer = (): OutboundResponse => {
    exchanges += 1
    const body = {
      access_token: `${exchanges}.`.padEnd(TOKEN_BYTES, 'x'),
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: LIFETIME_SECONDS,
    }
    return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) }
  }
  const quiet = () => undefined
  const [metrics, random, secret] = [openMetrics({ processMetrics: false }), createRandom(), new Secret('a-secret')]
  const handle = { label: 'a/b', current: () => secret, version: 1, refresh: () => Promise.resolve(false) }
  const deps: ObtainDeps = {
    clock,
    random,
    metrics,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    secrets: { handle: () => handle },
    cache: createCredentialCache<Credential>({ clock, metrics, random }),
    outbound: () => ({ request: () => Promise.resolve(answer()), close: () => Promise.resolve() }),
    caCertificate: () => () => undefined,
    env: {},
    identities: createIdentityPool().hold(),
    tokenFile: () => handle,
  }
  const clientSecretRef = { name: 'a', key: 'b' }
  const tokenUrl = 'https://id.example.com/token'
  const spec = tokenExchange().parse({ tokenUrl, audience: 'backend', clientId: 'proxy', clientSecretRef })
  const named = { namespace: 'default', source: { file: 'bench.yaml', line: 1 }, configHash: configHash(spec) }
  return {
    exchange: createObtain({ ...named, name: 'exchange', type: 'tokenExchange', spec }, deps),
    bearer: createObtain(
      { ...named, name: 'bearer', type: 'bearerToken', spec: { tokenSecretRef: clientSecretRef } },
      deps,
    ),
    exchanges: () => exchanges,
    entries: () => deps.cache.list().entries,
  }
}

/** Bytes on the heap after collecting what is garbage; twice, because what is weak goes in the second. */
function heap(): number {
  collect()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Bytes per entry beyond the token: while the authenticator remembers the callers, and when it has let them go. */
async function bytesPerEntry(): Promise<{ cached: number; forgotten: number }> {
  const stages = createStages(Date)
  const fill = async (callers: readonly AuthenticatedCaller[]) => {
    for (const one of callers) {
      const { credential } = await stages.exchange.obtain(knownOf(one))
      // Written once, as to a backend: the parts of the text become one.
      if (credential.kind === 'header') written += Buffer.from(credential.value.reveal(), 'latin1').length
    }
  }
  let written = 0
  const before = heap()
  let callers = callersOf(ENTRIES)
  const withCallers = heap()
  await fill(callers)
  const filled = heap()
  callers = []
  const withoutCallers = heap()
  const isFull = stages.entries() === ENTRIES && written === ENTRIES * (TOKEN_BYTES + 'Bearer '.length)
  if (!isFull || callers.length > 0) throw new Error('not what was to be measured')
  return {
    cached: (filled - withCallers) / ENTRIES - TOKEN_BYTES,
    forgotten: (withoutCallers - before) / ENTRIES - TOKEN_BYTES,
  }
}

/** CPU microseconds of this process per call. */
function cpu(calls: number, run: (index: number) => void): number {
  const before = process.cpuUsage()
  for (let index = 0; index < calls; index++) run(index)
  const used = process.cpuUsage(before)
  return (used.user + used.system) / calls
}

/** A warm request of either type, and three hashes, in alternating rounds. */
async function warmRequests() {
  const stages = createStages(Date)
  const knowns = callersOf(ENTRIES).map(knownOf)
  for (const known of knowns) await stages.exchange.obtain(known)
  const [first] = knowns
  if (first === undefined) throw new RangeError('nothing to measure')
  const obtain = (type: 'exchange' | 'bearer', callers: number) => (index: number) => {
    const known = knowns[(index * 7919) % callers] ?? first
    if (stages[type].obtain(known) instanceof Promise) throw new Error('not synchronous')
  }
  const kibibyte = Buffer.alloc(1024, 'x')
  const hashes = () => {
    for (let count = 0; count < 3; count++) hash('sha256', kibibyte, 'base64url')
  }
  const way = (name: string, run: (index: number) => void) => ({ name, run, values: [] as number[] })
  const ways = [
    way('three SHA-256 of 1 KiB (baseline)', hashes),
    ...[1, 1_000, ENTRIES].flatMap((callers) => [
      way(`bearerToken, ${callers} caller(s)`, obtain('bearer', callers)),
      way(`tokenExchange cached, ${callers} caller(s)`, obtain('exchange', callers)),
    ]),
  ]
  for (const { run } of ways) cpu(CALLS, run)
  for (let round = 0; round < ROUNDS; round++) {
    for (const { run, values } of round % 2 === 0 ? ways : ways.toReversed()) values.push(cpu(CALLS, run))
  }
  return ways
}

/** What requests of random callers, spread evenly over so many lifetimes, make of exchanges and of waits. */
async function exchangesOver(lifetimes: number, requests: number, callerCount: number) {
  let nowMs = Date.now()
  const stages = createStages({ now: () => nowMs })
  const knowns = callersOf(callerCount).map(knownOf)
  const random = createRandom()
  let waits = 0
  for (let request = 0; request < requests; request++) {
    const known = knowns[Math.floor(random() * callerCount)] ?? knowns[0]
    if (known === undefined) throw new RangeError('no callers')
    const answer = stages.exchange.obtain(known)
    if (answer instanceof Promise) {
      waits += 1
      await answer
    }
    // Now and then what was begun in the background comes to its end, as it does between requests.
    if (request % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    nowMs += (lifetimes * LIFETIME_SECONDS * 1000) / requests
  }
  return { lifetimes, callers: callerCount, exchanges: stages.exchanges(), waits }
}

// The first one compiles the code.
await bytesPerEntry()
const memory = []
for (let round = 0; round < MEMORY_ROUNDS; round++) memory.push(await bytesPerEntry())
const bytes = {
  cached: median(memory.map(({ cached }) => cached)),
  forgotten: median(memory.map(({ forgotten }) => forgotten)),
}
const ways = await warmRequests()
const counted = [await exchangesOver(2, 1_000_000, 1_000), await exchangesOver(10, 1_000_000, 1_000)]

out(`medians of ${ROUNDS} rounds`)
for (const { name, values } of ways) out(`  ${name.padEnd(38)} ${median(values).toFixed(3).padStart(7)} µs CPU`)
out(
  `  an entry beyond its token: ${bytes.forgotten.toFixed(0)} bytes with the caller's names, while the authenticator remembers the caller ${bytes.cached.toFixed(0)} beside the caller`,
)
for (const { lifetimes, callers, exchanges, waits } of counted) {
  const figure = (passed: number) => `${(exchanges / (callers * (1 + passed))).toFixed(2)} of N × (1 + ${passed})`
  out(
    `  ${lifetimes} lifetimes by the issuer, 1,000,000 requests: ${exchanges} exchanges, ${waits} waits; ${figure(lifetimes / USED_SHARE)} as used, ${figure(lifetimes)} by the issuer`,
  )
}

const [hashes, ...types] = ways.map(({ values }) => values)
const added = (index: number): number =>
  median((types[index + 1] ?? []).map((value, at) => (value - (types[index]?.[at] ?? 0)) / (hashes?.[at] ?? 0)))
const budgets = [
  { what: 'added CPU / three SHA-256 of 1 KiB, one caller', value: added(0), limit: 1 },
  { what: 'added CPU / three SHA-256 of 1 KiB, 1,000 callers', value: added(2), limit: 1 },
  { what: `added CPU / three SHA-256 of 1 KiB, ${ENTRIES} callers`, value: added(4), limit: 1 },
  { what: "bytes per entry beyond the token, the caller's names included", value: bytes.forgotten, limit: 700 },
  { what: 'bytes per entry beyond the token and the cached caller', value: bytes.cached, limit: 700 },
  ...counted.flatMap(({ lifetimes, callers, exchanges, waits }) => [
    {
      what: `exchanges / (callers × (1 + lifetimes used)), ${lifetimes} lifetimes by the issuer`,
      value: exchanges / (callers * (1 + lifetimes / USED_SHARE)),
      limit: 1,
    },
    { what: `waits / callers, ${lifetimes} lifetimes by the issuer`, value: waits / callers, limit: 1 },
  ]),
]
for (const { what, value, limit } of budgets) {
  // A figure that is none is not within its budget.
  const isKept = value <= limit
  out(`${isKept ? 'kept    ' : 'EXCEEDED'} ${what}: ${value.toFixed(2)} (at most ${limit})`)
  if (!isKept) process.exitCode = 1
}
