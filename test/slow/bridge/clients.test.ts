import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'
import { connect1, connect2, type StdioClient } from '../../support/bridge/stdio-clients.ts'

let lab: TestLab
let directory: string
let tokenFile: string

beforeAll(async () => {
  lab = await openLab()
  directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-stdio-'))
  tokenFile = path.join(directory, 'token')
  await writeFile(tokenFile, await lab.token({ sub: 'alice', groups: ['admins', 'dev'] }), { mode: 0o600 })
})
afterAll(async () => {
  await lab.close()
  await rm(directory, { recursive: true })
})

const MODES = {
  'sdk 1.x (2025-11-25)': (args: readonly string[]) => connect1(args),
  'client 2.x (2025-11-25)': (args: readonly string[]) => connect2(args, 'legacy'),
  'client 2.x (2026-07-28)': (args: readonly string[]) => connect2(args, { pin: '2026-07-28' }),
}
type Mode = keyof typeof MODES
const ALL_MODES = Object.keys(MODES) as Mode[]

const inline = (route: string) => ['--config', lab.configDirectory, '--route', route, '--sts-endpoint', lab.sts.url]
const remote = (route: string) => ['--url', `${lab.url}/${route}`]

/** A route of each kind with one of the clients, and one with all: what clients say does not change what a route does. */
const CLIENTS_OF_ROUTES: Readonly<Record<string, readonly Mode[]>> = {
  unauthenticated: ['sdk 1.x (2025-11-25)'],
  'bearer-token': ['client 2.x (2026-07-28)'],
  'token-exchange': ALL_MODES,
  'cloud-sts': ['client 2.x (2026-07-28)'],
}

const textOf = ({ content }: { content?: unknown }): string => {
  const [first] = content as readonly { text?: string }[]
  return first?.text ?? ''
}

/** Expected of every official client on every route. */
async function tryBasics({ client }: Pick<StdioClient, 'client'>): Promise<void> {
  expect(await client.list()).toContain('show_request')
  expect(textOf(await client.call({ name: 'show_request' }))).toMatch(/^POST \//)
}

/** Operations of every official client over stdio, on one connection. */
async function tryEverything({ client, close }: StdioClient): Promise<void> {
  await tryBasics({ client })
  const seen: number[] = []
  const onprogress = ({ progress }: { progress: number }) => void seen.push(progress)
  await client.call({ name: 'stream_progress', arguments: { steps: 4, intervalMs: 20 } }, { onprogress })
  // A client that reads the last of them and the answer in one piece forgets whom to tell.
  expect([1, 2, 3, 4].slice(0, Math.max(3, seen.length))).toEqual(seen)

  const label = `cancel ${Math.random()}`
  const cancel = new AbortController()
  const call = client.call({ name: 'wait', arguments: { ms: 60_000, label } }, { signal: cancel.signal })
  const outcome = () => lab.backend.waits.find((wait) => wait.label === label)?.outcome
  await vi.waitFor(() => expect(outcome()).toBe('waiting'), 15_000)
  cancel.abort('not needed any more')
  await expect(call).rejects.toThrow('not needed any more')
  await vi.waitFor(() => expect(outcome()).toBe('cancelled'), 15_000)

  const bytes = 2 * 1024 * 1024
  expect(textOf(await client.call({ name: 'large_result', arguments: { bytes } }))).toHaveLength(bytes)
  await close()
}

describe.each(Object.entries(CLIENTS_OF_ROUTES))(
  'official clients start extauth stdio for the route %s',
  (route, of) => {
    test('and reach it through the pipeline in the same process', async () => {
      const args = [...inline(route), '--token-file', tokenFile]
      const clients = await Promise.all(of.map((mode) => MODES[mode](args)))
      for (const client of clients) await tryBasics(client)
      await Promise.all(clients.map(({ close }) => close()))
      const requests = lab.backend.requests(`/${route}`)
      expect(requests.length).toBeGreaterThanOrEqual(2 * of.length)
      expect(requests.filter(({ verified }) => verified === undefined)).toEqual([])
    }, 60_000)
  },
)

describe('official clients start extauth stdio for an address', () => {
  test.each(ALL_MODES)(
    'and reach the proxy there with the token of a file: %s',
    async (mode) => {
      await tryEverything(await MODES[mode]([...remote('token-exchange'), '--token-file', tokenFile]))
      expect(lab.log.lines.join('\n')).toContain('"route":"token-exchange"')
    },
    60_000,
  )
})
