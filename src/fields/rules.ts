import { z } from 'zod'

/**
 * A cross-field rule of an object, defined once for zod (files, start), JSON Schema (editors) and CEL
 * (`x-kubernetes-validations` of the CRD).
 */
export interface Rule {
  /** The problem and the expected value. */
  readonly message: string
  /** The same for one value, where a more specific message is possible. */
  explain?(value: Readonly<Record<string, unknown>>): string
  /** The property that the problem is reported at; the object itself when absent. */
  readonly at?: string
  /** True when `value` keeps the rule. `value` may be half valid: other problems in it don't hide this one. */
  holds(value: Readonly<Record<string, unknown>>): boolean
  /** The rule over `self`, for the CRD; absent where CEL can't say it. */
  readonly cel?: string
  /** A JSON Schema that only values keeping the rule match; absent where JSON Schema can't say it. */
  readonly json?: JsonFragment
}

export type JsonFragment = { readonly [keyword: string]: unknown }

/** zod's own kind of registry, so that copies made by `.describe()` keep the rules of their original. */
const registry = z.registry<{ rules: readonly Rule[] }>()

/** `schema` with `rules` checked on every value that is an object, beside and not after the checks of its fields. */
export function withRules<S extends z.ZodType>(schema: S, rules: readonly Rule[]): S {
  const checked = schema.superRefine(
    (value, context) => {
      if (!isRecord(value)) return
      for (const rule of rules) {
        if (!rule.holds(value)) {
          const message = rule.explain?.(value) ?? rule.message
          context.addIssue({ code: 'custom', message, path: rule.at === undefined ? [] : [rule.at] })
        }
      }
    },
    { when: () => true },
  )
  registry.add(checked, { rules })
  return checked
}

/** Checks of a string or number schema beyond its keywords, as CEL over `self` for the CRD. */
export function withCel<S extends z.ZodType>(schema: S, cel: string, message: string): S {
  registry.add(schema, { rules: [{ message, cel, holds: () => true }] })
  return schema
}

/**
 * Meta of an object whose fields the definitions of a cluster keep without looking at them, because they have no space for another
 * copy of a large shape: an API server takes anything there, the webhook and the status of the object say what is wrong (ADR 0270).
 */
export const UNSTRUCTURED = { 'x-unstructured': true } as const

/** The rules that `withRules` and `withCel` put on a schema. */
export const rulesOf = (schema: z.core.$ZodType): readonly Rule[] => registry.get(schema)?.rules ?? []

/** Whether a value is an object and no array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** At most one of the two properties is set. */
export function exclusive(a: string, b: string): Rule {
  return {
    message: `"${a}" and "${b}" are mutually exclusive, expected only one of them`,
    at: b,
    holds: (value) => value[a] === undefined || value[b] === undefined,
    cel: `!(has(self.${a}) && has(self.${b}))`,
    json: { not: { required: [a, b] } },
  }
}

/** `property` needs `other` to be set as well. */
export function needs(property: string, other: string): Rule {
  return {
    message: `"${property}" needs "${other}" as well`,
    at: property,
    holds: (value) => value[property] === undefined || value[other] !== undefined,
    cel: `!has(self.${property}) || has(self.${other})`,
    json: { dependentRequired: { [property]: [other] } },
  }
}

/** In an object with `type`, the property is there exactly when `type` has the one value; `types` are all it can have. */
export function goesWithType(property: string, value: string, types: readonly string[], fallback?: string): Rule {
  const typeOf = (object: Readonly<Record<string, unknown>>): unknown => object.type ?? fallback
  return {
    message: `"${property}" is required when type is "${value}", and must be absent otherwise`,
    explain: (object) =>
      object[property] === undefined
        ? `missing, "${property}" is required when type is "${value}"`
        : `"${property}" must be absent when type is "${String(typeOf(object))}"`,
    at: property,
    // A type that does not exist is a problem of its own; its object is unknown.
    holds: (object) =>
      !types.some((type) => type === typeOf(object)) || (typeOf(object) === value) === (object[property] !== undefined),
    cel:
      fallback === undefined
        ? `(self.type == '${value}') == has(self.${property})`
        : `(has(self.type) && self.type == '${value}') == has(self.${property})`,
    json: {
      anyOf: [
        { properties: { type: { const: value } }, required: ['type', property] },
        { properties: { type: { not: { const: value } } }, not: { required: [property] } },
      ],
    },
  }
}

/**
 * Headers that frame a message, are connection-specific, or belong to MCP: not allowed for credentials (decisions
 * §3.3).
 */
const RESERVED_HEADERS = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'mcp-.*',
]

/** The names in any case, `_` for `-`, as one pattern that JavaScript, JSON Schema and RE2 read alike. */
const RESERVED_HEADER = `^(${RESERVED_HEADERS.map((name) =>
  name.replaceAll('-', '[-_]').replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`),
).join('|')})$`

const RESERVED = new RegExp(RESERVED_HEADER)
export const NOT_INJECTABLE = 'expected a header that is not framing, hop-by-hop, Host or Mcp-*'

/** Whether a header of this name may be set on requests. */
export const isInjectable = (name: string): boolean => !RESERVED.test(name)

/** The property, a header name, may be set on requests. */
export function injectable(property: string): Rule {
  return {
    message: NOT_INJECTABLE,
    at: property,
    holds: (value) => typeof value[property] !== 'string' || isInjectable(value[property]),
    cel: `!has(self.${property}) || !self.${property}.matches('${RESERVED_HEADER}')`,
    json: { properties: { [property]: { not: { pattern: RESERVED_HEADER } } } },
  }
}
