import { parseListenAddress } from '../../listen/index.ts'
import { HTTP_URL as HTTP_URL_TEXT, parseGoDuration, parseSize } from '../../fields/index.ts'
import type { OptionSpec, ValueKind } from './options.ts'

/** Maximum length of a value in characters. */
const LONGEST = 65_536
const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const DNS_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/
const ONE_LINE = /^[^\p{Cc}]*[^\p{Cc}\s][^\p{Cc}]*$/u

/** Values that match a pattern. */
export const matching = (expected: string, pattern: RegExp, completes?: ValueKind['completes']): ValueKind => ({
  expected,
  accepts: (text) => text.length <= LONGEST && pattern.test(text),
  ...(completes === undefined ? {} : { completes }),
})

/** One line that is not blank. */
export const TEXT = matching('one line of text', ONE_LINE)
/** Path of a file. Existence is checked on reading. */
export const FILE = matching('the path of a file', ONE_LINE, 'file')
/** Path of a file, or a JSON object, possibly on several lines. */
export const FILE_OR_JSON = matching(
  'the path of a file or a JSON object',
  /^(?:[^\p{Cc}]*[^\p{Cc}\s][^\p{Cc}]*|\s*\{[\s\S]*)$/u,
  'file',
)
/** Path of a file, optionally with the name of a document in it. */
export const FILE_AND_NAME = matching('FILE or FILE#NAME', /^(?!\s*#)[^\p{Cc}]*[^\p{Cc}\s][^\p{Cc}]*$/u, 'file')
export const DIRECTORY = matching('the path of a directory', ONE_LINE, 'directory')
export const HTTP_URL: ValueKind = {
  expected: 'an http or https URL without user information and fragment',
  accepts: (text) => HTTP_URL_TEXT.test(text) && URL.canParse(text),
}
export const NAMESPACE = matching('a namespace: up to 63 lower-case letters, digits and "-"', LABEL)
export const API_GROUP: ValueKind = {
  expected: 'a DNS name such as extauth.dev',
  accepts: (text) => text.length <= 253 && DNS_NAME.test(text),
}
/** Name of a Kubernetes object that must be a DNS label, such as a Service. */
export const OBJECT_NAME = matching('up to 63 lower-case letters, digits and "-"', LABEL)
export const HOST = matching('a host name or an address', /^[A-Za-z0-9._:-]+$/)
export const IMAGE = matching('the name of an image, without spaces', /^[A-Za-z0-9][\w./:@-]*$/)
/** A header line (RFC 9112 §5). The command decides which names are allowed. */
export const HEADER_LINE = matching(
  'a header line, NAME: VALUE',
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}:[\t\x20-\x7e]{0,8192}$/,
)
export const CLAIM = matching('NAME=VALUE', /^[^=]+=/)
export const ROUTE_PATH = matching('the path of a route, such as /upstream', /^(\/[\w-]+)+$/)

export const PORT: ValueKind = {
  expected: 'a port number from 0 to 65535',
  accepts: (text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535,
}

/** An integer within bounds, inclusive. */
export const wholeNumber = (min: number, max: number): ValueKind => ({
  expected: `a number from ${min} to ${max}`,
  accepts: (text) => /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max,
})

export const DURATION: ValueKind = {
  expected: 'a duration such as 10s or 1m30s',
  accepts: (text) => parseGoDuration(text) !== undefined,
}
/** A duration of at least 10 s. */
export const LIFETIME: ValueKind = {
  expected: 'a duration of at least 10s, such as 2160h',
  accepts: (text) => (parseGoDuration(text) ?? 0) >= 10_000,
}
/** A duration with a sign; negative ones are in the past. */
export const SIGNED_DURATION: ValueKind = {
  expected: 'a duration such as 90s, 5m, 1h or -1m',
  accepts: (text) => signedSeconds(text) !== undefined,
}

/** Parses a Go duration, possibly negative, to seconds. Undefined if invalid. */
export function signedSeconds(text: string): number | undefined {
  const isNegative = text.startsWith('-')
  const value = parseGoDuration(isNegative ? text.slice(1) : text)
  return value === undefined ? undefined : ((isNegative ? -1 : 1) * value) / 1000
}

/** A listen address: `host:port`, `:port`, `unix:/path`. */
export const LISTEN_ADDRESS: ValueKind = {
  expected: 'host:port, :port or unix:/path',
  accepts: (text) => {
    try {
      parseListenAddress(text)
      return true
    } catch {
      return false
    }
  },
}

/** A listen address, or `off`. */
export const LISTEN_ADDRESS_OR_OFF: ValueKind = oneOf(['off'], LISTEN_ADDRESS)

/** Whether an option takes a listen address. */
export const isListenAddress = (option: OptionSpec | undefined): boolean =>
  option?.type === 'string' && (option.is === LISTEN_ADDRESS || option.is === LISTEN_ADDRESS_OR_OFF)

/** A Kubernetes quantity, at least the minimum for one process. */
export const MEMORY_SIZE: ValueKind = {
  expected: 'a size of at least 128Mi, such as 512Mi',
  accepts: (text) => (parseSize(text) ?? 0) >= 134_217_728,
}

/** A Kubernetes quantity from 64Ki to 1Gi. */
export const INSPECT_SIZE: ValueKind = {
  expected: 'a size of 64Ki to 1Gi, such as 8Mi',
  accepts: (text) => (parseSize(text) ?? 0) >= 65_536 && (parseSize(text) ?? 0) <= 1_073_741_824,
}

/** One of several words, or a value of another kind. */
export function oneOf(words: readonly string[], orElse?: ValueKind): ValueKind {
  const list = words.length > 2 ? `one of ${words.join(', ')}` : words.join(' or ')
  return {
    expected: orElse === undefined ? list : `${orElse.expected}, or ${list}`,
    accepts: (text) => words.includes(text) || orElse?.accepts(text) === true,
    completes: words,
  }
}
