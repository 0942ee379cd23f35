import { z } from 'zod'

/**
 * A schema that is built on first use, for parts that most files do not have, because each node of a schema takes a
 * kilobyte or two. The value must be present (put `.optional()` around it), or zod would have to build it to find
 * out.
 */
export function later<S extends z.ZodType>(make: () => S): z.ZodLazy<S> {
  const schema = z.lazy(make)
  for (const name of ['optin', 'optout'] as const) Object.defineProperty(schema._zod, name, { value: undefined })
  return schema
}

/** The schema inside one of those. */
export const innerOf = (schema: z.core.$ZodType): z.core.$ZodType => (schema as z.core.$ZodLazy)._zod.innerType

/** `make`, called when its result is first wanted and not again: making a schema costs more than using it. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
