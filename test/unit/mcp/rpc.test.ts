import { describe, expect, it } from 'vitest'
import { rpcSubjectOf } from '../../../src/mcp/rpc.ts'

const subject = (text: string) => rpcSubjectOf(Buffer.from(text))

describe('what a JSON-RPC request is about', () => {
  it.each([
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list"}', 'tools/list', undefined],
    ['{"method":"tools/call","params":{"name":"a","arguments":{}},"jsonrpc":"2.0","id":1}', 'tools/call', 'a'],
    ['{"jsonrpc":"2.0","id":"x","method":"resources/read","params":{"uri":"test://a"}}', 'resources/read', 'test://a'],
    [
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"name":"b"},"name":"a"}}',
      'tools/call',
      'a',
    ],
    ['{ "params": {"method": "no", "name": "a"}, "method": "tools/call", "jsonrpc": "2.0" }', 'tools/call', 'a'],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ä\\u0022"}}', 'tools/call', 'ä"'],
    ['[{"jsonrpc":"2.0","method":"notifications/initialized"}]', 'notifications/initialized', undefined],
  ])('%s', (text, method, name) => expect(subject(text)).toEqual({ method, name }))

  it.each([
    '',
    '{',
    'null',
    '{"result":{}}',
    '{"method":1}',
    '{"jsonrpc":"1.0","method":"tools/list"}',
    'grant_type=x',
  ])('%s is none', (text) => expect(subject(text)).toBeUndefined())

  it('is read from the beginning of a large body, which is not parsed', () => {
    const large = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":"${'x'.repeat(100_000)}`
    expect(subject(large)).toEqual({ method: 'tools/call', name: 'a' })
    expect(subject(`{"x":"${'x'.repeat(100_000)}","jsonrpc":"2.0","method":"ping"}`)).toBeUndefined()
  })

  it('has names that fit into a list', () => {
    const [method, name] = ['m'.repeat(300), 'ä'.repeat(300)]
    const found = subject(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { name } }))
    expect(found).toEqual({ method: method.slice(0, 200), name: name.slice(0, 200) })
  })
})
