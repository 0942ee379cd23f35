import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { ValidateFunction } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments, type Document } from 'yaml'
import { createAjv } from '../../support/load/publish/validators.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const MODELINE = /^# yaml-language-server: \$schema=(\S+)$/gm
/** Manifests of Kubernetes and rules of Prometheus, for which editors have schemas of their own. */
const OF_KUBERNETES = /^config\/(deploy|generated|observability)\//

interface Example {
  readonly file: string
  readonly index: number
  readonly modelines: readonly string[]
  readonly value: Record<string, unknown>
}

/** The documents of a file; editors look for a modeline in each, so each has to have its own. */
function examplesIn(file: string): Example[] {
  const text = readFileSync(path.join(ROOT, file), 'utf8')
  const documents = parseAllDocuments(text) as unknown as Document[]
  const parts = text.split(/^---$/m)
  expect(parts).toHaveLength(documents.length)
  return documents.map((document, index) => ({
    file,
    index,
    modelines: [...(parts[index] ?? '').matchAll(MODELINE)].map((match) => match[1] ?? ''),
    value: document.toJS() as Record<string, unknown>,
  }))
}

const files = globSync('config/**/*.yaml', { cwd: ROOT }).filter((file) => !OF_KUBERNETES.test(file))
const examples = files.flatMap(examplesIn)

const ajv = createAjv()
const compiled = new Map<string, ValidateFunction>()
function schemaOf({ file, modelines: [named = ''] }: Example): ValidateFunction {
  const at = path.join(ROOT, path.dirname(file), named)
  const schema = compiled.get(at) ?? ajv.compile(JSON.parse(readFileSync(at, 'utf8')) as object)
  compiled.set(at, schema)
  return schema
}

describe('the examples', () => {
  it('are those of four folders', () => {
    expect(new Set(files.map((file) => path.dirname(file)))).toEqual(
      new Set(['config', 'config/examples', 'config/init', 'config/lab']),
    )
    expect(examples.length).toBeGreaterThan(25)
  })

  it.each(examples.map((one) => [`${one.file} (${one.index + 1})`, one] as const))(
    '%s names its schema, and is invalid with an unknown field',
    (_name, example) => {
      expect(example.modelines).toHaveLength(1)
      const validate = schemaOf(example)
      expect([validate(example.value), validate.errors]).toEqual([true, null])
      const part = 'spec' in example.value ? 'spec' : 'auth'
      const broken = { ...example.value, [part]: { ...(example.value[part] as object), noSuchField: 1 } }
      // Specs of workloads belong to other controllers too; there a supported field has the wrong type.
      const isOpen = String(example.value['kind']).startsWith('MCPRemoteProxy')
      const wrong = isOpen ? { ...example.value, [part]: { remoteUrl: 7 } } : broken
      expect(validate(wrong)).toBe(false)
    },
  )
})

describe('manifests of Kubernetes', () => {
  it('hold no supported document that editors could validate', () => {
    const kinds = globSync('config/deploy/*.yaml', { cwd: ROOT }).flatMap((file) =>
      (parseAllDocuments(readFileSync(path.join(ROOT, file), 'utf8')) as unknown as Document[]).map(
        (document) => (document.toJS() as { apiVersion: string }).apiVersion,
      ),
    )
    expect(kinds.length).toBeGreaterThan(10)
    expect(kinds.filter((apiVersion) => apiVersion.startsWith('extauth.dev/'))).toEqual([])
  })
})
