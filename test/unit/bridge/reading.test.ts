import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it, vi } from 'vitest'
import { jsonMessages, streamMessages, wholeBody } from '../../../src/bridge/answers.ts'
import { EventReader } from '../../../src/mcp/events.ts'
import { readLines } from '../../../src/bridge/lines.ts'
import { keyOf, parseMessages } from '../../../src/mcp/message.ts'

const READING = { maxBytes: 100, ready: () => Promise.resolve() }

describe('an event stream', () => {
  const read = (reader: EventReader, ...chunks: string[]): string[] =>
    chunks.flatMap((chunk) =>
      reader.push(Buffer.from(chunk)).map(({ type, data }) => `${type} ${Buffer.from(data).toString()}`),
    )

  it('is to be resumed after the last whole event', () => {
    const reader = new EventReader(100)
    expect(read(reader, 'id: 1\ndata: a\n')).toEqual([])
    expect(reader.lastEventId).toBeUndefined()
    expect(read(reader, '\nid: 2\ndata: half\n')).toEqual(['message a'])
    expect(reader.lastEventId).toBe('1')
    // An incomplete event arrives again on the next stream.
    reader.restart()
    expect(read(reader, 'data: b\n\n')).toEqual(['message b'])
    expect(reader.lastEventId).toBe('1')
  })

  it('has ids that could be one, and pauses that are numbers', () => {
    const reader = new EventReader(10_000)
    read(
      reader,
      'id: ok\nretry: 250\n\n',
      'id: a\0b\nretry: soon\n\n',
      'retry: 9999999999\n\n',
      `id: ${'x'.repeat(5000)}\n\n`,
    )
    expect([reader.lastEventId, reader.retryMs]).toEqual(['ok', 250])
  })

  it('has a bound for each event, in which comments do not count', () => {
    const reader = new EventReader(40)
    for (let round = 0; round < 5; round++) expect(read(reader, `data: ${'x'.repeat(30)}\n\n`)).toHaveLength(1)
    for (let round = 0; round < 5; round++) read(reader, `: ${'c'.repeat(30)}\n`)
    expect(read(reader, 'data: x\n\n')).toEqual(['message x'])
    expect(() => read(reader, `data: ${'x'.repeat(20)}\n`, `data: ${'x'.repeat(20)}\n`)).toThrow('above the size limit')
  })

  it('has lines that end in any way, wherever they are cut', () => {
    expect(read(new EventReader(100), 'data: a\r', '\ndata: b\r\n\r', '\nevent: x\rdata: c\r\r')).toEqual([
      'message a\nb',
      'x c',
    ])
  })

  it('has messages only in events of that type, and ends soon after its reader stops', async () => {
    const body = new PassThrough()
    const message = JSON.stringify({ jsonrpc: '2.0', method: 'n' })
    const other = JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} })
    body.write(`event: other\ndata: ${other}\n\ndata: ${message}\n\n`)
    const seen: string[] = []
    for await (const { kind } of streamMessages(body, new EventReader(100), READING)) {
      seen.push(kind)
      break
    }
    expect(seen).toEqual(['notification'])
    expect(body.destroyed).toBe(false)
    await vi.waitFor(() => expect(body.destroyed).toBe(true), { timeout: 15_000, interval: 50 })
  })
})

describe('an answer', () => {
  const answer = (type: string | undefined, text: string) => ({
    status: 200,
    headers: type === undefined ? {} : { 'content-type': type },
    body: Readable.from([Buffer.from(text)]),
  })
  const MESSAGE = '{"jsonrpc":"2.0","id":1,"result":{}}'

  it.each(['application/json', 'application/json; charset=utf-8', 'application/problem+json'])(
    'of %s is read',
    async (type) => {
      expect(await jsonMessages(answer(type, MESSAGE), READING)).toMatchObject([{ kind: 'response', id: 1 }])
    },
  )

  it.each([undefined, 'text/plain', 'text/html', 'application/jsonp', 'application/json-seq'])(
    'of %s is none',
    async (type) => {
      await expect(jsonMessages(answer(type, MESSAGE), READING)).rejects.toMatchObject({ reason: 'bad_answer' })
    },
  )

  it('may have as many bytes as a message, and not one more', async () => {
    const body = (bytes: number) => Readable.from([Buffer.alloc(bytes - 1), Buffer.alloc(1)])
    expect(await wholeBody(body(100), READING)).toHaveLength(100)
    await expect(wholeBody(body(101), READING)).rejects.toMatchObject({ reason: 'bad_answer' })
  })
})

describe('lines', () => {
  const lines = async (maxBytes: number, ...chunks: string[]): Promise<string[]> => {
    const found: string[] = []
    for await (const line of readLines(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), maxBytes))
      found.push(line.kind === 'line' ? line.bytes.toString() : line.kind)
    return found
  }

  it('may have so many bytes and no more, whatever they come in; what is too long is passed over', async () => {
    expect(await lines(5, 'abcde\nabc', 'def\nx\n', 'last')).toEqual(['abcde', 'too_long', 'x', 'last'])
    expect(await lines(5, '', 'abc', 'def', 'ghi')).toEqual(['too_long'])
  })
})

describe('a message', () => {
  it.each<[string, Buffer, number]>([
    [
      'bytes that are no UTF-8',
      Buffer.concat([Buffer.from('{"jsonrpc":"2.0","method":"'), Buffer.from([0xff]), Buffer.from('"}')]),
      -32_700,
    ],
    ['another version', Buffer.from('{"jsonrpc":"1.0","id":1,"method":"x"}'), -32_600],
    ['a request with an id of nothing', Buffer.from('{"jsonrpc":"2.0","id":null,"method":"x"}'), -32_600],
    ['result and error', Buffer.from('{"jsonrpc":"2.0","id":1,"result":1,"error":{}}'), -32_600],
  ])('is none: %s', (_what, bytes, code) => {
    expect(parseMessages(bytes)).toMatchObject([{ kind: 'malformed', code }])
  })

  it('is one line, whatever it came in', () => {
    const [message] = parseMessages(Buffer.from('{\n"jsonrpc": "2.0",\r\n"method": "x"}'))
    expect(message).toMatchObject({ kind: 'notification', bytes: Buffer.from('{ "jsonrpc": "2.0",  "method": "x"}') })
  })

  it('is about an id, of which 1 and "1" are two', () => {
    expect(keyOf(1)).not.toBe(keyOf('1'))
  })
})
