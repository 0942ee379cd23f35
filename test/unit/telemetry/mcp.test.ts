import { describe, expect, test } from 'vitest'
import { secretsOfRequest } from '../../../src/core/index.ts'
import { attributesOfHeaders, attributesOfBody, withoutSecrets } from '../../../src/telemetry/mcp.ts'

describe('what traces say of a request', () => {
  test('is its method, its tool and its revision', () => {
    const headers = { 'mcp-method': 'tools/call', 'mcp-name': 'search', 'mcp-protocol-version': '2026-07-28' }
    expect(attributesOfHeaders(headers)).toEqual({
      'mcp.method.name': 'tools/call',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'search',
      'mcp.protocol.version': '2026-07-28',
    })
    const prompt = { jsonrpc: '2.0', method: 'prompts/get', params: { name: 'greet' } }
    expect(attributesOfBody(Buffer.from(JSON.stringify(prompt))).attributes).toEqual({
      'mcp.method.name': 'prompts/get',
      'gen_ai.prompt.name': 'greet',
    })
  })

  test.each<[string, Record<string, string>, object]>([
    ['a method that is none', { 'mcp-method': 'Bearer secret, or more' }, {}],
    ['a method that is long', { 'mcp-method': 'a'.repeat(65) }, {}],
    [
      'a name of something else',
      { 'mcp-method': 'prompts/get', 'mcp-name': 'ada@example.com?token=x' },
      { 'mcp.method.name': 'prompts/get' },
    ],
    [
      'a name that is long',
      { 'mcp-method': 'prompts/get', 'mcp-name': 'a'.repeat(129) },
      { 'mcp.method.name': 'prompts/get' },
    ],
    [
      'what a resource is called',
      { 'mcp-method': 'resources/read', 'mcp-name': 'report' },
      { 'mcp.method.name': 'resources/read' },
    ],
    [
      'a revision that is none',
      { 'mcp-method': 'ping', 'mcp-protocol-version': 'secret' },
      { 'mcp.method.name': 'ping' },
    ],
  ])('leaves out %s', (_what, headers, attributes) => {
    expect(attributesOfHeaders(headers)).toEqual(attributes)
  })

  test('leaves out bodies that are large, and what is no message', () => {
    const large = { jsonrpc: '2.0', method: 'ping', params: { text: 'x'.repeat(64 * 1024) } }
    expect(
      [JSON.stringify(large), 'null', '[]', '{', '{"jsonrpc":"2.0","method":1}'].map(
        (text) => attributesOfBody(Buffer.from(text)).attributes,
      ),
    ).toEqual(Array.from({ length: 5 }, () => ({})))
  })

  test('leaves out what the request came with that is secret, however it is written in a name', () => {
    const token = 'b1946ac92492d2347c6235b4d2611184'
    const secrets = secretsOfRequest(['Authorization', `Bearer ${token}`, 'Cookie', 'a=of-my-session-0'])
    for (const name of [token, Buffer.from(token).toString('hex'), `a ${token.slice(0, 20)}`, 'of-my-session-0']) {
      const said = withoutSecrets(attributesOfHeaders({ 'mcp-method': 'tools/call', 'mcp-name': name }), secrets)
      expect(said['gen_ai.tool.name']).toMatch(/^(?:a )?\[masked\]$/)
    }
  })
})
