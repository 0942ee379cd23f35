import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { openSource, type Source, type SourceConfig } from '../../../src/registry/index.ts'
import { entry, NO_METRICS, recordingLog } from '../../support/registry/setup.ts'

let directory: string
let source: Source | undefined
const log = recordingLog()
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'registry-'))
  log.lines.length = 0
})
afterEach(async () => {
  await source?.close()
  source = undefined
  rmSync(directory, { recursive: true })
})

const open = async (config: SourceConfig): Promise<Source> => {
  const outbound = () => {
    throw new Error('files need no connection')
  }
  const deps = { clock: { now: () => 5000 }, log, metrics: NO_METRICS, outbound, filePollMs: 100 }
  source = await openSource('default', config, deps)
  return source
}
const names = (source: Source) => source.state().snapshot?.entries.map(({ name, version }) => `${name} ${version}`)
const put = (name: string, value: unknown) => {
  // Replaced in one step, as careful writers do.
  writeFileSync(join(directory, `${name}.tmp`), typeof value === 'string' ? value : JSON.stringify(value))
  renameSync(join(directory, `${name}.tmp`), join(directory, name))
}
const file = () => join(directory, 'servers.json')
const until = (check: () => void) => vi.waitFor(check, { timeout: 5_000, interval: 20 })

describe('a file as source', () => {
  it('is read at once and again when it changes', async () => {
    put('servers.json', [entry('a/b', '1.0.0')])
    const source = await open({ file: file() })
    expect(source.state()).toMatchObject({ problem: undefined, loadedAtMs: 5000 })
    put('servers.json', [entry('a/b', '1.0.0'), entry('a/b', '2.0.0')])
    await until(() => expect(names(source)).toEqual(['a/b 1.0.0', 'a/b 2.0.0']))
  })

  it.each([
    ['cut off', '[{', 'not_json'],
    ['not valid', [entry('no-slash', '1')], 'invalid'],
    ['without a list', { groups: [] }, 'invalid'],
  ])('keeps the last good data while it is %s, and takes the next good ones', async (_, broken, problem) => {
    put('servers.json', [entry('a/b', '1.0.0')])
    const source = await open({ file: file() })
    put('servers.json', broken)
    await until(() => expect(source.state().problem).toBe(problem))
    expect(names(source)).toEqual(['a/b 1.0.0'])
    expect(log.lines.some((line) => line.startsWith('warn') && line.includes('keeping the former data'))).toBe(true)
    put('servers.json', [entry('a/b', '3.0.0')])
    await until(() => expect(names(source)).toEqual(['a/b 3.0.0']))
    expect(source.state().problem).toBeUndefined()
  })

  it('leaves out what is not valid, serves the rest, and the log says where', async () => {
    put('servers.json', { servers: [entry('a/b', '1.0.0'), entry('no-slash', '1'), null] })
    const source = await open({ file: file() })
    expect(names(source)).toEqual(['a/b 1.0.0'])
    expect(source.state()).toMatchObject({ problem: undefined, snapshot: { skipped: { count: 2 } } })
    const line = log.lines.find((text) => text.startsWith('warn invalid registry entries skipped'))
    expect(line).toContain('servers.json: entry 1: server.name')
  })

  it('may appear later', async () => {
    const source = await open({ file: file() })
    expect(source.state()).toMatchObject({ snapshot: undefined, problem: 'missing' })
    put('servers.json', entry('a/b', '1.0.0'))
    await until(() => expect(names(source)).toEqual(['a/b 1.0.0']))
  })

  it('keeps its data when it is removed, and is well again when it comes back as it was', async () => {
    put('servers.json', [entry('a/b', '1.0.0')])
    const source = await open({ file: file() })
    rmSync(file())
    await until(() => expect(source.state().problem).toBe('missing'))
    expect(names(source)).toEqual(['a/b 1.0.0'])
    put('servers.json', [entry('a/b', '1.0.0')])
    await source.refresh()
    expect(source.state().problem).toBeUndefined()
  })

  it('follows a swap of the link that Kubernetes makes', async () => {
    for (const version of ['1.0.0', '2.0.0']) {
      mkdirSync(join(directory, `..${version}`))
      put(`..${version}/servers.json`, [entry('a/b', version)])
    }
    symlinkSync('..1.0.0', join(directory, '..data'))
    symlinkSync('..data/servers.json', file())
    const source = await open({ file: file() })
    expect(names(source)).toEqual(['a/b 1.0.0'])
    symlinkSync('..2.0.0', join(directory, '..data_tmp'))
    renameSync(join(directory, '..data_tmp'), join(directory, '..data'))
    await until(() => expect(names(source)).toEqual(['a/b 2.0.0']))
  })

  it('is no directory', async () => {
    expect((await open({ file: directory })).state().problem).toBe('unreadable')
  })
})

