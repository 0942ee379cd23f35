import { describe, expect, test } from 'vitest'
import { renderProblem, resolveProxy, type ProxyOverrides } from '../../../../src/load/index.ts'
import { externalAuth, load, proxy, route, SPECS } from '../../../support/load/documents/build.ts'

const TOKEN_FILE = { tokenFile: 't' }

function outcome(admin: object | undefined, overrides: ProxyOverrides = {}): string {
  const documents = [
    externalAuth(SPECS.unauthenticated),
    ...(admin === undefined ? [] : [proxy({ admin, auth: { mode: 'anonymous' }, routes: [route()] })]),
  ]
  const { config, problems } = resolveProxy(load(...documents), overrides)
  return config?.admin.inspector ?? (problems ?? []).map(renderProblem).join(' ')
}

describe('what the inspector captures', () => {
  test.each([
    [{}, 'off'],
    [{ inspector: 'heads', address: '0.0.0.0:8081' }, 'heads'],
    [{ inspector: 'bodies' }, 'bodies'],
    [{ inspector: 'bodies', address: 'unix:/run/admin.sock' }, 'bodies'],
    [{ inspector: 'bodies', address: ':8081', ...TOKEN_FILE }, 'bodies'],
  ])('%o in the file is %s', (admin, mode) => expect(outcome(admin)).toBe(mode))

  test('is never bodies where others than this machine reach the admin listener without a token', () => {
    const problem = outcome({ inspector: 'bodies', address: '0.0.0.0:8081' })
    expect(problem).toContain('spec.admin.inspector')
    expect(problem).toMatch(/expected an admin address on loopback, a Unix socket, or admin\.tokenFile/)
    expect(outcome({ inspector: 'bodies' }, { admin: ':8081' })).toContain('spec.admin.inspector')
    expect(outcome({ address: ':8081' }, { inspector: 'bodies' })).toContain('--inspector')
  })

  test.each<[object, ProxyOverrides, string | undefined]>([
    [{ inspector: 'heads', address: '0.0.0.0:8081' }, {}, 'spec.admin.inspector'],
    [{ inspector: 'heads' }, { admin: ':8081' }, 'spec.admin.inspector'],
    [{ address: ':8081' }, { inspector: 'heads' }, '--inspector'],
    [{ inspector: 'heads', address: ':8081', ...TOKEN_FILE }, {}, undefined],
    [{ inspector: 'heads' }, {}, undefined],
    [{ address: '0.0.0.0:8081' }, {}, undefined],
  ])('%o with %o is open to other machines and not served, which is a warning: %s', (admin, overrides, place) => {
    const documents = [
      externalAuth(SPECS.unauthenticated),
      proxy({ admin, auth: { mode: 'anonymous' }, routes: [route()] }),
    ]
    const found = (resolveProxy(load(...documents), overrides).warnings ?? [])
      .map(renderProblem)
      .filter((line) => /open to/.test(line))
    expect(found).toEqual(place === undefined ? [] : [expect.stringContaining(place)])
  })

  test('is what the command line says before what the file says', () => {
    expect(outcome({ inspector: 'bodies' }, { inspector: 'off' })).toBe('off')
    expect(outcome({}, { inspector: 'heads' })).toBe('heads')
  })

  test('is everything in the short form, where only this machine can look', () => {
    const short = { target: 'http://127.0.0.1:9/mcp' }
    expect(outcome(undefined, short)).toBe('bodies')
    expect(outcome(undefined, { ...short, admin: '0.0.0.0:8081' })).toBe('off')
    expect(outcome(undefined, { ...short, inspector: 'off' })).toBe('off')
    expect(outcome({}, short)).toBe('off')
  })

  test('is one of three words', () => {
    expect(outcome({ inspector: 'all' })).toContain('expected one of off, heads, bodies')
  })
})
