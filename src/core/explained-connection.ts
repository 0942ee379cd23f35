import { causeOf } from './failure.ts'
import type { Fault } from './failures.ts'
import { limitIn, withLimit } from './limit.ts'

/** Cause and remedy of a failure, more precise than its code. */
export interface Known {
  readonly cause: string
  readonly remedy: string
  readonly who?: Fault
}

/** `who` overrides the responsible party of the failure's code. */
export const known = (cause: string, remedy: string, who?: Fault): Known => ({
  cause,
  remedy,
  ...(who === undefined ? {} : { who }),
})

const CLOSED = known(
  'the server closed the connection before the response was complete',
  "Check the server's log. If no byte of the response arrived, check whether it requires TLS or a client certificate.",
)

/** Connection failures by error code or kind of the underlying error. */
const BY_CODE: Readonly<Record<string, Known>> = {
  ECONNREFUSED: known(
    'connection refused: no server listens at this host and port',
    'Start the server, or correct the host and port.',
  ),
  ECONNRESET: known(
    'the server reset the connection',
    "Check the server's log, the port, and whether it requires TLS.",
  ),
  EPIPE: known('the server closed the connection', "Check the server's log."),
  UND_ERR_SOCKET: CLOSED,
  WIRE_CLOSED: CLOSED,
  WIRE_FIRST_BYTE: known('connected, but no response in time', 'Check the load and the log of the server.'),
  WIRE_IDLE: known('the response stalled', 'Check the load and the log of the server.'),
  WIRE_HEAD_TOO_LARGE: known('the response headers are too large', 'Reduce the headers that the server sends.'),
  WIRE_CROWDED: known(
    'the connection limit of this backend, or of all backends, is reached',
    'Check response times, the number of open streams, and the limit of open files.',
    'proxy',
  ),
  ENOTFOUND: known(
    'the host name does not exist (DNS)',
    'Correct the host name, or the DNS servers of this machine.',
    'configuration',
  ),
  EAI_AGAIN: known(
    'the DNS lookup of the host name failed',
    'Check the DNS servers of this machine and the network path to them.',
    'proxy',
  ),
  EHOSTUNREACH: known('no route to the host', 'Check routes, firewalls, network policies and NO_PROXY.', 'proxy'),
  ENETUNREACH: known(
    'no route to the network',
    'Check routes and, for IPv6 addresses, whether this machine has IPv6.',
    'proxy',
  ),
  ETIMEDOUT: known(
    'the connection attempt timed out',
    'Packets are dropped: check firewalls, network policies, HTTPS_PROXY and NO_PROXY.',
  ),
  UND_ERR_CONNECT_TIMEOUT: known('the connection attempt timed out', 'Check firewalls and network policies.'),
  UND_ERR_HEADERS_TIMEOUT: known('connected, but no response in time', 'Check the load and the log of the server.'),
  UND_ERR_BODY_TIMEOUT: known('the response stalled', 'Check the load and the log of the server.'),
  UND_ERR_HEADERS_OVERFLOW: known('the response headers are too large', 'Reduce the headers that the server sends.'),
  SELF_SIGNED_CERT_IN_CHAIN: known(
    "the server's certificate is signed by an untrusted CA",
    'Set the CA file (`caCertPath`, `--ca-file`).',
    'configuration',
  ),
  DEPTH_ZERO_SELF_SIGNED_CERT: known(
    "the server's certificate is self-signed",
    'Set the CA file (`caCertPath`, `--ca-file`).',
    'configuration',
  ),
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: known(
    "the server's certificate is signed by an untrusted CA, or its chain is incomplete",
    'Set the CA file (`caCertPath`, `--ca-file`), or make the server send the complete chain.',
    'configuration',
  ),
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: known(
    "the server's certificate is signed by an untrusted CA",
    'Set the CA file (`caCertPath`, `--ca-file`).',
    'configuration',
  ),
  UNABLE_TO_GET_ISSUER_CERT: known(
    "the server's certificate is signed by an untrusted CA, or its chain is incomplete",
    'Set the CA file (`caCertPath`, `--ca-file`), or make the server send the complete chain.',
    'configuration',
  ),
  CERT_HAS_EXPIRED: known("the server's certificate has expired", 'Renew the certificate.'),
  CERT_NOT_YET_VALID: known("the server's certificate is not valid yet", 'Compare the clocks of both machines.'),
  ERR_TLS_CERT_ALTNAME_INVALID: known(
    "the server's certificate is for a different host name",
    'Use a name listed in the certificate, or set `serverName`.',
    'configuration',
  ),
  EPROTO: known(
    'the TLS handshake failed',
    'Check that the port serves https: compare scheme and port.',
    'configuration',
  ),
  ERR_SSL_WRONG_VERSION_NUMBER: known(
    'the server does not use TLS on this port',
    'Use http:// if the server has no TLS.',
    'configuration',
  ),
  ERR_SSL_PACKET_LENGTH_TOO_LONG: known(
    'the server does not use TLS on this port',
    'Use http:// if the server has no TLS.',
    'configuration',
  ),
  timeout: known('no response in time', 'Check the load and the log of the server.'),
  blocked_address: known(
    'the host name resolves to an address that is not allowed',
    'Set `allowPrivateIP: true` of the provider if this private address is intended. Cloud metadata addresses are always blocked.',
    'configuration',
  ),
  breaker_open: known(
    'paused for some seconds after repeated failures (circuit breaker)',
    'Fix the earlier failures; the proxy retries automatically.',
  ),
  overloaded: known('the limit of concurrent calls is reached', 'Check how long calls to this service take.', 'proxy'),
  too_large: known(
    'the response exceeds the size limit',
    'Check that the address is that of the service.',
    'configuration',
  ),
}

/** The code of an error for an HTTP status from an egress proxy. */
const EGRESS_STATUS = /^EGRESS_STATUS_(\d+)$/

function refusedByEgressProxy(code: string): Known | undefined {
  const [, status] = EGRESS_STATUS.exec(code) ?? []
  if (status === undefined) return undefined
  const remedy =
    status === '407'
      ? 'The egress proxy requires authentication: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT.'
      : 'Allow this host in the egress proxy, or list it in NO_PROXY.'
  return known(`the egress proxy answered ${status}`, remedy, 'configuration')
}

/** Diagnoses a failed connection from the code or kind of an error or its cause; undefined for other errors. */
export function knownOfConnection(error: unknown): Known | undefined {
  const { code = '', kind = '' } = causeOf(error)
  return BY_CODE[code] ?? refusedByEgressProxy(code) ?? BY_CODE[kind]
}

/** As `diagnoseConnection`, with the limit that was reached when the error has one. */
export function explainConnection(error: unknown): Known | undefined {
  const found = knownOfConnection(error)
  return found && withLimit(found, limitIn(error))
}

/** The fields of an error that tell the destination. */
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
 * The destination of a failed connection: its origin and the addresses tried, `http://mcp:8080, 10.0.0.1:8080`.
 * Through an egress proxy the addresses are those of the egress proxy. Undefined when the error has none.
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
  // A name may have several addresses, each of which failed.
  if (Array.isArray(errors)) for (const one of errors.slice(0, MOST_PLACES)) collect(one, found, depth - 1)
  collect(cause, found, depth - 1)
}
