import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { openMetrics } from '../../../src/report/metrics.ts'
import { passLines } from '../../../src/workers/fork.ts'
import { mergeDecisions, mergeListings, mergeReadiness, mergeReloads } from '../../../src/workers/merge.ts'
import { createMergedMetrics } from '../../../src/report/index.ts'

const bare = () => openMetrics({ processMetrics: false })
const IN_USE = [
  { route: ['a'], name: ['idp'], upstream: [] },
  { route: ['b'], name: [], upstream: [] },
]

describe('the metrics of several workers', () => {
  it('are sums, and for gauges what they say of themselves', async () => {
    const [one, other] = [bare(), bare()]
    for (const [metrics, up, keys] of [
      [one, 1, 3],
      [other, 0, 2],
    ] as const) {
      metrics.counter('requests_total', 'Requests.', ['route']).with('a').add(keys)
      metrics.gauge('open', 'Open.').with().set(keys)
      metrics.gauge('up', 'Up.', [], 'min').with().set(up)
      metrics.gauge('state', 'State.', [], 'max').with().set(up)
      metrics.histogram('seconds', 'Seconds.', [], [1, 5]).with().observe(keys)
    }
    const merged = createMergedMetrics()
    merged.take(one, await one.snapshot())
    merged.take(other, await other.snapshot())
    const own = bare()
    own.counter('own_total', 'Own.').with().add(7)
    const text = await merged.render(await own.snapshot(), IN_USE)
    for (const line of [
      'requests_total{route="a"} 5',
      'open 5',
      'up 0',
      'state 1',
      'seconds_bucket{le="1"} 0',
      'seconds_bucket{le="5"} 2',
      'seconds_sum 5',
      'seconds_count 2',
      'own_total 7',
    ])
      expect(text).toContain(`${line}\n`)
    expect(text.match(/# TYPE requests_total/g)).toHaveLength(1)
  })

  it('never go back when a worker has gone: what it counted stays, its gauges and removed routes do not', async () => {
    const [one, other] = [bare(), bare()]
    for (const metrics of [one, other]) {
      for (const route of ['a', 'gone']) metrics.counter('requests_total', 'Requests.', ['route']).with(route).add(2)
      for (const name of ['idp', 'gone']) metrics.counter('asked_total', 'Asked.', ['name']).with(name).add(1)
      metrics.counter('requests_total', 'Requests.', ['route']).with('').add(1)
      metrics.gauge('open', 'Open.').with().set(1)
      metrics.histogram('seconds', 'Seconds.', ['route'], [1]).with('a').observe(0.5)
    }
    const merged = createMergedMetrics()
    merged.take(one, await one.snapshot())
    merged.take(other, await other.snapshot())
    merged.depart(one)
    merged.depart(other)
    const third = bare()
    third.counter('requests_total', 'Requests.', ['route']).with('a').add(1)
    merged.take(third, await third.snapshot())
    const text = await merged.render([], IN_USE)
    expect(text).toContain('requests_total{route="a"} 5\n')
    expect(text).toContain('seconds_count{route="a"} 2\n')
    expect(text).toContain('asked_total{name="idp"} 2\n')
    // Of requests for which no route was found.
    expect(text).toContain('requests_total{route=""} 2\n')
    expect(text).not.toContain('gone')
    expect(text).not.toContain('open 1')
    expect(await merged.render([], IN_USE)).toBe(text)
    merged.depart(third)
    expect(await merged.render([], [])).toContain('requests_total{route="a"} 5\n')
  })
})

describe('what the admin listener says for several workers', () => {
  const healthy = { ok: true } as const
  it('is ready while one is, and says when fewer run than wanted', () => {
    expect(mergeReadiness([healthy, healthy], 2)).toEqual({ ok: true })
    expect(mergeReadiness([healthy], 2)).toEqual({
      ok: true,
      degraded: true,
      detail: { workers: { running: 1, wanted: 2 } },
    })
    expect(mergeReadiness([], 2)).toMatchObject({ ok: false, detail: { workers: { running: 0, wanted: 2 } } })
    const unusable = { ok: false, detail: { unusable: [{ route: 'a' }] } }
    expect(mergeReadiness([healthy, unusable], 2)).toEqual({
      ok: true,
      degraded: true,
      detail: { unusable: [{ route: 'a' }] },
    })
    expect(mergeReadiness([unusable, unusable], 2)).toMatchObject({ ok: false })
    expect(mergeReadiness([{ ok: false, detail: 'no routes' }], 1)).toEqual({
      ok: false,
      degraded: true,
      detail: 'no routes',
    })
  })

  it('adds up caches, group by group', () => {
    const group = {
      config: 'ns/a',
      type: 'awsSts',
      issuer: 'https://idp',
      role: 'r',
      count: 2,
      oldestAgeSeconds: 9,
      newestAgeSeconds: 3,
      soonestEndSeconds: 40,
    }
    const second = { ...group, count: 1, oldestAgeSeconds: 5, newestAgeSeconds: 1, soonestEndSeconds: 50 }
    const other = { ...group, role: 's' }
    const numbers = { entries: 2, maxEntries: 100, inFlight: 1, negative: 0 }
    expect(
      mergeListings([
        { ...numbers, groups: [group] },
        { ...numbers, negative: 3, groups: [second, other] },
      ]),
    ).toEqual({
      entries: 4,
      maxEntries: 200,
      inFlight: 2,
      negative: 3,
      groups: [{ ...group, count: 3, newestAgeSeconds: 1 }, other],
    })
  })

  it('shows the newest 200 decisions of all', () => {
    const list = (start: number) => Array.from({ length: 150 }, (_, index) => ({ atMs: start + 300 - 2 * index }))
    const merged = mergeDecisions([list(0), list(1)])
    expect(merged).toHaveLength(200)
    expect(merged.slice(0, 3)).toEqual([{ atMs: 301 }, { atMs: 300 }, { atMs: 299 }])
  })

  it('has reloaded when all have, and names each problem once', () => {
    expect(mergeReloads([{ ok: true }, { ok: true }])).toEqual({ ok: true })
    const failed = { ok: false, problems: ['a.yaml:1:1 wrong'] } as const
    expect(mergeReloads([{ ok: true }, failed, failed])).toEqual(failed)
    expect(mergeReloads([])).toMatchObject({ ok: false })
  })
})

describe('the log lines of a worker', () => {
  it('are handed on whole, whatever pieces they come in', async () => {
    const stream = new PassThrough()
    const lines: string[] = []
    passLines(stream, (text) => lines.push(text))
    const text = Buffer.from('{"a":"ä"}\n{"b":1}\nlast words')
    for (const byte of text) stream.write(Buffer.from([byte]))
    stream.end()
    await new Promise((resolve) => stream.once('close', resolve))
    expect(lines).toEqual(['{"a":"ä"}\n', '{"b":1}\n', 'last words\n'])
  })
})
