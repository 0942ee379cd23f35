import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { VERSION } from '../../../src/compose/index.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8')
const CHANGELOG = read('CHANGELOG.md')
/** Of the newest version: what is below each heading. */
const NEWEST = new Map(
  (CHANGELOG.split(/^## /m)[1] ?? '')
    .split(/^### /m)
    .slice(1)
    .map((section): [heading: string, entries: string[]] => [
      section.slice(0, section.indexOf('\n')),
      section
        .split(/^- /m)
        .slice(1)
        .map((entry) => entry.trim().replaceAll(/\s+/g, ' ')),
    ]),
)

describe('CHANGELOG.md', () => {
  it('begins with the version of the package', () => {
    expect(/^## (\S+)/m.exec(CHANGELOG)?.[1]).toBe(VERSION)
  })

  it('says each thing once, in sections of its format', () => {
    const entries = [...NEWEST.values()].flat()
    expect(entries.length).toBeGreaterThan(50)
    expect(entries.filter((entry, index) => entries.indexOf(entry) !== index)).toEqual([])
    const headings = [...CHANGELOG.matchAll(/^### (.*)/gm)].map(([, heading = '']) => heading)
    expect(headings).toEqual(['Added', 'Changed', 'Deprecated', 'Fixed', 'Security'])
  })
})

describe('the version of the package', () => {
  it('is that of the lock, the chart and the images in manifests and pages', () => {
    const lock = JSON.parse(read('package-lock.json')) as { version: string; packages: Record<string, object> }
    expect([lock.version, lock.packages['']]).toMatchObject([VERSION, { version: VERSION }])
    expect(read('charts/mcp-extauth/Chart.yaml')).toMatch(
      new RegExp(`^version: ${VERSION}\nappVersion: ${VERSION}$`, 'm'),
    )
    const files = globSync(['charts/**/*.{yaml,md}', 'config/deploy/**/*.{yaml,md}', 'docs/*.md'], { cwd: ROOT })
    const images = files.flatMap((file) =>
      [...read(file).matchAll(/mcp-extauth:(\d[\w.-]*\w)/g)].map(([, tag]) => ({ file, tag })),
    )
    expect(images.length).toBeGreaterThan(8)
    expect(images.filter(({ tag }) => tag !== VERSION)).toEqual([])
  })
})
