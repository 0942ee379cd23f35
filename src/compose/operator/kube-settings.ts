import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parse } from 'yaml'
import { inClusterSettings, type KubeSettings, readKubeconfig } from '../../kube/index.ts'
import { type Io, UsageError } from '../io.ts'

/** Which cluster: the one that this pod is in, or that of a kubeconfig. */
export interface ClusterChoice {
  readonly kubeconfig: string | undefined
  /** Context of the kubeconfig. Default: its current one. */
  readonly context: string | undefined
}

/** Where the API server is and who we are. Throws `UsageError` where nothing says so, `KubeError` for a wrong kubeconfig. */
export function kubeSettings({ kubeconfig, context }: ClusterChoice, env: Io['env']): KubeSettings {
  const file = kubeconfig ?? env['KUBECONFIG']
  const inCluster = kubeconfig === undefined ? inClusterSettings(env) : undefined
  if (inCluster !== undefined) return inCluster
  if (file === undefined || file === '')
    throw new UsageError('is not in a cluster: name one with --kubeconfig FILE, or KUBECONFIG')
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    throw new UsageError(`cannot read the kubeconfig ${file}`)
  }
  return readKubeconfig(parse(text), path.resolve(file), context)
}
