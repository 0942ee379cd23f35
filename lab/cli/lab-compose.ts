import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { type Clock, SYSTEM_CLOCK } from '../../src/core/index.ts'
import {
  createLabFaults,
  freePort,
  LAB_USERS,
  type LabBackend,
  type LabIdentityProvider,
  type LabMetadata,
  type LabRedis,
  type LabRedisPorts,
  type LabSts,
  type LabWorkspace,
  startLabBackend,
  startLabIdentityProvider,
  startLabRedis,
  startLabSts,
  startLabWorkspace,
} from '../index.ts'
import type { InspectorMode } from '../../src/resources/index.ts'
import { CommandFailed, labConfig } from '../../src/cli/index.ts'
import { POD_TOKEN, ROLES, startAws } from './lab-aws.ts'
import { mountsFor, readClients, secretOf } from './lab-parties.ts'
import { configFor } from './lab-folder.ts'
import { LAB_PORTS, type LabPorts } from './lab-ports.ts'
import { labTryUsers } from './lab-try.ts'
import { shareState } from './lab-replicas.ts'
import type { ReportingLog } from '../../src/report/index.ts'
import { type RunningProxy, runProxy } from '../../src/compose/proxy/index.ts'

/** A running lab: the real proxy and the demo services. */
export interface Lab {
  /** Where the proxy listens. */
  readonly url: string
  readonly adminUrl: string
  /** Address of the inspector's page; undefined where it is off. */
  readonly inspectUrl: string | undefined
  /** The other replicas of the proxy, which know the same logins and credentials. */
  readonly others: readonly { readonly url: string; readonly adminUrl: string }[]
  /** State shared by the replicas; undefined when there is one. */
  readonly redis: Pick<LabRedis, 'address' | 'sentinelAddress'> | undefined
  readonly identity: LabIdentityProvider
  readonly sts: LabSts
  readonly workspace: LabWorkspace
  readonly metadata: LabMetadata
  /** Where the proxy finds its own AWS identity; for other commands with the same configuration. */
  readonly env: Readonly<Record<string, string>>
  readonly backend: LabBackend
  /** The folder that the proxy reads: config/lab, or a copy of it with other ports. */
  readonly configDirectory: string
  /** Reads the folder again, as SIGHUP does. */
  reload(): Promise<unknown>
  close(): Promise<void>
}

export interface LabOptions {
  readonly ports?: LabPorts
  readonly log: ReportingLog
  /** Capture level of the inspector, and its memory in bytes. Default: bodies, 8 MiB. */
  readonly inspector?: InspectorMode | undefined
  readonly inspectBytes?: number | undefined
  /** More than one: so many proxies on one Redis, which `server` (a path of redis-server) runs. */
  readonly replicas?: LabReplicas
  /** Clocks of the demo services; the backend's may be off, to see signatures corrected. Default: the time. */
  readonly clock?: Clock
  readonly backendClock?: Clock
  /** `/decisions` and `/inspect` show claims and subjects. Default false. */
  readonly showClaims?: boolean
  /** Whether the MCP server has the tools of the conformance suite too. Default true. */
  readonly conformance?: boolean
}

/** Several proxies on one Redis. */
export interface LabReplicas {
  readonly count: number
  readonly server: string
  /** Of the second proxy and those after it, in order; those that are not named take free ones. */
  readonly ports: readonly { readonly proxy: number; readonly admin: number }[]
  readonly redisPorts: LabRedisPorts
}

/** Ctrl-C does not wait for the end of streams. */
const DRAIN_GRACE_MS = 1000

/**
 * Starts the demo services and the real proxy in front of them. Throws `PortInUse` for a port of a demo service, and whatever the
 * proxy throws; what was already started is closed then.
 */
