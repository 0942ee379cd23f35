import { isIP } from 'node:net'
import { z } from 'zod'
import {
  bytes,
  seconds,
  GO_DURATION,
  LONGEST_TIMER_MS,
  parseGoDuration,
  parseSize,
  SIZE,
  type Bytes,
  type GoDuration,
  type Milliseconds,
} from './units.ts'
import { ABSOLUTE_URI, celPattern, HEADER_NAME, HTTP_URL, HTTPS_BASE, HTTPS_URL, ORIGIN } from './patterns.ts'
import { gatewayHeaderOf } from '../core/index.ts'
import { withCel } from './rules.ts'
import { FILE_PATHS, SECRET_REFS, withMark, type Content } from './marked.ts'

const expected = (what: string) => ({ error: `expected ${what}` })

/** DNS-1123 subdomain, as names of Kubernetes objects are. */
export const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
/** DNS-1123 label, as namespaces are. */
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/

export const objectName = () =>
  z.string().min(1).max(253).regex(DNS_SUBDOMAIN, expected('lower-case letters, digits, "-" and "."'))
export const namespaceName = () =>
  z.string().min(1).max(63).regex(DNS_LABEL, expected('lower-case letters, digits and "-"'))

/** Name of a route or registry: a segment of a path, as it is. */
export const segmentName = () =>
  z
    .string()
    .min(1)
    .max(63)
    .regex(/^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/, expected('letters, digits, "-", "_" and "."'))

/** Key in the data of a Secret or ConfigMap. */
export const dataKey = () =>
  z
    .string()
    .min(1)
    .max(253)
    .regex(/^\.?[-_A-Za-z0-9][-._A-Za-z0-9]*$/, expected('letters, digits, "-", "_" and ".", not starting with ".."'))

/** Reference to one key of one secret (specification, Secret reference; decisions §6 for what names may look like). */
export const secretRef = (holds: Content = 'text') =>
  withMark(
    z.strictObject({
      name: objectName().describe('Name of the secret.'),
      key: dataKey().describe('Key within the secret.'),
    }),
    SECRET_REFS,
    holds,
  )
export type SecretRef = z.output<ReturnType<typeof secretRef>>

/** Absolute http or https URL in ASCII, without user information or fragment. The text is kept as it is written. */
export const httpUrl = () => url(HTTP_URL, 'an http or https URL')
/** The same with https only; `what` explains it and names the alternative. */
export const httpsUrl = (what = 'an https URL') => url(HTTPS_URL, what)
/** The same without query, for paths to be put behind. */
export const httpsBaseUrl = () => url(HTTPS_BASE, 'an https URL without query,')

/** Absolute URI of any scheme without fragment (RFC 8707 §2): `urn:…`, `api://…`; with http and https a URL as above. */
export const absoluteUri = () =>
  withCel(
    z
      .string()
      .max(2048)
      .regex(
        ABSOLUTE_URI,
        expected('an absolute URI without fragment, such as "https://api.example.com" or "urn:example:api"'),
      )
      .refine(
        (text) => !/^https?:/i.test(text) || (HTTP_URL.test(text) && URL.canParse(text)),
        expected('a URL without user information'),
      ),
    `!self.matches('^[hH][tT][tT][pP][sS]?:') || (self.matches(${celPattern(HTTP_URL.source)}) && isURL(self))`,
    'expected a URL without user information',
  )

const url = (pattern: RegExp, what: string) =>
  withCel(
    z
      .string()
      .max(2048)
      .regex(pattern, expected(`${what} without user information and fragment`))
      .refine((text) => URL.canParse(text), expected('a URL that can be parsed')),
    'isURL(self)',
    'expected a valid URL',
  )

/** OAuth scope token (RFC 6749 §3.3). */
export const scope = () =>
  z
    .string()
    .min(1)
    .max(256)
    .regex(/^[\x21\x23-\x5B\x5D-\x7E]+$/, expected('a scope: printable ASCII without space, quote and backslash'))
export const scopes = () => z.array(scope()).max(100)

/** Path of a file, relative to the file that names it. Its content is checked before use. */
export const filePath = (holds: Content) =>
  withMark(
    // oxlint-disable-next-line no-control-regex -- a NUL in a path is exactly what this refuses
    z
      .string()
      .min(1)
      .max(4096)
      .regex(/^[^\0\r\n]+$/, expected('the path of a file on one line')),
    FILE_PATHS,
    holds,
  )

