import { type CredentialCache, createCredentialCache } from '../../cache/index.ts'
import { randomBytes } from 'node:crypto'
import { type AuditTrail, createAuditTrail } from '../../audit/index.ts'
import { type Clock, type Credential, type Log, Secret, type MonotonicClock } from '../../core/index.ts'
import { ConnectionBudget, createOutbound, createProtections, type EgressProxy } from '../../net/index.ts'
import { carriedConnections } from '../../listen/index.ts'
import { createDecisionLog, createIdentityPool, type DecisionLog } from '../../obtain/cloud-sts/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { ObtainDeps } from '../../obtain/index.ts'
import type { EphemeralKeys } from '../../signing/index.ts'
import { openSecrets } from '../../secrets/index.ts'
import { createStores, type Store, type Stores } from '../../storage/index.ts'
import { createProtocolMemory, type ProtocolMemory } from '../../authorize/index.ts'
import { createMaterials, type HeldMaterials, type Materials, openNamedFiles } from '../materials.ts'
import { describeEgress, egressFrom } from '../egress.ts'
import { createTracing, type ReceiverDeps, type Tracing } from './tracing.ts'
import { countLostLines, type ReportingLog, openMetrics, type OpenMetrics } from '../../report/index.ts'
import { createNamedSeries, withSeries } from '../named-series.ts'
import { type MemoryShares, memorySharesOf } from '../memory-limit.ts'
import type { SharedCacheSlot } from './shared-cache.ts'
import { VERSION } from '../version.ts'
import { stsEndpoints } from '../sts-endpoint.ts'
import { type ConnectionPool, createConnectionPool } from './connection-pool.ts'
import { type AuthServers, createAuthenticators, createAuthServers, type HeldAuthenticators } from './pools.ts'
import type { FixedSettings } from './reload.ts'

/** Limit of connections to all backends, idle ones included. */
const MOST_CONNECTIONS = 20_000

/** Services that live as long as the process, independent of the configuration. */
export interface Services {
  readonly tracing: Tracing
  /** Clients of trace receivers; their own requests are not traced. */
  readonly receivers: ReceiverDeps
  readonly clock: Clock
  readonly log: Log
  readonly metrics: OpenMetrics
  readonly egressProxy: EgressProxy | undefined
  /** Limits the backend connections of all configurations together. */
  readonly backendConnections: ConnectionBudget
  readonly materials: Materials
  readonly authServers: AuthServers
  readonly connections: ConnectionPool
  readonly cache: CredentialCache<Credential>
  /** The shared cache of the active configuration. */
  readonly sharing: SharedCacheSlot
  readonly stores: Stores
  readonly decisions: DecisionLog
  readonly audit: AuditTrail
  /** MCP protocol state of backends, for routes with authorization rules. */
  readonly protocol: ProtocolMemory
  /** Acquires the shared parts for one configuration. */
  hold(): Holdings
}

/** Secrets, files, authenticators and AWS identities of one configuration, released together. */
export interface Holdings {
  readonly materials: HeldMaterials
  readonly authenticators: HeldAuthenticators
  /** Dependencies of credential sources. */
  readonly obtain: ObtainDeps
  release(): Promise<void>
}

/** What the workers of one proxy share; a single process has its own. */
export interface Common {
  /** URL of the supervisor, which accepts and dispatches connections. */
  readonly url: string
  /** Default key of the session ids that clients see. */
  readonly sessionKey: Secret
  /** 48 bytes that encrypt TLS session tickets. */
  readonly ticketKeys: Buffer
  /** Restart-only settings of the initial configuration. */
  readonly settings: FixedSettings
  /** State of `storage: memory`. */
  readonly memory: (scope: string) => Store
  /** Keys of authorization servers without configured keys. */
  readonly ephemeralKeys: (server: string) => EphemeralKeys
  /** Called before a configuration becomes active: makes `ephemeralKeys` of its servers available. */
  readonly prepare: (config: ResolvedProxy) => Promise<void>
}

export interface ServicesOptions {
  /** Traces requests to other services. */
  readonly tracing?: Tracing | undefined
  readonly secretsDirectory: string
  readonly maxCredentials: number | undefined
  /** Memory of the caches. Default: the shares of a single process. */
  readonly memory?: Pick<MemoryShares, 'callersBytes' | 'credentialsBytes'>
  readonly stsEndpoint?: string | undefined
  readonly showClaims?: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: ReportingLog
  readonly clock: Clock
  /** Clock of circuit breakers and cool-downs. Default `MONOTONIC_CLOCK`. */
  readonly monotonicClock?: MonotonicClock
  /** False opens no audit file. Default true. */
  readonly opensAuditFile?: boolean
  /** State stores. Default: those of the configuration. */
  readonly stores?: Stores
  readonly common?: Pick<Common, 'memory' | 'ephemeralKeys'> | undefined
}

