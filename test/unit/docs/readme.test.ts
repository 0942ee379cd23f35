import { globSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = path.join(import.meta.dirname, '../../..')
const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8')
const PAGES = globSync(['*.md', 'docs/**/*.md', 'config/**/*.md', 'charts/**/*.md'], { cwd: ROOT })
const MOST_LINES = 150
const LONGEST_LINE = 250

describe('the front door', () => {
  it('is a README that can be read in one go', () => {
    expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(MOST_LINES)
  })

  it.each(['docs', 'docs/engineering'])('has an index that links every page: %s', (folder) => {
    const index = read(`${folder}/README.md`)
    const pages = readdirSync(path.join(ROOT, folder)).filter((name) => name.endsWith('.md') && name !== 'README.md')
    expect(pages.length).toBeGreaterThan(5)
    expect(pages.filter((name) => !index.includes(`(${name})`) && !index.includes(`(${name}#`))).toEqual([])
  })
})

describe('pages', () => {
  it('are many', () => {
    expect(PAGES.length).toBeGreaterThan(80)
  })

  it.each(PAGES)('have no overlong lines outside of tables: %s', (name) => {
    const long = (line: string): boolean => line.length > LONGEST_LINE && !line.startsWith('|')
    expect(read(name).split('\n').filter(long)).toEqual([])
  })

  /** Given from elsewhere, or the text of schemas. */
  const OTHERS = new Set(['docs/engineering/specification.md', 'docs/engineering/decisions.md', 'docs/reference.md'])
  const OURS = PAGES.filter((name) => !name.startsWith('docs/adr/') && !OTHERS.has(name))
  it.each(OURS)('begin sentences with their subject: %s', (name) => {
    const prose = read(name)
      .replaceAll(/```.*?```/gs, '')
      .split('\n')
      .filter((line) => !/^[|#<]/.test(line))
      .join('\n')
    const sentences = prose.matchAll(/(?:^|[.!?]\s+|\n\s*\n|\n\s*(?:-|\d+\.) )(?:What|Who|Nobody)\b[^.]*/g)
    expect([...sentences].map(([text]) => text.trim())).toEqual([])
  })
})
