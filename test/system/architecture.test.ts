import { readFileSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { cycles, scripts } from '../support/architecture-shape.ts'
import { labViolations, mints, readModules, readSources, violations } from '../support/architecture.ts'

// All sources are read and parsed, which takes a busy machine minutes.
vi.setConfig({ testTimeout: 300_000 })

const root = path.join(import.meta.dirname, '../..')
const modules = readModules(readFileSync(path.join(root, 'ARCHITECTURE.md'), 'utf8'))
const sources = readSources(path.join(root, 'src'))

describe('architecture', { timeout: 120_000 }, () => {
  it('lists exactly the folders of src as modules', () => {
    const folders = readdirSync(path.join(root, 'src'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
    expect(modules.map((module) => module.name).sort()).toEqual(folders.sort())
  })

  it('imports only lower modules, through their entry points', () => {
    expect(sources.length).toBeGreaterThan(50)
    expect(violations(modules, sources)).toEqual([])
  })

  it('has no import cycles, and no scripts but the pages', () => {
    const both = ['src', 'lab'].flatMap((folder) =>
      readSources(path.join(root, folder)).map(({ path: name, imports }) => ({ path: `${folder}/${name}`, imports })),
    )
    expect(cycles(both)).toEqual([])
    expect(scripts(path.join(root, 'src'), ['inspect/page'])).toEqual([])
  })

  it('imports the lab only dynamically, from the command table', () => {
    const lab = readSources(path.join(root, 'lab'))
    expect(lab.length).toBeGreaterThan(10)
    expect(labViolations(modules, lab, sources)).toEqual([])
  })

  it('lists only lower modules in the table', () => {
    const level = new Map(modules.map((module) => [module.name, module.level]))
    for (const module of modules) {
      if (module.mayImport === 'below') continue
      for (const name of module.mayImport)
        expect(level.get(name), `${module.name} → ${name}`).toBeLessThan(module.level)
    }
  })

  it('casts to each stage brand in exactly one file, in the module of that stage', () => {
    const modules = Object.entries(mints(sources)).map(([stage, files]) => [
      stage,
      files.map((file) => file.split('/')[0]),
    ])
    expect(Object.fromEntries(modules)).toEqual({
      Matched: ['proxy'],
      Known: ['authenticate'],
      Armed: ['obtain'],
      Sealed: ['apply'],
    })
  })
})

describe('the architecture check', () => {
  const planted = violations(modules, readSources(path.join(root, 'test/fixtures/architecture/src')))
  const expected = [
    'core/upward.ts: core may not import http',
    'core/upward.ts: http is not below core',
    'core/environment.ts: only compose, cli and main.ts read process.env',
    'core/destructured.ts: only compose, cli and main.ts read process.env',
    'http/sideways.ts: http may not import cache',
    'http/sideways.ts: cache is not below http',
    'http/helpers.ts: a file belongs to a module, not to a collection of helpers',
    'apply/backdoor.ts: enters core by core/secret.ts, its entry point is index.ts',
    'apply/dynamic.ts: apply may not import cache',
    'apply/computed.ts: computed import',
    'apply/type-only.ts: apply may not import cache',
    'apply/package.ts: undici belongs to net, forward',
    'apply/outside.ts: imports ../../../../package.json, outside of src',
    'nowhere/thing.ts: no module nowhere in ARCHITECTURE.md',
  ]

  it.each(expected)('finds the planted violation: %s', (sentence) => {
    expect(planted).toContain(sentence)
  })

  it('finds only planted violations', () => {
    expect(planted.filter((sentence) => !expected.includes(sentence))).toEqual([])
  })

  it('finds planted violations in a lab', () => {
    const fixture = (folder: string) => readSources(path.join(root, 'test/fixtures/architecture', folder))
    expect(labViolations(modules, fixture('lab'), fixture('with-lab')).sort()).toEqual(
      [
        'cli/eager.ts: loads the lab by a static import',
        'core/labelled.ts: loads the lab by a static import',
        'lab/backdoor.ts: ../src/core/secret.ts is not the entry point of a module',
        'lab/backdoor.ts: ../src/commands/index.ts is not the entry point of a module',
        'lab/computed.ts: computed import',
        'lab/computed.ts: reads process.env',
      ].sort(),
    )
    expect(violations(modules, fixture('with-lab')).sort()).toEqual([
      'cli/eager.ts: imports ../../lab/cli/index.ts, outside of src',
      'core/labelled.ts: imports ../../lab/index.ts, outside of src',
    ])
  })

  it('finds a cast to a stage brand in any file', () => {
    expect(mints(readSources(path.join(root, 'test/fixtures/architecture/src')))).toMatchObject({
      Sealed: ['apply/mint.ts'],
    })
  })

  it('finds import cycles and scripts', () => {
    const folder = path.join(root, 'test/fixtures/architecture/shape')
    expect(cycles(readSources(folder))).toEqual([['one/a.ts', 'one/b.ts']])
    expect(scripts(folder, ['one'])).toEqual(['three/script.js'])
    expect(scripts(folder, ['three'])).toEqual([])
  })
})
