import { causeOf } from './failure.ts'
import type { Fault } from './failures.ts'
import { limitIn, withLimit } from './limit.ts'

/** Cause and remedy of a failure, more precise than its code. */
export interface Diagnosis {
  readonly cause: string
  readonly remedy: string
  readonly who?: Fault
}

/** `who` overrides the responsible party of the failure's code. */
export const diagnosis = (cause: string, remedy: string, who?: Fault): Diagnosis => ({
  cause,
  remedy,
  ...(who === undefined ? {} : { who }),
})

const CLOSED = diagnosis(
  'the server closed the connection before the response was complete',
  "Check the server's log. If no byte of the response arrived, check whether it requires TLS or a client certificate.",
)

/** Connection failures by error code or kind of the underlying error. */
const BY_CODE: Readonly<Record<string, Diagnosis>> = {
  ECONNREFUSED: diagnosis(
    'connection refused: no server listens at this host and port',
    'Start the server, or correct the host and port.',
  ),
  ECONNRESET: diagnosis(
    'the server reset the connection',
    "Check the server's log, the port, and whether it requires TLS.",
  ),
  EPIPE: diagnosis('the server closed the connection', "Check the server's log."),
  UND_ERR_SOCKET: CLOSED,
  WIRE_CLOSED: CLOSED,
  WIRE_FIRST_BYTE: diagnosis('connected, but no response in time', 'Check the load and the log of the server.'),
  WIRE_IDLE: diagnosis('the response stalled', 'Check the load and the log of the server.'),
  WIRE_HEAD_TOO_LARGE: diagnosis('the response headers are too large', 'Reduce the headers that the server sends.'),
  WIRE_CROWDED: diagnosis(
    'the connection limit of this backend, or of all backends, is reached',
    'Check response times, the number of open streams, and the limit of open files.',
    'proxy',
  ),
  ENOTFOUND: diagnosis(
    'the host name does not exist (DNS)',
    'Correct the host name, or the DNS servers of this machine.',
    'configuration',
  ),
  EAI_AGAIN: diagnosis(
    'the DNS lookup of the host name failed',
    'Check the DNS servers of this machine and the network path to them.',
    'proxy',
  ),
  EHOSTUNREACH: diagnosis('no route to the host', 'Check routes, firewalls, network policies and NO_PROXY.', 'proxy'),
  ENETUNREACH: diagnosis(
    'no route to the network',
    'Check routes and, for IPv6 addresses, whether this machine has IPv6.',
    'proxy',
  ),
  ETIMEDOUT: diagnosis(
    'the connection attempt timed out',
    'Packets are dropped: check firewalls, network policies, HTTPS_PROXY and NO_PROXY.',
  ),
  UND_ERR_CONNECT_TIMEOUT: diagnosis('the connection attempt timed out', 'Check firewalls and network policies.'),
  UND_ERR_HEADERS_TIMEOUT: diagnosis('connected, but no response in time', 'Check the load and the log of the server.'),
  UND_ERR_BODY_TIMEOUT: diagnosis('the response stalled', 'Check the load and the log of the server.'),
  UND_ERR_HEADERS_OVERFLOW: diagnosis(
    'the response headers are too large',
    'Reduce the headers that the server sends.',
  ),
  SELF_SIGNED_CERT_IN_CHAIN: diagnosis(
    "the server's certificate is signed by an untrusted CA",
    'Set the CA file (`caCertPath`, `--ca-file`).',
    'configuration',
  ),
  DEPTH_ZERO_SELF_SIGNED_CERT: diagnosis(
    "the server's certificate is self-signed",
    'Set the CA file (`caCertPath`, `--ca-file`).',
    'configuration',
  ),
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: diagnosis(
    "the server's certificate is signed by an untrusted CA, or its chain is incomplete",
    'Set the CA file (`caCertPath`, `--ca-file`), or make the server send the complete chain.',
    'configuration',
  ),
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: diagnosis(
    "the server's certificate is signed by an untrusted CA",
    'Set the CA file (`caCertPath`, `--ca-file`).',
    'configuration',
  ),
  UNABLE_TO_GET_ISSUER_CERT: diagnosis(
    "the server's certificate is signed by an untrusted CA, or its chain is incomplete",
    'Set the CA file (`caCertPath`, `--ca-file`), or make the server send the complete chain.',
    'configuration',
  ),
  CERT_HAS_EXPIRED: diagnosis("the server's certificate has expired", 'Renew the certificate.'),
  CERT_NOT_YET_VALID: diagnosis("the server's certificate is not valid yet", 'Compare the clocks of both machines.'),
  ERR_TLS_CERT_ALTNAME_INVALID: diagnosis(
    "the server's certificate is for a different host name",
    'Use a name listed in the certificate, or set `serverName`.',
    'configuration',
  ),
  EPROTO: diagnosis(
    'the TLS handshake failed',
    'Check that the port serves https: compare scheme and port.',
    'configuration',
  ),
  ERR_SSL_WRONG_VERSION_NUMBER: diagnosis(
    'the server does not use TLS on this port',
    'Use http:// if the server has no TLS.',
    'configuration',
  ),
  ERR_SSL_PACKET_LENGTH_TOO_LONG: diagnosis(
    'the server does not use TLS on this port',
    'Use http:// if the server has no TLS.',
    'configuration',
  ),
  timeout: diagnosis('no response in time', 'Check the load and the log of the server.'),
  blocked_address: diagnosis(
    'the host name resolves to an address that is not allowed',
    'Set `allowPrivateIP: true` of the provider if this private address is intended. Cloud metadata addresses are always blocked.',
    'configuration',
  ),
  breaker_open: diagnosis(
    'paused for some seconds after repeated failures (circuit breaker)',
    'Fix the earlier failures; the proxy retries automatically.',
  ),
  overloaded: diagnosis(
    'the limit of concurrent calls is reached',
    'Check how long calls to this service take.',
    'proxy',
  ),
  too_large: diagnosis(
    'the response exceeds the size limit',
    'Check that the address is that of the service.',
    'configuration',
  ),
}

