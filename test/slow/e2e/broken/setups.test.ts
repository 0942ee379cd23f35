import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run, type RunningTestProxy } from '../../../support/e2e/run.ts'
import { GOOD } from '../../../support/e2e/broken/build.ts'
import { hear } from '../../../support/e2e/broken/said-alike.ts'
import { BROKEN_CALLERS } from '../../../support/e2e/broken/secrets-and-documents.ts'
import { BROKEN_SETUPS } from '../../../support/e2e/broken/setups.ts'

const endOf = (routes: readonly string[]): RegExp =>
  routes.length === 0 ? /^(?!.*\(routes? )/ : new RegExp(` \\(route "${routes.join('", "')}"\\)$`)

describe('validate, a start and a reload say the same of', () => {
  let proxy: RunningTestProxy
  beforeAll(async () => void (proxy = await run(GOOD)))
  afterAll(() => proxy.close())

  it.each(BROKEN_SETUPS)('$name', { timeout: 30_000 }, async (setup) => {
    const { line, reload, start, validate } = await hear(proxy, setup)
    expect(line).toMatch(setup.says)
    expect(line).toMatch(endOf(setup.routes))
    expect(start).toEqual(reload)
    expect(validate).toEqual(reload)
  })

  it('what works again after all of them', async () => {
    expect(await proxy.reload()).toEqual({ ok: true })
  })
})

describe('with --callers, they say the same of', () => {
  let proxy: RunningTestProxy
  let folder = ''
  let callers = ''
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'extauth-callers-'))
    callers = path.join(folder, 'c.yaml')
    await writeFile(callers, 'auth: { mode: anonymous }\n')
    proxy = await run(GOOD, { callers })
  })
  afterAll(async () => {
    await proxy.close()
    await rm(folder, { recursive: true })
  })

  it.each(BROKEN_CALLERS)('$name', { timeout: 30_000 }, async (setup) => {
    const { line, reload, start, validate } = await hear(proxy, setup, callers)
    expect(line).toMatch(setup.says)
    expect(line).toMatch(endOf(setup.routes))
    expect(start).toEqual(reload)
    expect(validate).toEqual(reload)
  })
})
