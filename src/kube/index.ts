export { type Informer, type InformerOptions, createInformer, RESTART_REASONS } from './informer.ts'
export {
  type CallOptions,
  createKubeClient,
  type KubeClient,
  type KubeClientOptions,
  type Selection,
  type WriteOptions,
} from './client.ts'
export { type WatchEvent } from './answers.ts'
export { isExpired, isNotFound, KubeError } from './kube-error.ts'
export { electLeader, type LeaderElection, LEASES, type LeaseOptions } from './lease.ts'
export { keyOf, type KubeMetadata, type KubeObject, type OwnerReference, pathOf, type ResourceType } from './object.ts'
export { createQueue, type Queue, type QueueOptions } from './queue.ts'
export { retryUntilAnswered, type RetryOptions } from './retry.ts'
export { systemTimers, type Timers } from './timers.ts'
export { type KubeConnection, openKubeConnection } from './connection.ts'
export { inClusterSettings, type KubeSettings, readKubeconfig } from './settings.ts'
