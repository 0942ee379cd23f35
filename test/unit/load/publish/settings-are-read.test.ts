import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { JSON_SCHEMA_NAMES, jsonSchema } from '../../../../src/load/publish/index.ts'
import { AUTH_SERVER_FIELDS, TELEMETRY_FIELDS, TOOL_FIELDS, WORKLOAD_FIELDS } from '../../../../src/resources/index.ts'

// Those of a ProxyConfig are followed to the stages (test/unit/compose/proxy/settings-read.test.ts). Of all other kinds at least
// the name must stand somewhere else than in its schema, or in a table that says why nothing reads it.
const SRC = path.join(import.meta.dirname, '../../../../src')

/** A comment, a text in quotes, or a word, with the colon that makes it a declaration in a schema. */
const TOKEN = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[A-Za-z_$][\w$]*(?:\??:)?/g

/** Names that some source uses other than to declare them: as a word, or as a text that is a path of words. */
function namesInUse(): ReadonlySet<string> {
  const used = new Set<string>()
  for (const file of globSync('**/*.ts', { cwd: SRC })) {
    if (file.startsWith('resources/manifest-fields/')) continue
    for (const [token] of readFileSync(path.join(SRC, file), 'utf8').matchAll(TOKEN))
      if (/^['"][\w.]+['"]$/.test(token)) for (const word of token.slice(1, -1).split('.')) used.add(word)
      // Elsewhere it gives another name to what is taken out.
      else used.add(file.startsWith('resources/') ? token : token.replace(/\??:$/, ''))
  }
  return used
}

/** Adds the names of all properties in a JSON Schema, below `spec` where there is one: what is beside it is Kubernetes' own. */
function namesIn(schema: unknown, into: Set<string>): void {
  if (typeof schema !== 'object' || schema === null) return
  const { properties } = schema as { properties?: Readonly<Record<string, unknown>> }
  if (properties !== undefined && 'spec' in properties) return namesIn(properties['spec'], into)
  for (const name of Object.keys(properties ?? {})) into.add(name)
  for (const value of Object.values(schema)) namesIn(value, into)
}

/** Fields that a table marks as rejected or ignored, because nothing reads them. */
const UNREAD = new Set(
  [AUTH_SERVER_FIELDS, TELEMETRY_FIELDS, TOOL_FIELDS, ...Object.values(WORKLOAD_FIELDS)].flatMap((table) =>
    Object.entries(table).flatMap(([at, { is }]) => (is === 'supported' ? [] : [at.split('.').at(-1)])),
  ),
)

test('every setting of every kind of document is read, or a table says why not', () => {
  const used = namesInUse()
  const names = new Set<string>()
  for (const name of JSON_SCHEMA_NAMES) namesIn(jsonSchema(name), names)
  expect(names.size).toBeGreaterThan(250)
  expect([...names].filter((name) => !used.has(name) && !UNREAD.has(name)).toSorted()).toEqual([])
})
