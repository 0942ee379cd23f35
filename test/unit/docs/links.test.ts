import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = path.join(import.meta.dirname, '../../..')
const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8')
/** The text without code, in which brackets mean something else. */
const prose = (name: string): string => read(name).replaceAll(/```.*?```|`[^`\n]*`/gs, '')
/** Written by a full run of the bench. */
const REPORT = 'docs/engineering/performance.md'
const PAGES = globSync(['*.md', 'docs/**/*.md', 'config/**/*.md', 'charts/**/*.md'], { cwd: ROOT })

/** Headings as they are linked to. */
const anchorsOf = (page: string): string[] =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s-]/gu, '')
      .replaceAll(/\s/g, '-'),
  )

describe('links between pages', () => {
  it.each(PAGES)('%s leads to files and headings that exist', (page) => {
    const targets = [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '')
    const broken = targets.filter((target) => {
      if (/^[a-z]+:/.test(target)) return false
      const [file = '', anchor] = target.split('#')
      const found = file === '' ? page : path.join(path.dirname(page), file)
      if (!existsSync(path.join(ROOT, found))) return path.normalize(found) !== REPORT
      return anchor !== undefined && statSync(path.join(ROOT, found)).isFile() && !anchorsOf(found).includes(anchor)
    })
    expect(broken).toEqual([])
  })
})

describe('citations of decisions', () => {
  /** `3` for a section, `3.5` for its fifth point. */
  const sections = new Set<string>()
  let section = ''
  for (const line of read('docs/engineering/decisions.md').split('\n')) {
    const heading = /^## (\d+)\. /.exec(line)?.[1]
    const point = /^(\d+)\. /.exec(line)?.[1]
    if (heading !== undefined) sections.add((section = heading))
    else if (point !== undefined) sections.add(`${section}.${point}`)
  }

  it('in sources, tests, scripts and pages lead to a section that exists', () => {
    const files = globSync(
      ['src/**/*.ts', 'test/**/*.ts', 'scripts/*.ts', 'interop/*.ts', 'bench/*.ts', 'docs/**/*.md'],
      { cwd: ROOT },
    )
    const citations = files.flatMap((file) =>
      [...read(file).matchAll(/decisions §(\d+(?:\.\d+)?)/g)].map((match) => ({ file, to: match[1] ?? '' })),
    )
    expect(citations.length).toBeGreaterThan(100)
    expect(citations.filter(({ to }) => !sections.has(to))).toEqual([])
  })
})
