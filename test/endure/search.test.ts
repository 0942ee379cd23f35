import { afterEach, expect, it } from 'vitest'
import { createMarks } from '../../endure/oracle/marks.ts'
import { searchPages, searchStore } from '../../endure/oracle/search.ts'
import { createSockets } from '../support/sockets.ts'
import { listenOnLoopback } from '../../lab/listen.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const SECRET = 'a-secret-of-the-backend'

async function search(pages: Readonly<Record<string, string>>, values: readonly string[] = []) {
  const found: string[] = []
  const marks = createMarks()
  marks.add(SECRET, 'a secret')
  const { url } = sockets.closing(
    await listenOnLoopback(0, (request, response) => {
      const page = pages[request.url ?? '']
      response.writeHead(page === undefined ? 404 : 200).end(page ?? 'nothing')
    }),
  )
  const searched = { pages: 0, values: 0 }
  const findings = { add: (_kind: string, what: string) => void found.push(what) }
  const processes = ['replica-1', 'replica-2'].map((name) => ({ name, adminUrl: url }))
  await searchPages(processes, marks, findings, searched)
  const store = { dump: () => Promise.resolve(values) } as Parameters<typeof searchStore>[0]['store']
  await searchStore({ store }, marks, findings, searched)
  return { found, searched }
}

it('finds a secret on a page, in a request that the inspector shows, and in Redis', async () => {
  const { found, searched } = await search(
    {
      '/config': `{"token":"${SECRET}"}`,
      '/inspect/api/requests': '{"requests":[{"id":"a/1"}]}',
      '/inspect/api/requests/a%2F1': `Bearer ${SECRET}`,
      '/metrics': 'extauth_requests_total 1',
    },
    ['extauth:key', `{"v":"${SECRET}"}`],
  )
  const pages = ['/config', '/inspect/api/requests/a%2F1']
  expect(found).toEqual([
    ...['replica-1', 'replica-2'].flatMap((name) => pages.map((page) => `a secret, at ${page} of ${name}`)),
    'a secret, in Redis',
  ])
  expect(searched).toEqual({ pages: 8, values: 2 })
})

it('says how much it has seen, so that nothing is no success', async () => {
  expect(await search({})).toEqual({ found: [], searched: { pages: 0, values: 0 } })
})
