import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { main } from '../../../src/cli/commands/index.ts'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'
import { connect1, connect2 } from '../../support/bridge/stdio-clients.ts'

const BUTTONS = path.join(import.meta.dirname, '../../support/login/press-buttons.ts')

let lab: TestLab
let home: string
let env: Record<string, string>

beforeAll(async () => {
  lab = await openLab()
  home = await mkdtemp(path.join(os.tmpdir(), 'extauth-home-'))
  // The "browser": it notes that it was opened and does what alice would.
  const browser = path.join(home, 'browser')
  await writeFile(browser, `#!/bin/sh\necho opened >> ${home}/opened\nexec ${process.execPath} ${BUTTONS} "$1"\n`)
  await chmod(browser, 0o755)
  env = { XDG_STATE_HOME: path.join(home, 'state'), BROWSER: browser, LAB_USER: 'alice' }
})
afterAll(async () => {
  await lab.close()
  await rm(home, { recursive: true })
})

async function run(argv: readonly string[]) {
  const out = { stdout: '', stderr: '' }
  const code = await main(argv, {
    stdout: (text) => void (out.stdout += text),
    stderr: (text) => void (out.stderr += text),
    env,
    stdin: () => Promise.resolve(''),
    stop: new Promise(() => undefined),
    onReload: () => undefined,
  })
  return { code, ...out }
}

const logins = () => readdir(path.join(home, 'state/extauth/logins'))

test('a client starts extauth stdio --login: its user logs in once, and logout ends that', async () => {
  const url = `${lab.url}/upstream`
  const first = await connect1(['--url', url, '--login'], env)
  const second = await connect1(['--url', url, '--login'], env)
  for (const { client } of [first, second]) {
    const { content } = await client.call({ name: 'show_request' })
    expect(JSON.stringify(content)).toContain('authorization')
  }
  expect(await readdir(home)).toContain('opened')
  expect(await logins()).toHaveLength(1)

  // The session is revoked on the server within a moment; without a browser there is no other.
  const { code, stdout } = await run(['logout', '--url', url])
  expect([code, stdout]).toEqual([0, `${url}: deleted and revoked\n`])
  expect(await logins()).toEqual([])
  await first.close()
  await second.close()
  expect(await run(['logout'])).toMatchObject({ code: 0, stdout: 'No login is stored.\n' })
}, 60_000)

test.each(['upstream', 'upstream-exchange'])(
  'every official client reaches /%s when its user has logged in',
  async (route) => {
    const args = ['--url', `${lab.url}/${route}`, '--login']
    const before = lab.backend.requests(`/${route}`).length
    for (const connect of [
      () => connect1(args, env),
      () => connect2(args, 'legacy', env),
      () => connect2(args, { pin: '2026-07-28' }, env),
    ]) {
      const { client, close } = await connect()
      expect(await client.list()).toContain('show_request')
      expect(JSON.stringify((await client.call({ name: 'show_request' })).content)).toContain('authorization')
      await close()
    }
    const requests = lab.backend.requests(`/${route}`).slice(before)
    expect(requests.length).toBeGreaterThan(6)
    expect(requests.filter(({ verified }) => verified === undefined)).toEqual([])
    expect(await run(['logout', '--url', `${lab.url}/${route}`])).toMatchObject({ code: 0 })
  },
  120_000,
)

test('extauth login does it ahead', async () => {
  const url = `${lab.url}/upstream-exchange`
  expect(await run(['login', '--url', url])).toMatchObject({ code: 0, stdout: `Logged in at ${url}.\n` })
  await vi.waitFor(async () => expect(await logins()).toHaveLength(1))
  expect(await run(['login', '--url', `${lab.url}/unauthenticated`])).toMatchObject({
    code: 0,
    stdout: `${lab.url}/unauthenticated requires no login.\n`,
  })
  expect(await run(['login', '--url', `${lab.url}/nowhere`])).toMatchObject({
    code: 1,
    stdout: '',
    stderr: `extauth login: ${lab.url}/nowhere returned 404; expected an MCP server. Check the URL.\n`,
  })
  expect(await run(['login', '--url', 'http://127.0.0.1:1/mcp'])).toMatchObject({ code: 1 })
}, 60_000)

test.each([
  [['stdio'], 'needs one of'],
  [['stdio', '--url', 'http://mcp.example.com/', '--login'], '--url must be https'],
  [['stdio', '--url', 'http://mcp.example.com/', '--token-file', 'x'], '--url must be https'],
  [['stdio', '--url', 'https://mcp.example.com/', '--token-file', '-'], 'standard input carries messages'],
  [['stdio', '--url', 'https://mcp.example.com/', '--target', 'https://mcp.example.com/'], 'needs one of'],
  [['stdio', '--target', 'https://mcp.example.com/'], 'must be given together'],
  [['stdio', '--config', 'x', '--login'], '--login requires --url'],
  [['stdio', '--url', 'https://mcp.example.com/', '--client-id', 'x'], '--client-id requires --login'],
  [['login'], 'needs --url'],
])('what does not go together is refused: %j', async (argv, says) => {
  const { code, stdout, stderr } = await run(argv)
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain(says)
})
