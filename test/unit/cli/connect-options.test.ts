import { mkdtemp, readdir, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { main } from '../../../src/cli/commands/index.ts'
import { ioOf } from '../../support/compose/io.ts'

const TARGET = ['--target', 'https://mcp.example.com/mcp']
let state: string

beforeEach(async () => {
  state = await mkdtemp(path.join(os.tmpdir(), 'extauth-connect-'))
})
afterEach(() => rm(state, { recursive: true }))

it.each<[readonly string[], string]>([
  [[], '--connect requires --target URL'],
  [[...TARGET, '--external-auth', 'a.yaml'], '--connect excludes --external-auth: it generates the whole'],
  [[...TARGET, '--config', 'a.yaml'], '--connect excludes --config'],
  [[...TARGET, '--callers', 'a.yaml'], '--connect excludes --callers'],
  [[...TARGET, '--secrets-dir', 'secrets'], '--connect excludes --secrets-dir'],
  [[...TARGET, '--namespace', 'a'], '--connect excludes --namespace'],
  [[...TARGET, '--workers', '2'], '--connect excludes --workers'],
  [[...TARGET, '--listen', ':8080'], '--listen must be a loopback address'],
  [[...TARGET, '--listen', '0.0.0.0:8080'], '--listen must be a loopback address'],
  [[...TARGET, '--listen', 'unix:/tmp/a'], '--listen must be a loopback address that browsers reach'],
  [['--target', 'http://mcp.example.com/mcp'], '--target must be https to connect an account'],
])('extauth proxy --connect %j is a usage error, and writes nothing', async (args, message) => {
  const { io, out } = ioOf({ env: { XDG_STATE_HOME: state } })
  expect(await main(['proxy', '--connect', ...args], io)).toBe(2)
  expect(out.stderr).toContain(message)
  expect(await readdir(state)).toEqual([])
})

it('the address may come from the environment, with the same rules', async () => {
  const { io, out } = ioOf({ env: { XDG_STATE_HOME: state, EXTAUTH_LISTEN: '0.0.0.0:8080' } })
  expect(await main(['proxy', '--connect', ...TARGET], io)).toBe(2)
  expect(out.stderr).toContain('--listen must be a loopback address')
})
