import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openUserStore } from '../../../src/compose/login/index.ts'
import type { LoginRecord } from '../../../src/login/index.ts'
import { usePaperServer } from '../../support/login/paper-server.ts'
import { main } from '../../../src/cli/commands/index.ts'
import { ioOf } from '../../support/compose/io.ts'

const paper = usePaperServer()
let home: string

beforeEach(async () => {
  home = await mkdtemp(path.join(os.tmpdir(), 'extauth-logout-'))
})
afterEach(() => rm(home, { recursive: true }))

const record = (name: string, server: Partial<LoginRecord['server']> = {}): LoginRecord => ({
  version: 1,
  issuer: paper.origin,
  resource: `${paper.origin}/${name}`,
  endpoint: `${paper.origin}/${name}`,
  client: { client_id: 'c', redirect_uri: 'http://127.0.0.1:1/callback' },
  server: { token_endpoint: `${paper.origin}/token`, ...server },
  access_token: 'access',
})

async function run(...argv: string[]) {
  const { io, out } = ioOf({ env: { XDG_STATE_HOME: home } })
  return { code: await main(argv, io), ...out }
}

test('deletes one login and keeps the others; a failed revocation is an error, and the login is deleted anyway', async () => {
  const store = openUserStore({ XDG_STATE_HOME: home })
  await store.save(record('a', { revocation_endpoint: `${paper.origin}/revoke` }))
  await store.save(record('b'))
  paper.documents['/revoke'] = () => [503, {}]
  const failed = await run('logout', '--url', `${paper.origin}/a`)
  expect(failed).toMatchObject({ code: 1, stdout: '' })
  expect(failed.stderr).toContain('deleted here, but its tokens were not revoked')
  expect((await store.all()).map(({ endpoint }) => endpoint)).toEqual([`${paper.origin}/b`])
  expect(await run('logout')).toMatchObject({
    code: 0,
    stdout: `${paper.origin}/b: deleted; the server does not support revocation\n`,
  })
  expect(await store.all()).toEqual([])
})

test('plain http endpoints of a login are rejected before any request', async () => {
  for (const argv of [
    ['--url', 'http://mcp.example.com/mcp'],
    ['--url', 'https://mcp.example.com/mcp', '--client-metadata-url', 'http://client.example.com/'],
  ]) {
    const { code, stderr } = await run('login', ...argv)
    expect([code, stderr]).toEqual([2, expect.stringContaining('must be https') as string])
  }
})