describe('a directory as source', () => {
  it('is all its .json files, sub-directories included and hidden ones not', async () => {
    mkdirSync(join(directory, 'sub'))
    mkdirSync(join(directory, '.hidden'))
    put('one.json', entry('a/one', '1.0.0'))
    put('sub/two.json', { servers: [entry('a/two', '1.0.0')] })
    put('.hidden/three.json', 'broken')
    put('notes.txt', 'broken')
    const source = await open({ directory })
    expect(names(source)).toEqual(['a/one 1.0.0', 'a/two 1.0.0'])
    put('three.json', [entry('a/three', '1.0.0')])
    await until(() => expect(names(source)).toContain('a/three 1.0.0'))
  })

  it('keeps what a broken file gave before, serves the others, and the log names it', async () => {
    put('one.json', entry('a/one', '1.0.0'))
    put('two.json', entry('a/two', '1.0.0'))
    const source = await open({ directory })
    put('two.json', '{')
    put('three.json', entry('a/three', '1.0.0'))
    await until(() => expect(names(source)).toEqual(['a/one 1.0.0', 'a/three 1.0.0', 'a/two 1.0.0']))
    await until(() => expect(source.state().snapshot?.skipped.count).toBe(1))
    expect(log.lines.join('\n')).toMatch(/two\.json: the data is not UTF-8 encoded JSON/)
    put('two.json', entry('a/two', '2.0.0'))
    await until(() => expect(names(source)).toContain('a/two 2.0.0'))
    expect(source.state().snapshot?.skipped.count).toBe(0)
  })

  it('starts with what can be used, and not without anything', async () => {
    put('one.json', '{')
    const none = await open({ directory })
    expect(none.state()).toMatchObject({ snapshot: undefined, problem: 'not_json' })
    await none.close()
    put('two.json', entry('a/two', '1.0.0'))
    const some = await open({ directory })
    expect(names(some)).toEqual(['a/two 1.0.0'])
    expect(some.state().snapshot?.skipped.count).toBe(1)
  })

  it('takes the same version of a server once', async () => {
    put('one.json', entry('a/one', '1.0.0'))
    put('two.json', entry('a/one', '1.0.0'))
    const source = await open({ directory })
    expect(names(source)).toEqual(['a/one 1.0.0'])
    expect(log.lines.join('\n')).toContain('a/one: a version is listed twice')
  })

  it('may be empty, and may be missing', async () => {
    expect(names(await open({ directory }))).toEqual([])
    await source?.close()
    expect((await open({ directory: join(directory, 'nowhere') })).state()).toMatchObject({
      snapshot: undefined,
      problem: 'missing',
    })
  })
})

describe('a source', () => {
  it('answers while 10,000 entries are loaded', async () => {
    const many = Array.from({ length: 10_000 }, (_, index) => entry(`org.many/s${index}`, '1.0.0'))
    put('servers.json', many)
    const source = await open({ file: file() })
    expect(source.state().snapshot?.entries).toHaveLength(10_000)
    let turns = 0
    const count = setInterval(() => (turns += 1), 1)
    await source.refresh()
    clearInterval(count)
    expect(turns).toBeGreaterThan(5)
  })

  it('has exactly one kind', async () => {
    await expect(open({})).rejects.toThrow(TypeError)
  })
})
