import { celUint, CelScalar, listType, mapType, objectType, type CelInput } from '@bufbuild/cel'
import { tests } from '@bufbuild/cel-spec/testdata/conformance.js'
import { durationFromJson, timestampFromJson } from './well-known.ts'

/** A value as the suite writes it (`cel.expr.Value` as JSON). */
interface JsonValue {
  readonly [kind: string]: unknown
}

/** A test of the official suite, as far as it is used here. */
export interface ConformanceCase {
  /** `suite/section/name`, unique. */
  readonly id: string
  readonly expression: string
  readonly bindings: Readonly<Record<string, CelInput>>
  /** The expected value; undefined if an error is expected. */
  readonly expected: { readonly value: CelInput } | undefined
}

/** The suites of the core language and of the extensions that are here: no protocol buffer messages, no type checker. */
export const CORE = [
  'basic',
  'comparisons',
  'conversions',
  'fields',
  'fp_math',
  'integer_math',
  'lists',
  'logic',
  'macros',
  'parse',
  'plumbing',
  'string',
  'timestamps',
  'string_ext',
  'math_ext',
  'optionals',
  'macros2',
  'bindings_ext',
]

interface Suite {
  readonly name: string
  readonly suites?: readonly Suite[]
  readonly tests?: readonly { readonly original: Original }[]
}

interface Original {
  readonly name?: string
  readonly expr: string
  readonly value?: JsonValue
  readonly evalError?: unknown
  readonly bindings?: Readonly<Record<string, { readonly value?: JsonValue }>>
}

/** Every case of the core suites; those that need message types of the suite come back by id as `unusable`. */
export function coreCases(): { readonly cases: ConformanceCase[]; readonly unusable: string[] } {
  const cases: ConformanceCase[] = []
  const unusable: string[] = []
  for (const suite of (tests as Suite).suites ?? []) {
    if (!CORE.includes(suite.name)) continue
    for (const section of suite.suites ?? []) {
      for (const { original } of section.tests ?? []) {
        const id = `${suite.name}/${section.name}/${original.name ?? original.expr}`
        try {
          cases.push(caseOf(id, original))
        } catch (error) {
          if (!(error instanceof UnknownValue)) throw error
          unusable.push(id)
        }
      }
    }
  }
  return { cases, unusable }
}

class UnknownValue extends Error {}

function caseOf(id: string, original: Original): ConformanceCase {
  const bindings = Object.entries(original.bindings ?? {}).map(([name, { value }]) => [name, fromJson(value ?? {})])
  return {
    id,
    expression: original.expr,
    bindings: Object.fromEntries(bindings) as Record<string, CelInput>,
    // A test that names neither a value nor an error expects `true` (simple.proto, SimpleTest).
    expected: original.evalError === undefined ? { value: fromJson(original.value ?? { boolValue: true }) } : undefined,
  }
}

function fromJson(value: JsonValue): CelInput {
  const [kind = '', content] = Object.entries(value)[0] ?? []
  switch (kind) {
    case 'boolValue':
    case 'stringValue':
      return content as boolean | string
    case 'int64Value':
      return BigInt(content as string)
    case 'uint64Value':
      return celUint(BigInt(content as string))
    case 'doubleValue':
      return Number(content)
    case 'bytesValue':
      return new Uint8Array(Buffer.from(content as string, 'base64'))
    case 'nullValue':
      return null
    case 'listValue':
      return ((content as { values?: JsonValue[] }).values ?? []).map(fromJson)
    case 'mapValue': {
      const { entries = [] } = content as { entries?: { key: JsonValue; value: JsonValue }[] }
      return new Map(entries.map((entry) => [fromJson(entry.key), fromJson(entry.value)])) as CelInput
    }
    case 'typeValue':
      return typeOf(content as string)
    case 'objectValue':
      return messageOf(content as { '@type': string; value?: string })
    default:
      throw new UnknownValue(kind)
  }
}

function typeOf(name: string): CelInput {
  if (name === 'list') return listType(CelScalar.DYN)
  if (name === 'map') return mapType(CelScalar.DYN, CelScalar.DYN)
  const scalar = Object.values(CelScalar).find((type) => type.name === name)
  if (scalar !== undefined) return scalar
  if (name.startsWith('google.protobuf.')) return objectType(name)
  throw new UnknownValue(name)
}

function messageOf(message: { '@type': string; value?: string }): CelInput {
  const { '@type': type, value = '' } = message
  if (type.endsWith('google.protobuf.Timestamp')) return timestampFromJson(value)
  if (type.endsWith('google.protobuf.Duration')) return durationFromJson(value)
  throw new UnknownValue(type)
}
