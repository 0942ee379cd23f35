import { causeOf } from './failure.ts'
import type { Fault } from './failures.ts'
import { limitIn, withLimit } from './limit.ts'

/** What is known more exactly than by the failure's code. */
export interface Known {
  readonly cause: string
  readonly remedy: string
  readonly who?: Fault
}

/** A row; `who` where it is somebody else's turn than the failure's code says. */
export const known = (cause: string, remedy: string, who?: Fault): Known => ({
  cause,
  remedy,
  ...(who === undefined ? {} : { who }),
})

const CLOSED = known(
  'the other side closed the connection before its answer was whole',
  'Look at its log; where nothing of an answer came, does it want TLS, or a client certificate?',
)

/** By the code or kind of what is beneath: how a connection fails. */
const BY_CODE: Readonly<Record<string, Known>> = {
  ECONNREFUSED: known('nothing listens at this host and port', 'Start the server, or correct host and port.'),
  ECONNRESET: known(
    'the other side cut the connection',
    'Look at its log; is it the right port, and does it want TLS?',
  ),
  EPIPE: known('the other side closed the connection', 'Look at its log.'),
  UND_ERR_SOCKET: CLOSED,
  WIRE_CLOSED: CLOSED,
  WIRE_FIRST_BYTE: known('there is a connection, and no answer in time', 'Look at the load and the log of the server.'),
  WIRE_IDLE: known('it fell silent within its answer', 'Look at the load and the log of the server.'),
  WIRE_HEAD_TOO_LARGE: known('the headers of the answer are too large', 'Make the server send less.'),
  WIRE_CROWDED: known(
    'all connections that it, or all backends together, may have are taken',
    'Look at how long answers take, at how many streams are open, and at the limit of open files.',
    'proxy',
  ),
  ENOTFOUND: known(
    'the host name does not exist',
    'Correct the host name, or the DNS servers of this machine.',
    'configuration',
  ),
  EAI_AGAIN: known(
    'the host name could not be looked up',
    'Check the DNS servers of this machine and the way to them.',
    'proxy',
  ),
  EHOSTUNREACH: known(
    'there is no way to the host',
    'Check routes, firewalls, network policies and NO_PROXY.',
    'proxy',
  ),
  ENETUNREACH: known(
    'there is no way to the network',
    'Check routes and, for IPv6 addresses, whether this machine has IPv6.',
    'proxy',
  ),
  ETIMEDOUT: known(
    'the host does not answer',
    'Check firewalls, network policies, HTTPS_PROXY and NO_PROXY: packets get lost.',
  ),
  UND_ERR_CONNECT_TIMEOUT: known('no connection in time', 'Check firewalls and network policies.'),
  UND_ERR_HEADERS_TIMEOUT: known(
    'there is a connection, and no answer in time',
    'Look at the load and the log of the server.',
  ),
  UND_ERR_BODY_TIMEOUT: known('it fell silent within its answer', 'Look at the load and the log of the server.'),
  UND_ERR_HEADERS_OVERFLOW: known('the headers of the answer are too large', 'Make the server send less.'),
  SELF_SIGNED_CERT_IN_CHAIN: known(
    'the certificate is of an authority that is not known here',
    'Name the file of the authority (`caCertPath`, `--ca-file`).',
    'configuration',
  ),
  DEPTH_ZERO_SELF_SIGNED_CERT: known(
    'the certificate is self-signed',
    'Name the file of the authority (`caCertPath`, `--ca-file`).',
    'configuration',
  ),
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: known(
    'the certificate is of an authority that is not known here, or the chain lacks one',
    'Name the file of the authority (`caCertPath`, `--ca-file`), or make the server send its whole chain.',
    'configuration',
  ),
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: known(
    'the certificate is of an authority that is not known here',
    'Name the file of the authority (`caCertPath`, `--ca-file`).',
    'configuration',
  ),
  UNABLE_TO_GET_ISSUER_CERT: known(
    'the certificate is of an authority that is not known here, or the chain lacks one',
    'Name the file of the authority (`caCertPath`, `--ca-file`), or make the server send its whole chain.',
    'configuration',
  ),
  CERT_HAS_EXPIRED: known('the certificate has expired', 'Renew it.'),
  CERT_NOT_YET_VALID: known('the certificate is not valid yet', 'Compare clocks.'),
  ERR_TLS_CERT_ALTNAME_INVALID: known(
    'the certificate is for another name',
    'Use the name that it is for, or set `serverName`.',
    'configuration',
  ),
  EPROTO: known(
    'the other side does not speak TLS as we do',
    'Is it https at all? Compare scheme and port.',
    'configuration',
  ),
  ERR_SSL_WRONG_VERSION_NUMBER: known(
    'the other side does not speak TLS',
    'Write http:// where the server has no TLS.',
    'configuration',
  ),
  ERR_SSL_PACKET_LENGTH_TOO_LONG: known(
    'the other side does not speak TLS',
    'Write http:// where the server has no TLS.',
    'configuration',
  ),
  timeout: known('no answer in time', 'Look at the load and the log of the server.'),
  blocked_address: known(
    'the host name resolves to an address that is not allowed',
    'Set `allowPrivateIP: true` of the provider if this private address is meant; those of cloud metadata are never asked.',
    'configuration',
  ),
  breaker_open: known(
    'it failed again and again, and rests for some seconds',
    'Mend what failed before this; then it recovers by itself.',
  ),
  overloaded: known(
    'the bound of concurrent calls is reached',
    'Look at how long calls take; they are what is waited for.',
    'proxy',
  ),
  too_large: known(
    'the answer is larger than what is read',
    'Is it the address of the service at all?',
    'configuration',
  ),
}

