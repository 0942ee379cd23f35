import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MODES } from '../../support/lab/client-behaviours.ts'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'

const OFF_MS = 10 * 60_000
const LARGE = 9 * 1024 * 1024
let lab: TestLab

beforeAll(async () => {
  lab = await openLab({ backendClock: { now: () => Date.now() - OFF_MS } })
})
afterAll(() => lab.close())

describe('the official clients at a backend that verifies signatures and whose clock is ten minutes behind', () => {
  it.each(Object.entries(MODES))(
    '%s succeeds with a large body and after revoked credentials',
    async (mode, connect) => {
      const headers = { authorization: `Bearer ${await lab.token({ sub: mode, groups: ['dev'] })}` }
      lab.backend.forget()
      const client = await connect({ url: `${lab.url}/cloud-sts`, headers, backend: lab.backend })
      const call = () => client.call({ name: 'test_simple_text', arguments: { padding: 'x'.repeat(LARGE) } })
      expect(JSON.stringify(await call())).toContain('simple text')
      const before = lab.sts.calls()
      lab.sts.faults.set({ sts: 'revoking' })
      expect(JSON.stringify(await call())).toContain('simple text')
      expect(lab.sts.calls() - before).toBe(1)
      const { tools } = await client.list()
      expect(tools.length).toBeGreaterThan(3)
      await client.close()

      const requests = lab.backend.requests('/cloud-sts')
      expect(requests.filter(({ body }) => body.length > LARGE).length).toBeGreaterThanOrEqual(2)
      const isRefused = requests.map(({ verified }) => verified === undefined)
      // A retry for the clock (first client), and one for the revoked credentials.
      expect(isRefused.filter(Boolean).length).toBeLessThanOrEqual(2)
      expect(isRefused.filter(Boolean).length).toBeGreaterThanOrEqual(1)
      expect(requests.every(({ verified }) => verified === undefined || verified['sessionName'] !== undefined)).toBe(
        true,
      )
    },
    60_000,
  )
})
