/**
 * Memory of 100,000 connected accounts, each of a person of its own, through the real connections and the memory store:
 *
 *   node bench/micro/connections.ts
 *
 * Budget: a connection takes at most 2 KiB beyond its tokens, in the store (session, pointer and person) and cached in the
 * process with its live tokens together. Exit code 1 when exceeded.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Accounts, createAccounts } from '../../src/connections/accounts.ts'
import { ownerOf } from '../../src/connections/owner.ts'
import { createPersons } from '../../src/connections/persons.ts'
import { type AuthenticatedCaller, type Claims, Secret } from '../../src/core/index.ts'
import { openMetrics } from '../../src/report/metrics.ts'
import { createMemoryStore, createSeal, createSealingKeys } from '../../src/storage/index.ts'
import type { Upstream } from '../../src/upstreams/index.ts'

const CONNECTIONS = 100_000
const TOKEN_BYTES = 1024
const [ISSUER, PROVIDER] = ['https://id.example.com', 'github']
const HOUR_MS = 3_600_000
const BUDGET_BYTES = 2048

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const out = (text: string) => process.stdout.write(`${text}\n`)
const quiet = () => undefined
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
const clock = { now: () => Date.now() }
const text = (name: string) => `${name}.`.padEnd(TOKEN_BYTES, 'x')

const upstream: Upstream = {
  name: PROVIDER,
  identityProvider: 'https://github.example.com',
  authorizationUrl: () => Promise.reject(new Error('not here')),
  finish: () => Promise.reject(new Error('not here')),
  refresh: () => Promise.reject(new Error('not here')),
  close: () => Promise.resolve(),
}

function callerOf(index: number): AuthenticatedCaller {
  const subject = `00u${String(index).padStart(17, '0')}`
  const claims = Object.assign(Object.create(null) as object, { iss: ISSUER, sub: subject }) as Claims
  const names = {
    provider: 'corp',
    issuer: ISSUER,
    subject,
    identity: `sub:${subject}`,
    claims,
    format: 'jwt',
  } as const
  return { kind: 'authenticated', ...names, expiresAtMs: undefined, tokenDigest: new Secret(`h.${index}.s`).digest() }
}

/** What the login at the provider gave: an access token and a refresh token. */
const loginOf = (index: number) => ({
  subject: `user-${index}`,
  claims: { login: `user-${index}`, email: `user-${index}@example.com`, name: 'Alice Example' },
  tokens: {
    accessToken: new Secret(text(`access-${index}`)),
    refreshToken: new Secret(text(`refresh-${index}`)),
    idToken: undefined,
    expiresAtMs: Date.now() + HOUR_MS,
    idTokenExpiresAtMs: undefined,
    scopes: ['repo', 'read:user'],
  },
})

const heap = (): number => {
  collect()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const store = createMemoryStore({ clock, log, maxBytes: 2 ** 31 })
const seal = createSeal(createSealingKeys([]), clock)
const open = (): Accounts =>
  createAccounts({
    providers: [{ name: PROVIDER, type: 'oauth2', maxAge: 720 * HOUR_MS } as never],
    upstreams: new Map([[PROVIDER, upstream]]),
    keys: new Map(),
    isSingleUser: false,
    audit: () => undefined,
    store,
    seal,
    clock,
    log,
    metrics: openMetrics({ processMetrics: false }),
  })

const [empty, bytes] = [heap(), store.bytes]
const connecting = open()
const persons = createPersons(store, seal)
for (let index = 0; index < CONNECTIONS; index++) {
  const owner = ownerOf(callerOf(index), false)
  await connecting.connect(owner, PROVIDER, loginOf(index), 'prompt')
  await persons.note({ sub: owner.identity.slice(4) }, owner)
}
await connecting.close()
const counted = (store.bytes - bytes) / CONNECTIONS - 2 * TOKEN_BYTES
const stored = heap()

// Another process, which uses each once.
const using = open()
for (let index = 0; index < CONNECTIONS; index++) await using.current(callerOf(index), PROVIDER, 'access_token')
let live = 0
for (let index = 0; index < CONNECTIONS; index++)
  if (!(using.current(callerOf(index), PROVIDER, 'access_token') instanceof Promise)) live += 1
const inStore = (stored - empty) / CONNECTIONS - 2 * TOKEN_BYTES
const kept = (heap() - stored) / CONNECTIONS - TOKEN_BYTES
await using.close()

out(`${live} of ${CONNECTIONS} connections are cached with their tokens`)
out(`in the store beyond its tokens: ${counted.toFixed(0)} bytes counted, ${inStore.toFixed(0)} on the heap`)
out(`cached in the process beyond the access token: ${kept.toFixed(0)} bytes`)
out(`together: ${(inStore + kept).toFixed(0)} bytes (budget ${BUDGET_BYTES})`)
if (inStore + kept > BUDGET_BYTES || live < CONNECTIONS) process.exitCode = 1
