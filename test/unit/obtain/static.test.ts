import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ANONYMOUS, type Known } from '../../../src/core/index.ts'
import { createObtain } from '../../../src/obtain/index.ts'
import { openSecrets, type HeldSecrets } from '../../../src/secrets/index.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig } from '../../support/obtain/harness.ts'

const sockets = createSockets()
let directory: string
let secrets: HeldSecrets | undefined

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'static-'))
})
afterEach(async () => {
  secrets?.release()
  rmSync(directory, { recursive: true, force: true })
  await sockets.closeAll()
})

const ref = { name: 'github', key: 'token' }
const source = { file: 'test.yaml', line: 1 }
const put = (value: string) => {
  mkdirSync(join(directory, 'github'), { recursive: true })
  writeFileSync(join(directory, 'github', 'token'), value)
}

/** A stage over secrets in real files. */
function open(type: 'headerInjection' | 'bearerToken', headerName = 'X-Api-Key') {
  const rig = createRig(sockets)
  secrets = openSecrets(directory, rig).hold()
  const common = { name: 'a', namespace: 'default', configHash: 'h', source }
  const deps = { ...rig.deps, secrets }
  const stage =
    type === 'bearerToken'
      ? createObtain({ ...common, type, spec: { tokenSecretRef: ref } }, deps)
      : createObtain({ ...common, type, spec: { headerName, valueSecretRef: ref } }, deps)
  const obtain = () => {
    const armed = stage.obtain({
      caller: ANONYMOUS,
      matched: { route: { name: 'r' }, authorization: [] },
    } as unknown as Known)
    if (armed instanceof Promise) throw new Error('a static credential is there at once')
    return armed
  }
  const value = () => {
    const { credential } = obtain()
    return credential.kind === 'header' ? `${credential.name}: ${credential.value.reveal()}` : credential.kind
  }
  return { rig, stage, obtain, value }
}

test('headerInjection puts the value of its secret into its header', () => {
  put('value with spaces\n')
  expect(open('headerInjection').value()).toBe('x-api-key: value with spaces')
})

test('bearerToken puts it into Authorization', () => {
  put('token-1')
  expect(open('bearerToken').value()).toBe('authorization: Bearer token-1')
})

test('unauthenticated gives nothing and can give nothing else', async () => {
  const rig = createRig(sockets)
  const auth = { name: 'a', namespace: 'default', configHash: 'h', source, type: 'unauthenticated', spec: {} } as const
  const { stage, obtain } = rig.open(auth)
  const armed = await obtain(createCaller())
  expect(armed.credential).toEqual({ kind: 'none' })
  expect(await stage.reject(armed)).toBe(false)
})

test('what is not ASCII goes out as the bytes of the file', () => {
  put('ключ')
  const value = open('headerInjection').value().slice('x-api-key: '.length)
  expect(Buffer.from(value, 'latin1').toString('utf8')).toBe('ключ')
})

test.each([
  ['a line break', 'a\r\nX-Evil: 1'],
  ['a NUL', 'a\0b'],
  ['a tab', 'a\tb'],
  ['a C1 control', 'a\u0085b'],
  ['more than 8 KiB', 'x'.repeat(8 * 1024 + 1)],
  ['more than 8 KiB in bytes', 'é'.repeat(4 * 1024 + 1)],
])('a value with %s is a config error that does not show it', (_what, content) => {
  put(content)
  const { rig, value } = open('headerInjection')
  expect(value).toThrow(expect.objectContaining({ code: 'config_error' }))
  expect(rig.output()).not.toContain(content)
})

test('exactly 8 KiB is fine', () => {
  put('x'.repeat(8 * 1024))
  expect(open('bearerToken').value()).toHaveLength('authorization: Bearer '.length + 8 * 1024)
})

test('a missing secret is unavailable until it appears', async () => {
  const { value } = open('bearerToken')
  expect(value).toThrow(expect.objectContaining({ code: 'secret_unavailable' }))
  put('here')
  await secrets?.handle(ref).refresh()
  expect(value()).toBe('authorization: Bearer here')
})

test('a new value that cannot be a header keeps the old one, and is logged without it', async () => {
  put('good')
  const { rig, value } = open('bearerToken')
  expect(value()).toBe('authorization: Bearer good')
  put('SECRET\nSECRET')
  await secrets?.handle(ref).refresh()
  expect(value()).toBe('authorization: Bearer good')
  expect(rig.log.lines.filter((line) => line.includes('invalid secret'))).toHaveLength(1)
  expect(rig.output()).not.toContain('SECRET')
  put('better')
  await secrets?.handle(ref).refresh()
  expect(value()).toBe('authorization: Bearer better')
})

test('a refused credential is worth another try only when its file has changed', async () => {
  put('one')
  const { stage, obtain, value } = open('bearerToken')
  const armed = obtain()
  expect(await stage.reject(armed)).toBe(false)
  put('two')
  expect(await stage.reject(armed)).toBe(true)
  expect(value()).toBe('authorization: Bearer two')
  expect(await stage.reject(armed)).toBe(true)
  expect(await stage.reject(obtain())).toBe(false)
})

test('the same credential object serves every request', () => {
  put('one')
  const { obtain } = open('bearerToken')
  expect(obtain().credential).toBe(obtain().credential)
})
