import type { Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { ConnectionBudget } from '../../../src/wire/index.ts'
import type { PoolOptions } from '../../../src/wire/pool.ts'
import { createSockets } from '../../support/sockets.ts'
import { answering, OK, type Peer, startPeer, type RecordingHandler, turns } from '../../support/wire/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

interface Holding extends Peer {
  /** The paths of its requests, in the order in which they came. */
  readonly asked: string[]
  /** Answers the request to this path. */
  answer(path: string): void
}

/** A peer that answers on demand. */
async function startHolding(budget: ConnectionBudget, options: Partial<PoolOptions> = {}): Promise<Holding> {
  const held = new Map<string, Socket>()
  const onConnection = (socket: Socket): void =>
    void socket.on('data', (data: Buffer) => {
      const path = /\/(\w+)/.exec(data.toString())?.[1] ?? ''
      asked.push(path)
      held.set(path, socket)
    })
  const asked: string[] = []
  const peer = await startPeer(sockets, onConnection, { budget, ...options })
  return { ...peer, asked, answer: (path) => void held.get(path)?.write(OK) }
}

const startAnswering = (budget: ConnectionBudget, options: Partial<PoolOptions> = {}) =>
  startPeer(sockets, answering(OK), { budget, ...options })

describe('connections of several pools', () => {
  it('never exceed the common limit, and are granted in order', async () => {
    const budget = new ConnectionBudget(3)
    const peers = [await startHolding(budget), await startHolding(budget), await startHolding(budget)] as const
    const requests: { readonly at: 0 | 1 | 2; readonly recorded: RecordingHandler }[] = []
    for (const at of [0, 1, 2, 2, 2, 0, 1, 0, 0, 2, 1, 1] as const) {
      requests.push({ at, recorded: peers[at].send({ path: `/${requests.length}` }) })
      await turns()
    }
    const asked = () => peers.flatMap((peer) => peer.asked.map(Number))
    for (const [index, { at, recorded }] of requests.entries()) {
      const running = Math.min(requests.length, index + 3)
      await expect.poll(() => asked().length).toBe(running)
      expect(asked().toSorted((one, two) => one - two)).toEqual(Array.from({ length: running }, (_, at) => at))
      peers[at].answer(String(index))
      expect(await recorded.over).toBe('end ok')
    }
  })

  it('that are idle are closed for waiting requests', async () => {
    const budget = new ConnectionBudget(2)
    const [one, other, third] = [
      await startAnswering(budget),
      await startAnswering(budget),
      await startAnswering(budget),
    ]
    expect(await Promise.all([one.send().over, other.send().over])).toEqual(['end ok', 'end ok'])
    expect(await third.send().over).toBe('end ok')
    // The two that are left are used again.
    const before = [one, other, third].flatMap(({ connections }) => connections).length
    expect(before).toBe(3)
    expect(await third.send().over).toBe('end ok')
    expect(third.connections).toHaveLength(1)
  })

  it('go to another pool when they become free and it has waited longer', async () => {
    const budget = new ConnectionBudget(1)
    const [busy, other] = [await startHolding(budget), await startAnswering(budget)]
    const first = busy.send({ path: '/first' })
    await expect.poll(() => busy.asked).toEqual(['first'])
    const waiting = other.send()
    await turns()
    const later = busy.send({ path: '/later' })
    busy.answer('first')
    expect(await first.over).toBe('end ok')
    expect(await waiting.over).toBe('end ok')
    await expect.poll(() => busy.asked).toEqual(['first', 'later'])
    busy.answer('later')
    expect(await later.over).toBe('end ok')
    expect([busy.connections.length, other.connections.length]).toEqual([2, 1])
  })

  it('stay where they are while only that pool waits', async () => {
    const budget = new ConnectionBudget(2)
    const peer = await startAnswering(budget)
    await startAnswering(budget)
    const recorded = Array.from({ length: 50 }, () => peer.send().over)
    expect(await Promise.all(recorded)).toEqual(Array(50).fill('end ok'))
    expect(peer.connections).toHaveLength(2)
    // No request waits any more, though most got an existing connection.
    expect(budget.waitedSinceMs).toBe(Infinity)
    expect(await peer.send().over).toBe('end ok')
    expect(peer.connections).toHaveLength(2)
  })

  it('are waited for only so long', async () => {
    const budget = new ConnectionBudget(1)
    const [busy, other] = [await startHolding(budget), await startHolding(budget, { waitMs: 1 })]
    const first = busy.send({ path: '/first' })
    await expect.poll(() => busy.asked).toEqual(['first'])
    const late = other.send()
    expect(await late.over).toBe('WIRE_CROWDED')
    expect(late.events).toEqual(['WIRE_CROWDED'])
    expect(other.connections).toEqual([])
    busy.answer('first')
    expect(await first.over).toBe('end ok')
    const next = other.send({ path: '/next' })
    await expect.poll(() => other.asked).toEqual(['next'])
    other.answer('next')
    expect(await next.over).toBe('end ok')
  })

  it('that cannot be made, or were given away, are counted until they are gone', async () => {
    const budget = new ConnectionBudget(1)
    const refused = await startHolding(budget, {
      connect: () => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' })),
    })
    const switched = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'
    const upgrading = await startPeer(sockets, answering(switched), { budget })
    const other = await startAnswering(budget, { waitMs: 1 })
    expect(await refused.send().over).toBe('ECONNREFUSED')
    const recorded = upgrading.send({ upgrade: 'other' })
    expect(await recorded.over).toBe('upgraded')
    expect(await other.send().over).toBe('WIRE_CROWDED')
    recorded.socket?.destroy()
    await expect.poll(() => other.send().over, { timeout: 10_000 }).toBe('end ok')
  })
})

describe('the end of a pool', () => {
  it('whose requests wait for a place leaves it to others', async () => {
    const budget = new ConnectionBudget(1)
    const [busy, ended, other] = [await startHolding(budget), await startHolding(budget), await startAnswering(budget)]
    const first = busy.send({ path: '/first' })
    await expect.poll(() => busy.asked).toEqual(['first'])
    const lost = ended.send()
    const waiting = other.send()
    await ended.pool.destroy()
    expect(await lost.over).toBe('WIRE_POOL_CLOSED')
    busy.answer('first')
    expect([await first.over, await waiting.over]).toEqual(['end ok', 'end ok'])
    expect(ended.connections).toEqual([])
  })
})
