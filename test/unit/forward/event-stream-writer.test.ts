import { Writable } from 'node:stream'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ClientResponse } from '../../../src/core/index.ts'
import { EventStreamWriter } from '../../../src/forward/event-stream-writer.ts'
import { EventReader } from '../../../src/mcp/index.ts'

/** A response that takes everything at once, or nothing until `drain`. */
function createSink({ isSlow = false } = {}) {
  const chunks: Buffer[] = []
  let release: (() => void) | undefined
  const sink = new Writable({
    highWaterMark: isSlow ? 1 : 1 << 30,
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk)
      if (isSlow) release = done
      else done()
    },
    writev: undefined,
  })
  return {
    response: sink as unknown as ClientResponse,
    drain: () => release?.(),
    text: () => Buffer.concat(chunks).toString('latin1'),
  }
}

const OWN = 'event: message\ndata: {"own":true}\n\n'

function open(sink: ReturnType<typeof createSink>) {
  let insert: (event: Buffer) => void = () => undefined
  let stopped = 0
  const writer = new EventStreamWriter(sink.response, {
    keepAliveMs: 0,
    trace: undefined,
    insertEvents: (own) => {
      insert = own
      return () => void stopped++
    },
  })
  return { writer, insert: (text = OWN) => insert(Buffer.from(text)), stopped: () => stopped }
}

const eventsIn = (text: string) =>
  new EventReader(1 << 20)
    .push(Buffer.from(text, 'latin1'))
    .map(({ type, data }) => [type, Buffer.from(data).toString()])

const lineEnd = fc.constantFrom('\n', '\r', '\r\n')
const value = fc.constantFrom('{"a":1}', '', 'data: x', 'é', '{"event":"\\n"}', ': no comment')
const field = fc.tuple(fc.constantFrom('data: ', 'data:', 'event: ', 'id: ', ': ', 'retry: '), value, lineEnd)
const event = fc
  .tuple(fc.array(field, { minLength: 1, maxLength: 4 }), lineEnd)
  .map(([fields, end]) => Buffer.from(fields.flat().join('') + end).toString('latin1'))

describe('events that are inserted into a stream', () => {
  test('stand between its events, however it is cut, and nothing else changes', () => {
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 6 }),
        fc.infiniteStream(fc.nat({ max: 9 })),
        fc.infiniteStream(fc.nat({ max: 3 })),
        (events, sizes, times) => {
          // A line end CR LF may be made of two of these.
          const original = `${events.join('')}\n\n`
          const sink = createSink()
          const { writer, insert } = open(sink)
          let isInserted = false
          for (let at = 0; at < original.length;) {
            const size = 1 + (sizes.next().value ?? 0)
            if (times.next().value === 0) {
              insert()
              isInserted = true
            }
            writer.write(Buffer.from(original.slice(at, at + size), 'latin1'))
            at += size
          }
          const out = sink.text()
          expect(out.replaceAll(OWN, '')).toBe(original)
          expect(eventsIn(out).filter(([, data]) => data !== '{"own":true}')).toEqual(eventsIn(original))
          expect(out.includes(OWN)).toBe(isInserted)
          expect(out.split(OWN)).toHaveLength(eventsIn(out).filter(([, data]) => data === '{"own":true}').length + 1)
        },
      ),
      { numRuns: 500, seed: 44 },
    )
  })

  test('are sent at once between events, at the start too, and after the end of an event that has begun', () => {
    const sink = createSink()
    const { writer, insert } = open(sink)
    insert()
    expect(sink.text()).toBe(OWN)
    writer.write(Buffer.from('data: 1\n'))
    insert()
    expect(sink.text()).toBe(`${OWN}data: 1\n`)
    writer.write(Buffer.from('data: 2\r\n\r\ndata: 3\n'))
    expect(sink.text()).toBe(`${OWN}data: 1\ndata: 2\r\n\r\n${OWN}data: 3\n`)
  })

  test('wait for a client that does not read, eight at most', () => {
    const sink = createSink({ isSlow: true })
    const { writer, insert } = open(sink)
    expect(writer.write(Buffer.from('data: 1\n\n'))).toBe(false)
    for (let index = 0; index < 10; index++) insert(`data: own ${index}\n\n`)
    expect(sink.text()).toBe('data: 1\n\n')
    sink.drain()
    return expect
      .poll(() => eventsIn(sink.text()).map(([, data]) => data))
      .toEqual(['1', ...Array.from({ length: 8 }, (_, index) => `own ${index + 2}`)])
  })

  test('end with the stream', () => {
    const sink = createSink({ isSlow: true })
    const { writer, insert, stopped } = open(sink)
    writer.write(Buffer.from('data: 1\n'))
    insert()
    writer.stop()
    writer.write(Buffer.from('\n'))
    sink.drain()
    expect([stopped(), sink.text()]).toEqual([1, 'data: 1\n\n'])
  })
})
