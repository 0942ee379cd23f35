/** Support of a manifest field that was written for another program. */
export type FieldVerdict =
  /** Supported as by the other program; `says` is the difference, if any. */
  | { readonly is: 'supported'; readonly says: string }
  /** Rejected with `says`: the field restricts access or carries a credential, and mcp-extauth does not support it. */
  | {
      readonly is: 'rejected'
      readonly says: string
      /** Whether this value uses the field. Default: anything but `null`, `{}` and `[]`. */
      readonly asks?: (value: unknown) => boolean
      /** A command-line option or a ProxyConfig may replace it (`manifestCallers`). */
      readonly isOverridable?: true
    }
  /** Ignored: the field restricts nothing. `validate --verbose` lists it with `says`. */
  | { readonly is: 'ignored'; readonly says: string }

/** Fields of one kind below `spec` by path: `config.audit`, `upstreamProviders[].oauth2Config.dcrConfig`. */
export type FieldTable = Readonly<Record<string, FieldVerdict>>

export const supported = (says = ''): FieldVerdict => ({ is: 'supported', says })
export const ignored = (says: string): FieldVerdict => ({ is: 'ignored', says })
export const rejected = (says: string, asks?: (value: unknown) => boolean): FieldVerdict =>
  asks === undefined ? { is: 'rejected', says } : { is: 'rejected', says, asks }
export const rejectedCallers = (says: string): FieldVerdict => ({ is: 'rejected', says, isOverridable: true })

/** The fields of `table` below a prefix with this verdict, by the rest of their path. */
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
