import { afterEach, describe, expect, it, vi } from 'vitest'
import { OutboundError, type Outbound, type OutboundRequest, type OutboundResponse } from '../../../src/core/index.ts'
import { openSource, type Source } from '../../../src/registry/index.ts'
import { listUrl } from '../../../src/registry/upstream-source.ts'
import { entry, NO_METRICS, recordingLog } from '../../support/registry/setup.ts'

const log = recordingLog()
let source: Source | undefined
afterEach(async () => {
  await source?.close()
  source = undefined
  log.lines.length = 0
  vi.useRealTimers()
})

type Reply = Partial<Omit<OutboundResponse, 'body'>> & { json?: unknown; text?: string }

/** An upstream registry whose answers a test gives, and what it was asked. */
function upstream(answer: (request: OutboundRequest, count: number) => Reply) {
  const asked: OutboundRequest[] = []
  let isClosed = false
  const outbound: Outbound = {
    request: (request) => {
      asked.push(request)
      try {
        const { status = 200, headers = {}, json, text } = answer(request, asked.length)
        return Promise.resolve({ status, headers, body: Buffer.from(text ?? JSON.stringify(json) ?? '') })
      } catch (error) {
        return Promise.reject(error)
      }
    },
    close: () => {
      isClosed = true
      return Promise.resolve()
    },
  }
  const open = async (url = 'https://registry.example.com/servers.json') => {
    const deps = {
      clock: { now: () => 9000 },
      log,
      metrics: NO_METRICS,
      outbound: () => outbound,
      upstreamPollMs: 60_000,
    }
    source = await openSource('mirror', { url }, deps)
    return source
  }
  return { asked, open, isClosed: () => isClosed }
}
const names = (source: Source) => source.state().snapshot?.entries.map(({ name }) => name)
const list = (items: readonly unknown[], nextCursor?: string) => ({
  servers: items,
  metadata: { count: items.length, nextCursor },
})

