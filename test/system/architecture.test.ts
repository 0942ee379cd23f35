import { readFileSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { circles, scripts } from '../support/architecture-shape.ts'
import { labViolations, mints, readRooms, readSources, violations } from '../support/architecture.ts'

// All sources are read and parsed, which takes a busy machine minutes.
vi.setConfig({ testTimeout: 300_000 })

const root = path.join(import.meta.dirname, '../..')
const rooms = readRooms(readFileSync(path.join(root, 'ARCHITECTURE.md'), 'utf8'))
const sources = readSources(path.join(root, 'src'))

describe('architecture', { timeout: 120_000 }, () => {
  it('knows the rooms from the page and the page knows every room', () => {
    const folders = readdirSync(path.join(root, 'src'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
    expect(rooms.map((room) => room.name).sort()).toEqual(folders.sort())
  })

  it('imports only lower modules, through their entry points', () => {
    expect(sources.length).toBeGreaterThan(50)
    expect(violations(rooms, sources)).toEqual([])
  })

  it('has no import cycles, and no scripts but the pages', () => {
    const both = ['src', 'lab'].flatMap((folder) =>
      readSources(path.join(root, folder)).map(({ path: name, imports }) => ({ path: `${folder}/${name}`, imports })),
    )
    expect(circles(both)).toEqual([])
    expect(scripts(path.join(root, 'src'), ['inspect/page'])).toEqual([])
  })

  it('keeps the lab out of the product', () => {
    const lab = readSources(path.join(root, 'lab'))
    expect(lab.length).toBeGreaterThan(10)
    expect(labViolations(rooms, lab, sources)).toEqual([])
  })

  it('lists only lower rooms in the table', () => {
    const level = new Map(rooms.map((room) => [room.name, room.level]))
    for (const room of rooms) {
      if (room.mayImport === 'below') continue
      for (const name of room.mayImport) expect(level.get(name), `${room.name} → ${name}`).toBeLessThan(room.level)
    }
  })

  it('mints every stage in exactly one file, in the room of that stage', () => {
    const rooms = Object.entries(mints(sources)).map(([stage, files]) => [
      stage,
      files.map((file) => file.split('/')[0]),
    ])
    expect(Object.fromEntries(rooms)).toEqual({
      Matched: ['proxy'],
      Known: ['authenticate'],
      Armed: ['obtain'],
      Sealed: ['apply'],
    })
  })
})

describe('the architecture check itself', () => {
  const planted = violations(rooms, readSources(path.join(root, 'test/fixtures/architecture/src')))
  const expected = [
    'core/upward.ts: core may not import http',
    'core/upward.ts: http is not below core',
    'core/environment.ts: only compose, cli and main.ts read process.env',
    'core/destructured.ts: only compose, cli and main.ts read process.env',
    'http/sideways.ts: http may not import cache',
    'http/sideways.ts: cache is not below http',
    'http/helpers.ts: a thing has a room or it has no place',
    'apply/backdoor.ts: enters core by core/secret.ts, its door is index.ts',
    'apply/dynamic.ts: apply may not import cache',
    'apply/computed.ts: computed import',
    'apply/type-only.ts: apply may not import cache',
    'apply/package.ts: undici belongs to net, forward',
    'apply/outside.ts: imports ../../../../package.json, outside of src',
    'nowhere/thing.ts: no room called nowhere in ARCHITECTURE.md',
  ]

  it.each(expected)('finds the planted violation: %s', (sentence) => {
    expect(planted).toContain(sentence)
  })

  it('finds nothing but what was planted', () => {
    expect(planted.filter((sentence) => !expected.includes(sentence))).toEqual([])
  })

  it('finds what is planted in a lab', () => {
    const fixture = (folder: string) => readSources(path.join(root, 'test/fixtures/architecture', folder))
    expect(labViolations(rooms, fixture('lab'), fixture('with-lab')).sort()).toEqual(
      [
        'cli/eager.ts: loads the lab by a static import',
        'core/labelled.ts: loads the lab by a static import',
        'lab/backdoor.ts: ../src/core/secret.ts is no door of a room',
        'lab/backdoor.ts: ../src/commands/index.ts is no door of a room',
        'lab/computed.ts: computed import',
        'lab/computed.ts: reads process.env',
      ].sort(),
    )
    expect(violations(rooms, fixture('with-lab')).sort()).toEqual([
      'cli/eager.ts: imports ../../lab/cli/index.ts, outside of src',
      'core/labelled.ts: imports ../../lab/index.ts, outside of src',
    ])
  })

  it('sees a cast to a stage wherever it is written', () => {
    expect(mints(readSources(path.join(root, 'test/fixtures/architecture/src')))).toMatchObject({
      Sealed: ['apply/mint.ts'],
    })
  })

  it('finds import cycles and scripts', () => {
    const folder = path.join(root, 'test/fixtures/architecture/shape')
    expect(circles(readSources(folder))).toEqual([['one/a.ts', 'one/b.ts']])
    expect(scripts(folder, ['one'])).toEqual(['three/script.js'])
    expect(scripts(folder, ['three'])).toEqual([])
  })
})
