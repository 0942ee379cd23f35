import { diagnoseConnection, type EpochMs } from '../../core/index.ts'
import { dayOf, expiryOf } from '../../files/index.ts'
import { type ConnectionProbe, probeConnection, type ProbeOptions } from '../../net/index.ts'
import { type CheckContext, STEP_MS } from './context.ts'
import { about, type CheckName, type CheckResult } from './result.ts'

/** Whose connection it is: the first part of the test names. */
export type Service = 'target' | 'issuer' | 'exchange' | 'sts' | 'upstream'

/** Lines about a connection, and whether it succeeded. */
export interface Connected {
  readonly lines: readonly CheckResult[]
  readonly isConnected: boolean
}

const LOOK = 'Check the service and the network in between.'

/** Connects to a URL, once per run, and reports each step: DNS, connection, TLS with chain and expiry. */
export async function checkConnection(
  service: Service,
  url: string,
  context: CheckContext,
  options: Omit<ProbeOptions, 'deadlineMs' | 'egressProxy'> = {},
): Promise<Connected> {
  const { origin, protocol, host } = new URL(url)
  const { ca, cert, serverName, insecureSkipVerify, guard } = options
  const key = JSON.stringify(['connect', origin, digestOf(ca), digestOf(cert), serverName, insecureSkipVerify, guard])
  const { egressProxy, clock } = context
  const probe = await context.once(key, () => probeConnection(origin, { ...options, deadlineMs: STEP_MS, egressProxy }))
  const steps: readonly ('name' | 'connection' | 'tls')[] =
    protocol === 'https:' ? ['name', 'connection', 'tls'] : ['name', 'connection']
  const { failed } = probe
  const at = failed === undefined ? steps.length : steps.indexOf(failed.step === 'address' ? 'connection' : failed.step)
  const lines = steps.map((step, index): CheckResult => {
    const line = about(`${service}.${step}` satisfies CheckName, host)
    if (index > at) return line.skipped('not tried: an earlier step failed')
    if (index === at && failed !== undefined) return line.failed(failureOf(probe), remedyOf(probe))
    if (step === 'name') return line.ok(probe.addresses.join(', ') || `resolved by the egress proxy ${probe.egress}`)
    if (step === 'connection')
      return line.ok(probe.egress === undefined ? 'connected' : `connected, through ${probe.egress}`)
    return tlsLine(line, probe, clock.now(), insecureSkipVerify === true)
  })
  return { lines, isConnected: failed === undefined }
}

const digestOf = (pem: Buffer | undefined): string => pem?.toString('base64') ?? ''

/** Status of an egress proxy that refused the tunnel. */
const TUNNEL_STATUS = /^EGRESS_STATUS_(\d+)$/

/** With an egress proxy, it is the proxy that is unreachable or refused. */
function remedyOf({ failed, egress }: ConnectionProbe): string {
  const { code = '', step } = failed ?? {}
  if (egress === undefined || step !== 'connection') return diagnoseConnection(failed)?.remedy ?? LOOK
  return TUNNEL_STATUS.test(code)
    ? (diagnoseConnection(failed)?.remedy ?? LOOK)
    : 'Check the egress proxy: correct HTTPS_PROXY or HTTP_PROXY, or add the host to NO_PROXY.'
}

function failureOf({ failed, tls, egress }: ConnectionProbe): string {
  const { code = '' } = failed ?? {}
  if (egress !== undefined && failed?.step === 'connection') {
    const [, status] = TUNNEL_STATUS.exec(code) ?? []
    return status === undefined
      ? `${code} at the egress proxy ${egress}`
      : `the egress proxy ${egress} returned ${status}`
  }
  const { cause } = diagnoseConnection(failed) ?? {}
  const problem = cause === undefined ? code : `${code}: ${cause}`
  const [leaf, ...rest] = tls?.chain ?? []
  if (leaf === undefined) return problem
  const chain = [leaf, ...rest].map(({ subject, validToMs }) => `${subject} until ${dayOf(validToMs)}`).join(' ← ')
  return `${problem}; the server sent ${chain}, issued by ${[leaf, ...rest].at(-1)?.issuer ?? ''}`
}

function tlsLine(
  line: ReturnType<typeof about>,
  { tls }: ConnectionProbe,
  nowMs: EpochMs,
  isUnverified: boolean,
): CheckResult {
  const chain = tls?.chain ?? []
  const [leaf] = chain
  if (leaf === undefined) return line.ok(tls?.protocol ?? 'TLS')
  const names = chain.map(({ subject }) => subject).join(' ← ')
  const first = chain.reduce((least, each) => (each.validToMs < least.validToMs ? each : least), leaf)
  const detail = `${tls?.protocol}, ${names}, valid until ${dayOf(first.validToMs)}`
  if (isUnverified) return line.warning(`${detail}; not verified`, 'Remove insecureSkipVerify.')
  return expiryOf(first.validToMs, nowMs) === 'fine'
    ? line.ok(detail)
    : line.warning(`${detail} (${first.subject})`, 'Renew the certificate before it expires.')
}
