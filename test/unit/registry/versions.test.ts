import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RegistryServer } from '../../../src/registry/index.ts'
import { entry, get, idsOf, SERVERS, start } from '../../support/registry/setup.ts'

const items = [
  ...['1.9.0', '1.10.0', '2.0.0-rc.1', '1.10.0+build.5', 'nightly'].map((version) =>
    entry('com.example/tool', version),
  ),
  entry('com.example/old', '1.0.0', { status: 'deleted' }),
  entry('com.example/mixed', '1.0.0'),
  entry('com.example/mixed', '2.0.0', { status: 'deleted' }),
  entry('com.example/marked', '1.0.0', { isLatest: true }),
  entry('com.example/marked', '9.0.0', { isLatest: false }),
  entry('com.example/dated', '1.0.0', { publishedAt: '2026-01-01T00:00:00Z' }),
  entry('com.example/dated', '2.0.0', { publishedAt: '2026-02-01T00:00:00Z' }),
  entry('com.example/dated', '1.0.1', { publishedAt: '2026-03-01T00:00:00Z' }),
]
const of = (name: string) => `${SERVERS}/com.example%2F${name}/versions`

let server: RegistryServer
beforeAll(async () => {
  server = await start(items)
})
afterAll(() => server.drain(0))

describe('GET …/servers/{serverName}/versions', () => {
  it('lists all versions, those without a date by version', async () => {
    const got = await get(server, of('tool'))
    expect(got.status).toBe(200)
    expect(idsOf(got).map((id) => id.split(' ')[1])).toEqual([
      '2.0.0-rc.1',
      '1.10.0',
      '1.10.0+build.5',
      '1.9.0',
      'nightly',
    ])
    expect(got.json).toMatchObject({ metadata: { count: 5 } })
  })

  it('lists versions by date of publication, newest first, whatever their numbers', async () => {
    const got = await get(server, of('dated'))
    expect(idsOf(got).map((id) => id.split(' ')[1])).toEqual(['1.0.1', '2.0.0', '1.0.0'])
    expect((await get(server, `${of('dated')}/latest`)).json).toMatchObject({ server: { version: '2.0.0' } })
  })

  it('takes the slash of the name in either case, and nothing else for it', async () => {
    expect((await get(server, of('tool').replace('%2F', '%2f'))).status).toBe(200)
    expect((await get(server, of('tool').replace('%2F', '/'))).status).toBe(404)
    for (const wrong of ['%252F', '%2F%2F', '%5C', '%2F..%2F', '%2F.%2F'])
      expect([wrong, (await get(server, of('tool').replace('%2F', wrong))).status]).toEqual([wrong, 400])
  })

  it('leaves out deleted versions unless asked for', async () => {
    expect(idsOf(await get(server, of('mixed')))).toEqual(['com.example/mixed 1.0.0'])
    expect(idsOf(await get(server, `${of('mixed')}?include_deleted=true`))).toHaveLength(2)
    expect((await get(server, of('old'))).status).toBe(404)
    expect((await get(server, `${of('old')}?include_deleted=true`)).status).toBe(200)
  })

  it.each(['unknown', 'Tool', 'too', '__proto__'])('knows no server %s', async (name) => {
    const got = await get(server, of(name))
    expect(got.status).toBe(404)
    expect(got.json).toMatchObject({ error: 'not_found' })
  })

  it.each(['noslash', 'constructor', 'com.example%20', 'caf%C3%A9'])(
    'knows no server whose name is %s',
    async (name) => {
      expect((await get(server, `${SERVERS}/${name}/versions`)).status).toBe(404)
    },
  )

  it('answers 400 to a name that is no text', async () => {
    expect((await get(server, `${SERVERS}/%ff%2Fx/versions`)).status).toBe(400)
    expect((await get(server, of('tool%'))).status).toBe(400)
    expect((await get(server, of('tool%20'))).status).toBe(400)
  })
})

describe('GET …/versions/{version}', () => {
  it.each([
    ['1.9.0', '1.9.0'],
    ['nightly', 'nightly'],
    ['1.10.0%2Bbuild.5', '1.10.0+build.5'],
    ['1.10.0+build.5', '1.10.0+build.5'],
    ['latest', '2.0.0-rc.1'],
  ])('gives version %s', async (asked, version) => {
    const got = await get(server, `${of('tool')}/${asked}`)
    expect(got.status).toBe(200)
    expect(got.json).toMatchObject({ server: { name: 'com.example/tool', version } })
  })

  it.each(['1.9', '1.9.0 ', '3.0.0', 'LATEST', 'x'.repeat(700)])('knows no version %s', async (version) => {
    expect((await get(server, `${of('tool')}/${encodeURIComponent(version)}`)).status).toBe(404)
  })

  it('takes the version that says that it is the latest, else the newest that lives', async () => {
    expect((await get(server, `${of('marked')}/latest`)).json).toMatchObject({ server: { version: '1.0.0' } })
    expect((await get(server, `${of('mixed')}/latest`)).json).toMatchObject({ server: { version: '1.0.0' } })
    expect((await get(server, `${of('old')}/latest`)).status).toBe(404)
    expect((await get(server, `${of('mixed')}/2.0.0?include_deleted=true`)).status).toBe(200)
  })

  it('refuses a parameter that is not valid', async () => {
    expect((await get(server, `${of('tool')}/latest?include_deleted=1`)).status).toBe(400)
  })
})
