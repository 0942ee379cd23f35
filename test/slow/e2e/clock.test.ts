import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { INITIALIZE, openLab, post, type TestLab } from '../../support/e2e/lab.ts'

const OFF_MS = 10 * 60_000
let lab: TestLab
let headers: Record<string, string>

beforeAll(async () => {
  lab = await openLab({ backendClock: { now: () => Date.now() + OFF_MS } })
  headers = { authorization: `Bearer ${await lab.token({ sub: 'alice', groups: ['dev'] })}` }
})
afterAll(() => lab.close())

describe('a backend whose clock is ten minutes off', () => {
  it('is answered with one corrected signature, and with right ones from then on', async () => {
    expect((await post(`${lab.url}/cloud-sts`, INITIALIZE, headers)).status).toBe(200)
    expect(lab.backend.requests('/cloud-sts')).toHaveLength(2)
    expect((await post(`${lab.url}/cloud-sts`, INITIALIZE, headers)).status).toBe(200)
    expect(lab.backend.requests('/cloud-sts')).toHaveLength(3)
  })

  it('gets bodies of 9 MiB whole and signed, with and without a length; larger ones than 10 MiB are 413', async () => {
    const body = randomBytes((9 * 1024 * 1024) / 2).toString('hex')
    const send = (content: RequestInit['body']) =>
      fetch(`${lab.url}/cloud-sts`, { method: 'POST', headers, body: content ?? null, duplex: 'half' })
    for (const content of [body, new Blob([body]).stream()]) {
      lab.backend.forget()
      const response = await send(content)
      expect([401, 403, 502]).not.toContain(response.status)
      const [request] = lab.backend.requests('/cloud-sts')
      expect(request?.body.length).toBe(body.length)
      expect(request?.verified).toBeDefined()
      expect(request?.headers).not.toContain('transfer-encoding')
    }
    lab.backend.forget()
    const tooLarge = await send(new Blob([body, body]).stream())
    expect(tooLarge.status).toBe(413)
    expect(lab.backend.requests('/cloud-sts')).toHaveLength(0)
  })
})
