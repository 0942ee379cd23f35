import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openSecrets, type HeldSecrets } from '../../../src/secrets/index.ts'
import { createManualClock, createRecordingLog, createRecordingMetrics } from '../../support/ports.ts'

let directory: string
let secrets: HeldSecrets
let log: ReturnType<typeof createRecordingLog>
let metrics: ReturnType<typeof createRecordingMetrics>

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'secrets-'))
  log = createRecordingLog()
  metrics = createRecordingMetrics()
  secrets = openSecrets(directory, { log, metrics, clock: createManualClock() }).hold()
})
afterEach(() => {
  secrets.release()
  rmSync(directory, { recursive: true, force: true })
})

const put = (name: string, key: string, value: string | Buffer) => {
  mkdirSync(join(directory, name), { recursive: true })
  writeFileSync(join(directory, name, key), value)
}
const TOKEN = { name: 'github', key: 'token' }
const valueOf = (ref = TOKEN) => secrets.handle(ref).current().reveal()

test.each([
  ['value', 'value'],
  ['value\n', 'value'],
  ['value\r\n', 'value'],
  ['value\n\n', 'value\n'],
  [' value ', ' value '],
  ['välue', 'välue'],
])('the file %j is the secret %j', (content, value) => {
  put('github', 'token', content)
  expect(valueOf()).toBe(value)
})

test.each([
  ['empty', ''],
  ['only a newline', '\n'],
  ['blank', '  \t '],
  ['only a byte order mark', '\uFEFF\n'],
  ['only a no-break space', '\u00A0'],
  ['not UTF-8', Buffer.from([0x66, 0xff])],
  ['over 1 MiB', Buffer.alloc(1024 * 1024 + 1, 'x')],
])('a file that is %s is no secret', (_what, content) => {
  put('github', 'token', content)
  expect(() => valueOf()).toThrow(expect.objectContaining({ code: 'secret_unavailable' }))
})

test.each(['', ' ', '\uFEFF', '\u00A0\n'])('a value that becomes %j keeps the one before', async (content) => {
  put('github', 'token', 'before')
  const handle = secrets.handle(TOKEN)
  put('github', 'token', content)
  expect(await handle.refresh()).toBe(false)
  expect(handle.current().reveal()).toBe('before')
})

test('a missing secret is unavailable until it appears', async () => {
  const handle = secrets.handle(TOKEN)
  expect(() => handle.current()).toThrow(expect.objectContaining({ code: 'secret_unavailable' }))
  expect([handle.label, handle.version]).toEqual(['github/token', 0])
  put('github', 'token', 'here')
  await vi.waitFor(() => expect(handle.current().reveal()).toBe('here'), { timeout: 5_000, interval: 10 })
  expect(handle.version).toBe(1)
})

test('a changed value gets a new version, another newline at its end does not', async () => {
  put('github', 'token', 'one')
  const handle = secrets.handle(TOKEN)
  put('github', 'token', 'one\n')
  expect([await handle.refresh(), handle.version]).toEqual([false, 1])
  put('github', 'token', 'two\n')
  expect([await handle.refresh(), handle.version, valueOf()]).toEqual([true, 2, 'two'])
})

test('what fails to load keeps the old value, and is counted by reason', async () => {
  put('github', 'token', 'one')
  const handle = secrets.handle(TOKEN)
  put('github', 'token', '')
  expect(await handle.refresh()).toBe(false)
  rmSync(join(directory, 'github'), { recursive: true })
  expect(await handle.refresh()).toBe(false)
  expect(handle.current().reveal()).toBe('one')
  expect(metrics.value('extauth_secret_reload_failures_total', 'refused')).toBe(1)
  expect(metrics.value('extauth_secret_reload_failures_total', 'missing')).toBe(1)
  expect(metrics.value('extauth_secret_reloads_total')).toBe(1)
  expect(log.lines.find((line) => line.includes('refused'))).toContain('it is blank, or no UTF-8 text')
})

