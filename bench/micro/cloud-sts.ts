/**
 * What the type cloudSts costs beside the rest of a request, in CPU, as ratios within one run:
 *
 *   node bench/micro/cloud-sts.ts
 *
 * Budgets: a cold role choice over 50 mappings at most ten RS256 verifications; a warm one evaluates nothing; signing 1 MiB
 * at most its SHA-256 plus 10 %; 200 callers no dearer per request than one (10 % for the noise). Exit code 1 when exceeded.
 */
import { generateKeyPairSync, hash, sign, verify } from 'node:crypto'
import type { Draft } from '../../src/apply/applier.ts'
import { applyAws } from '../../src/apply/aws.ts'
import { applyHeader } from '../../src/apply/header.ts'
import { createCredentialCache } from '../../src/cache/index.ts'
import {
  Secret,
  type AuthenticatedCaller,
  type AwsCredential,
  type Claims,
  type Credential,
  type Metrics,
} from '../../src/core/index.ts'
import { createCachedSource } from '../../src/obtain/cached.ts'
import { createCloudStsSource, createIdentityPool } from '../../src/obtain/cloud-sts/index.ts'
import { createRoleMapper } from '../../src/obtain/cloud-sts/role-mapper.ts'
import { seconds } from '../../src/fields/index.ts'

const ROUNDS = 21
const NOW_MS = Date.now()

const bare = (value: object): Claims => Object.assign(Object.create(null) as object, value) as Claims
const groups = Array.from({ length: 20 }, (_, index) => `department-${index}/team`)
let serial = 0
const token = () => new Secret('h.c.s')
const caller = (): AuthenticatedCaller => {
  serial += 1
  const claims = bare({ sub: `caller-${serial}`, dept: 'none', email: 'ada@example.com', groups })
  const shape = {
    kind: 'authenticated',
    provider: 'idp',
    issuer: 'https://i',
    subject: `caller-${serial}`,
    identity: `sub:caller-${serial}`,
    format: 'jwt',
  } as const
  return { ...shape, claims, expiresAtMs: undefined, tokenDigest: String(serial) }
}

const roleArn = 'arn:aws:iam::123456789012:role/r'
/** The kinds of rules that administrators write; none of them matches, so that all are evaluated. */
const RULES = [
  (index: number) => ({ claim: `unknown-${index}` }),
  (index: number) => ({ matcher: `claims.dept == "d${index}"` }),
  (index: number) => ({ matcher: `"unknown-${index}" in claims.groups && claims.email.endsWith("@example.com")` }),
  (index: number) => ({ matcher: `claims.groups.exists(g, g.startsWith("unknown-${index}"))` }),
  (index: number) => ({ matcher: `claims.email.matches("^x${index}.*@example\\\\.com$")` }),
]
const roleMappings = Array.from({ length: 50 }, (_, index) => ({ roleArn, ...RULES[index % RULES.length]?.(index) }))
const spec = {
  region: 'eu-central-1',
  service: 'aws-mcp',
  roleClaim: 'groups',
  sessionDuration: seconds(3600),
  sessionNameClaim: 'sub',
  roleMappings,
  fallbackRoleArn: roleArn,
}

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const signed = Buffer.from('x'.repeat(1024))
const rsaSignature = sign('sha256', signed, rsa.privateKey)

let decisions = 0
const child = { add: () => void decisions++, set: () => undefined, observe: () => undefined }
const silent = { add: () => undefined, set: () => undefined, observe: () => undefined }
const metrics: Metrics = {
  counter: (name) => ({ with: () => (name === 'extauth_role_decisions_total' ? child : silent) }),
  gauge: () => ({ with: () => silent }),
  histogram: () => ({ with: () => silent }),
}
const quiet = () => undefined
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
const clock = { now: () => NOW_MS }
const credential = (index: number): AwsCredential => ({
  kind: 'aws',
  accessKeyId: `ASIA${String(index).padStart(16, '0')}`,
  secretAccessKey: new Secret(`secret-${index}`.padEnd(40, 'x')),
  sessionToken: new Secret('t'.repeat(900)),
  region: spec.region,
  service: spec.service,
  signing: { day: '', key: undefined },
})

