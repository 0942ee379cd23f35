import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { jsonSchema, JSON_SCHEMA_NAMES } from '../../../src/load/publish/index.ts'
import { WORKLOAD_KINDS, workloadFields } from '../../../src/resources/index.ts'

const PAGE = readFileSync(path.join(import.meta.dirname, '../../../docs/reference.md'), 'utf8')
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

/** Fields of every Kubernetes object, which the reference leaves out. */
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
  it('has rows of four cells for each kind of files', () => {
    expect(ROWS.length).toBeGreaterThan(150)
    expect(ROWS.filter((cells) => cells.length !== 4)).toEqual([])
    expect(PAGE.match(/^## .*$/gm)?.map((line) => line.slice(3))).toEqual([
      'ProxyConfig',
      'MCPExternalAuthConfig',
      'MCPOIDCConfig',
      'MCPTelemetryConfig',
      'MCPToolConfig',
      'MCPRemoteProxy',
      'MCPServerEntry',
      'MCPServer',
      'VirtualMCPServer',
      'RegistryConfig',
    ])
  })

  it.each(WORKLOAD_KINDS)('has every field that is read of %s', (kind) => {
    const section = PAGE.slice(PAGE.indexOf(`## ${kind}\n`)).split('\n## ')[0] ?? ''
    expect(workloadFields(kind).filter((name) => !section.includes(`\`spec.${name}\``))).toEqual([])
  })

  it('lists the fields that it refers to where it says', () => {
    const references = [...PAGE.matchAll(/Its fields are those of `([^`]*)` of \[(\w+)\]/g)]
    expect(references.length).toBeGreaterThan(2)
    for (const [, field = '', kind = ''] of references)
      expect(PAGE.slice(PAGE.indexOf(`## ${kind}\n`)).split('\n## ')[0]).toMatch(
        new RegExp(`\`${field.replaceAll(/[.[\]]/g, String.raw`\$&`)}(\\[\\])?[.]`),
      )
  })

  it('says of every field what it means', () => {
    expect(ROWS.filter((cells) => cells[3] === '').map((cells) => cells[0])).toEqual([])
  })

  it.each(JSON_SCHEMA_NAMES)('has a description of every field of %s in its schema, for editors', (name) => {
    expect(undescribed(jsonSchema(name) as Part)).toEqual([])
  })
})