/** Limits backend connections of the process to half of its file descriptors; the other half is for clients. */
const boundOfBackends = (): ConnectionBudget => new ConnectionBudget(Math.min(MOST_CONNECTIONS, carriedConnections(2)))

/** Creates the services without opening or fetching anything. Throws `config_error` for an invalid STS endpoint. */
export function createServices(options: ServicesOptions): Services {
  const { clock, monotonicClock, log, env, common, memory = memorySharesOf({}) } = options
  const metrics = openMetrics()
  countLostLines(log, metrics)
  const egressProxy = egressFrom(env)
  if (egressProxy !== undefined) log.info(describeEgress(egressProxy), 'using an egress proxy')
  const sharing: SharedCacheSlot = { current: undefined }
  const cache = createCredentialCache<Credential>({
    clock,
    metrics,
    random: Math.random,
    maxEntries: options.maxCredentials,
    maxBytes: memory.credentialsBytes,
    weigh: bytesOfCredential,
    shared: () => sharing.current,
  })
  const protections = createProtections({ clock, monotonicClock, metrics })
  const clocks = monotonicClock === undefined ? { clock } : { clock, monotonicClock }
  const series = createNamedSeries(metrics)
  const egress = egressProxy === undefined ? {} : { egressProxy }
  const plain: ObtainDeps['outbound'] = (wanted) =>
    withSeries(series, wanted.name, createOutbound({ ...wanted, ...clocks, metrics, protections, ...egress }))
  const { tracing = createTracing(false) } = options
  const outbound: ObtainDeps['outbound'] = (wanted) => tracing.traced(plain(wanted), wanted.name)
  const secrets = openSecrets(options.secretsDirectory, { log, metrics, clock })
  const materials = createMaterials(secrets, openNamedFiles(log, env))
  const ofCallers = { clock, log, metrics, outbound, series, materials }
  const authenticators = createAuthenticators({ ...ofCallers, rememberedBytes: memory.callersBytes })
  const identities = createIdentityPool()
  const obtain = {
    clock,
    log,
    metrics,
    random: Math.random,
    cache,
    outbound,
    env,
    ...stsEndpoints(options.stsEndpoint, env),
  }
  const stores = options.stores ?? createStores({ clock, log, metrics, random: Math.random, memory: common?.memory })
  const decisions = createDecisionLog({ clock, showClaims: options.showClaims ?? false })
  const audit = createAuditTrail({
    clock,
    log,
    metrics,
    version: VERSION,
    ephemeralKey: new Secret(randomBytes(32)),
    opensFiles: options.opensAuditFile ?? true,
    roleOf(requestId) {
      const choice = decisions.of(requestId)?.decision?.choice
      if (choice === undefined) return undefined
      const by = choice.steps.find(({ outcome }) => outcome === 'matched')
      return { role: choice.roleArn, mapping: choice.by === 'fallback' ? 'fallback' : by && String(by.mapping) }
    },
  })
  const ofServers = { ...ofCallers, audit, stores, ephemeralKeys: common?.ephemeralKeys }
  return {
    tracing,
    receivers: { outbound: plain, materials, log },
    clock,
    log,
    metrics,
    egressProxy,
    backendConnections: boundOfBackends(),
    materials,
    authServers: createAuthServers(ofServers),
    connections: createConnectionPool(ofServers),
    cache,
    sharing,
    stores,
    decisions,
    audit,
    protocol: createProtocolMemory(),
    hold() {
      const held = materials.hold()
      const heldAuthenticators = authenticators.hold()
      const heldIdentities = identities.hold()
      const { secrets, tokenFile, certificate: caCertificate } = held
      return {
        materials: held,
        authenticators: heldAuthenticators,
        obtain: { ...obtain, secrets, caCertificate, tokenFile, identities: heldIdentities },
        async release() {
          held.release()
          await Promise.all([heldAuthenticators.release(), heldIdentities.release()])
        },
      }
    },
  }
}

/** Approximate size of a credential in bytes, without its cache entry. */
function bytesOfCredential(credential: Credential): number {
  if (credential.kind === 'header') return credential.value.reveal().length
  if (credential.kind === 'aws') return AWS_BYTES + (credential.sessionToken?.reveal().length ?? 0)
  return 0
}

/** Key id, secret and derived signing key. */
const AWS_BYTES = 200
