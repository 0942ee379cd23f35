import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OFFICIAL_META } from '../../../src/registry/server-json.ts'
import type { RegistryServer } from '../../../src/registry/index.ts'
import { entry, get, idsOf, listOf, SERVERS, start, T0 } from '../../support/registry/setup.ts'

const at = (day: number) => `2026-02-${String(day).padStart(2, '0')}T12:00:00Z`
const many = Array.from({ length: 120 }, (_, index) => entry(`org.many/s${String(index).padStart(3, '0')}`, '1.0.0'))
const items = [
  entry('com.example/weather', '1.0.0', { publishedAt: at(1), updatedAt: at(2), isLatest: false }),
  entry('com.example/weather', '1.10.0', { publishedAt: at(3), updatedAt: at(4), isLatest: true }),
  entry('com.example/gone', '1.0.0', { status: 'deleted', updatedAt: at(5) }),
  entry('com.example/Maps', '2.0.0', { status: 'deprecated', updatedAt: at(3) }),
  ...many,
]

let server: RegistryServer
beforeAll(async () => {
  server = await start(items)
})
afterAll(() => server.drain(0))

const few = (query: string) => get(server, `${SERVERS}?search=com.example&${query}`)

describe('GET /registry/{name}/v0.1/servers', () => {
  it('gives entries as {server, _meta} with what the registry says of each', async () => {
    const got = await few('version=1.10.0')
    expect(got.status).toBe(200)
    expect(got.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(got.json).toEqual({
      servers: [
        {
          server: { name: 'com.example/weather', version: '1.10.0', description: 'What com.example/weather does' },
          _meta: { [OFFICIAL_META]: { status: 'active', publishedAt: at(3), updatedAt: at(4), isLatest: true } },
        },
      ],
      metadata: { count: 1 },
    })
  })

  it('dates an entry that carries no dates by its source, and makes it the latest', async () => {
    const got = await get(server, `${SERVERS}?search=s007`)
    const published = new Date(T0).toISOString()
    expect(listOf(got).servers[0]?._meta[OFFICIAL_META]).toEqual({
      status: 'active',
      publishedAt: published,
      updatedAt: published,
      isLatest: true,
    })
  })

  it('orders by name and version and gives 30 unless asked otherwise', async () => {
    const got = await get(server, SERVERS)
    const ids = idsOf(got)
    expect(ids.slice(0, 4)).toEqual([
      'com.example/Maps 2.0.0',
      'com.example/weather 1.0.0',
      'com.example/weather 1.10.0',
      'org.many/s000 1.0.0',
    ])
    expect(listOf(got).metadata).toEqual({ count: 30, nextCursor: expect.any(String) as string })
  })

  it('answers below /v0 as well, with lists, versions and names', async () => {
    const older = (path: string) => path.replace('/v0.1/', '/v0/')
    for (const path of [
      `${SERVERS}?search=com.example`,
      `${SERVERS}/com.example%2Fweather/versions`,
      `${SERVERS}/com.example%2Fweather/versions/latest`,
      `${SERVERS}?limit=nonsense`,
    ]) {
      const [one, other] = [await get(server, path), await get(server, older(path))]
      expect([path, other.status, other.json]).toEqual([path, one.status, one.json])
    }
  })

  it('takes an empty parameter for one that is not there', async () => {
    const empty = ['cursor', 'limit', 'search', 'updated_since', 'version', 'include_deleted'].map((name) => `${name}=`)
    const got = await get(server, `${SERVERS}?${empty.join('&')}`)
    expect(got.json).toEqual((await get(server, SERVERS)).json)
  })

  it.each([1, 30, 100])('gives up to %i entries when that is the limit', async (limit) => {
    const list = listOf(await get(server, `${SERVERS}?limit=${limit}`))
    expect([list.servers.length, list.metadata.count]).toEqual([limit, limit])
  })

  it('has no cursor on the last page, even when it is exactly full', async () => {
    const got = await few('limit=3')
    expect(listOf(got).metadata).toEqual({ count: 3 })
  })

  it.each([
    ['search=EXAMPLE/W', ['com.example/weather 1.0.0', 'com.example/weather 1.10.0']],
    ['search=nothing-like-it', []],
    ['version=latest', ['com.example/Maps 2.0.0', 'com.example/weather 1.10.0']],
    ['version=1.0.0', ['com.example/weather 1.0.0']],
    ['version=1.0', []],
    [
      'include_deleted=true',
      ['com.example/Maps 2.0.0', 'com.example/gone 1.0.0', 'com.example/weather 1.0.0', 'com.example/weather 1.10.0'],
    ],
    ['include_deleted=false&version=latest', ['com.example/Maps 2.0.0', 'com.example/weather 1.10.0']],
    [`updated_since=${at(4)}`, ['com.example/gone 1.0.0', 'com.example/weather 1.10.0']],
    ['updated_since=2026-02-04T13:00:00%2B01:00', ['com.example/gone 1.0.0', 'com.example/weather 1.10.0']],
    ['updated_since=2026-02-04T13:00:00+01:00', ['com.example/gone 1.0.0', 'com.example/weather 1.10.0']],
    ['updated_since=2026-02-04t12:00:00.001z', ['com.example/gone 1.0.0']],
    ['unknown=parameter&version=latest', ['com.example/Maps 2.0.0', 'com.example/weather 1.10.0']],
  ])('filters by %s', async (query, expected) => {
    const search = query.startsWith('search=') ? '' : 'search=com.example&'
    const got = await get(server, `${SERVERS}?${search}${query}`)
    expect(idsOf(got)).toEqual(expected)
    expect(listOf(got).metadata).toEqual({ count: expected.length })
  })

  it.each(['limit=', 'cursor=', 'updated_since=', 'version=', 'include_deleted=', 'limit', 'limit=&cursor=&version='])(
    'takes the empty parameters of ?%s for absent ones',
    async (query) => {
      expect(listOf(await few(query)).metadata).toEqual(listOf(await few('')).metadata)
    },
  )

  it('is the same under /v0, the name before, with all that is below', async () => {
    for (const below of ['?limit=2', '/com.example%2Fweather/versions', '/com.example%2Fweather/versions/latest']) {
      const got = await get(server, `${SERVERS.replace('v0.1', 'v0')}${below}`)
      expect([got.status, got.text]).toEqual([200, (await get(server, `${SERVERS}${below}`)).text])
    }
  })

  it.each([
    'limit=0',
    'limit=101',
    'limit=-1',
    'limit=1.5',
    'limit=ten',
    'limit=0x10',
    'limit=1e1',
    'limit=%2010',
    'limit=5&limit=5',
    'limit=99999999999999999999',
    'updated_since=yesterday',
    'updated_since=2026-02-04',
    'updated_since=2026-02-30T00:00:00Z',
    'updated_since=2026-02-04T12:00Z',
    'updated_since=2026-02-04T12:00:00',
    'updated_since=1770206400',
    'version=1.0.0&version=latest',
    `search=${'x'.repeat(256)}`,
    'include_deleted=yes',
  ])('refuses %s with 400 and says what would have been right', async (query) => {
    const got = await get(server, `${SERVERS}?${query}`)
    expect(got.status).toBe(400)
    expect(got.json).toEqual({
      error: 'invalid_request',
      error_description: expect.stringContaining(` ${query.split('=')[0] ?? ''} is `) as string,
    })
  })

  const cursorOf = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  it.each([
    ['no base64url', '***'],
    ['no JSON', Buffer.from('nonsense').toString('base64url')],
    ['a number', cursorOf(30)],
    ['another shape', cursorOf(['a/b'])],
    ['other types', cursorOf(['a/b', 1])],
    ['a name that cannot be', cursorOf(['a b', '1'])],
    ['another spelling of a good one', `${cursorOf(['a/b', '1.0'])}=`],
    ['a huge one', cursorOf([`a/${'b'.repeat(3000)}`, '1'])],
  ])('refuses a cursor that is %s', async (_, cursor) => {
    const got = await get(server, `${SERVERS}?cursor=${cursor}`)
    expect(got.status).toBe(400)
    expect(got.json).toEqual({
      error: 'invalid_request',
      error_description: expect.stringContaining('cursor is the unchanged metadata.nextCursor of a page.') as string,
    })
  })
})
