import { describe, expect, it } from 'vitest'
import { createFailures } from '../../../src/inspect/failures.ts'
import type { RequestRecord } from '../../../src/inspect/record.ts'
import { createRing } from '../../../src/inspect/ring.ts'

const record = (id: string, text = ''): RequestRecord => ({
  summary: {
    id,
    atMs: 0,
    isOpen: false,
    route: 'r',
    type: 't',
    method: 'GET',
    target: '/',
    status: 200,
    reason: '',
    attempts: 1,
    durationMs: 1,
  },
  httpVersion: '1.1',
  peer: '127.0.0.1',
  received: '',
  dropped: [],
  caller: undefined,
  owned: [],
  targetOrigin: undefined,
  attempts: [],
  decision: undefined,
  rules: undefined,
  responded: undefined,
  marks: {},
  detail: undefined,
  why: undefined,
  connection: undefined,
  requestBody: { text, bytes: text.length },
  responseBody: undefined,
})
const ids = (ring: ReturnType<typeof createRing>) => ring.all().map(({ summary }) => summary.id)

describe('the ring', () => {
  it('drops the oldest past its number, and says how many', () => {
    const ring = createRing({ maxRecords: 3, maxBytes: 1e6 })
    for (const id of ['a', 'b', 'c', 'd', 'e']) ring.push(record(id))
    expect(ids(ring)).toEqual(['c', 'd', 'e'])
    expect(ring.dropped).toBe(2)
    expect(ring.find('a')).toBeUndefined()
    expect(ring.find('e')?.summary.id).toBe('e')
  })

  it('drops the oldest past its bytes', () => {
    const ring = createRing({ maxRecords: 500, maxBytes: 64 * 1024 })
    for (const id of ['a', 'b', 'c']) ring.push(record(id, 'x'.repeat(24_000)))
    expect(ids(ring)).toEqual(['b', 'c'])
    expect(ring.bytes).toBeLessThanOrEqual(64 * 1024)
    ring.push(record('huge', 'x'.repeat(80_000)))
    expect(ids(ring)).toEqual([])
    expect(ring.bytes).toBe(0)
  })

  it('gives each body as it was, wherever it is in the store', () => {
    const ring = createRing({ maxRecords: 500, maxBytes: 100_000 })
    const texts = Array.from({ length: 300 }, (_, index) => `${index} é€😀 `.repeat(1 + ((index * 7919) % 3000)))
    for (const [index, text] of texts.entries()) {
      ring.push({ ...record(String(index), text), responseBody: { text: `${text}!`, bytes: 0, cut: 'longer' } })
      expect(ring.bytes).toBeLessThanOrEqual(100_000)
      for (const { summary } of ring.all()) {
        const kept = ring.find(summary.id)
        expect(kept?.requestBody?.text === texts[Number(summary.id)]).toBe(true)
        expect(kept?.responseBody?.text === `${texts[Number(summary.id)]}!`).toBe(true)
      }
    }
    expect(ring.search('É€')).toEqual(ids(ring))
    expect(ring.search('no such text')).toEqual([])
    expect(ring.all().length).toBeGreaterThan(0)
  })

  it('forgets all when it is cleared', () => {
    const ring = createRing({ maxRecords: 1, maxBytes: 1e6 })
    ring.push(record('a'))
    ring.push(record('b'))
    ring.clear()
    expect([ids(ring), ring.bytes, ring.dropped]).toEqual([[], 0, 0])
  })
})

describe('failures by reason', () => {
  it('are counted by the minute and forgotten after fifteen', () => {
    let now = 100 * 60_000
    const failures = createFailures({ now: () => now })
    const note = (reason: string) => failures.note('r', { atMs: now, requestId: 'x', status: 500, reason })
    note('no_role')
    note('no_role')
    now += 60_000
    note('expired_token')
    const { minutes, reasons } = failures.series()
    expect(minutes).toHaveLength(15)
    expect(minutes.at(-1)).toBe(now)
    expect(reasons['no_role']?.slice(-2)).toEqual([2, 0])
    expect(reasons['expired_token']?.slice(-2)).toEqual([0, 1])
    expect(failures.last('r')?.reason).toBe('expired_token')
    now += 14 * 60_000
    expect(Object.keys(failures.series().reasons)).toEqual(['expired_token'])
    now += 60_000
    expect(failures.series().reasons).toEqual({})
  })
})
