import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { jsonSchema, JSON_SCHEMA_NAMES } from '../../src/load/publish/index.ts'

const PAGE = readFileSync(path.join(import.meta.dirname, '../../docs/reference.md'), 'utf8')
/** The cells of each row of each table; a `|` within a cell is escaped. */
const ROWS = PAGE.split('\n')
  .filter((line) => /^\| (\*\*)?`/.test(line))
  .map((line) => line.split(/(?<!\\)\|/).slice(1, -1))
  .map((cells) => cells.map((cell) => cell.trim()))

interface Part {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Part>>
  readonly items?: Part
}

/** What every object of Kubernetes has and nobody looks up here. */
const KNOWN_TO_ALL: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'spec'])

/** Paths of fields without a description. */
function undescribed(part: Part, prefix = '', found: string[] = []): string[] {
  for (const [name, field] of Object.entries(part.properties ?? {})) {
    const here = prefix + name
    if (here === 'metadata' || here === 'status') continue
    if (field.description === undefined && !KNOWN_TO_ALL.has(here)) found.push(here)
    undescribed(field, `${here}.`, found)
    undescribed(field.items ?? {}, `${here}[].`, found)
  }
  return found
}

describe('the reference of all fields', () => {
  it('has rows of four cells for the three kinds of files', () => {
    expect(ROWS.length).toBeGreaterThan(150)
    expect(ROWS.filter((cells) => cells.length !== 4)).toEqual([])
    expect(PAGE.match(/^## .*$/gm)).toEqual(['## ProxyConfig', '## MCPExternalAuthConfig', '## RegistryConfig'])
  })

  it('says of every field what it means', () => {
    expect(ROWS.filter((cells) => cells[3] === '').map((cells) => cells[0])).toEqual([])
  })

  it.each(JSON_SCHEMA_NAMES)('has a description of every field of %s in its schema, for editors', (name) => {
    expect(undescribed(jsonSchema(name) as Part)).toEqual([])
  })
})
