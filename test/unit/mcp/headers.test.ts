import { describe, expect, it } from 'vitest'
import { headerText, parameterHeaders, ToolParameters } from '../../../src/mcp/headers.ts'

const text = (header: string) => ({ type: 'string', 'x-mcp-header': header })
const schema = (properties: object) => ({ type: 'object', properties })

describe('headers that a tool wants of its arguments', () => {
  it('are those that it names, each once', () => {
    const given = { a: 'one', b: 'two' }
    expect(parameterHeaders(schema({ a: text('Region'), b: text('Zone') }), given)).toEqual({
      'mcp-param-region': 'one',
      'mcp-param-zone': 'two',
    })
    expect(parameterHeaders(schema({ a: text('Region'), b: text('region') }), given)).toEqual({})
  })

  it('have names that a header can have', () => {
    for (const name of ['', 'a b', 'a:', 'a\nb', 'ä', 'x'.repeat(129)])
      expect(parameterHeaders(schema({ a: text(name) }), { a: 'one' })).toEqual({})
  })

  it('are looked for to a depth', () => {
    const nested = (depth: number): object => (depth === 0 ? text('deep') : schema({ a: nested(depth - 1) }))
    const value = (depth: number): unknown => (depth === 0 ? 'one' : { a: value(depth - 1) })
    expect(parameterHeaders(nested(32), value(32))).toEqual({ 'mcp-param-deep': 'one' })
    expect(parameterHeaders(nested(33), value(33))).toEqual({})
  })

  it('are cached for a limited number of tools', () => {
    const tools = new ToolParameters()
    const one = (name: string) => ({ name, inputSchema: schema({ a: text('region') }) })
    const learnt = (name: string) => tools.headers({ name, arguments: { a: 'one' } })
    tools.learn({ tools: Array.from({ length: 10_000 }, (_, index) => one(`t${index}`)) })
    expect(learnt('t0')).toEqual({ 'mcp-param-region': 'one' })
    tools.learn({ tools: [one('more')] })
    expect(learnt('t0')).toEqual({})
  })
})

describe('a text in a header', () => {
  it('is itself where it is plain, and in base64 where it is not, or looks so', () => {
    const inBase64 = (value: string) => `=?base64?${Buffer.from(value).toString('base64')}?=`
    expect(headerText('tools/call now')).toBe('tools/call now')
    for (const value of ['', ' a', 'a ', 'a\r\nx: y', 'ä', '\u0000', inBase64('a')])
      expect(headerText(value)).toBe(inBase64(value))
  })
})