test('the swap of a Kubernetes mount is followed', async () => {
  const at = (...names: string[]) => join(directory, 'github', ...names)
  for (const version of ['..1', '..2']) {
    mkdirSync(at(version), { recursive: true })
    writeFileSync(at(version, 'token'), `value ${version}\n`)
  }
  symlinkSync('..1', at('..data'))
  symlinkSync('..data/token', at('token'))
  const handle = secrets.handle(TOKEN)
  expect(handle.current().reveal()).toBe('value ..1')
  symlinkSync('..2', at('..data_tmp'))
  renameSync(at('..data_tmp'), at('..data'))
  await vi.waitFor(() => expect(handle.current().reveal()).toBe('value ..2'), { timeout: 5_000, interval: 10 })
})

test('a link that leaves the secrets directory is not followed', () => {
  const outside = mkdtempSync(join(tmpdir(), 'outside-'))
  writeFileSync(join(outside, 'token'), 'not for you')
  symlinkSync(outside, join(directory, 'github'))
  expect(() => valueOf()).toThrow(expect.objectContaining({ code: 'secret_unavailable' }))
  expect(metrics.value('extauth_secret_reload_failures_total', 'outside')).toBe(1)
  rmSync(outside, { recursive: true })
})

test.each([
  ['..', 'token'],
  ['a/b', 'token'],
  ['', 'token'],
  ['Upper', 'token'],
  ['a'.repeat(254), 'token'],
  ['-a', 'token'],
  ['a..b', 'token'],
  ['github', '..'],
  ['github', '..data'],
  ['github', '.'],
  ['github', 'a/b'],
  ['github', ''],
  ['github', 'a\0'],
  ['github', 'a\n'],
])('the reference %j / %j is a config error', (name, key) => {
  expect(() => secrets.handle({ name, key })).toThrow(expect.objectContaining({ code: 'config_error' }))
})

test('the same reference gives the same handle', () => {
  expect(secrets.handle(TOKEN)).toBe(secrets.handle({ ...TOKEN }))
})

test('no value is in what is logged, counted or thrown', async () => {
  put('github', 'token', 'hunter2-one')
  const handle = secrets.handle(TOKEN)
  put('github', 'token', 'hunter2-two')
  await handle.refresh()
  put('github', 'token', 'hunter2\xff')
  writeFileSync(join(directory, 'github', 'token'), Buffer.from([0x68, 0xff]))
  await handle.refresh()
  const output = [...log.lines, metrics.text(), JSON.stringify(handle), String(handle.current())].join('\n')
  expect(output).toContain('github/token')
  expect(output).not.toContain('hunter2')
})

test('a secret is watched as long as it has a user', async () => {
  put('github', 'token', 'one')
  put('github', 'other', 'one')
  const opened = openSecrets(directory, { log, metrics, clock: createManualClock(), pollMs: 20 })
  const [gone, stays] = [opened.hold(), opened.hold()]
  gone.handle(TOKEN)
  const shared = gone.handle({ name: 'github', key: 'other' })
  expect(stays.handle({ name: 'github', key: 'other' })).toBe(shared)
  gone.release()
  put('github', 'token', 'two')
  put('github', 'other', 'two')
  await vi.waitFor(() => expect(shared.current().reveal()).toBe('two'), { timeout: 5_000, interval: 10 })
  const loads = log.lines.filter((line) => line.includes('secret loaded'))
  expect(loads.map((line) => (JSON.parse(line) as { secret: string }).secret)).toEqual([
    'github/token',
    'github/other',
    'github/other',
  ])
  stays.release()
})

test.each([
  ['bytes that are no text', Buffer.from([0xff, 0x00, 0x0d, 0x0a]), 'ff000d0a'],
  ['text, in UTF-8 without its last newline', 'välue\n', '76c3a46c7565'],
])('a key in a file is its %s', (_what, content, hex) => {
  put('github', 'token', content)
  const secret = secrets.handle(TOKEN, 'bytes').current()
  expect(secret.bytes().toString('hex')).toBe(hex)
  expect(String(secret)).not.toContain(hex)
})

test('bytes are followed as text is, and are no text for who wants one', async () => {
  put('github', 'token', Buffer.from([0xff, 1]))
  const [key, text] = [secrets.handle(TOKEN, 'bytes'), secrets.handle(TOKEN)]
  const before = key.current()
  put('github', 'token', Buffer.from([0xff, 2]))
  expect([await key.refresh(), key.version, key.current().equals(before)]).toEqual([true, 2, false])
  expect(() => text.current()).toThrow(expect.objectContaining({ code: 'secret_unavailable' }))
  expect(() => key.current().reveal()).toThrow('no text')
})
