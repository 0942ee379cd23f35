import { afterEach, describe, expect, it } from 'vitest'
import type { RegistryServer } from '../../../src/registry/index.ts'
import { protectedBy } from '../../support/registry/callers.ts'
import { entry, get, SERVERS, snapshotOf, start, stateOf } from '../../support/registry/setup.ts'

const items = [entry('a/b', '1.0.0'), entry('a/c', '1.0.0')]
const VERSIONS = `${SERVERS}/a%2Fb/versions`
let server: RegistryServer | undefined
afterEach(() => server?.drain(0))

const asking = (etag: string) => ({ headers: { 'if-none-match': etag } })

describe('the entity tag', () => {
  it.each([SERVERS, `${SERVERS}?limit=1`, `${SERVERS}?search=b`, VERSIONS, `${VERSIONS}/latest`])(
    'of %s saves its body while the data stay the same',
    async (path) => {
      server = await start(items)
      const first = await get(server, path)
      const etag = String(first.headers['etag'])
      expect([first.status, etag]).toEqual([200, expect.stringMatching(/^"[\w-]{22}"$/)])
      for (const sent of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const again = await get(server, path, asking(sent))
        expect([again.status, again.text, again.headers['etag']]).toEqual([304, '', etag])
      }
      expect((await get(server, path, asking('"other"'))).text).toBe(first.text)
    },
  )

  it('is the same in another process with the same data, and another with others', async () => {
    const revisions = await Promise.all(
      [items, items, [items[0]]].map(async (some) => (await snapshotOf(some)).revision),
    )
    expect(revisions[0]).toBe(revisions[1])
    expect(revisions[0]).not.toBe(revisions[2])
  })

  it('changes with the data', async () => {
    let snapshot = await snapshotOf(items)
    const registries = new Map([['default', { state: () => stateOf(snapshot).state() }]])
    server = await start([], { registries })
    const etag = String((await get(server, SERVERS)).headers['etag'])
    snapshot = await snapshotOf([...items, entry('a/d', '1.0.0')])
    expect((await get(server, SERVERS, asking(etag))).status).toBe(200)
  })

  it('opens nothing: callers are asked first, and what is not there is not found', async () => {
    server = await start(items, { access: protectedBy([]) })
    expect((await get(server, SERVERS, asking('*'))).status).toBe(401)
    const headers = { authorization: 'Bearer good', 'if-none-match': '*' }
    expect((await get(server, `${SERVERS}/a%2Fnone/versions`, { headers })).status).toBe(404)
    expect((await get(server, `${SERVERS}?limit=0`, { headers })).status).toBe(400)
    expect((await get(server, SERVERS, { headers })).status).toBe(304)
  })
})
