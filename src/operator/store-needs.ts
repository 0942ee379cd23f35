import type { LocalStorage } from '../resources/index.ts'

const SENTINEL_PORT = 26_379
const MASTER_PORT = 6379

/** URLs and ports that pods need for a store. */
export interface StoreNeeds {
  readonly storeUrls: readonly string[]
  /** Ports of servers without a host in a URL. */
  readonly storePorts: readonly number[]
}

/** Sentinels return the master's port at run time; the default port is allowed, others by `spec.egress`. */
export function storeNeeds(storage: LocalStorage | undefined): StoreNeeds {
  if (storage?.type !== 'kvstore') return { storeUrls: [], storePorts: [] }
  const { addr, sentinelConfig: sentinel } = storage.kvstore
  if (sentinel === undefined) return { storeUrls: addr === undefined ? [] : [`redis://${addr}`], storePorts: [] }
  const { sentinelService: service, sentinelAddrs = [] } = sentinel
  const addresses = [
    ...sentinelAddrs,
    ...(service === undefined ? [] : [`${serviceHost(service)}:${service.port ?? SENTINEL_PORT}`]),
  ]
  return { storeUrls: addresses.map((address) => `redis://${address}`), storePorts: [MASTER_PORT] }
}

const serviceHost = ({
  name,
  namespace,
}: {
  readonly name: string
  readonly namespace?: string | undefined
}): string => (namespace === undefined ? name : `${name}.${namespace}`)