/** The status with which an egress proxy refused. */
const EGRESS_STATUS = /^EGRESS_STATUS_(\d+)$/

function refusedByEgressProxy(code: string): Known | undefined {
  const [, status] = EGRESS_STATUS.exec(code) ?? []
  if (status === undefined) return undefined
  const remedy =
    status === '407'
      ? 'The egress proxy wants to know who asks: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT.'
      : 'Let the egress proxy pass to this host, or name the host in NO_PROXY.'
  return known(`the egress proxy answered ${status}`, remedy, 'configuration')
}

/** How a connection failed, by the code or kind of what was thrown or of what is beneath it; undefined for anything else. */
export function knownOfConnection(error: unknown): Known | undefined {
  const { code = '', kind = '' } = causeOf(error)
  return BY_CODE[code] ?? refusedByEgressProxy(code) ?? BY_CODE[kind]
}

/** The same with the limit that was reached, where the error names one. */
export function explainConnection(error: unknown): Known | undefined {
  const found = knownOfConnection(error)
  return found && withLimit(found, limitIn(error))
}

/** Of an error, what says where a connection was to go. */
interface Placed {
  readonly at?: unknown
  readonly address?: unknown
  readonly port?: unknown
  readonly errors?: unknown
  readonly cause?: unknown
}

const MOST_PLACES = 4
const DEEPEST_CAUSE = 8

/**
 * Where a connection was to go that failed: its origin, and the addresses that were tried for it, `http://mcp:8080,
 * 10.0.0.1:8080`; through an egress proxy these are the addresses of that. Undefined where the error does not say.
 */
export function placeIn(error: unknown): string | undefined {
  const found = new Set<string>()
  collect(error, found, DEEPEST_CAUSE)
  return found.size === 0 ? undefined : [...found].slice(0, MOST_PLACES).join(', ')
}

function collect(error: unknown, found: Set<string>, depth: number): void {
  if (typeof error !== 'object' || error === null || depth === 0) return
  const { at, address, port, errors, cause } = error as Placed
  if (typeof at === 'string') found.add(at)
  if (typeof address === 'string' && typeof port === 'number') {
    const place = `${address.includes(':') ? `[${address}]` : address}:${port}`
    // An origin may be the address itself.
    if (![...found].some((known) => known.endsWith(`//${place}`))) found.add(place)
  }
  // One name may have several addresses, each of which failed.
  if (Array.isArray(errors)) for (const one of errors.slice(0, MOST_PLACES)) collect(one, found, depth - 1)
  collect(cause, found, depth - 1)
}
