import { afterAll, beforeAll } from 'vitest'
import type { KubeClient, KubeConnection } from '../../../src/kube/index.ts'
import type { Operator } from '../../../src/operator/index.ts'
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.ts'
import { connect, installDefinitions, runOperator } from './operator-rig.ts'

/** Shared by the tests of a file while they run. */
export interface Cluster {
  readonly plane: ControlPlane
  readonly client: KubeClient
  /** The operator that runs in this process; a test may put another in its place. */
  operator: Operator
}

/**
 * An API server with our definitions and an operator, before all tests of a file, and their end after them. `prepare` runs
 * when both are there.
 */
export function useCluster(
  {
    plane: planeOptions,
    ...options
  }: Parameters<typeof runOperator>[1] & { readonly plane?: ControlPlaneOptions } = {},
  prepare: (cluster: Cluster) => Promise<void> = () => Promise.resolve(),
): Cluster {
  let plane: ControlPlane | undefined
  let connection: KubeConnection | undefined
  let operator: Operator | undefined
  const there = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('the cluster is not there yet')
    return value
  }
  const cluster: Cluster = {
    get plane() {
      return there(plane)
    },
    get client() {
      return there(connection).client
    },
    get operator() {
      return there(operator)
    },
    set operator(next) {
      operator = next
    },
  }
  beforeAll(async () => {
    plane = await startControlPlane(planeOptions)
    connection = connect(plane)
    await installDefinitions(connection.client)
    operator = await runOperator(connection.client, options)
    await prepare(cluster)
  }, 240_000)
  afterAll(async () => {
    await operator?.close()
    await connection?.close()
    await plane?.close()
  }, 60_000)
  return cluster
}
