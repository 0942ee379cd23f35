import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkPath, checkQuery } from '../../../src/http/index.ts'

const refuses = (path: string): boolean => {
  try {
    checkPath(path)
    return false
  } catch (error) {
    expect(error).toMatchObject({ code: 'bad_request' })
    return true
  }
}

describe('checkPath', () => {
  it.each([
    '/',
    '/mcp',
    '/mcp/',
    '//mcp',
    '/a-b_c~d/E9',
    '/x%20y',
    '/a.b/c..d/...',
    '/.well-known/x',
    '/a%2Eb',
    '/%E2%82%AC',
    '/%ff',
    '/a%3Fb%23c',
    '/a;v=1/b',
    '/a%25b',
    '/100%25',
    "/!$&'()*+,=:@",
  ])('lets %s through', (path) => {
    expect(refuses(path)).toBe(false)
  })

  it.each([
    ['', 'empty'],
    ['mcp', 'no slash'],
    ['*', 'asterisk'],
    ['/a#b', 'fragment'],
    ['/a\\b', 'backslash'],
    ['/a%5cb', 'encoded backslash'],
    ['/a%5Cb', 'encoded backslash, upper case'],
    ['/a%2fb', 'encoded slash'],
    ['/a%2Fb', 'encoded slash, upper case'],
    ['/a%252fb', 'encoded slash behind %25'],
    ['/a%25252Fb', 'encoded slash behind %2525'],
    ['/a%255cb', 'encoded backslash behind %25'],
    ['/a%2500', 'encoded NUL behind %25'],
    ['/a%00', 'encoded NUL'],
    ['/a\0b', 'NUL'],
    ['/.', 'dot segment'],
    ['/..', 'dot segment'],
    ['/a/./b', 'dot segment'],
    ['/a/../b', 'dot segment'],
    ['/a/%2e%2e/b', 'encoded dot segment'],
    ['/a/.%2E/b', 'half encoded dot segment'],
    ['/a/%2e', 'encoded single dot'],
    ['/a/%252e%252e/b', 'dot segment behind %25'],
    ['/a/..;x=1/b', 'dot segment with parameters'],
    ['/a/%2e%2e%3bx/b', 'encoded dot segment with encoded parameters'],
    ['/a%', 'incomplete encoding'],
    ['/a%2', 'incomplete encoding'],
    ['/a%zz', 'not hex'],
    ['/a b', 'space'],
    ['/a\tb', 'tab'],
    ['/a\x7f', 'DEL'],
    ['/ä', 'outside ASCII'],
    [`/${'%25'.repeat(8)}`, 'is accepted alone', false],
    ['/%252525252561', 'encoded too often'],
  ])('judges %j (%s)', (path, _, refused = true) => {
    expect(refuses(path)).toBe(refused)
  })

  it('lets nothing through that any number of decodings turns into other segments', () => {
    const piece = fc.constantFrom(
      '/',
      '.',
      '..',
      '%2f',
      '%2F',
      '%5c',
      '%25',
      '2f',
      '2e',
      '%2e',
      'a',
      ';',
      '%00',
      '\\',
      '%',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const path = `/${pieces.join('')}`
        if (refuses(path)) return
        let decoded = path
        for (let round = 0; round < 10; round++) {
          const segments = decoded.split('/')
          expect(segments).toHaveLength(path.split('/').length)
          expect(segments.map((segment) => segment.split(';')[0])).not.toContain('..')
          expect(segments.map((segment) => segment.split(';')[0])).not.toContain('.')
          expect(decoded).not.toMatch(/[\\\0]/)
          decoded = decoded.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
        }
      }),
      { numRuns: 3000, seed: 7 },
    )
  })

  it('takes time in proportion to the length', () => {
    const path = `/${'%25'.repeat(5000)}2f`
    const start = process.hrtime.bigint()
    expect(refuses(path)).toBe(true)
    expect(Number(process.hrtime.bigint() - start) / 1e6).toBeLessThan(200)
  })
})

describe('checkQuery', () => {
  it.each(['', 'a=b', 'a=%2F..&b=/../', 'a=\\', 'a=%zz'])('lets %j through', (query) => {
    expect(() => checkQuery(query)).not.toThrow()
  })

  it.each(['a#b', 'a b', 'ä', 'a\0'])('refuses %j', (query) => {
    expect(() => checkQuery(query)).toThrow('bad_request')
  })
})