const outbound = () => ({ request: () => Promise.reject(new Error('not used')), close: () => Promise.resolve() })
const auth = { name: 'a', namespace: 'n', type: 'cloudSts', configHash: 'h', spec } as const
const fetching = createCloudStsSource(auth, {
  clock,
  log,
  metrics,
  outbound,
  caCertificate: () => () => undefined,
  env: {},
  identities: createIdentityPool().hold(),
})
const source = createCachedSource(
  auth,
  { ...fetching, fetch: () => Promise.resolve({ credential: credential(0), expiresAtMs: NOW_MS + 3_600_000 }) },
  { cache: createCredentialCache<Credential>({ clock, metrics, random: () => 0.5 }) },
)

const base = [
  'host',
  'backend.example',
  'content-type',
  'application/json',
  'accept',
  'application/json, text/event-stream',
]
const more = ['mcp-session-id', 'a'.repeat(36), 'mcp-protocol-version', '2025-11-25', 'user-agent', 'client']
const draft = (bytes: Buffer): Draft => ({
  method: 'POST',
  path: '/mcp',
  host: 'backend.example',
  headers: [...base, ...more],
  body: { kind: 'kept', bytes },
  nowMs: NOW_MS,
})

/** CPU microseconds of this process per call. */
function cpu(calls: number, run: (index: number) => void): number {
  const before = process.cpuUsage()
  for (let index = 0; index < calls; index++) run(index)
  const used = process.cpuUsage(before)
  return (used.user + used.system) / calls
}

const mapper = createRoleMapper(spec)
const callers = Array.from({ length: 200 }, caller)
const credentials = Array.from({ length: 200 }, (_, index) => credential(index))
const [one] = credentials
const [small, large] = [Buffer.alloc(1024, 'a'), Buffer.alloc(1024 * 1024, 'a')]
const bearer = { kind: 'header', name: 'authorization', value: new Secret('Bearer x') } as const
const [warm] = callers
if (one === undefined || warm === undefined) throw new RangeError('nothing to measure')
await Promise.all(callers.map(async (known) => source.obtain(known, token)))
const decisionsCold = decisions

// Alternating, so that what the machine does meanwhile falls on all.
const MEASURED: Readonly<Record<string, () => number>> = {
  rs256: () => cpu(200, () => void verify('sha256', signed, rsa.publicKey, rsaSignature)),
  cold: () => cpu(200, (index) => void mapper.choose((callers[index] ?? warm).claims)),
  warm: () => cpu(20_000, () => void source.obtain(warm, token)),
  bearer: () => cpu(20_000, () => applyHeader(draft(small), bearer)),
  signOne: () => cpu(5_000, () => applyAws(draft(small), one)),
  signMany: () => cpu(5_000, (index) => applyAws(draft(small), credentials[index % 200] ?? one)),
  hash1K: () => cpu(5_000, () => void hash('sha256', small, 'hex')),
  hash1M: () => cpu(40, () => void hash('sha256', large, 'hex')),
  sign1M: () => cpu(40, () => applyAws(draft(large), one)),
}
const samples = Object.entries(MEASURED).map(([name, measure]) => ({ name, measure, values: [] as number[] }))
for (let round = 0; round < ROUNDS; round++) {
  for (const { measure, values } of round % 2 === 0 ? samples : samples.toReversed()) values.push(measure())
}
const median = (name: string): number => {
  const values = samples.find((sample) => sample.name === name)?.values.toSorted((a, b) => a - b) ?? []
  return values[values.length >> 1] ?? Number.NaN
}

interface Budget {
  readonly what: string
  readonly value: number
  readonly limit: number
}
const budgets: readonly Budget[] = [
  { what: 'cold choice over 50 mappings / RS256 verification', value: median('cold') / median('rs256'), limit: 10 },
  { what: 'evaluations in warm requests', value: decisions - decisionsCold, limit: 0 },
  { what: 'signing 1 MiB / its SHA-256', value: median('sign1M') / median('hash1M'), limit: 1.1 },
  { what: 'signing for 200 callers / for one', value: median('signMany') / median('signOne'), limit: 1.1 },
]
const out = (text: string) => process.stdout.write(`${text}\n`)
out(`medians of ${ROUNDS} rounds, µs CPU`)
for (const { name } of samples) out(`  ${name.padEnd(10)} ${median(name).toFixed(2).padStart(9)}`)
out(
  `  of a signed 1 KiB POST: ${median('hash1K').toFixed(2)} its hash, ${(median('signOne') - median('hash1K') - median('bearer')).toFixed(2)} canonical form and HMAC`,
)
for (const { what, value, limit } of budgets) {
  out(`${value <= limit ? 'kept    ' : 'EXCEEDED'} ${what}: ${value.toFixed(2)} (at most ${limit})`)
  if (value > limit) process.exitCode = 1
}
