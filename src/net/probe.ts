import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, type DetailedPeerCertificate, type TLSSocket } from 'node:tls'
import { type EpochMs, OutboundError, type ReachedLimit } from '../core/index.ts'
import { egressProxyFor, type EgressProxy, openTunnel } from './egress.ts'
import { createAddressCheck, type GuardOptions, type Resolver, systemResolver } from './guard.ts'
import { late } from './limits.ts'

/** One certificate of a chain, with its own names. */
export interface ProbedCertificate {
  readonly subject: string
  readonly issuer: string
  readonly validFromMs: EpochMs
  readonly validToMs: EpochMs
}

/** Result of a connection test. */
export interface ConnectionProbe {
  /** Addresses of the host; empty if an egress proxy resolves it. */
  readonly addresses: readonly string[]
  /** `host:port` of the egress proxy. */
  readonly egress: string | undefined
  /** Undefined for plain http and without a handshake. */
  readonly tls: { readonly protocol: string; readonly chain: readonly ProbedCertificate[] } | undefined
  /** The first failed step: `address` is the guard; `code` is of the system, TLS or the proxy. */
  readonly failed:
    | {
        readonly step: 'name' | 'address' | 'connection' | 'tls'
        readonly code: string
        /** The limit, for `timeout`. */
        readonly limit?: ReachedLimit | undefined
      }
    | undefined
}

export interface ProbeOptions {
  /** Milliseconds for each step. */
  readonly deadlineMs: number
  /** PEM certificates that replace the system roots. */
  readonly ca?: Buffer | undefined
  /** PEM client certificate and key. */
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
  /** Name that the certificate must have. Default: the host. */
  readonly serverName?: string | undefined
  /** Takes any certificate. Default false. */
  readonly insecureSkipVerify?: boolean | undefined
  readonly guard?: GuardOptions | undefined
  readonly egressProxy?: EgressProxy | undefined
  /** For tests. Default: the operating system. */
  readonly resolver?: Resolver | undefined
}

/** Maximum chain length; a server may send any number. */
const MAX_CHAIN = 10
const MOST_ADDRESSES_TRIED = 4

/** Tests an http or https URL step by step (DNS, guard, connection, TLS) without a request. Never throws. */
export async function probeConnection(text: string, options: ProbeOptions): Promise<ConnectionProbe> {
  const url = new URL(text)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const proxy = egressProxyFor(url, options.egressProxy)
  const found: { addresses: readonly string[]; tls: ConnectionProbe['tls'] } = { addresses: [], tls: undefined }
  const result = (failed?: ConnectionProbe['failed']): ConnectionProbe => ({ ...found, egress: proxy?.host, failed })
  let socket: Socket | undefined
  try {
    if (proxy === undefined) {
      const named = await step('name', lookUp(host, options))
      if (!('value' in named)) return result(named)
      found.addresses = named.value
      const check = createAddressCheck(options.guard)
      const allowed = found.addresses.filter((address) => check(host, address)).slice(0, MOST_ADDRESSES_TRIED)
      if (allowed.length === 0) return result({ step: 'address', code: 'blocked_address' })
      const connected = await step('connection', connectToAny(allowed, portOf(url), options.deadlineMs))
      if (!('value' in connected)) return result(connected)
      socket = connected.value
    } else {
      const way =
        url.protocol === 'https:'
          ? openTunnel(proxy, `${url.hostname}:${portOf(url)}`, options.deadlineMs)
          : connectToAny([proxy.hostname.replace(/^\[(.*)\]$/, '$1')], portOf(proxy), options.deadlineMs)
      const connected = await step('connection', way)
      if (!('value' in connected)) return result(connected)
      socket = connected.value
    }
    if (url.protocol !== 'https:') return result()
    const secured = await step('tls', handshake(socket, host, options))
    if (!('value' in secured)) return result(secured)
    const { tls } = secured.value
    found.tls = tls
    return result(secured.value.problem === undefined ? undefined : { step: 'tls', code: secured.value.problem })
  } finally {
    socket?.destroy()
  }
}

