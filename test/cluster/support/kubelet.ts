import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type KubeClient, KubeError, type KubeObject, type ResourceType } from '../../../src/kube/index.ts'
import { CLUSTER_TYPES } from '../../../src/operator/index.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'

interface Item {
  readonly key: string
  readonly path: string
}
interface Source {
  readonly name?: string
  readonly secretName?: string
  readonly optional?: boolean
  readonly items?: readonly Item[]
  readonly defaultMode?: number
}
interface Volume {
  readonly name: string
  readonly configMap?: Source
  readonly secret?: Source
  readonly projected?: {
    readonly defaultMode?: number
    readonly sources: readonly {
      readonly serviceAccountToken?: {
        readonly path: string
        readonly audience?: string
        readonly expirationSeconds?: number
      }
      readonly configMap?: Source
      readonly downwardAPI?: { readonly items: readonly { readonly path: string }[] }
    }[]
  }
}
interface Container {
  readonly name: string
  readonly args: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value?: string }[]
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
  readonly securityContext?: { readonly runAsUser?: number }
}
interface PodSpec {
  readonly serviceAccountName?: string
  readonly securityContext?: { readonly runAsUser?: number; readonly fsGroup?: number }
  readonly initContainers?: readonly Container[]
  readonly containers: readonly Container[]
  readonly volumes: readonly Volume[]
}

/** A container of a pod with the files that a kubelet mounts: real processes in directories of their own. */
export interface Kubelet {
  /**
   * Starts the container's command with these files at their paths, as the container's user; more arguments beat its own.
   * `env` is what a kubelet sets for every container.
   */
  start(moreArguments: readonly string[], env?: Readonly<Record<string, string>>): Running
  /** Brings what has changed, as a kubelet does once a minute: a new directory, and one rename. */
  sync(): Promise<void>
  close(): void
}

const MAX_MODE = 0o777
const isRoot = process.getuid?.() === 0
/** Mounts what follows in pairs up to `--`, in a mount namespace of its own, and becomes the rest. */
const SCRIPT = `set -e
scratch=$1 user=$2; shift 2
mount -t tmpfs none "$scratch"
for top in etc run; do
  mkdir -p "$scratch/$top/upper" "$scratch/$top/work"
  mount -t overlay none -o "lowerdir=/$top,upperdir=$scratch/$top/upper,workdir=$scratch/$top/work" "/$top"
done
while [ "$1" != -- ]; do
  mkdir -p "$2"; mount --bind "$1" "$2"; mount -o remount,bind,ro "$2"; shift 2
done
shift
[ "$user" = same ] || exec setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --bounding-set=-all -- "$@"
exec "$@"`

