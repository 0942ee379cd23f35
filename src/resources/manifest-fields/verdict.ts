/** Support of a manifest field that was written for another program. */
export type FieldVerdict =
  /** It does here what it did there; `says` is what is different, if anything. */
  | { readonly is: 'supported'; readonly says: string }
  /** It restricts, or carries a credential, and nothing here does that: the document is refused with `says`. */
  | {
      readonly is: 'rejected'
      readonly says: string
      /** Whether this value asks for it. Default: anything but `null`, `{}` and `[]`. */
      readonly asks?: (value: unknown) => boolean
      /** An option of the command line, or a ProxyConfig, may say it instead (`manifestCallers`). */
      readonly isOverridable?: true
    }
  /** It has no effect here and restricts nothing: `validate --verbose` lists it with `says`. */
  | { readonly is: 'ignored'; readonly says: string }

/** The fields of one kind below `spec`, by their path: `config.audit`, `upstreamProviders[].oauth2Config.dcrConfig`. */
export type FieldTable = Readonly<Record<string, FieldVerdict>>

export const supported = (says = ''): FieldVerdict => ({ is: 'supported', says })
export const ignored = (says: string): FieldVerdict => ({ is: 'ignored', says })
export const rejected = (says: string, asks?: (value: unknown) => boolean): FieldVerdict =>
  asks === undefined ? { is: 'rejected', says } : { is: 'rejected', says, asks }
export const rejectedCallers = (says: string): FieldVerdict => ({ is: 'rejected', says, isOverridable: true })

/** The fields of `table` below a prefix that are of this verdict, by what is left of their path. */
export function fieldsBelow<V extends FieldVerdict['is']>(
  table: FieldTable,
  prefix: string,
  verdict: V,
): readonly (readonly [string, Extract<FieldVerdict, { readonly is: V }>])[] {
  const start = prefix === '' ? '' : `${prefix}.`
  return Object.entries(table).flatMap(([path, row]) =>
    path.startsWith(start) && row.is === verdict
      ? [[path.slice(start.length), row as Extract<FieldVerdict, { readonly is: V }>] as const]
      : [],
  )
}
