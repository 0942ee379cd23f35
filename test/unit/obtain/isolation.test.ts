import * as fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { asFailure, type AuthenticatedCaller } from '../../../src/core/index.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig, type Grant, GRANTS, issued, json, startEndpoint } from '../../support/obtain/harness.ts'
import { shownIn } from '../../support/obtain/vouching.ts'
import { jwt } from '../../support/obtain/xaa-tokens.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const SEED = 20_261_123
const CALLERS = 300
const ISSUERS = ['https://a.example', 'https://b.example'] as const

/** Callers' tokens, and the types that accept them. */
const KINDS: readonly {
  readonly claims: Parameters<typeof createCaller>[0] & { readonly claims?: Record<string, string> }
  readonly header?: object
  readonly of: readonly Grant[]
}[] = [
  // An access token with the permissions of a user; for us, as an ID token would be, but its type says what it is.
  { claims: {}, header: { typ: 'at+jwt' }, of: ['exchange', 'obo'] },
  // An ID token: it carries no permissions.
  { claims: { claims: { scp: '' } }, header: { typ: 'JWT' }, of: ['exchange', 'xaa'] },
  // Valid for both.
  { claims: {}, of: ['exchange', 'obo', 'xaa'] },
  // No subject: the client says who it is, or nothing but the token does.
  { claims: { subject: '', claims: { sub: '', azp: 'job' } }, of: ['exchange', 'obo'] },
  { claims: { subject: '', claims: { sub: '' } }, of: ['exchange', 'obo'] },
  // Of an application, and for another audience.
  { claims: { claims: { idtyp: 'app', aud: 'backend' } }, of: ['exchange'] },
]

interface Person {
  readonly caller: AuthenticatedCaller
  readonly token: string
  readonly of: readonly Grant[]
}

/** The same subjects at two issuers, each with several tokens of several kinds. */
function personOf(index: number): Person {
  const pair = index >> 1
  const kind = KINDS[pair % KINDS.length]
  if (kind === undefined) throw new RangeError('no such kind')
  const issuer = ISSUERS[index % 2] ?? ISSUERS[0]
  const token = jwt({ index }, kind.header)
  const caller = createCaller({ subject: `person-${pair % 31}`, issuer, token, ...kind.claims })
  return { caller, token, of: kind.of }
}

test('callers of every kind, of every type in random order, with a cache too small: never a credential of another', async () => {
  const endpoint = await startEndpoint(sockets, (request, response) => {
    const [, , type = ''] = request.path.split('/')
    const shown = type === 'clientCredentials' ? 'nobody' : shownIn(request.form)
    // Answers come in another order than they were asked for.
    setTimeout(() => json(issued(`${type}-for-${shown}`))(request, response), shown.length % 5)
  })
  const rig = createRig(sockets, { secrets: { 'idp/secret': 's3cret' }, maxEntries: 40 })
  const client = { clientId: 'us', clientSecretRef: { name: 'idp', key: 'secret' } }
  const routes = Object.fromEntries(
    GRANTS.map((grant) => [grant, rig[grant]({ tokenUrl: `${endpoint.url}/${grant}`, audience: 'a', ...client })]),
  ) as unknown as Readonly<Record<Grant, ReturnType<typeof rig.exchange>>>
  const people = Array.from({ length: CALLERS }, (_, index) => personOf(index))

  const expected = (grant: Grant, { of, token }: Person): string => {
    if (grant === 'clientCredentials') return 'authorization: Bearer clientCredentials-for-nobody'
    if (of.includes(grant)) return `authorization: Bearer ${grant}-for-${token}`
    return grant === 'obo' ? 'not_a_user_token' : 'no_id_token'
  }
  const ask = async (grant: Grant, { caller }: Person, isRejected: boolean): Promise<string> => {
    const { header, obtain, stage } = routes[grant]
    if (isRejected) await stage.reject(await obtain(caller))
    return header(caller)
  }
  // The backend revokes some of the credentials between other requests.
  const steps = fc.sample(fc.tuple(fc.constantFrom(...GRANTS), fc.constantFrom(...people), fc.nat(9)), {
    numRuns: 3_000,
    seed: SEED,
  })
  for (let at = 0; at < steps.length; at += 60) {
    const batch = steps.slice(at, at + 60)
    const seen = await Promise.all(
      batch.map(([grant, person, dice]) =>
        ask(grant, person, dice === 0).catch((error: unknown) => asFailure(error).code),
      ),
    )
    expect(seen).toEqual(batch.map(([grant, person]) => expected(grant, person)))
  }
  // Each was forgotten meanwhile, or nothing would be seen here.
  expect(rig.cache.list().entries).toBeLessThanOrEqual(40)
  expect(endpoint.received.length).toBeGreaterThan(1_000)
  for (const grant of ['obo', 'xaa'] as const) {
    const refused = new Set(people.filter(({ of }) => !of.includes(grant)).map(({ token }) => token))
    const shown = endpoint.received.filter(({ path }) => path.startsWith(`/token/${grant}`))
    expect(shown.filter(({ form }) => refused.has(shownIn(form)))).toEqual([])
  }
}, 60_000)
