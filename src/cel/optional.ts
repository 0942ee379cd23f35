import type { CelValue } from '@bufbuild/cel'

const TYPE = Symbol.for('@bufbuild/cel/type')

/**
 * A value that may be there or not (cel-go, optional types). The library knows no such values: they pass through it as if
 * they were types, which only the functions here accept.
 */
class Optional {
  readonly [TYPE] = {}
  readonly kind = 'optional'
  readonly name = 'optional_type'
  readonly value: CelValue | undefined

  constructor(value: CelValue | undefined) {
    this.value = value
  }
}

/** The optional value as the library carries it; undefined for none. */
export const optionalOf = (value: CelValue | undefined): CelValue => new Optional(value) as unknown as CelValue

export const isOptional = (value: unknown): value is Optional => value instanceof Optional

/** The value inside an optional; undefined for none. Throws for a value that is not an optional. */
export function valueOfOptional(value: CelValue | undefined): CelValue | undefined {
  if (!isOptional(value)) throw new Error('expected an optional value')
  return value.value
}
