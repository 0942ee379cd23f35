import { z } from 'zod'

/**
 * One cross-field rule of an object, said once for all who check it: zod (files, start), JSON Schema (editors) and CEL
 * (`x-kubernetes-validations` of the CRD).
 */
export interface Rule {
  /** What is wrong and what was expected. */
  readonly message: string
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

const registry = new WeakMap<object, readonly Rule[]>()

/** `schema` with `rules` checked on every value that is an object, beside and not after the checks of its fields. */
export function withRules<S extends z.ZodType>(schema: S, rules: readonly Rule[]): S {
  const checked = schema.superRefine(
    (value, context) => {
      if (!isRecord(value)) return
      for (const rule of rules) {
        if (!rule.holds(value)) {
          context.addIssue({ code: 'custom', message: rule.message, path: rule.at === undefined ? [] : [rule.at] })
        }
      }
    },
    { when: () => true },
  )
  registry.set(checked, rules)
  return checked
}

/** The rules that `withRules` put on a schema. */
export const rulesOf = (schema: object): readonly Rule[] => registry.get(schema) ?? []

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
