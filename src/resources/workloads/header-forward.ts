import { z } from 'zod'
import { headerSecretProblem, plainHeaderName } from '../../core/index.ts'
import {
  type FoundContent,
  headerName,
  injectable,
  isInjectable,
  isRecord,
  NOT_INJECTABLE,
  secretRef,
  type SecretRef,
  withCel,
  withRules,
} from '../../fields/index.ts'

/** More are probably a mistake, and each header costs every request. */
export const MAX_HEADERS = 32

/** A single-line value; further rules follow below. */
const headerText = () =>
  z
    .string()
    .min(1)
    .max(8192)
    .regex(/^\P{Cc}*$/u, { error: 'expected one line without control characters', abort: true })

/** Headers with their values. */
export const plainHeaders = () =>
  withCel(
    z.record(headerName().min(1), headerText()).meta({ maxProperties: MAX_HEADERS }),
    'self.all(name, size(name) >= 1 && size(name) <= 256)',
    'expected header names of at most 256 characters',
  ).superRefine((headers, context) => {
    if (Object.keys(headers).length > MAX_HEADERS)
      context.addIssue({ code: 'custom', message: `expected at most ${MAX_HEADERS} headers` })
    for (const [name, value] of Object.entries(headers)) {
      const problem = isInjectable(name) ? headerSecretProblem(value, 'header value') : NOT_INJECTABLE
      if (problem !== undefined) context.addIssue({ code: 'custom', message: problem, path: [name] })
    }
  })

const fromSecret = () =>
  z
    .array(
      withRules(
        z.strictObject({
          headerName: headerName().min(1).describe('Name of the header.'),
          valueSecretRef: secretRef('header value').describe('Secret holding its value.'),
        }),
        [injectable('headerName')],
      ),
    )
    .max(MAX_HEADERS)

/** Headers added to each request to a remote server, besides the credential (manifests.md §5). */
export const headerForward = () =>
  withRules(
    z.strictObject({
      addPlaintextHeaders: plainHeaders().default({}).describe('Headers with their values.'),
      addHeadersFromSecret: fromSecret().default([]).describe('Headers whose values are secrets.'),
    }),
    [
      {
        message: 'duplicate header, expected each once, however it is spelled',
        holds: (value) => {
          const names = namesIn(value).map(plainHeaderName)
          return new Set(names).size === names.length
        },
      },
    ],
  )
export type HeaderForward = z.output<ReturnType<typeof headerForward>>

/** Header names as written; the value may be invalid. */
function namesIn({ addPlaintextHeaders, addHeadersFromSecret }: Readonly<Record<string, unknown>>): string[] {
  const rows: unknown[] = Array.isArray(addHeadersFromSecret) ? addHeadersFromSecret : []
  return [
    ...(isRecord(addPlaintextHeaders) ? Object.keys(addPlaintextHeaders) : []),
    ...rows.flatMap((row) => (isRecord(row) && typeof row['headerName'] === 'string' ? [row['headerName']] : [])),
  ]
}

/** Names of the headers that a route adds by `headerForward`, in lower case. */
export const forwardedNames = (written: HeaderForward | undefined): readonly string[] =>
  written === undefined ? [] : namesIn(written).map((name) => name.toLowerCase())

/** Secrets that `headerForward` references. */
export const forwardedSecrets = (written: HeaderForward | undefined): readonly FoundContent<SecretRef>[] =>
  (written?.addHeadersFromSecret ?? []).map(({ valueSecretRef }, index) => ({
    path: ['headerForward', 'addHeadersFromSecret', index, 'valueSecretRef'],
    value: valueSecretRef,
    holds: 'header value',
  }))