/** The code of an error for an HTTP status from an egress proxy. */
const EGRESS_STATUS = /^EGRESS_STATUS_(\d+)$/

function refusedByEgressProxy(code: string): Diagnosis | undefined {
  const [, status] = EGRESS_STATUS.exec(code) ?? []
  if (status === undefined) return undefined
  const remedy =
    status === '407'
      ? 'The egress proxy requires authentication: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT.'
      : 'Allow this host in the egress proxy, or list it in NO_PROXY.'
  return diagnosis(`the egress proxy answered ${status}`, remedy, 'configuration')
}

/** Diagnoses a failed connection from the code or kind of an error or its cause; undefined for other errors. */
export function diagnoseByCode(error: unknown): Diagnosis | undefined {
  const { code = '', kind = '' } = causeOf(error)
  return BY_CODE[code] ?? refusedByEgressProxy(code) ?? BY_CODE[kind]
}

/** As `diagnoseByCode`, with the limit that was reached when the error has one. */
export function diagnoseConnection(error: unknown): Diagnosis | undefined {
  const found = diagnoseByCode(error)
  return found && withLimit(found, limitIn(error))
}

/** The fields of an error that name the destination. */
interface WithDestination {
  readonly at?: unknown
  readonly address?: unknown
  readonly port?: unknown
  readonly errors?: unknown
  readonly cause?: unknown
}

const MAX_DESTINATIONS = 4
const DEEPEST_CAUSE = 8

/**
 * The destination of a failed connection: its origin and the addresses tried, `http://mcp:8080, 10.0.0.1:8080`.
 * Through an egress proxy the addresses are those of the egress proxy. Undefined when the error has none.
 */
export function destinationIn(error: unknown): string | undefined {
  const found = new Set<string>()
  collect(error, found, DEEPEST_CAUSE)
  return found.size === 0 ? undefined : [...found].slice(0, MAX_DESTINATIONS).join(', ')
}

function collect(error: unknown, found: Set<string>, depth: number): void {
  if (typeof error !== 'object' || error === null || depth === 0) return
  const { at, address, port, errors, cause } = error as WithDestination
  if (typeof at === 'string') found.add(at)
  if (typeof address === 'string' && typeof port === 'number') {
    const destination = `${address.includes(':') ? `[${address}]` : address}:${port}`
    // An origin may be the address itself.
    if (![...found].some((other) => other.endsWith(`//${destination}`))) found.add(destination)
  }
  // A name may have several addresses, each of which failed.
  if (Array.isArray(errors)) for (const one of errors.slice(0, MAX_DESTINATIONS)) collect(one, found, depth - 1)
  collect(cause, found, depth - 1)
}
