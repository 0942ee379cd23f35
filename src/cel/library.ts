import { createRequire } from 'node:module'
import type * as Cel from '@bufbuild/cel'
import type * as WellKnown from '@bufbuild/protobuf/wkt'
import type * as Re2 from '@bufbuild/re2'

// Loaded with the first matcher: a proxy whose rules have none does not pay 25 MiB for a language that it does not speak.
const load = createRequire(import.meta.url)
let loadedCel: typeof Cel | undefined
let loadedTypes: typeof WellKnown | undefined
let loadedPatterns: typeof Re2 | undefined

export const cel = (): typeof Cel => (loadedCel ??= load('@bufbuild/cel') as typeof Cel)
export const wellKnownTypes = (): typeof WellKnown =>
  (loadedTypes ??= load('@bufbuild/protobuf/wkt') as typeof WellKnown)
export const re2 = (): typeof Re2 => (loadedPatterns ??= load('@bufbuild/re2') as typeof Re2)
