import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { INITIALIZE, openLab, post, type TestLab } from '../../support/e2e/lab.ts'

let lab: TestLab
let url: string

beforeAll(async () => {
  lab = await openLab()
  url = `${lab.url}/bearer-token`
})
afterAll(() => lab.close())

const bearer = async (sub: string, ttlSeconds = 300): Promise<Record<string, string>> => ({
  authorization: `Bearer ${await lab.token({ sub, ttlSeconds })}`,
})
const LIST = { jsonrpc: '2.0', id: 2, method: 'tools/list' }

async function openSession(headers: Record<string, string>): Promise<string> {
  const response = await post(url, INITIALIZE, headers)
  expect(response.status).toBe(200)
  await response.text()
  return response.headers.get('mcp-session-id') ?? ''
}

describe('sessions on a route with callers', () => {
  it('belong to the caller to whom they were given', async () => {
    const [alice, bob] = [await bearer('alice'), await bearer('bob')]
    const session = await openSession(alice)
    expect(lab.backend.sessions().some((id) => session.startsWith(`${id}.`))).toBe(true)
    const list = (headers: Record<string, string>, id: string) => post(url, LIST, { ...headers, 'mcp-session-id': id })
    expect((await list(alice, session)).status).toBe(200)
    const stolen = await list(bob, session)
    expect(stolen.status).toBe(404)
    expect(await stolen.json()).toMatchObject({ error: { data: { reason: 'unknown_session' } } })
    const bare = session.slice(0, session.lastIndexOf('.'))
    for (const forged of [bare, `${bare}.`, `${session}x`, `${bare}.${'A'.repeat(43)}`])
      expect((await list(alice, forged)).status).toBe(404)
    // Another token of the same caller is as good.
    expect((await list(await bearer('alice'), session)).status).toBe(200)
  })

  it('have GET streams that end with the token; a new token opens another', async () => {
    const mintedAt = Date.now()
    const short = await bearer('carol', 4)
    const session = await openSession(short)
    const open = (headers: Record<string, string>) =>
      fetch(url, { headers: { ...headers, accept: 'text/event-stream', 'mcp-session-id': session } })
    const stream = await open(short)
    expect(stream.status).toBe(200)
    await stream.text()
    // The token's 4 s, whose end is a whole second, and at most the tolerance of 5 s for clocks that differ.
    expect(Date.now() - mintedAt).toBeGreaterThan(2_900)
    expect(Date.now() - mintedAt).toBeLessThan(20_000)
    const renewed = await bearer('carol')
    await vi.waitFor(async () => {
      // The backend may need a moment to see that the stream before has ended.
      const again = await open(renewed)
      await again.body?.cancel()
      expect(again.status).toBe(200)
    }, 5_000)
  })
})