describe('an upstream registry as source', () => {
  it.each([
    ['https://registry.example.com', 'https://registry.example.com/v0.1/servers?limit=100'],
    ['https://registry.example.com/v0.1/servers', 'https://registry.example.com/v0.1/servers?limit=100'],
    [
      'https://registry.example.com/registry/x/v0.1/servers?limit=5',
      'https://registry.example.com/registry/x/v0.1/servers?limit=5',
    ],
    ['https://files.example.com/list.json?a=b', 'https://files.example.com/list.json?a=b'],
  ])('%s is asked at %s', (configured, url) => {
    expect(listUrl(configured)).toBe(url)
  })

  it('is read page by page', async () => {
    const pages: Record<string, Reply> = {
      '': { json: list([entry('a/one', '1')], 'c 2') },
      'c 2': { json: list([entry('a/two', '1')], 'c3') },
      c3: { json: list([entry('a/three', '1')]) },
    }
    const { open, asked } = upstream(({ url }) => pages[new URL(url).searchParams.get('cursor') ?? ''] ?? {})
    expect(names(await open('https://registry.example.com'))).toEqual(['a/one', 'a/three', 'a/two'])
    expect(asked.map(({ url }) => new URL(url).search)).toEqual([
      '?limit=100',
      '?limit=100&cursor=c+2',
      '?limit=100&cursor=c3',
    ])
    expect(asked[0]?.headers).toEqual({ accept: 'application/json' })
  })

  it('is polled with the ETag, and unchanged data stay the same object', async () => {
    let etag = '"v1"'
    const { open, asked } = upstream(({ headers }) =>
      headers?.['if-none-match'] === etag
        ? { status: 304 }
        : { headers: { etag }, json: [entry('a/b', etag.slice(2, 3))] },
    )
    const source = await open()
    const before = source.state().snapshot
    await source.refresh()
    expect(asked[1]?.headers).toMatchObject({ 'if-none-match': '"v1"' })
    expect(source.state().snapshot).toBe(before)
    etag = '"v2"'
    await source.refresh()
    expect(source.state().snapshot?.entries[0]?.version).toBe('2')
  })

  it.each([
    ['seconds', '900', 900],
    ['nothing', undefined, undefined],
  ])('that asks to be left alone (%s) is polled no sooner', async (_what, value, seconds) => {
    vi.useFakeTimers()
    const headers = value === undefined ? {} : { 'retry-after': value }
    const { open, asked } = upstream((_request, count) =>
      count === 1 ? { json: [entry('a/b', '1')] } : { status: 503, headers },
    )
    const opened = await open()
    await opened.refresh()
    expect(opened.state()).toMatchObject({ problem: 'bad_status' })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(asked).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(899_000)
    expect(asked.length).toBe(seconds === undefined ? 17 : 3)
  })

  it('reloads entries that another page changed, and keeps the rest', async () => {
    let second = '"1"'
    const { open } = upstream(({ url, headers }) => {
      const isSecond = url.includes('cursor=')
      const etag = isSecond ? second : '"first"'
      if (headers?.['if-none-match'] === etag) return { status: 304 }
      return {
        headers: { etag },
        json: isSecond ? list([entry('a/two', second.slice(1, 2))]) : list([entry('a/one', '1')], 'x'),
      }
    })
    const source = await open('https://registry.example.com')
    second = '"2"'
    await source.refresh()
    expect(source.state().snapshot?.entries.map(({ name, version }) => `${name} ${version}`)).toEqual([
      'a/one 1',
      'a/two 2',
    ])
  })

  it.each<[string, () => Reply, string]>([
    ['answers 500', () => ({ status: 500 }), 'bad_status'],
    ['redirects', () => ({ status: 302, headers: { location: 'https://other.example' } }), 'bad_status'],
    ['returns 304 to an unconditional request', () => ({ status: 304 }), 'bad_status'],
    ['answers HTML', () => ({ text: '<html>' }), 'not_json'],
    ['answers another shape', () => ({ json: { servers: 5 } }), 'invalid'],
    ['lists what is not valid', () => ({ json: [entry('nonsense', '1')] }), 'invalid'],
    ['gives the same cursor for ever', () => ({ json: list([], 'again') }), 'invalid'],
    [
      'cannot be reached',
      () => {
        throw new OutboundError('unreachable')
      },
      'unreachable',
    ],
    [
      'is slow',
      () => {
        throw new OutboundError('timeout')
      },
      'unreachable',
    ],
    [
      'sends too much',
      () => {
        throw new OutboundError('too_large')
      },
      'too_large',
    ],
    [
      'breaks in an unforeseen way',
      () => {
        throw new Error('token=abc')
      },
      'failed',
    ],
  ])('keeps the last good data while it %s', async (_, broken, problem) => {
    let isBroken = false
    const { open } = upstream(({ headers }) =>
      isBroken && headers?.['if-none-match'] === undefined ? broken() : { json: [entry('a/b', '1')] },
    )
    const source = await open()
    isBroken = true
    await source.refresh()
    expect(source.state()).toMatchObject({ problem })
    expect(names(source)).toEqual(['a/b'])
    expect(log.lines.join('\n')).not.toContain('abc')
    isBroken = false
    await source.refresh()
    expect(source.state().problem).toBeUndefined()
  })

  it('is not believed unchanged when its last data could not be used', async () => {
    let version = 1
    const { open } = upstream(({ headers }) => {
      const etag = `"${version}"`
      if (headers?.['if-none-match'] === etag) return { status: 304 }
      return { headers: { etag }, json: [entry(version === 2 ? 'nonsense' : 'a/b', String(version))] }
    })
    const source = await open()
    version = 2
    await source.refresh()
    await source.refresh()
    expect(source.state().problem).toBe('invalid')
    expect(source.state().snapshot?.entries[0]?.version).toBe('1')
  })

  it('serves the good entries of a page with bad ones', async () => {
    const { open } = upstream(() => ({ json: [entry('nonsense', '1'), entry('a/b', '1')] }))
    const source = await open()
    expect(names(source)).toEqual(['a/b'])
    expect(source.state()).toMatchObject({ problem: undefined, snapshot: { skipped: { count: 1 } } })
  })

  it('dates entries without dates by Last-Modified, else by the clock', async () => {
    const modified = 'Wed, 21 Oct 2026 07:28:00 GMT'
    const { open } = upstream(() => ({ headers: { 'last-modified': modified }, json: [entry('a/b', '1')] }))
    expect((await open()).state().snapshot?.entries[0]?.updatedAtMs).toBe(Date.parse(modified))
    const other = upstream(() => ({ json: [entry('a/b', '1')] }))
    expect((await other.open()).state().snapshot?.entries[0]?.updatedAtMs).toBe(9000)
  })

  it('is asked again soon without data, then every minute, and no more once closed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { open, asked, isClosed } = upstream((_, count) =>
      count < 3 ? { status: 503 } : { json: [entry('a/b', '1')] },
    )
    const source = await open()
    expect(source.state()).toMatchObject({ snapshot: undefined, problem: 'bad_status' })
    await vi.advanceTimersByTimeAsync(5_000)
    await vi.advanceTimersByTimeAsync(5_000)
    await vi.waitFor(() => expect(names(source)).toEqual(['a/b']))
    expect(asked).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(59_000)
    expect(asked).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(asked).toHaveLength(4)
    await source.close()
    expect(isClosed()).toBe(true)
    await vi.advanceTimersByTimeAsync(600_000)
    expect(asked).toHaveLength(4)
  })
})