export const MAX_INT32 = 2_147_483_647

/** Whole number between two bounds, 32 bits wide, as in the CRD. */
export const int32 = (min: number, max: number) => z.int().min(min).max(max).meta({ format: 'int32' })

/** Whole seconds between two bounds. */
export const secondsBetween = (min: number, max: number) => int32(min, max).transform(seconds)

/** Go duration kept as text; the CRD keeps it too. */
export const goDuration = () =>
  withCel(
    z
      .string(expected('a Go duration such as "1h30m" (units ns, us, ms, s, m, h)'))
      .max(64)
      .regex(GO_DURATION, expected('a Go duration such as "1h30m" (units ns, us, ms, s, m, h)'))
      .refine((text) => parseGoDuration(text) !== undefined, expected('a duration that fits 64-bit nanoseconds')),
    "duration(self) >= duration('0s')",
    'expected a duration that fits 64-bit nanoseconds',
  ).transform((text) => text as GoDuration)

/** Go duration read as milliseconds, short enough for a timer. */
export const timerDuration = () =>
  withCel(
    z
      .string(expected('a Go duration such as "5s" (units ns, us, ms, s, m, h)'))
      .max(64)
      .regex(GO_DURATION, expected('a Go duration such as "5s" (units ns, us, ms, s, m, h)'))
      .refine((text) => (parseGoDuration(text) ?? Infinity) <= LONGEST_TIMER_MS, expected('at most 596h')),
    `duration(self) <= duration('${LONGEST_TIMER_MS}ms')`,
    'expected at most 596h',
  ).transform((text): Milliseconds => parseGoDuration(text) ?? (0 as Milliseconds))

/** Kubernetes quantity, or a plain number, read as bytes. */
export const size = (min: number, max: number) => {
  const asSize = expected(`a size such as "16Ki" or "10Mi" of ${min} to ${max} bytes`)
  const isInRange = (text: string): boolean => {
    const value = parseSize(text)
    return value !== undefined && value >= min && value <= max
  }
  return withCel(
    z.union(
      [
        z.string().max(32, asSize).regex(SIZE, asSize).refine(isInRange, asSize),
        z.int().min(min, asSize).max(max, asSize),
      ],
      asSize,
    ),
    `type(self) == int ? self >= ${min} && self <= ${max} : !quantity(self).isLessThan(quantity('${min}')) && !quantity(self).isGreaterThan(quantity('${max}'))`,
    asSize.error,
  ).transform((value): Bytes => (typeof value === 'number' ? bytes(value) : (parseSize(value) ?? bytes(0))))
}

/** Range of addresses as address/length (RFC 4632 §3.1, RFC 4291 §2.3). */
const cidr = () => z.string().max(64).refine(isCidr, expected('a range of addresses such as "10.0.0.0/8"'))

/** Addresses of proxies whose forwarding headers are trusted. */
export const trustedProxies = () =>
  z
    .array(cidr())
    .max(200)
    .default([])
    .describe('Proxies before this one, as ranges of addresses, whose `Forwarded` and `X-Forwarded-*` are believed.')

function isCidr(text: string): boolean {
  const [, address = '', length = ''] = /^([0-9A-Fa-f:.]+)\/([0-9]{1,3})$/.exec(text) ?? []
  const bits = { 4: 32, 6: 128 }[isIP(address)]
  return bits !== undefined && Number(length) <= bits
}

/** Header name (RFC 9110 §5.1); what of them may be set is the rule `injectable`. */
export const headerName = () => z.string().max(256).regex(HEADER_NAME, expected('a header name (RFC 9110 §5.1)'))

/** Origins of web pages (RFC 6454), at most 200. */
export const origins = () =>
  z
    .array(
      z.string().max(300).regex(ORIGIN, {
        error: 'expected an origin such as "https://app.example.com"',
      }),
    )
    .max(200)

/** Name of a header in which gateways name the caller, which passes only where it is listed (decisions §3.1). */
export const passableHeader = () =>
  headerName().superRefine((name, context) => {
    const row = gatewayHeaderOf(name)
    if (row?.kind === 'identity') return
    const message =
      row === undefined
        ? 'expected a header that is removed by default, such as "Remote-User"'
        : `this is a token (${row.why}), which never passes; expected a header that names the caller, such as "Remote-User"`
    context.addIssue({ code: 'custom', message })
  })
