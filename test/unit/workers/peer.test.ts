import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../../src/compose/config-error.ts'
import { createPeer } from '../../../src/workers/peer.ts'
import { openChannels } from '../../support/workers/channels.ts'

type Far = {
  double(number: number): Promise<number>
  refuse(): void
  broken(): void
  never(): Promise<void>
  bytes(value: Buffer): Buffer
}

function open() {
  const { ends, cut } = openChannels()
  const far: Far = {
    double: (number) => Promise.resolve(number * 2),
    refuse() {
      throw new ConfigError(['one.yaml:3:1 is wrong'], { cause: 'a secret' })
    },
    broken() {
      throw new TypeError('x is undefined')
    },
    never: () => new Promise(() => undefined),
    bytes: (value) => Buffer.concat([value, value]),
  }
  createPeer(ends[1], far)
  return { peer: createPeer<Far & { missing(): void }>(ends[0], {}), cut, ends }
}

describe('questions between processes', () => {
  it('are answered, many at once, each with its own answer', async () => {
    const { peer } = open()
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => peer.ask('double', [index])))
    expect(answers).toEqual(Array.from({ length: 50 }, (_, index) => index * 2))
  })

  it('carry bytes as bytes', async () => {
    const { peer } = open()
    const answer = await peer.ask('bytes', [Buffer.from('ab')])
    expect(Buffer.isBuffer(answer)).toBe(true)
    expect(answer.toString()).toBe('abab')
  })

  it('give back errors by name and with what may be stopped of them, never their cause', async () => {
    const { peer } = open()
    const failure = await peer.ask('refuse', []).catch((error: unknown) => error)
    expect(failure).toMatchObject({ name: 'ConfigError', members: { lines: ['one.yaml:3:1 is wrong'] } })
    expect(JSON.stringify(failure)).not.toContain('secret')
    await expect(peer.ask('broken', [])).rejects.toMatchObject({ name: 'TypeError', members: {} })
    await expect(peer.ask('missing', [])).rejects.toMatchObject({ name: 'RangeError' })
  })

  it('time out without an answer, and end at once when the peer is gone', async () => {
    const { peer, cut } = open()
    await expect(peer.ask('never', [], 20)).rejects.toMatchObject({ name: 'NoAnswer', reason: 'late' })
    const waiting = peer.ask('never', [], 60_000)
    cut()
    await expect(waiting).rejects.toMatchObject({ name: 'NoAnswer', reason: 'gone' })
    await expect(peer.ask('double', [1])).rejects.toMatchObject({ reason: 'gone' })
  })

  it('leave alone what is none', async () => {
    const { peer, ends } = open()
    for (const message of [{ cmd: 'NODE_CLUSTER' }, { reply: 77 }, { ask: 'double' }])
      ends[0].send(message, () => undefined)
    expect(await peer.ask('double', [4])).toBe(8)
  })
})
