/** Support of a manifest field that was written for another program. */
export type FieldVerdict =
  /** Supported as by the other program; `details` is the difference, if any. */
  | { readonly is: 'supported'; readonly details: string }
  /** Rejected with `details`: the field restricts access or carries a credential, and mcp-extauth does not support it. */
  | {
      readonly is: 'rejected'
      readonly details: string
      /** Whether this value uses the field. Default: anything but `null`, `{}` and `[]`. */
      readonly asks?: (value: unknown) => boolean
      /** A command-line option or a ProxyConfig may replace it (`manifestCallers`). */
      readonly isOverridable?: true
    }
  /** Ignored: the field restricts nothing. `validate --verbose` lists it with `details`. */
  | { readonly is: 'ignored'; readonly details: string }

/** Fields of one kind below `spec` by path: `config.audit`, `upstreamProviders[].oauth2Config.dcrConfig`. */
export type FieldTable = Readonly<Record<string, FieldVerdict>>

export const supported = (details = ''): FieldVerdict => ({ is: 'supported', details })
export const ignored = (details: string): FieldVerdict => ({ is: 'ignored', details })
export const rejected = (details: string, asks?: (value: unknown) => boolean): FieldVerdict =>
  asks === undefined ? { is: 'rejected', details } : { is: 'rejected', details, asks }
export const rejectedCallers = (details: string): FieldVerdict => ({ is: 'rejected', details, isOverridable: true })

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
