import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isPublicPath } from '../../../src/authenticate/index.ts'
import { checkPath } from '../../../src/http/index.ts'

describe('a public path', () => {
  it.each([
    ['/docs', '/docs'],
    ['/docs', '/docs/'],
    ['/docs', '/docs/a/b'],
    ['/docs', '/docs//'],
    ['/docs/', '/docs/'],
    ['/docs/', '/docs/a'],
    ['/docs/a', '/docs/a'],
    ['/docs', `/docs/${'x'.repeat(8000)}`],
  ])('%s opens %s', (entry, path) => {
    expect(isPublicPath([entry], path)).toBe(true)
    expect(isPublicPath(['/other', entry], path)).toBe(true)
  })

  it.each([
    ['/docs', '/'],
    ['/docs', ''],
    ['/docs', '/doc'],
    ['/docs', '/docs2'],
    ['/docs', '/docs-internal'],
    ['/docs', '/docs.json'],
    ['/docs', '/docs;a'],
    ['/docs', '/docs%2Fa'],
    ['/docs', '/docs%20'],
    ['/docs', '/DOCS'],
    ['/docs', '/%64ocs'],
    ['/docs', '//docs'],
    ['/docs', '/a/docs'],
    ['/docs', 'docs'],
    ['/docs', `/${'x'.repeat(8000)}/docs`],
    ['/docs/', '/docs'],
    ['/docs/a', '/docs/b'],
    ['/', '/'],
    ['/', '/anything'],
    ['//', '//x'],
    ['', '/anything'],
    ['docs', 'docs'],
  ])('%s does not open %s', (entry, path) => {
    expect(isPublicPath([entry], path)).toBe(false)
  })

  it('never opens a protected one: what is open and checked stays inside the subtree however it is read', () => {
    const segment = fc.constantFrom(
      'docs',
      'DOCS',
      'registry',
      'v0.1',
      '.',
      '..',
      '%2e%2e',
      '%2E',
      '..;a',
      '',
      'a%2Fb',
      '%252f',
      '%5c',
      '\\',
      'x%20y',
      '%00',
      '%64ocs',
    )
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 6 }), fc.constantFrom('/docs', '/docs/v0.1'), (segments, entry) => {
        const path = `/${segments.join('/')}`
        try {
          checkPath(path)
        } catch {
          return
        }
        if (!isPublicPath([entry], path)) return
        // As the laxest router would normalize it: decoded, doubled slashes merged, dot segments resolved.
        const lax = new URL(decodeURIComponent(path).replace(/[\\/]+/g, '/'), 'http://host').pathname
        expect(lax === entry || lax.startsWith(`${entry}/`)).toBe(true)
      }),
      { seed: 20261121, numRuns: 5000 },
    )
  })
})
