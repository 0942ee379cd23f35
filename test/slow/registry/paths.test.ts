import { connect } from 'node:net'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RegistryServer } from '../../../src/registry/index.ts'
import { protectedBy } from '../../support/registry/callers.ts'
import { entry, snapshotOf, start, stateOf } from '../../support/registry/setup.ts'

const SECRET = 'secret.example/a'
const OPEN = 'open.example/a'

let server: RegistryServer
beforeAll(async () => {
  server = await start([], {
    access: protectedBy(['/registry/open']),
    registries: new Map([
      ['default', stateOf(await snapshotOf([entry(SECRET, '1.0.0')]))],
      ['open', stateOf(await snapshotOf([entry(OPEN, '1.0.0')]))],
    ]),
  })
})
afterAll(() => server.drain(0))

/** Sends exactly these bytes as request target and gives the whole answer. */
function send(target: string, token?: string, method = 'GET'): Promise<string> {
  const authorization = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () =>
      socket.write(`${method} ${target} HTTP/1.1\r\nhost: x\r\n${authorization}connection: close\r\n\r\n`, 'latin1'),
    )
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('end', () => resolve(Buffer.concat(chunks).toString('latin1')))
    socket.on('error', reject)
  })
}
const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])

const LIST = '/registry/default/v0.1/servers'
const GOOD = [LIST, `${LIST}/secret.example%2Fa/versions`, `${LIST}/secret.example%2Fa/versions/latest`]

describe('a path', () => {
  it.each([
    '/registry/open/../default/v0.1/servers',
    '/registry/open/%2e%2e/default/v0.1/servers',
    '/registry/open%2f..%2fdefault/v0.1/servers',
    '/registry/open/..%2fdefault/v0.1/servers',
    '/registry/open/..;/default/v0.1/servers',
    '/registry/open/%252e%252e/default/v0.1/servers',
    '/registry/open\\..\\default/v0.1/servers',
    '/registry/open/..%5cdefault/v0.1/servers',
    '/.well-known/../registry/default/v0.1/servers',
    '/.well-known/..%2f../registry/default/v0.1/servers',
    '/openapi.json/../registry/default/v0.1/servers',
    '/openapi.json#/../registry/default/v0.1/servers',
    '/registry/default/v0.1/servers%00',
    '/registry/default/v0.1/servers#.well-known',
    'http://y/registry/default/v0.1/servers',
    'http://x/registry/open/../default/v0.1/servers',
    'registry/default/v0.1/servers',
    `${LIST}/secret.example%252Fa/versions`,
    `${LIST}/secret.example%2F%2Fa/versions`,
    `${LIST}/a%2Fb/versions/1%2F..%2F..`,
  ])('that can be read in two ways is refused, with and without a token: %s', async (path) => {
    for (const token of [undefined, 'good']) {
      const answer = await send(path, token)
      expect(statusOf(answer)).toBe(400)
      expect(answer).not.toContain(SECRET)
    }
  })

  it('in absolute-form is like any other when it names the host that was asked for', async () => {
    expect(statusOf(await send(`http://x${LIST}`))).toBe(401)
    for (const good of GOOD) {
      const answer = await send(`http://X:80${good}`, 'good')
      expect(statusOf(answer)).toBe(200)
      expect(answer).toContain(SECRET)
    }
  })

  it.each([
    '//registry/default/v0.1/servers',
    '/registry//default/v0.1/servers',
    '/registry/default/v0.1/servers/',
    '/Registry/default/v0.1/servers',
    '/registry/DEFAULT/v0.1/servers',
    '/registry/open;/v0.1/servers',
    `/registry/${'default/'.repeat(500)}v0.1/servers`,
    `/registry/${'x'.repeat(2000)}/v0.1/servers`,
  ])('that is merely another one needs a token like any other: %s', async (path) => {
    expect(statusOf(await send(path))).toBe(401)
    expect(statusOf(await send(path, 'good'))).toBe(404)
  })

  it('longer than the header limit ends with 431', async () => {
    expect(statusOf(await send(`/${'x'.repeat(30_000)}`))).toBe(431)
  })
})

const SEGMENTS = [
  ['registry', 'open', 'default', 'v0.1', 'servers', 'versions', 'latest', 'secret.example%2Fa', 'open.example%2fa'],
  ['.well-known', 'oauth-protected-resource', 'openapi.json', '', '.', '..', '%2e', '%2E%2e', '..;x', ';x', '%2f'],
  ['%5c', '\\', '%00', '%23', '#', '?', '%3f', '%252e%252e', '%c0%ae', '\xff', 'open%2f..%2fdefault', '*', ':name'],
].flat()
const segment = fc.constantFrom(...SEGMENTS)

/** Spells one character of a path otherwise: the same to some readers, another path to others. */
const respell = (path: string, at: number, kind: number): string => {
  const index = path.length === 0 ? 0 : at % path.length
  const character = path[index] ?? ''
  const code = character.charCodeAt(0).toString(16).padStart(2, '0')
  const others = [
    `%${code}`,
    `%${code.toUpperCase()}`,
    `%25${code}`,
    character.toUpperCase(),
    `${character}${character}`,
    '',
  ]
  return path.slice(0, index) + (others[kind % others.length] ?? '') + path.slice(index + 1)
}

const strange = fc.oneof(
  fc.array(segment, { minLength: 1, maxLength: 9 }).map((segments) => `/${segments.join('/')}`),
  fc
    .tuple(fc.constantFrom(...GOOD), fc.array(fc.tuple(fc.nat(200), fc.nat(20)), { maxLength: 3 }))
    .map(([path, changes]) => changes.reduce((path, [at, kind]) => respell(path, at, kind), path)),
  fc.tuple(fc.constantFrom(...GOOD), fc.nat(8), segment).map(([path, at, extra]) => {
    const segments = path.split('/')
    return segments.toSpliced(at % segments.length, 0, extra).join('/')
  }),
  fc
    .tuple(fc.constantFrom(...GOOD), fc.string({ maxLength: 10 }))
    .map(([path, query]) => `${path}?${encodeURI(query)}`),
)

describe('any path', () => {
  it('that shows protected data with a token shows nothing without one', async () => {
    let shown = 0
    await fc.assert(
      fc.asyncProperty(
        strange,
        fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'POST'),
        async (path, method) => {
          // A space would end the target: what follows would be another request line, which the parser refuses.
          const target = path.replaceAll(' ', '%20')
          const [without, wrong, allowed] = await Promise.all([
            send(target, undefined, method),
            send(target, 'wrong', method),
            send(target, 'good', method),
          ])
          expect(without).not.toContain(SECRET)
          expect(wrong).not.toContain(SECRET)
          if (!allowed.includes(SECRET)) return
          shown += 1
          expect([statusOf(without), statusOf(wrong)]).toEqual([401, 401])
        },
      ),
      { seed: 20_261_121, numRuns: 1500 },
    )
    // Otherwise the property says nothing.
    expect(shown).toBeGreaterThan(100)
  })

  it('of an open registry is open however it is spelled, as far as it is served at all', async () => {
    for (const path of [
      '/registry/open/v0.1/servers',
      '/registry/%6fpen/v0.1/servers',
      '/%72egistry/open/v0.1/servers',
    ]) {
      const answer = await send(path)
      expect([path, statusOf(answer), answer.includes(OPEN)]).toEqual([path, 200, true])
    }
  })
})
