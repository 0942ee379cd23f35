import { describe, expect, it } from 'vitest'
import { asset } from '../../../src/inspect/assets.ts'

describe('files of the page', () => {
  it('are those of its folder, and of the libraries by name', () => {
    expect(asset('app.js')?.type).toBe('text/javascript; charset=utf-8')
    expect(asset('lib/preact.js')?.bytes.length).toBeGreaterThan(1000)
  })

  it.each([
    '../index.html',
    '../page/app.js',
    './app.js',
    'lib/../app.js',
    'lib/../../page/app.js',
    'page/../app.js',
    '..%2fpage%2fapp.js',
    String.raw`..\page\app.js`,
    '/app.js',
    '',
    'app',
    'toString',
    'constructor',
    '__proto__',
    '../../../node_modules/preact/dist/preact.js',
  ])('have none called %s', (name) => {
    expect(asset(name)).toBeUndefined()
  })
})
