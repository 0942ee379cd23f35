import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'
import { callerHeaders, callTool } from '../../support/lab/proxied.ts'
import { finished, shown } from '../../support/inspect/page-client.ts'

let lab: TestLab
beforeAll(async () => {
  lab = await openLab()
}, 30_000)
afterAll(() => lab.close())

const NUMBERS = /\((AADSTS\d+, trace_id [\w-]{36}, correlation_id [\w-]{36})\)/

it.each([
  ['consent is missing', { sub: 'mallory' }, 'exchange_denied', 'AADSTS65001'],
  ['a second factor is wanted', { sub: 'alice', claims: { amr: ['pwd'] } }, 'interaction_required', 'AADSTS50076'],
])('where %s, log and page name the numbers by which the tenant knows it', async (_what, claims, reason, code) => {
  const before = lab.log.lines.length
  const headers = await callerHeaders(lab, claims)
  // The second one is refused without the tenant.
  for (let request = 0; request < 2; request += 1) await callTool(lab, '/obo', headers)
  const reasons = await vi.waitFor(async () => {
    const requests = (await finished(lab.inspectUrl ?? '')).slice(-2)
    const found = await Promise.all(requests.map(({ id }) => shown(lab.inspectUrl ?? '', id)))
    expect(found.map(({ why }) => why?.reason)).toEqual([reason, reason])
    return found.map(({ why }) => why?.cause ?? '')
  })
  const [numbers = ''] = reasons.map((cause) => NUMBERS.exec(cause)?.[1])
  expect(numbers).toContain(code)
  const lines = lab.log.lines.slice(before)
  // The request, and a line for each attempt.
  expect(lines.filter((line) => line.includes(numbers))).toHaveLength(3)
  expect(reasons[1]).toContain(numbers)
  expect(lines.join('\n')).not.toContain('AADSTS65001: ')
})
