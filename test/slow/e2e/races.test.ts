import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CredentialsWorld, openCredentialsWorld, ROLE } from '../../support/e2e/credentials.ts'
import { tokenFor } from '../../support/e2e/grants.ts'

let world: CredentialsWorld

beforeAll(async () => {
  world = await openCredentialsWorld()
})
afterAll(() => world.close())

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const all = async (requests: readonly (readonly [route: string, headers: Record<string, string>])[]) =>
  new Set(await Promise.all(requests.map(([route, headers]) => world.status(route, headers))))

/** Requests of 100 callers at once. */
const REQUESTS = 200
const TOKENS = [
  { route: 'one', crowd: 1_000, calls: () => world.identity.calls('exchange'), isOwn: false },
  { route: 'own', crowd: 100, calls: () => world.identity.calls('token'), isOwn: true },
  { route: 'obo', crowd: 100, calls: () => world.identity.calls('obo'), isOwn: false },
  { route: 'xaa', crowd: 100, calls: () => world.others.given(), isOwn: false },
]

describe.each(TOKENS)(
  'concurrent requests through the proxy, nothing cached, to $route',
  ({ route, crowd, calls, isOwn }) => {
    const bearer = (sub: string) => world.bearer({ sub, ...tokenFor(route) })

    it(`${crowd} of one caller ask for one token`, async () => {
      const before = calls()
      const alice = await bearer('alice')
      expect(await all(range(crowd).map(() => [route, alice]))).toEqual(new Set([200]))
      expect(calls() - before).toBe(1)
    }, 60_000)

    it(`${REQUESTS} of 100 callers make one call for each, and every caller gets their own`, async () => {
      expect((await world.admin(`/cache?config=default/${route}`, 'DELETE')).status).toBe(200)
      world.backend.forget()
      const before = calls()
      const callers = await Promise.all(range(100).map((index) => bearer(`caller-${index}`)))
      expect(await all(range(REQUESTS).map((index) => [route, callers[index % 100] ?? {}] as const))).toEqual(
        new Set([200]),
      )
      expect(calls() - before).toBe(isOwn ? 1 : 100)
      const claims = world.backend.requests(`/${route}`).map(({ verified }) => verified?.['claims'] as { sub: string })
      const subjects = claims.map(({ sub }) => sub)
      expect(subjects).toHaveLength(REQUESTS)
      if (isOwn) expect(new Set(subjects)).toEqual(new Set(['own']))
      else
        for (const index of range(100))
          expect(subjects.filter((sub) => sub === `caller-${index}`)).toHaveLength(REQUESTS / 100)
    }, 60_000)
  },
)

describe('concurrent requests through the proxy, nothing cached, to a route that signs', () => {
  it('300 of one caller make one call of STS', async () => {
    const alice = await world.bearer({ sub: 'alice', groups: ['dev'] })
    expect(await all(range(300).map(() => ['aws', alice]))).toEqual(new Set([200]))
    expect(world.sts.calls()).toBe(1)
  }, 60_000)

  it('50 callers in three roles make 150 calls of STS, and each request is signed as its caller in its role', async () => {
    world.backend.forget()
    const before = world.sts.calls()
    const roles = { admins: 'admin', dev: 'developer', others: 'reader' }
    for (const group of Object.keys(roles)) {
      const callers = await Promise.all(
        range(50).map((index) => world.bearer({ sub: `user-${index}`, groups: [group] })),
      )
      expect(await all([...callers, ...callers].map((headers) => ['aws', headers]))).toEqual(new Set([200]))
    }
    expect(world.sts.calls() - before).toBe(150)
    const signed = world.backend.requests('/aws').map(({ verified }) => verified ?? {})
    expect(signed).toHaveLength(300)
    for (const { sessionName, subject } of signed) expect(sessionName).toBe(subject)
    for (const role of Object.values(roles))
      expect(signed.filter(({ roleArn }) => roleArn === `${ROLE}${role}`)).toHaveLength(100)
  }, 60_000)
})

describe('a new token of a known caller', () => {
  it('that has another role is signed with that role at once', async () => {
    world.backend.forget()
    const before = world.sts.calls()
    for (const group of ['dev', 'admins', 'dev'])
      expect(await world.status('aws', await world.bearer({ sub: 'promoted', groups: [group] }))).toBe(200)
    const signed = world.backend.requests('/aws').map(({ verified }) => verified?.['roleArn'])
    expect(signed).toEqual([`${ROLE}developer`, `${ROLE}admin`, `${ROLE}developer`])
    // The third has what the first one got.
    expect(world.sts.calls() - before).toBe(2)
  })
})