export async function startLab(options: LabOptions): Promise<Lab> {
  const { ports = LAB_PORTS, log, showClaims = false, clock = SYSTEM_CLOCK } = options
  const started: (() => Promise<void>)[] = []
  const keep = <T extends { close(): Promise<void> }>(part: T): T => {
    started.push(() => part.close())
    return part
  }
  const close = async () => {
    for (const stop of started.splice(0).toReversed()) await stop()
  }
  try {
    const faults = createLabFaults()
    const proxyPort = ports.proxy === 0 ? await freePort() : ports.proxy
    const listen = `127.0.0.1:${proxyPort}`
    const identity = keep(
      await startLabIdentityProvider({
        port: ports.identity,
        tls: {
          port: ports.identityTls,
          certificate: await readFile(path.join(labConfig(), 'secrets/lab-idp-tls/tls.crt'), 'utf8'),
          key: await secretOf('lab-idp-tls', 'tls.key'),
        },
        clients: await readClients(`http://${listen}`),
        clock,
        faults,
      }),
    )
    const trust = { issuer: identity.url, keys: identity.jwks, roles: ROLES }
    const sts = keep(await startLabSts({ port: ports.sts, trust, clock, faults }))
    const client = {
      id: 'lab-workspace',
      secret: await secretOf('lab-workspace', 'client-secret'),
      redirectUris: ['/upstream/oauth/callback', '/connect/callback'].map((path) => `http://${listen}${path}`),
    }
    const workspace = keep(await startLabWorkspace({ port: ports.workspace, client, clock }))
    const podToken = await secretOf(POD_TOKEN, 'token')
    const { metadata, env } = await startAws(ports.metadata, podToken, sts)
    keep(metadata)
    const mounts = await mountsFor(identity, sts, workspace, `http://${listen}`)
    const backendClock = options.backendClock ?? clock
    const { conformance = true } = options
    const backend = keep(await startLabBackend({ port: ports.backend, mounts, clock: backendClock, conformance }))
    const redis = options.replicas && keep(await openRedis(options.replicas))
    const addresses = {
      [`127.0.0.1:${LAB_PORTS.proxy}`]: listen,
      [`127.0.0.1:${LAB_PORTS.identity}`]: new URL(identity.url).host,
      [`127.0.0.1:${LAB_PORTS.identityTls}`]: new URL(identity.tlsUrl ?? '').host,
      [`127.0.0.1:${LAB_PORTS.backend}`]: new URL(backend.url).host,
      [`127.0.0.1:${LAB_PORTS.sts}`]: new URL(sts.url).host,
      [`127.0.0.1:${LAB_PORTS.workspace}`]: new URL(workspace.url).host,
    }
    const { directory } = keep(await configFor(addresses, redis !== undefined))
    if (redis !== undefined) await shareState(directory, redis)
    const tryUsers = labTryUsers(LAB_USERS, (wanted) => identity.mint(wanted))
    const run = async (address: string, admin: string, own: ReportingLog) =>
      keep(
        await runProxy({
          configPaths: [directory],
          listen: address,
          admin,
          stsEndpoint: sts.url,
          // Everything is on this machine: no proxy or endpoint of the surroundings may get between.
          env,
          drainGraceMs: DRAIN_GRACE_MS,
          inspector: options.inspector ?? 'bodies',
          inspectBytes: options.inspectBytes,
          showClaims,
          tryUsers,
          log: own,
        }),
      )
    const proxy = await run(listen, `127.0.0.1:${ports.admin}`, log)
    const others: RunningProxy[] = []
    for (let more = 1; more < (options.replicas?.count ?? 1); more++) {
      const { proxy: own = 0, admin = 0 } = options.replicas?.ports[more - 1] ?? {}
      others.push(await run(`127.0.0.1:${own}`, `127.0.0.1:${admin}`, logOfReplica(log)))
    }
    return {
      url: proxy.url,
      adminUrl: proxy.adminUrl,
      inspectUrl: proxy.inspectUrl,
      others: others.map(({ url, adminUrl }) => ({ url, adminUrl })),
      redis,
      identity,
      sts,
      workspace,
      metadata,
      env,
      backend,
      configDirectory: directory,
      reload: () => Promise.all([proxy, ...others].map((one) => one.reload())),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** All have the resources of the first one, at which clients connect: that the others listen elsewhere is as it should be. */
const logOfReplica = (log: ReportingLog): ReportingLog => ({
  ...log,
  warn: (fields, message) => {
    if (!message.includes('.resourceUrl  its port is')) log.warn(fields, message)
  },
})

async function openRedis({ server, redisPorts }: LabReplicas): Promise<LabRedis> {
  try {
    return await startLabRedis(server, redisPorts)
  } catch (cause) {
    throw new CommandFailed(`${server} does not start: ${(cause as Error).message}`, { cause })
  }
}
