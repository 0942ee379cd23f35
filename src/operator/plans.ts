import type { Clock } from '../core/index.ts'
import type { KubeObject } from '../kube/index.ts'
import { synthesizedIdentities } from '../resources/index.ts'
import type { Action, Plan } from './actions.ts'
import type { KnownConfigs } from './config/known-config.ts'
import type { KnownSharedConfig } from './config/known-shared-configs.ts'
import { reconcileConfig } from './config/reconcile-config.ts'
import type { ApplyRefused } from './executor.ts'
import { isOldForm } from './injection/old-form.ts'
import { injectionConfigMap } from './injection/config-map.ts'
import { CLUSTER_TYPES, isShared, type OwnTypes, type ReferringKind, type SharedKind } from './kinds.ts'
import type { Observed } from './observed.ts'
import { forbiddenSecrets, type SecretLookup } from './secret-states.ts'
import { configKey, type ReferenceIndex } from './reference-index.ts'
import { hostsOf } from './remote-proxy/network-policy.ts'
import { reconcileRemoteProxy, runnableProxy } from './remote-proxy/reconcile-remote-proxy.ts'
import type { RemoteProxy } from './remote-proxy/remote-proxy.ts'
import { remoteProxySnapshot, type SnapshotDeps, type SnapshotSettings } from './remote-proxy/snapshot.ts'
import { serviceKey } from './service-ports.ts'
import { partsOf, taskOf } from './touched.ts'
import { isAsWanted, stamped } from './wanted.ts'
import { reconcileWorkload } from './workload/reconcile-workload.ts'
import { workloadSnapshot } from './workload/snapshot.ts'

/** Dependencies of the planner. */
export interface PlanDeps {
  readonly observed: Observed
  readonly references: ReferenceIndex
  readonly known: KnownConfigs
  readonly knownShared: (object: KubeObject) => KnownSharedConfig
  readonly secretsOf: SecretLookup
  readonly reportsOf: SnapshotDeps['reportsOf']
  readonly types: OwnTypes
  readonly settings: SnapshotSettings
  readonly ownsKinds: boolean
  readonly writesStatus: boolean
  /** Called with the Services, as `namespace/name`, in the URLs of a proxy. */
  readonly onServices: (proxyKey: string, services: readonly string[]) => void
  readonly clock: Clock
}

const FINALIZERS: Readonly<Record<SharedKind, string>> = {
  MCPOIDCConfig: 'oidc-references',
  MCPTelemetryConfig: 'telemetry-references',
  MCPToolConfig: 'tool-references',
}

/**
 * Returns the plan for a queue key; undefined if there is nothing to do. `refused`: the object that the API server
 * just rejected.
 */