/** Does for a container of `pod` what a kubelet would; there is no container, so ports are those of this machine. */
export async function openKubelet(client: KubeClient, pod: KubeObject, name: string): Promise<Kubelet> {
  const spec = pod.spec as PodSpec
  const { namespace = 'default' } = pod.metadata
  const container = [...(spec.initContainers ?? []), ...spec.containers].find((one) => one.name === name)
  if (container === undefined) throw new Error(`the pod has no container ${name}`)
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-pod-'))
  const group = spec.securityContext?.fsGroup
  const mounted = spec.volumes.filter((volume) => container.volumeMounts.some((mount) => mount.name === volume.name))
  let syncs = 0

  const objectOf = async (type: ResourceType, object: string, isOptional: boolean): Promise<KubeObject | undefined> => {
    try {
      return await client.get(type, namespace, object)
    } catch (error) {
      if (isOptional && error instanceof KubeError && error.status === 404) return undefined
      throw error
    }
  }
  const filesOf = async (type: ResourceType, source: Source): Promise<Map<string, Buffer>> => {
    const object = await objectOf(type, source.name ?? source.secretName ?? '', source.optional === true)
    const data = (object?.['data'] ?? {}) as Record<string, string>
    const items = source.items ?? Object.keys(data).map((key) => ({ key, path: key }))
    const encoding = type === CLUSTER_TYPES.Secret ? 'base64' : 'utf8'
    return new Map(
      items.flatMap((item) => {
        const text = data[item.key]
        return text === undefined ? [] : [[item.path, Buffer.from(text, encoding)] as const]
      }),
    )
  }
  const tokenOf = async (audience: string | undefined, expirationSeconds = 3600): Promise<Buffer> => {
    const account = spec.serviceAccountName ?? 'default'
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds, ...(audience === undefined ? {} : { audiences: [audience] }) },
    }
    const answer = await client.raw('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, body)
    return Buffer.from((answer as { status: { token: string } }).status.token)
  }
  const contentOf = async (volume: Volume): Promise<{ files: Map<string, Buffer>; mode: number }> => {
    if (volume.configMap !== undefined)
      return {
        files: await filesOf(CLUSTER_TYPES.ConfigMap, volume.configMap),
        mode: volume.configMap.defaultMode ?? 0o644,
      }
    if (volume.secret !== undefined)
      return { files: await filesOf(CLUSTER_TYPES.Secret, volume.secret), mode: volume.secret.defaultMode ?? 0o644 }
    const files = new Map<string, Buffer>()
    for (const { serviceAccountToken: token, configMap, downwardAPI } of volume.projected?.sources ?? []) {
      // Of the pod's own fields only its namespace is asked for.
      for (const item of downwardAPI?.items ?? []) files.set(item.path, Buffer.from(namespace))
      if (token !== undefined) files.set(token.path, await tokenOf(token.audience, token.expirationSeconds))
      if (configMap !== undefined)
        for (const [file, text] of await filesOf(CLUSTER_TYPES.ConfigMap, configMap)) files.set(file, text)
    }
    return { files, mode: volume.projected?.defaultMode ?? 0o644 }
  }
  const sync = async (): Promise<void> => {
    syncs += 1
    for (const volume of mounted) {
      const { files, mode } = await contentOf(volume)
      writeAtomically(path.join(directory, volume.name), `..${syncs}`, files, { mode: mode & MAX_MODE, group })
    }
  }
  await sync()
  return {
    sync,
    start(moreArguments, env = {}) {
      const scratch = path.join(directory, 'scratch')
      mkdirSync(scratch, { recursive: true })
      const user = container.securityContext?.runAsUser ?? spec.securityContext?.runAsUser
      const mounts = container.volumeMounts.flatMap((mount) => [path.join(directory, mount.name), mount.mountPath])
      const namespaces = isRoot ? ['unshare', '--mount'] : ['unshare', '--user', '--map-root-user', '--mount']
      // Of the pod's own fields only its name is asked for.
      const variables = (container.env ?? []).map((one) => [one.name, one.value ?? pod.metadata.name] as const)
      const identity = isRoot && user !== undefined ? String(user) : 'same'
      return extauth([...container.args, ...moreArguments], {
        cwd: '/',
        env: { ...Object.fromEntries(variables), ...env },
        through: [...namespaces, 'bash', '-c', SCRIPT, 'kubelet', scratch, identity, ...mounts, '--'],
      })
    },
    close: () => rmSync(directory, { recursive: true, force: true }),
  }
}

/** As the kubelet's atomic writer: files in a new directory, `..data` renamed to lead there, a link for each file. */
function writeAtomically(
  volume: string,
  stamp: string,
  files: ReadonlyMap<string, Buffer>,
  { mode, group }: { readonly mode: number; readonly group: number | undefined },
): void {
  const fresh = path.join(volume, stamp)
  mkdirSync(fresh, { recursive: true })
  for (const [name, content] of files) {
    const file = path.join(fresh, name)
    writeFileSync(file, content)
    if (isRoot && group !== undefined) chownSync(file, 0, group)
    chmodSync(file, mode)
  }
  const before = readdirSync(volume)
  symlinkSync(stamp, path.join(volume, '..data_tmp'))
  renameSync(path.join(volume, '..data_tmp'), path.join(volume, '..data'))
  for (const name of files.keys()) if (!before.includes(name)) symlinkSync(`..data/${name}`, path.join(volume, name))
  for (const name of before) {
    const isOld = name.startsWith('..') && name !== stamp && name !== '..data'
    if (isOld || (!name.startsWith('..') && !files.has(name))) rmSync(path.join(volume, name), { recursive: true })
  }
}
