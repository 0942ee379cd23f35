import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { logInAtRoute } from '../../lab/cli/lab-login.ts'
import { LAB_AUDIENCE } from '../../lab/index.ts'
import { mayBeIssuedEarly, unwell } from '../oracle/excuses.ts'
import type { Random } from '../random.ts'
import type { Caller, Surroundings } from './caller.ts'
import { calls, intrudes, type Life, provokes, reads, session } from './lives.ts'
import { connects } from './people.ts'
import { type Identity, needsOf, type Profile } from './routes.ts'

/** Callers that come and go; there are always so many. */
export interface Crowd {
  /** Resolves when all have gone; the run must be over. */
  readonly ended: Promise<void>
  /** How many there were. */
  readonly lives: number
}

const FIRST_WITHIN_MS = 10_000
const EXPIRED_SECONDS = 60
const { privateKey: FOREIGN_KEY } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** Starts them, within the first seconds. `users` are those who log in. */
export function startCrowd(
  around: Surroundings,
  options: { readonly size: number; readonly random: Random; readonly users: readonly string[] },
): Crowd {
  const { size, random, users } = options
  let lives = 0
  const place = async (index: number): Promise<void> => {
    const own = random.of(`place ${index}`)
    await around.pause(own.between(0, FIRST_WITHIN_MS))
    for (let life = 0; !around.isOver(); life += 1) {
      lives += 1
      const lived = own.of(`life ${life}`)
      await liveOnce(around, `c${index}.${life}`, lived, users).catch((error: unknown) => {
        // Of the harness itself: it must not look like a run without failures.
        around.findings.add('process ended', `caller c${index}.${life}: ${(error as Error).stack ?? String(error)}`)
      })
      await around.think(lived.between(0, 1_000))
    }
  }
  const ended = Promise.all(Array.from({ length: size }, (_, index) => place(index))).then(() => undefined)
  return {
    ended,
    get lives() {
      return lives
    },
  }
}

async function liveOnce(around: Surroundings, name: string, random: Random, users: readonly string[]): Promise<void> {
  const profile = random.pick(around.profiles)
  const life: Life = profile.origin === undefined ? random.pick([calls, calls, session]) : reads
  if (profile.knownBy === 'login') {
    const caller = await loggedIn(around, name, random, profile, random.pick(users))
    return caller === undefined ? undefined : life(caller)
  }
  if (profile.knownBy === 'account') return asPerson({ name, around, random, profile })
  const subject = name
  const groups = random.pick([[], ['dev'], ['admins'], ['dev', 'admins']])
  const team = random.pick([undefined, 'search', 'payments'] as const)
  const identity: Identity = { subject, groups, team }
  const caller = { name, around, random, profile, identity }
  if (profile.knownBy === 'nothing') return life({ ...caller, token: undefined })
  if (random.between(0, 9) === 0) return intrudes(await withoutRight(caller))
  // STS roles accept JWTs only, and the registry does not introspect opaque tokens.
  const takesOpaque = profile.origin === undefined && profile.path !== '/cloud-sts'
  const opaque = takesOpaque && random.between(0, 4) === 0
  const token = await mint(around, identity, { opaque })
  const lived = profile.path === '/client-credentials' && random.between(0, 3) === 0 ? provokes : life
  return lived({ ...caller, token, ...(opaque ? { needs: ['introspection'] as const } : {}) })
}

/** A caller of a route for which people connect their accounts. */
async function asPerson(as: Pick<Caller, 'name' | 'around' | 'random' | 'profile'>): Promise<void> {
  const { around, random } = as
  const { people } = around
  const person = people.take(random)
  if (person === undefined) return
  try {
    const identity: Identity = { subject: person.subject, groups: [], team: undefined }
    const caller = { ...as, identity }
    if (random.between(0, 9) === 0) return await intrudes(await withoutRight(caller))
    const opaque = random.between(0, 4) === 0
    const token = await mint(around, identity, { opaque })
    await connects({ ...caller, token, ...(opaque ? { needs: ['introspection'] as const } : {}) }, person, people)
  } finally {
    people.giveBack(person)
  }
}

async function mint(
  { identity: provider, marks }: Surroundings,
  { subject, groups, team }: Identity,
  more: Partial<Parameters<Surroundings['identity']['mint']>[0]>,
): Promise<string> {
  const token = await provider.mint({
    sub: subject,
    groups: [...groups],
    ttlSeconds: 600,
    claims: team === undefined ? {} : { team },
    ...more,
  })
  marks.add(token, `token of ${subject}`, 'caller')
  return token
}

async function loggedIn(
  around: Surroundings,
  name: string,
  random: Random,
  profile: Profile,
  user: string,
): Promise<Caller | undefined> {
  const startedAt = performance.now()
  try {
    const token = await logInAtRoute(around.url, profile.path, user)
    around.marks.add(token, `token of a login of ${user}`, 'caller')
    if (mayBeIssuedEarly(around.faults.spans, startedAt, performance.now())) {
      around.tally.add('login by a clock that is ahead')
      return undefined
    }
    around.tally.add('login')
    const identity: Identity = { subject: user, groups: ['dev'], team: undefined }
    return { name, around, random, profile, identity, token }
  } catch (error) {
    const needs = [...needsOf(profile), 'workspace', 'store', 'provider'] as const
    const parts = unwell(around.faults.spans, needs, startedAt, performance.now())
    around.tally.add('login failed')
    if (parts.length === 0)
      around.findings.add('refused without a reason', `login of ${user} for ${profile.path}: ${String(error)}`)
    return undefined
  }
}

/** A caller that must not be served under any fault. */
async function withoutRight(caller: Omit<Caller, 'token'>): Promise<Caller> {
  const { around, random, identity, profile } = caller
  const provider = ['provider', 'introspection'] as const
  // The registry speaks OAuth, which has one code for both.
  const missing = profile.origin === undefined ? ['401 missing_token'] : ['401 invalid_token']
  switch (random.between(0, 4)) {
    case 0:
      return { ...caller, token: undefined, refusal: missing }
    case 1: {
      const token = await mint(around, identity, { ttlSeconds: -EXPIRED_SECONDS })
      const tokenEndedAt = performance.now() - EXPIRED_SECONDS * 1_000
      return { ...caller, token, tokenEndedAt, refusal: ['401 expired_token', '401 invalid_token'], needs: provider }
    }
    case 2: {
      const token = await mint(around, identity, { aud: ['another-audience'] })
      return { ...caller, token, refusal: ['401 invalid_token'], needs: provider }
    }
    case 3: {
      const token = await forged(await mint(around, identity, {}), identity.subject)
      around.marks.add(token, `forged token of ${identity.subject}`, 'caller')
      return { ...caller, token, refusal: ['401 invalid_token'], needs: provider }
    }
    default: {
      if (!['/token-exchange', '/obo'].includes(profile.path)) return { ...caller, token: undefined, refusal: missing }
      const token = await mint(around, { ...identity, subject: 'mallory' }, {})
      return { ...caller, token, refusal: ['403 exchange_denied'] }
    }
  }
}

/** The claims of a valid token, signed by an unknown key. */
async function forged(good: string, subject: string): Promise<string> {
  const [head = '', payload = ''] = good.split('.')
  const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string }
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
  return new SignJWT({ ...claims, sub: subject, aud: LAB_AUDIENCE, jti: randomUUID() })
    .setProtectedHeader({ alg: 'ES256', kid, typ: 'at+jwt' })
    .sign(FOREIGN_KEY)
}
