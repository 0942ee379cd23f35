import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { createMarks } from '../../../endure/oracle/marks.ts'
import { searchHeap, searchPages, searchStore } from '../../../endure/oracle/search.ts'
import { createSockets } from '../../support/sockets.ts'
import { listenOnLoopback } from '../../../lab/listen.ts'

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
  const searched = { pages: 0, values: 0, heapBytes: 0 }
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
  expect(searched).toEqual({ pages: 8, values: 2, heapBytes: 0 })
})

it('says how much it has seen, so that nothing is no success', async () => {
  expect(await search({})).toEqual({ found: [], searched: { pages: 0, values: 0, heapBytes: 0 } })
})

it('finds in what a process holds what its callers brought, wherever it lies, and not what the proxy got for them', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'endure-test-'))
  try {
    const marks = createMarks()
    marks.add(SECRET, 'a secret')
    marks.add('the-token-of-a-caller', 'token of c1', 'caller')
    marks.add('the-token-of-another-one', 'token of c2', 'caller')
    const file = path.join(directory, 'heap')
    const found: string[] = []
    const search = async (text: string, isKept = false): Promise<readonly string[]> => {
      await writeFile(file, text)
      const searched = { pages: 0, values: 0, heapBytes: 0 }
      const process = { name: 'replica-1', writeHeap: () => Promise.resolve(file) }
      const findings = { add: (_kind: string, what: string) => void found.push(what) }
      await searchHeap(process, marks, findings, searched, isKept)
      expect(searched.heapBytes).toBe(text.length)
      return found.splice(0)
    }
    const [before, between] = [`"${'x'.repeat(1024 * 1024 - 11)} `, `","${'y'.repeat(300_000)}","`]
    expect(await search(`${before}the-token-of-a-caller"`)).toEqual(['token of c1, in what replica-1 still holds'])
    expect(await search(`"${SECRET}${between}${SECRET}","the-token-of-a-caller2"`)).toEqual([])
    expect(await readdir(directory)).toEqual([])
    expect(await search(`${between}the-token-of-another-one`, true)).toEqual([
      'token of c2, in what replica-1 still holds',
    ])
    expect(await readdir(directory)).toEqual(['heap'])
  } finally {
    await rm(directory, { recursive: true })
  }
})