const portOf = (url: URL): number => Number(url.port) || (url.protocol === 'https:' ? 443 : 80)

async function step<T, S extends string>(
  name: S,
  work: Promise<T>,
): Promise<
  { readonly value: T } | { readonly step: S; readonly code: string; readonly limit?: ReachedLimit | undefined }
> {
  try {
    return { value: await work }
  } catch (error) {
    const { code } = (error instanceof OutboundError ? (error.cause ?? {}) : error) as { code?: unknown }
    if (error instanceof OutboundError && typeof code !== 'string')
      return { step: name, code: error.kind, limit: error.limit }
    return { step: name, code: typeof code === 'string' ? code : 'failed' }
  }
}

async function lookUp(
  host: string,
  { resolver = systemResolver, deadlineMs }: ProbeOptions,
): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host]
  const { promise: over, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late(deadlineMs)), deadlineMs)
  try {
    return await Promise.race([resolver(host), over])
  } finally {
    clearTimeout(timer)
  }
}

/** Connects to the first reachable address; rejects with the last error. */
async function connectToAny(hosts: readonly string[], port: number, deadlineMs: number): Promise<Socket> {
  let last: unknown
  for (const host of hosts) {
    try {
      return await settled(connectTcp({ host, port }), 'connect', deadlineMs)
    } catch (error) {
      last = error
    }
  }
  throw last
}

/** Resolves on the event; on error or deadline, rejects and destroys the socket. */
function settled<S extends Socket>(socket: S, event: string, deadlineMs: number): Promise<S> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(late(deadlineMs)), deadlineMs)
    socket.once(event, () => {
      clearTimeout(timer)
      resolve(socket)
    })
    socket.once('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    socket.once('close', () => {
      clearTimeout(timer)
      reject(new OutboundError('unreachable'))
    })
    // Later errors are ignored.
    socket.on('error', () => {})
  })
}

async function handshake(
  socket: Socket,
  host: string,
  options: ProbeOptions,
): Promise<{ readonly tls: ConnectionProbe['tls']; readonly problem: string | undefined }> {
  const { ca, cert, key, serverName = host } = options
  const secured = await settled(
    connectTls({
      socket,
      host,
      // The chain is read in any case; trust is checked afterwards.
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    }),
    'secureConnect',
    options.deadlineMs,
  )
  const tls = { protocol: secured.getProtocol() ?? 'TLS', chain: chainOf(secured) }
  secured.destroy()
  return { tls, problem: options.insecureSkipVerify === true || secured.authorized ? undefined : problemOf(secured) }
}

/** OpenSSL's code (`CERT_HAS_EXPIRED`), or Node's for a name mismatch. */
function problemOf({ authorizationError }: TLSSocket): string {
  const error: unknown = authorizationError
  if (typeof error === 'string') return error
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : 'UNTRUSTED'
}

function chainOf(socket: TLSSocket): ProbedCertificate[] {
  const chain: ProbedCertificate[] = []
  const seen = new Set<string>()
  let current: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
  while (current?.fingerprint256 !== undefined && !seen.has(current.fingerprint256) && chain.length < MAX_CHAIN) {
    seen.add(current.fingerprint256)
    chain.push({
      subject: nameOf(current.subject),
      issuer: nameOf(current.issuer),
      validFromMs: Date.parse(current.valid_from),
      validToMs: Date.parse(current.valid_to),
    })
    current = current.issuerCertificate
  }
  return chain
}

/** Common name, else organization; text from outside. */
const nameOf = (name: DetailedPeerCertificate['subject'] | undefined): string =>
  [name?.CN ?? name?.O ?? '(no name)']
    .flat()[0]
    ?.replace(/\p{Cc}/gu, '?')
    .slice(0, 100) ?? '(no name)'