export function createPlanner(deps: PlanDeps): (key: string, refused?: ApplyRefused) => Plan | undefined {
  const { observed, references, known, knownShared, secretsOf, types, settings, clock } = deps
  /** The last valid state of each proxy: drift is reverted to it while the current configuration is invalid. */
  const lastGood = new Map<string, { readonly uid: string | undefined; readonly proxy: RemoteProxy }>()

  const planConfig = (namespace: string, name: string): Plan | undefined => {
    const object = observed.config(namespace, name)
    if (object === undefined) return undefined
    const key = configKey('MCPExternalAuthConfig', namespace, name)
    const { problems, valid } = known.of(object)
    const pods = references.podsOf(key)
    const made = { image: settings.image, secretKeys: valid?.secretKeys ?? new Map<string, ReadonlySet<string>>() }
    const isOld = (pod: KubeObject | undefined): boolean => pod !== undefined && isOldForm(pod, made)
    const secrets = secretsOf(namespace, [...(valid?.secretKeys.keys() ?? [])])
    const plan =
      deps.ownsKinds || deps.writesStatus
        ? reconcileConfig({
            object,
            type: types.MCPExternalAuthConfig,
            verdict: { problems, configHash: valid?.configHash },
            workloads: references.workloadsOf(key),
            isInjectable: true,
            pods,
            oldPods: valid === undefined ? [] : pods.filter((pod) => isOld(observed.pod(namespace, pod))),
            secrets,
            synthesized:
              valid?.spec.type === 'embeddedAuthServer'
                ? synthesizedIdentities(valid.spec.embeddedAuthServer)
                : undefined,
            isNamespaceTerminating: observed.isTerminating(namespace),
            finalizer: `${settings.apiGroup}/external-auth-references`,
            ownsKind: deps.ownsKinds,
            now: new Date(clock.now()),
          })
        : { actions: [], events: [] }
    const isStaying = object.metadata.deletionTimestamp === undefined
    // An invalid edit keeps the last good ConfigMap.
    if (pods.length === 0 || valid === undefined || !isStaying || forbiddenSecrets(secrets).length > 0) return plan
    const wanted = stamped(injectionConfigMap(object))
    const before = observed.owned(CLUSTER_TYPES.ConfigMap, namespace, wanted.metadata.name)
    if (isAsWanted(wanted, before)) return plan
    const apply: Action = { do: 'apply', type: CLUSTER_TYPES.ConfigMap, object: wanted, before }
    return { ...plan, actions: [...plan.actions, apply] }
  }

  const planShared = (kind: SharedKind, namespace: string, name: string): Plan | undefined => {
    const object = observed.shared(kind, namespace, name)
    if (object === undefined || !deps.ownsKinds) return undefined
    const { problems, valid } = knownShared(object)
    return reconcileConfig({
      object,
      type: types[kind],
      verdict: { problems, configHash: valid?.configHash },
      workloads: references.workloadsOf(configKey(kind, namespace, name)),
      isInjectable: false,
      pods: [],
      oldPods: [],
      secrets: secretsOf(namespace, [...(valid?.secretKeys.keys() ?? [])]),
      isNamespaceTerminating: observed.isTerminating(namespace),
      finalizer: `${settings.apiGroup}/${FINALIZERS[kind]}`,
      ownsKind: true,
      now: new Date(clock.now()),
    })
  }

  const planProxy = (namespace: string, name: string, refused?: ApplyRefused): Plan | undefined => {
    const object = observed.workload('MCPRemoteProxy', namespace, name)
    const key = `${namespace}/${name}`
    // A recreated object does not inherit the state of its predecessor.
    if (object?.metadata.uid !== lastGood.get(key)?.uid) lastGood.delete(key)
    if (object === undefined) deps.onServices(taskOf('MCPRemoteProxy', namespace, name), [])
    if (object === undefined || !deps.ownsKinds) return undefined
    const now = new Date(clock.now())
    const snapshot = remoteProxySnapshot(object, {
      observed,
      known,
      knownShared,
      secretsOf,
      reportsOf: deps.reportsOf,
      types,
      settings,
      now,
    })
    const urls = 'problems' in snapshot.wanted ? [] : snapshot.wanted.urls
    deps.onServices(
      taskOf('MCPRemoteProxy', namespace, name),
      hostsOf(urls).flatMap((host) => serviceKey(host, namespace) ?? []),
    )
    const proxy = runnableProxy(snapshot)
    if (proxy !== undefined) lastGood.set(key, { uid: object.metadata.uid, proxy })
    return reconcileRemoteProxy({
      ...snapshot,
      lastGood: lastGood.get(key)?.proxy,
      refused,
      secrets: snapshot.secrets,
    })
  }

  /** Only conditions are written to objects of other controllers. */
  const planWorkload = (kind: ReferringKind, namespace: string, name: string): Plan | undefined => {
    const object = observed.workload(kind, namespace, name)
    if (object === undefined || !deps.ownsKinds) return undefined
    const now = new Date(clock.now())
    return reconcileWorkload(
      workloadSnapshot(kind, object, { observed, known, knownShared, types, apiGroup: settings.apiGroup, now }),
    )
  }

  return (key, refused) => {
    const { kind, namespace, name } = partsOf(key)
    if (kind === 'MCPExternalAuthConfig') return planConfig(namespace, name)
    if (isShared(kind)) return planShared(kind, namespace, name)
    return kind === 'MCPRemoteProxy' ? planProxy(namespace, name, refused) : planWorkload(kind, namespace, name)
  }
}
