import { type CredentialCache, createCredentialCache } from '../../cache/index.ts'
import type { Clock, Credential, Log, Secret } from '../../core/index.ts'
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
import { stsEndpoints } from '../sts-endpoint.ts'
import { type AuthServers, createAuthenticators, createAuthServers, type HeldAuthenticators } from './pools.ts'
import type { FixedSettings } from './reload.ts'

/** Connections to all backends at a time, kept ones among them. */
const MOST_CONNECTIONS = 20_000

/** What lives as long as the process, whatever configuration is in force. */
export interface Services {
  readonly tracing: Tracing
  /** With what receivers of traces are reached; what is sent to them is not followed itself. */
  readonly receivers: ReceiverDeps
  readonly clock: Clock
  readonly log: Log
  readonly metrics: OpenMetrics
  readonly egressProxy: EgressProxy | undefined
  /** Counts the connections to backends of all configurations. */
  readonly backendConnections: ConnectionBudget
  readonly materials: Materials
  readonly authServers: AuthServers
  readonly cache: CredentialCache<Credential>
  /** With whom that cache is shared, as the configuration in force says. */
  readonly sharing: SharedCacheSlot
  readonly stores: Stores
  readonly decisions: DecisionLog
  /** What was seen of backends by routes with rules. */
  readonly protocol: ProtocolMemory
  /** What one configuration uses of those that it shares with others. */
  hold(): Holdings
}

/** Secrets, files, authenticators and AWS identities that one configuration uses, released together. */
export interface Holdings {
  readonly materials: HeldMaterials
  readonly authenticators: HeldAuthenticators
  /** For the sources of credentials. */
  readonly obtain: ObtainDeps
  release(): Promise<void>
}

/** What the workers of one proxy have in common; a process alone has its own. */
export interface Common {
  /** Of the supervisor, which accepts connections and hands them round. */
  readonly url: string
  /** Of the session ids that clients see, where none is configured. */
  readonly sessionKey: Secret
  /** 48 bytes with which TLS session tickets are encrypted. */
  readonly ticketKeys: Buffer
  /** What the first configuration said of what needs a restart. */
  readonly settings: FixedSettings
  /** Where `storage: memory` is. */
  readonly memory: (scope: string) => Store
  /** Keys for authorization servers that have none configured. */
  readonly ephemeralKeys: (server: string) => EphemeralKeys
  /** Called before a configuration is put in force: after it `ephemeralKeys` has those of its servers. */
  readonly prepare: (config: ResolvedProxy) => Promise<void>
}

export interface ServicesOptions {
  /** Follows what is asked of other services. */
  readonly tracing?: Tracing | undefined
  readonly secretsDirectory: string
  readonly maxCredentials: number | undefined
  /** How much of the memory is for what is remembered. Default: the shares of one process. */
  readonly memory?: Pick<MemoryShares, 'callersBytes' | 'credentialsBytes'>
  readonly stsEndpoint?: string | undefined
  readonly showClaims?: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: ReportingLog
  readonly clock: Clock
  /** Of circuits and rests of other services. Default `STEADY_CLOCK`. */
  readonly steadyClock?: Clock
  /** Where state is kept. Default: where the configuration says. */
  readonly stores?: Stores
  readonly common?: Pick<Common, 'memory' | 'ephemeralKeys'> | undefined
}

/** Bounds the connections to backends of a whole process: half of its file descriptors are for them, the others for clients. */
const boundOfBackends = (): ConnectionBudget => new ConnectionBudget(Math.min(MOST_CONNECTIONS, carriedConnections(2)))

/** Makes them; nothing is opened or fetched. Throws `config_error` for an STS endpoint that is none. */
export function createServices(options: ServicesOptions): Services {
  const { clock, steadyClock, log, env, common, memory = memorySharesOf({}) } = options
  const metrics = openMetrics()
  countLostLines(log, metrics)
  const egressProxy = egressFrom(env)
  if (egressProxy !== undefined) log.info(describeEgress(egressProxy), 'connections go out through an egress proxy')
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
  const protections = createProtections({ clock, steadyClock, metrics })
  const clocks = steadyClock === undefined ? { clock } : { clock, steadyClock }
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
  return {
    tracing,
    receivers: { outbound: plain, materials, log },
    clock,
    log,
    metrics,
    egressProxy,
    backendConnections: boundOfBackends(),
    materials,
    authServers: createAuthServers({ ...ofCallers, stores, ephemeralKeys: common?.ephemeralKeys }),
    cache,
    sharing,
    stores,
    decisions: createDecisionLog({ clock, showClaims: options.showClaims ?? false }),
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

/** About what a credential holds that its entry in the cache does not. */
function bytesOfCredential(credential: Credential): number {
  if (credential.kind === 'header') return credential.value.reveal().length
  if (credential.kind === 'aws') return AWS_BYTES + (credential.sessionToken?.reveal().length ?? 0)
  return 0
}

/** Key id, secret and the signing key of a day. */
const AWS_BYTES = 200
