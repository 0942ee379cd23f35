import { expect, test, vi } from 'vitest'
import { readMessage } from '../../../src/authorize/index.ts'
import { Failure, type McpView } from '../../../src/core/index.ts'
import { seeded } from '../../support/seeded.ts'

vi.setConfig({ testTimeout: 600_000 })

const BASE = [
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_a","arguments":{"repo":"x","n":1}}}',
  '{"jsonrpc":"2.0","id":"a","method":"prompts/get","params":{"name":"help","arguments":{}}}',
  '{"method":"resources/read","params":{"uri":"file:///a"},"id":2,"jsonrpc":"2.0"}',
  '{"jsonrpc":"2.0","id":3,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"help"}}}',
]
const INSERTS = [
  '"name":"delete_a",',
  '"Name":"delete_a",',
  '"NAME":"delete_a",',
  String.raw`"n\u0061me":"delete_a",`,
  '"method":"ping",',
  '"Method":"tools/call",',
  '"params":{"name":"delete_a"},',
  '"Params":{"name":"delete_a"},',
  '"arguments":{"repo":"y"},',
  '"Arguments":{"repo":"y"},',
  '"repo":"y",',
  '"Repo":"y",',
  '"argument\u017F":{"repo":"y"},',
  '"uri":"file:///b",',
  '"URI":"file:///b",',
  '"ref":{"type":"ref/resource","uri":"x"},',
  '"__proto__":{"name":"delete_a"},',
  '"id":4,',
  '"jsonrpc":"1.0",',
  '"result":{},',
  '[',
  ']',
  '{',
  '}',
  '"',
  ',',
  ':',
  '\\',
  '\u0000',
  '\uFEFF',
  '/**/',
  'null',
  '1e999',
  String.raw`\ud800`,
  String.raw`\u0000`,
  '\u212A',
  ' ',
  '\n',
  '\t',
]

const fold = (name: string): string => name.toUpperCase().toLowerCase()

/** A reader that ignores case; the last of several fields counts, or the first. */
function foldedField(pairs: readonly (readonly [string, unknown])[], name: string, counts: 'first' | 'last'): unknown {
  const found = pairs.filter(([key]) => fold(key) === name)
  return (counts === 'first' ? found[0] : found.at(-1))?.[1]
}

const fieldsOf = (value: unknown): readonly (readonly [string, unknown])[] =>
  typeof value === 'object' && value !== null ? Object.entries(value) : []

/** What other readers of the same text take for the method, the name and the URI. */
function readOtherwise(text: string): readonly (readonly [unknown, unknown, unknown])[] {
  const value: unknown = JSON.parse(text)
  return (['first', 'last'] as const).map((counts) => {
    const field = (of: unknown, name: string): unknown => foldedField(fieldsOf(of), name, counts)
    const params = field(value, 'params')
    const method = field(value, 'method')
    const about = method === 'completion/complete' ? field(params, 'ref') : params
    return [method, field(about, 'name'), field(about, 'uri')] as const
  })
}

test('of 40,000 mutated bodies each that is accepted means the same to readers that ignore case, and to those that do not', () => {
  const below = seeded(7)
  let accepted = 0
  let refused = 0
  for (let round = 0; round < 40_000; round++) {
    let text = BASE[below(BASE.length)] ?? ''
    for (let times = 1 + below(3); times > 0; times--) {
      const at = below(4) === 0 ? below(text.length) : placeIn(text, below)
      if (below(5) === 0) text = text.slice(0, at) + text.slice(at + 1 + below(3))
      else text = text.slice(0, at) + (INSERTS[below(INSERTS.length)] ?? '') + text.slice(at)
    }
    let mcp: McpView
    try {
      mcp = readMessage(Buffer.from(text), {
        annotationsOf: () => ({}),
        taskOf: () => undefined,
      }).mcp
    } catch (error) {
      expect([text, error instanceof Failure]).toEqual([text, true])
      refused += 1
      continue
    }
    accepted += 1
    if (mcp.kind === 'other') continue
    for (const [method, name, uri] of readOtherwise(text)) {
      const isResource = mcp.kind === 'resource'
      const meant = [mcp.method, isResource ? mcp.uri : mcp.name]
      expect([text, method, (isResource ? uri : name) ?? '']).toEqual([text, ...meant])
    }
  }
  expect(accepted).toBeGreaterThan(500)
  expect(refused).toBeGreaterThan(10_000)
})

/** Behind an opening bracket or a comma, where fields begin. */
function placeIn(text: string, below: (most: number) => number): number {
  const places = [...text.matchAll(/[{,[]/g)].map(({ index }) => index + 1)
  return places[below(places.length)] ?? 0
}
