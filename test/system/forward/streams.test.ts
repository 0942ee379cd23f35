import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { rawConnect, type RawConnection } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { type Front, type FrontOptions, startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const EVENTS = { 'content-type': 'text/event-stream' }

/** A backend whose answers the test writes, with a client that has its head already. */
const openStream = async (
  options: Partial<FrontOptions> = {},
  head: Record<string, string> = EVENTS,
): Promise<{ backend: ServerResponse; client: RawConnection; front: Front; closed: () => boolean }> => {
  let isClosed = false
  const answers: ServerResponse[] = []
  const origin = await sockets.http((_request, response) => {
    answers.push(response)
    response.on('close', () => (isClosed = true))
    response.writeHead(200, head).flushHeaders()
  })
  const front = await startFront(sockets, { origin, ...options })
  const client = rawConnect(front.url, 'GET / HTTP/1.1\r\nhost: us\r\n\r\n')
  await client.until(/\r\n\r\n/)
  const backend = answers[0]
  if (backend === undefined) throw new Error('the backend was not asked')
  return { backend, client, front, closed: () => isClosed }
}
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const comments = (client: RawConnection): number => client.text().match(/3\r\n:\n\n\r\n/g)?.length ?? 0

describe('an event stream', () => {
  it('shows its head before the first event, and each event before the next is written', async () => {
    const { backend, client } = await openStream()
    expect(client.text()).toMatch(/content-type: text\/event-stream/)
    for (let index = 0; index < 20; index++) {
      backend.write(`data: ${index}\n\n`)
      await client.until(new RegExp(`data: ${index}\n\n`))
    }
    const order = [...client.text().matchAll(/data: (\d+)/g)].map((match) => Number(match[1]))
    expect(order).toEqual(Array.from({ length: 20 }, (_unused, index) => index))
    backend.end()
    await client.until(/0\r\n\r\n$/)
  })

  it('can be ended cleanly from outside, which releases the backend', async () => {
    let end = (): void => undefined
    const { backend, client, front, closed } = await openStream({ onStream: (given) => (end = given) })
    backend.write('data: 1\n\n')
    await client.until(/data: 1/)
    end()
    await client.until(/0\r\n\r\n$/)
    await expect.poll(closed).toBe(true)
    expect(front.outcomes).toMatchObject([{ done: true, status: 200, aborted: false }])
    end()
    expect(front.outcomes).toHaveLength(1)
  })

  it('has no length for its client, so that it may be more, or end before', async () => {
    let end = (): void => undefined
    const { backend, client } = await openStream(
      { route: { sseKeepAlive: 30 }, onStream: (given) => (end = given) },
      { ...EVENTS, 'content-length': '18' },
    )
    backend.write('data: 1\n\n')
    await client.until(/data: 1\n\n\r\n3\r\n:\n\n\r\n/)
    end()
    expect(await client.until(/0\r\n\r\n$/)).not.toMatch(/content-length/i)
  })

  it.each([
    ['is passed on unbuffered by what lies in front', EVENTS, 'no'],
    ['is buffered where its backend says so', { ...EVENTS, 'x-accel-buffering': 'yes' }, 'yes'],
    ['alone is: other answers are as they are', { 'content-type': 'application/json' }, undefined],
  ])('%s', async (_what, head, value) => {
    const { client } = await openStream({}, head)
    expect(/x-accel-buffering: (\w+)/i.exec(client.text())?.[1]).toBe(value)
    expect(client.text().match(/x-accel-buffering/gi) ?? []).toHaveLength(value === undefined ? 0 : 1)
  })

  it('is announced once, other answers are not', async () => {
    let announced = 0
    const onStream = (): void => void announced++
    const { backend } = await openStream({ onStream })
    backend.end()
    expect(announced).toBe(1)
    await openStream({ onStream }, { 'content-type': 'application/json' })
    expect(announced).toBe(1)
  })
})

describe('the keep-alive comment', () => {
  const route = { sseKeepAlive: 30 }

  it('is written after each interval of silence, from the start', async () => {
    const { client } = await openStream({ route })
    await expect.poll(() => comments(client)).toBeGreaterThanOrEqual(3)
  })

  it('waits while there are events', async () => {
    const { backend, client } = await openStream({ route: { sseKeepAlive: 200 } })
    for (let index = 0; index < 10; index++) {
      backend.write('data: x\n\n')
      await pause(30)
    }
    expect(comments(client)).toBe(0)
    await expect.poll(() => comments(client)).toBe(1)
  })

  it.each([
    ['data: half', 0],
    ['data: whole line\n', 0],
    ['data: whole line\r\n', 0],
    ['data: whole line\r', 0],
    ['data: event\n\n', 1],
    ['data: event\r\n\r\n', 1],
    ['data: event\r\r', 1],
    ['data: event\n\r\n', 1],
    ['data: event\r\n\n', 1],
  ])('after %j is written %i times or more', async (text, atLeast) => {
    const { backend, client } = await openStream({ route })
    backend.write(text)
    const seen = comments(client)
    await pause(120)
    if (atLeast === 0) expect(comments(client)).toBe(seen)
    else expect(comments(client)).toBeGreaterThan(seen)
  })

  it('sees the end of an event that comes in pieces', async () => {
    const { backend, client } = await openStream({ route })
    backend.write('data: 1\n')
    await pause(60)
    expect(comments(client)).toBeLessThanOrEqual(1)
    const seen = comments(client)
    backend.write('\n')
    await expect.poll(() => comments(client)).toBeGreaterThan(seen)
  })

  it('never enters a compressed stream or another type of answer, nor any by default', async () => {
    const compressed = await openStream({ route }, { ...EVENTS, 'content-encoding': 'gzip' })
    const json = await openStream({ route }, { 'content-type': 'application/json' })
    const unset = await openStream()
    await pause(120)
    expect([compressed, json, unset].map((stream) => comments(stream.client))).toEqual([0, 0, 0])
  })

  it('stops with the stream', async () => {
    const { backend, client } = await openStream({ route })
    backend.end('data: last\n\n')
    const whole = await client.until(/0\r\n\r\n$/)
    await pause(100)
    expect(client.text()).toBe(whole)
  })
})
