/**
 * What verifying a caller costs, in CPU, as ratios within one run:
 *
 *   node bench/micro/authenticate.ts
 *
 * Budget: a warm verified request takes at most the CPU of five SHA-256 of 1 KiB; the exit code is 1 when it takes more.
 */
import { generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { createAuthenticator } from '../../src/authenticate/index.ts'
import type { Caller, Metrics, OutboundResponse } from '../../src/core/index.ts'
import { authSection } from '../../src/resources/index.ts'

const ISSUER = 'https://id.example.com'
const ROUNDS = 15

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const keys = [
  { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'RS256', alg: 'RS256' },
  { ...ec.publicKey.export({ format: 'jwk' }), kid: 'ES256', alg: 'ES256' },
]

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const groups = Array.from({ length: 12 }, (_, count) => `department-${count}/team`)
let serial = 0

/** A new token of about 1 KiB. */
function token(alg: 'RS256' | 'ES256'): string {
  const exp = Math.floor(Date.now() / 1000) + 3600
  const claims = { iss: ISSUER, aud: 'registry', sub: `caller-${serial}`, exp, jti: String(serial++), groups }
  const input = `${encode({ alg, kid: alg, typ: 'at+jwt' })}.${encode(claims)}`
  const key: KeyObject = alg === 'RS256' ? rsa.privateKey : ec.privateKey
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

const response: OutboundResponse = { status: 200, headers: {}, body: Buffer.from(JSON.stringify({ keys })) }
const child = { add: () => undefined, set: () => undefined, observe: () => undefined }
const metric = { with: () => child }
const metrics: Metrics = { counter: () => metric, gauge: () => metric, histogram: () => metric }
const silent = () => undefined

const authenticator = createAuthenticator(
  authSection().parse({
    mode: 'oauth',
    oauth: {
      resourceUrl: 'https://registry.example.com',
      providers: [{ name: 'idp', issuerUrl: ISSUER, audience: 'registry', jwksUrl: `${ISSUER}/jwks` }],
    },
  }),
  {
    clock: Date,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    metrics,
    outbound: () => ({ request: () => Promise.resolve(response), close: () => Promise.resolve() }),
  },
)
await authenticator.start()

const authenticate = (text: string) => authenticator.authenticate([`Bearer ${text}`], '')
const cached = (text: string): void => {
  if (authenticate(text) instanceof Promise) throw new Error('not synchronous')
}

/** CPU microseconds of this process per call. */
function cpu(calls: number, run: (index: number) => void): number {
  const before = process.cpuUsage()
  for (let index = 0; index < calls; index++) run(index)
  const used = process.cpuUsage(before)
  return (used.user + used.system) / calls
}

/** The same for what has to be awaited. */
async function cpuAsync(calls: number, run: (index: number) => Caller | Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  for (let index = 0; index < calls; index++) await run(index)
  const used = process.cpuUsage(before)
  return (used.user + used.system) / calls
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

const kibibyte = Buffer.alloc(1024, 'x')
const fiveHashes = () => {
  for (let count = 0; count < 5; count++) hash('sha256', kibibyte, 'base64url')
}
const one = token('RS256')
await authenticate(one)
const many = Array.from({ length: 10_000 }, () => token('ES256'))
for (const text of many) await authenticate(text)

// Alternating, so that what the machine does meanwhile falls on both.
const samples = {
  hashes: [] as number[],
  warm: [] as number[],
  many: [] as number[],
  rs256: [] as number[],
  es256: [] as number[],
  joseRs256: [] as number[],
  joseEs256: [] as number[],
}
const joseKeys = createLocalJWKSet({ keys })
const joseVerify = (text: string) => jwtVerify(text, joseKeys, { issuer: ISSUER, audience: 'registry' })
for (let round = 0; round < ROUNDS; round++) {
  samples.hashes.push(cpu(10_000, fiveHashes))
  samples.warm.push(cpu(10_000, () => cached(one)))
  samples.many.push(cpu(10_000, (index) => cached(many[(index * 7919) % many.length] ?? one)))
}
for (let round = 0; round < ROUNDS; round++) {
  const [rs256, es256] = (['RS256', 'ES256'] as const).map((alg) => Array.from({ length: 200 }, () => token(alg)))
  samples.rs256.push(await cpuAsync(200, (index) => authenticate(rs256?.[index] ?? one)))
  samples.es256.push(await cpuAsync(200, (index) => authenticate(es256?.[index] ?? one)))
  samples.joseRs256.push(await cpuAsync(200, (index) => joseVerify(rs256?.[index] ?? one)))
  samples.joseEs256.push(await cpuAsync(200, (index) => joseVerify(es256?.[index] ?? one)))
}
await authenticator.close()

const baseline = median(samples.hashes)
const line = (name: string, values: readonly number[]): string => {
  const us = median(values)
  return `${name.padEnd(44)} ${us.toFixed(2).padStart(8)} µs CPU ${(us / baseline).toFixed(2).padStart(8)} ×`
}
const report = [
  `token of ${one.length} bytes, medians of ${ROUNDS} rounds`,
  line('five SHA-256 of 1 KiB (baseline)', samples.hashes),
  line('warm, one token', samples.warm),
  line('warm, 10,000 distinct tokens', samples.many),
  line('cold, RS256', samples.rs256),
  line('cold, ES256', samples.es256),
  line('peer: jose jwtVerify alone, RS256', samples.joseRs256),
  line('peer: jose jwtVerify alone, ES256', samples.joseEs256),
]
process.stdout.write(`${report.join('\n')}\n`)

const isWithinBudget = median(samples.warm) <= baseline && median(samples.many) <= baseline
process.stdout.write(isWithinBudget ? 'budget: kept\n' : 'budget: exceeded\n')
if (!isWithinBudget) process.exitCode = 1
