import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ANONYMOUS, type Armed, type Known } from '../../../src/core/index.ts'
import { createForwarded, createObtain } from '../../../src/obtain/index.ts'
import { openSecrets, type HeldSecrets } from '../../../src/secrets/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig } from '../../support/obtain/harness.ts'

const sockets = createSockets()
let directory: string
let secrets: HeldSecrets | undefined
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'forwarded-'))
})
afterEach(async () => {
  secrets?.release()
  rmSync(directory, { recursive: true, force: true })
  await sockets.closeAll()
})

const put = (key: string, value: string): void => {
  mkdirSync(join(directory, 'tenant'), { recursive: true })
  writeFileSync(join(directory, 'tenant', key), value)
}
const WRITTEN = {
  addPlaintextHeaders: { 'X-Tenant': 'ключ' },
  addHeadersFromSecret: [
    { headerName: 'X-Api-Key', valueSecretRef: { name: 'tenant', key: 'api-key' } },
    { headerName: 'X-Other', valueSecretRef: { name: 'tenant', key: 'other' } },
  ],
}

/** The stage of a route whose type adds nothing. */
function open() {
  const rig = createRig(sockets)
  secrets = openSecrets(directory, { ...rig, pollMs: 3_600_000 }).hold()
  const source = { file: 'test.yaml', line: 1 }
  const auth = { name: 'a', namespace: 'n', configHash: 'h', source, type: 'unauthenticated', spec: {} } as const
  const stage = createObtain(auth, { ...rig.deps, secrets }, WRITTEN)
  const known = { caller: ANONYMOUS, matched: { route: { name: 'r' }, authorization: [] } } as unknown as Known
  return { stage, armed: () => stage.obtain(known) as Armed }
}
const textOf = ({ forwarded = [] }: Armed): string[] => forwarded.map(({ name, value }) => `${name}: ${value.reveal()}`)

test('a request is armed with plain headers and secrets beside the credential of its type', () => {
  put('api-key', 'one\n')
  put('other', 'two')
  const armed = open().armed()
  const bytes = Buffer.from('ключ').toString('latin1')
  expect(textOf(armed)).toEqual([`x-tenant: ${bytes}`, 'x-api-key: one', 'x-other: two'])
  expect(armed.credential).toEqual({ kind: 'none' })
  expect(JSON.stringify(armed.forwarded)).not.toContain('one')
})

test('without a secret nothing is sent: the request fails as with a secret of a type', () => {
  put('api-key', 'one')
  expect(open().armed).toThrow(expect.objectContaining({ code: 'secret_unavailable' }) as Error)
})

test('a secret that can be no header is a mistake of the configuration', () => {
  put('api-key', 'a\nX-Evil: 1')
  put('other', 'two')
  expect(open().armed).toThrow(expect.objectContaining({ code: 'config_error' }) as Error)
})

test('after a rejection secrets are read again: a changed one is retried, the same is not', async () => {
  put('api-key', 'one')
  put('other', 'two')
  const { stage, armed } = open()
  const refused = armed()
  expect(await stage.reject(refused)).toBe(false)
  put('other', 'renewed')
  expect(await stage.reject(refused)).toBe(true)
  expect(textOf(armed()).slice(1)).toEqual(['x-api-key: one', 'x-other: renewed'])
})

test('a route that forwards nothing has nothing to do for it', () => {
  const { deps } = createRig(sockets)
  expect(createForwarded(undefined, deps)).toBeUndefined()
  expect(createForwarded({ addPlaintextHeaders: {}, addHeadersFromSecret: [] }, deps)).toBeUndefined()
})
