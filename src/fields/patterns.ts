// Every pattern here means the same in JavaScript (files, editors) and in RE2 (a cluster): classes are written out in ASCII,
// and there is nothing that looks ahead.

/** 1 to 65535 without leading zeros. */
const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'
/** A name or IPv4 address, or an IPv6 address in brackets. */
const HOST = String.raw`([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])`
/** Printable ASCII without `#` and `\`; in the path, `%` begins an escape. */
const URL_REST = String.raw`(/([!-"$&->@-\[\]-~]|%[0-9A-Fa-f]{2})*)?(\?[!-"$-\[\]-~]*)?`
/** Printable ASCII without what separates the parts of a URL. */
const HOST_CHARACTER = String.raw`[!-"$-.0->A-\[\]-~]`

/** Absolute URL without user information and fragment. */
export const HTTP_URL = new RegExp(`^https?://${HOST}(:${PORT})?${URL_REST}$`)
export const HTTPS_URL = new RegExp(`^https://${HOST}(:${PORT})?${URL_REST}$`)

/** HOST or HOST:PORT, or an http or https URL without query, for paths to be put behind. */
export const HTTP_PLACE = new RegExp(
  String.raw`^(https?://)?${HOST}(:${PORT})?(/([!-"$&->@-\[\]-~]|%[0-9A-Fa-f]{2})*)?$`,
)

/** The same without query: what paths are put behind. */
export const HTTPS_BASE = new RegExp(String.raw`^https://${HOST}(:${PORT})?(/([!-"$&->@-\[\]-~]|%[0-9A-Fa-f]{2})*)?$`)

/** absolute-URI of RFC 3986 §4.3: any scheme, no fragment. */
export const ABSOLUTE_URI = /^[A-Za-z][A-Za-z0-9+.-]*:([A-Za-z0-9._~:/?@!$&'()*+,;=[\]-]|%[0-9A-Fa-f]{2})+$/

/** RFC 8414 §2: no query, no fragment, and (specification) no trailing slash. */
export const ISSUER = /^https?:\/\/[!-"$->@-~]+[!-"$-.0->@-~]$/
/** An issuer's scheme, host and path: https, or http on this machine. */
export const ISSUER_PLACE = `^(https://${HOST}|http://(localhost|127[.]0[.]0[.]1|\\[::1\\]))(:${PORT})?(/([!-"$&->@-\\[\\]-~]|%[0-9A-Fa-f]{2})*)?$`

/** The same with http anywhere. */
export const HTTP_ISSUER_PLACE = `^http://${HOST}(:${PORT})?(/([!-"$&->@-\\[\\]-~]|%[0-9A-Fa-f]{2})*)?$`

/** RFC 9110 §5.1. */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** `host:port` of a server. */
export const HOST_PORT = new RegExp(`^${HOST}:${PORT}$`)
/** `host` or `host:port` as a Host header has it. */
export const HOST_HEADER = new RegExp(`^${HOST_CHARACTER}+$`)
/** Serialized origin (RFC 6454 §6.2). */
export const ORIGIN = new RegExp(`^(null|[a-z][a-z0-9+.-]*://${HOST_CHARACTER}+)$`)

/** Where something listens; port 0 is any that is free. */
export const LISTEN_ADDRESS = new RegExp(
  String.raw`^(unix:/[^\x00-\x20\x7F]+|(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*|\*):[0-9]{1,5})$`,
)

/** What a segment of a path may hold: printable ASCII without `/`, `?`, `#`, `\` and `%` … */
const SEGMENT_CHARACTER = String.raw`[!-"$&-.0->@-\[\]-~]`
/** … and the same without a dot. */
const SEGMENT_START = String.raw`[!-"$&-\-0->@-\[\]-~]`
/** A segment that is neither `.` nor `..`. */
const SEGMENT = `(${SEGMENT_START}${SEGMENT_CHARACTER}*|[.]${SEGMENT_START}${SEGMENT_CHARACTER}*|[.][.]${SEGMENT_CHARACTER}+)`

/** Path prefix of a route: `/`, or segments without trailing slash. */
export const ROUTE_PATH = new RegExp(`^(/|(/${SEGMENT})+)$`)
/** A public path; never the root. */
export const PUBLIC_PATH = new RegExp(`^(/${SEGMENT})+/?$`)

/** A pattern as CEL's string literal. */
export const celPattern = (pattern: string): string =>
  `'${pattern.replaceAll('\\', String.raw`\\`).replaceAll("'", String.raw`\'`)}'`
