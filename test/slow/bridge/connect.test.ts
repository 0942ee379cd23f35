import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect1, connect2 } from '../../support/bridge/stdio-clients.ts'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'

const USER = path.join(import.meta.dirname, '../../support/connections/connect-account.ts')

let lab: TestLab
let home: string

beforeAll(async () => {
  lab = await openLab()
  home = await mkdtemp(path.join(os.tmpdir(), 'extauth-home-'))
})
afterAll(async () => {
  await lab.close()
  await rm(home, { recursive: true })
})

/** Arguments and environment of a bridge whose user connects each account that a page asks for. */
async function bridgeOf(user: string) {
  const [token, browser, opened] = ['token', 'browser', 'opened'].map((name) => path.join(home, `${user}-${name}`))
  await writeFile(token ?? '', await lab.token({ sub: user }))
  const script = `#!/bin/sh\necho "$1" >> ${opened}\nexec ${process.execPath} ${USER} ${user} "$1"\n`
  await writeFile(browser ?? '', script)
  await chmod(browser ?? '', 0o755)
  return {
    args: ['--url', `${lab.url}/connected`, '--token-file', token ?? ''],
    env: { BROWSER: browser ?? '' },
    opened: async () => (await readFile(opened ?? '', 'utf8')).trim().split('\n'),
  }
}

test.each([
  ['@modelcontextprotocol/sdk, 2025-11-25', 'alice', connect1],
  [
    '@modelcontextprotocol/client, 2026-07-28',
    'bob',
    (args: readonly string[], env: Readonly<Record<string, string>>) => connect2(args, { pin: '2026-07-28' }, env),
  ],
] as const)(
  '%s without URL elicitation: the bridge opens the page, and the first call works',
  async (_, user, open) => {
    const { args, env, opened } = await bridgeOf(user)
    const { client, close } = await open(args, env)
    const { content } = await client.call({ name: 'show_request' })
    expect(JSON.stringify(content)).toContain('authorization')
    expect(await opened()).toEqual([expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/connect\/[\w-]+$/)])
    await close()
  },
)
