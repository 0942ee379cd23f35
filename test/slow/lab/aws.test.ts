import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Lab } from '../../../lab/cli/lab-compose.ts'
import { CONTAINER_PATH } from '../../../lab/index.ts'
import { callerHeaders, callTool, reasonOf, startTestLab } from '../../support/lab/proxied.ts'

let lab: Lab
beforeAll(async () => {
  lab = await startTestLab()
})
afterAll(() => lab.close())
beforeEach(() => {
  lab.backend.forget()
  lab.metadata.fault = 'none'
})

const ROLE = (name: string) => `arn:cloud:iam::000000000000:role/lab-${name}`

describe('the identity of the proxy', () => {
  test('signs requests as it is, for opaque tokens too', async () => {
    for (const opaque of [false, true]) {
      const { status, seen } = await callTool(lab, '/aws-service', await callerHeaders(lab, { sub: 'alice', opaque }))
      expect(status).toBe(200)
      expect(seen?.verified).toMatchObject({ roleArn: ROLE('service'), sessionName: 'lab-proxy' })
    }
    expect(lab.metadata.asked).toEqual([`GET ${CONTAINER_PATH} 200`])
  })

  test('is renewed when the backend does not take it any more', async () => {
    const callers = await Promise.all(['alice', 'bob'].map((sub) => callerHeaders(lab, { sub })))
    for (const headers of callers) await callTool(lab, '/aws-service', headers)
    let calls = 0
    // Keys younger than a minute are renewed once two callers were refused with them.
    await expect
      .poll(
        async () => {
          lab.sts.faults.set({ sts: 'revoking' })
          lab.sts.faults.set({ sts: 'none' })
          return (await callTool(lab, '/aws-service', callers[calls++ % 2])).status
        },
        { timeout: 15_000, interval: 500 },
      )
      .toBe(200)
  })
})

describe('a role behind the hub', () => {
  test.each(['search', 'payments'])(
    'is that of the team %s, with tags, source identity and policy of the caller',
    async (team) => {
      const { status, seen } = await callTool(
        lab,
        '/aws-chained',
        await callerHeaders(lab, { sub: `user-${team}`, claims: { team } }),
      )
      expect(status).toBe(200)
      expect(seen?.verified).toMatchObject({
        roleArn: ROLE(team),
        sessionName: `user-${team}`,
        tags: { Team: team, User: `user-${team}` },
        sourceIdentity: `user-${team}`,
      })
      expect(lab.sts.calls(ROLE('hub'))).toBe(1)
    },
  )

  test('is that of each of 100 callers in any order, as STS and the backend see it', async () => {
    const callers = Array.from({ length: 100 }, (_, index) => ({
      sub: `caller-${index}`,
      team: index % 3 === 2 ? undefined : index % 3 === 0 ? 'search' : 'payments',
    }))
    // Each comes twice; 37 and 100 have no divisor in common.
    const order = Array.from({ length: 200 }, (_, index) => callers[(index * 37) % 100] ?? callers[0])
    const wrong: unknown[] = []
    let next = 0
    const worker = async () => {
      for (let each = order[next++]; each !== undefined; each = order[next++]) {
        const { sub, team } = each
        const claims = team === undefined ? {} : { team }
        const { body } = await callTool(lab, '/aws-chained', await callerHeaders(lab, { sub, claims }))
        const { result } = body as { result?: { structuredContent?: { verified?: Record<string, unknown> } } }
        const { roleArn, sessionName, tags, sourceIdentity } = result?.structuredContent?.verified ?? {}
        const own = team === undefined ? { User: sub } : { Team: team, User: sub }
        const expected = [ROLE(team ?? 'guest'), sub, own, team === undefined ? undefined : sub]
        if (!isDeepStrictEqual([roleArn, sessionName, tags, sourceIdentity], expected))
          wrong.push([sub, roleArn, sessionName, tags, sourceIdentity])
      }
    }
    await Promise.all(Array.from({ length: 16 }, worker))
    expect(wrong).toEqual([])
    expect(lab.sts.calls(ROLE('hub'))).toBe(1)
  }, 120_000)

  test('is the fallback, with its own tags, for a caller of no team', async () => {
    const { seen } = await callTool(lab, '/aws-chained', await callerHeaders(lab, { sub: 'dave' }))
    expect(seen?.verified).toMatchObject({ roleArn: ROLE('guest'), tags: { User: 'dave' } })
  })

  test.each([
    ['of a team without a role', { team: 'others' }],
    ['of a team that is a path', { team: 'search/../hub' }],
    ['of the hub’s name', { team: 'hub' }],
    ['of a list of teams', { team: ['search'] }],
  ])('is none for a caller %s: 403, and the backend sees nothing', async (_text, claims) => {
    const { status, body, seen } = await callTool(lab, '/aws-chained', await callerHeaders(lab, { sub: 'eve', claims }))
    expect([status, reasonOf(body), seen]).toEqual([403, 'role_denied', undefined])
  })
})
