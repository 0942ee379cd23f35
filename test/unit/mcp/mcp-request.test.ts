import { describe, expect, it } from 'vitest'
import {
  DISCOVER,
  HANDSHAKE_REVISION,
  INITIALIZE,
  readAnswer,
  serverOf,
  STATELESS_REVISION,
} from '../../../src/mcp/index.ts'

const RESULT = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'one', version: '1' } }
const json = (message: object) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))
const read = (body: Buffer, type = 'application/json') => readAnswer(INITIALIZE, type, body)

describe('an answer to initialize', () => {
  it('is read from JSON, and from a stream whatever its lines end in', () => {
    expect(read(json({ id: 1, result: RESULT }))?.result).toEqual(RESULT)
    const message = json({ id: 1, result: RESULT }).toString()
    for (const end of ['\n', '\r\n', '\r']) {
      const stream = [': hello', 'id: 1', 'data:', '', `data: ${message}`, '', ''].join(end)
      expect(read(Buffer.from(stream), 'Text/Event-Stream; charset=utf-8')?.result).toEqual(RESULT)
    }
    expect(read(Buffer.from(`data: ${message}`), 'text/event-stream')?.result).toEqual(RESULT)
  })

  it('is the one to this request, with what the schema wants', () => {
    expect(read(json({ id: 2, result: RESULT }))).toBeUndefined()
    expect(read(json({ method: 'notifications/message', params: {} }))).toBeUndefined()
    expect(read(json({ id: 1, result: {} }))).toMatchObject({ result: undefined, lacks: 'protocolVersion' })
    expect(read(json({ id: 1, result: { protocolVersion: '2025-11-25' } }))?.lacks).toBe('capabilities')
    expect(readAnswer(DISCOVER, 'application/json', json({ id: 1, result: RESULT }))?.lacks).toBe('supportedVersions')
    expect(read(json({ id: null, error: { code: -32600, message: 'no' } }))?.errorCode).toBe(-32_600)
    expect(read(Buffer.from('<html>'))).toBeUndefined()
  })

  it('names its server on one line, and not at length', () => {
    const named = (name: unknown) => {
      const answer = read(json({ id: 1, result: { ...RESULT, serverInfo: { name, version: '1' } } }))
      return answer && serverOf(answer)
    }
    expect(named('one')).toBe('one 1')
    expect(named('one\n✓ all is well\u001b[2J')).toBe('one ✓ all is well [2J 1')
    expect(named('x'.repeat(1000))).toBe(`${'x'.repeat(100)} 1`)
  })

  it('is requested with the newest revision of each protocol version', () => {
    expect([HANDSHAKE_REVISION, STATELESS_REVISION]).toEqual(['2025-11-25', '2026-07-28'])
    expect(INITIALIZE.body).toContain('"protocolVersion":"2025-11-25"')
    expect(DISCOVER.headers['mcp-protocol-version']).toBe('2026-07-28')
  })
})
