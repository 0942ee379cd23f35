import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Lab } from '../../../lab/cli/lab-compose.ts'
import { callerHeaders, startTestLab } from '../../support/lab/proxied.ts'

const CLI = path.join(import.meta.dirname, '../../../node_modules/.bin/mcp-inspector')

let lab: Lab
let home: string

beforeAll(async () => {
  lab = await startTestLab()
  home = await mkdtemp(path.join(os.tmpdir(), 'inspector-'))
})
afterAll(async () => {
  await lab.close()
  await rm(home, { recursive: true, force: true })
})

async function inspect(route: string, args: readonly string[], headers: Record<string, string>) {
  const lines = Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`])
  const target = [CLI, '--cli', `${lab.url}/${route}`, '--transport', 'http', '--stored-auth-only']
  const options = { env: { ...process.env, HOME: home }, timeout: 20_000, maxBuffer: 16 * 1024 * 1024 }
  const { stdout } = await promisify(execFile)(process.execPath, [...target, ...args, ...lines], options)
  return JSON.parse(stdout) as { tools?: { name: string }[]; content?: { text: string }[] }
}

describe.each([
  ['unauthenticated', 'legacy'],
  ['token-exchange', 'modern'],
  ['cloud-sts', 'legacy'],
])("the official inspector's CLI at the route %s, era %s", (route, era) => {
  test('lists the tools and calls one', async () => {
    const headers = route === 'unauthenticated' ? {} : await callerHeaders(lab)
    const listed = await inspect(route, ['--protocol-era', era, '--method', 'tools/list'], headers)
    expect(listed.tools?.map(({ name }) => name)).toContain('test_simple_text')
    const call = ['--protocol-era', era, '--method', 'tools/call', '--tool-name', 'test_simple_text']
    const called = await inspect(route, call, headers)
    expect(called.content?.[0]?.text).toBe('This is a simple text response for testing.')
  }, 60_000)
})
