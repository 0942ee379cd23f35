import { describe, expect, it } from 'vitest'
import { readRequestTarget } from '../../../src/http/index.ts'

describe('readRequestTarget', () => {
  it.each([
    ['/mcp', 'h', '/mcp', ''],
    ['/mcp?', 'h', '/mcp', ''],
    ['/mcp?a=b?c', 'h', '/mcp', 'a=b?c'],
    ['http://h/mcp?a', 'h', '/mcp', 'a'],
    ['http://H:80/mcp', 'h', '/mcp', ''],
    ['https://h:443', 'h', '/', ''],
    ['http://h?x=1', 'h', '/', 'x=1'],
    ['//h/mcp', 'h', '//h/mcp', ''],
  ])('reads %s', (target, host, path, query) => {
    expect(readRequestTarget(target, host)).toEqual({ path, query, hasEmptyQuery: target.endsWith('?') })
  })

  it.each([
    ['http://other/mcp', 'h'],
    ['http://h:81/mcp', 'h'],
    ['http://user@h/mcp', 'h'],
    ['ftp://h/mcp', 'h'],
    ['*', 'h'],
    ['h:443', 'h'],
    ['', 'h'],
    ['http://h/../x', 'h'],
    ['http://h\\x', 'h'],
    ['/a?b#c', 'h'],
    ['http://h#x', 'h'],
  ])('refuses %s', (target, host) => {
    expect(() => readRequestTarget(target, host)).toThrow('bad_request')
  })
})
