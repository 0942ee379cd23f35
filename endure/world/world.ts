import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Findings } from '../oracle/findings.ts'
import type { Lines } from '../oracle/lines.ts'
import type { Marks } from '../oracle/marks.ts'
import type { Witness } from '../oracle/witness.ts'
import { type Balancer, openBalancer } from './balancer.ts'
import { type Configuration, openConfiguration } from './configuration.ts'
import type { Program } from './program.ts'
import { writeRegistry } from './registry.ts'
import { createReplica, type Replica } from './replica.ts'
import { openServices, type Services } from './services.ts'
import { openStore, type Store } from './store.ts'

const MOVED_CLOCK = path.join(import.meta.dirname, 'moved-clock.ts')

/** Everything that runs beside the callers. */
export interface World {
  readonly balancer: Balancer
  readonly services: Services
  readonly store: Store
  readonly configuration: Configuration
  /** The first is never ended before the run is over, so that its growth can be seen. */
  readonly replicas: readonly [lasting: Replica, other: Replica]
  /** Lists MCP servers to the same callers. */
  readonly registry: Replica
  /** Where the second one finds by how many milliseconds its clock is off, whenever it gets SIGUSR2. */
  readonly clockFile: string
  close(): Promise<void>
}

export interface Watching {
  readonly findings: Findings
  readonly lines: Lines
  readonly marks: Marks
  readonly witness: Witness
}

/** Starts it and waits until both replicas are ready; `heaps` is the folder for what they hold, if it is kept. */
export async function openWorld(
  { findings, lines, marks, witness }: Watching,
  { bin }: Program,
  heaps?: string,
): Promise<World> {
  const started: { close(): Promise<unknown> }[] = []
  const close = async (): Promise<void> => {
    for (const one of started.splice(0).toReversed()) await one.close()
  }
  const keep = <T extends { close(): Promise<unknown> }>(one: T): T => {
    started.push(one)
    return one
  }
  try {
    const balancer = keep(await openBalancer())
    const store = keep(await openStore())
    const late: { configuration?: Configuration } = {}
    const services = keep(
      await openServices({
        proxyUrl: balancer.url,
        onRequest: (record) => witness.see(record),
        isStaticToken: (token) => late.configuration?.isCurrent('bearer', token) === true,
      }),
    )
    const configuration = keep(await openConfiguration(balancer.port, services, store, marks))
    late.configuration = configuration
    const { directory } = configuration
    const registryFile = await writeRegistry(directory, services.gates.identity.url)
    const heapDirectory = heaps ?? keep(await openHeapDirectory()).path
    const clockFile = path.join(heapDirectory, 'clock')
    await writeFile(clockFile, '0')
    const replicaOf = async (
      name: string,
      more: readonly string[],
      movable: { readonly modules?: readonly string[]; readonly env?: Readonly<Record<string, string>> } = {},
    ): Promise<Replica> => {
      const replica = await createReplica({
        name,
        bin,
        env: { ...services.env, ...movable.env },
        modules: movable.modules ?? [],
        heapDirectory,
        command: (listen, admin) =>
          ['proxy', '--config', directory, '--listen', listen, '--admin', admin].concat(
            ['--sts-endpoint', services.gates.sts.url, '--drain-grace', '5s'],
            more,
          ),
        onLine: (line) => lines.read(name, line),
        onEnd: (how, isMeant, last) => {
          if (!isMeant) findings.add('process ended', `${name} ended with ${how}: ${last}`)
        },
      })
      started.push({ close: () => replica.end('SIGKILL') })
      return replica
    }
    const replicas = [
      await replicaOf('replica-1', ['--inspector', 'bodies']),
      await replicaOf('replica-2', [], { modules: [MOVED_CLOCK], env: { ENDURE_CLOCK_FILE: clockFile } }),
    ] as const
    const registry = await createReplica({
      name: 'registry',
      bin,
      env: {},
      heapDirectory,
      command: (listen, admin) =>
        ['registry', '--config', registryFile].concat('--address', listen, '--internal-address', admin),
      onLine: (line) => lines.read('registry', line),
      onEnd: (how, isMeant, last) => {
        if (!isMeant) findings.add('process ended', `the registry ended with ${how}: ${last}`)
      },
    })
    started.push({ close: () => registry.end('SIGKILL') })
    await Promise.all([...replicas, registry].map((one) => one.start()))
    balancer.members = () => replicas.map(({ port, adminUrl }) => ({ port, readinessUrl: `${adminUrl}/readiness` }))
    await balancer.untilReady()
    return { balancer, services, store, configuration, replicas, registry, clockFile, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** A folder for what processes hold, hundreds of MiB, beside the one that they watch. */
async function openHeapDirectory(): Promise<{ readonly path: string; close(): Promise<void> }> {
  const directory = await mkdtemp(path.join(tmpdir(), 'endure-heap-'))
  return { path: directory, close: () => rm(directory, { recursive: true, force: true }) }
}
