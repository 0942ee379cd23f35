import type { Clock } from '../../core/index.ts'
import type { KubeClient, KubeObject } from '../../kube/index.ts'
import { type ExternalAuthSpec, typedSpec, upstreamTokenOf, validateMatchers } from '../../resources/index.ts'
import { TAKES_TOO_LONG } from '../config/known-config.ts'
import type { Controller } from '../controller.ts'
import { CLUSTER_TYPES, isShared, type OwnTypes, REFERRING_KINDS } from '../kinds.ts'
import type { PodSettings } from '../pod-settings.ts'
import { type PodKeys, referencesOf } from '../references.ts'
import { readRemoteProxySpec } from '../remote-proxy/read-spec.ts'
import { validateObject } from '../object-rules.ts'
import { reviewRemoteProxy } from '../remote-proxy/snapshot.ts'
import { forbiddenSecrets, notUsable } from '../secret-states.ts'
import { createLookup } from './lookups.ts'
import { decideInjection, type InjectableConfig, readAsked } from './mutate.ts'
import type { AdmissionDecision, AdmissionRequest } from './review.ts'
import type { Decide } from './server.ts'
import { decideValidation } from './validate.ts'

export interface DecisionOptions {
  readonly client: KubeClient
  readonly apiGroup: string
  readonly types: OwnTypes
  readonly keys: PodKeys
  readonly controller: Pick<Controller, 'observed' | 'known' | 'knownShared' | 'secretsOf'>
  /** Image of the sidecars. */
  readonly image: string
  readonly restrictPodTemplate: boolean
  readonly secretsByLabel: boolean
  readonly pods?: PodSettings | undefined
  readonly clock: Clock
}

/** An object may omit its namespace, which the API server adds when it stores it. */
const inNamespace = (object: KubeObject, namespace: string): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, namespace },
})

/** Milliseconds of work for one review; the API server waits 3 s. */
const MOST_REVIEW_MS = 2_000
const TOO_LONG = { allowed: false, message: TAKES_TOO_LONG } as const

/**
 * The decisions of both webhooks, from the observed state of the cluster; they reveal nothing about other namespaces.
 */
export function createDecisions(options: DecisionOptions): { readonly validate: Decide; readonly mutate: Decide } {
  const { client, apiGroup, types, keys, image } = options
  const fixedUser = options.pods?.fixedUser ?? true
  const { observed, known, knownShared, secretsOf } = options.controller
  const lookup = createLookup(client, options.clock)

  const missing = (object: KubeObject, namespace: string) => {
    const referring = REFERRING_KINDS.find((one) => one === object.kind)
    const found = referring === undefined ? [] : referencesOf(referring, object)
    return found.filter(({ kind, name }) => {
      const config = isShared(kind) ? observed.shared(kind, namespace, name) : observed.config(namespace, name)
      return config === undefined
    })
  }
  /** Existing Secrets that must not be referenced; missing ones may be created later. */
  const unlabelled = (namespace: string, names: readonly string[]): string[] => {
    const states = secretsOf(namespace, names)
    return states === 'unknown' ? [] : states.barred.filter((name) => !states.missing.includes(name)).map(notUsable)
  }
  const secretsIn = (object: KubeObject): readonly string[] => {
    if (!options.secretsByLabel) return []
    if (isShared(object.kind)) return [...(knownShared(object).valid?.secretKeys.keys() ?? [])]
    if (object.kind === 'MCPRemoteProxy') return [...readRemoteProxySpec(object).secretKeys.keys()]
    return object.kind === types.MCPExternalAuthConfig.kind
      ? [...(known.of(object).valid?.secretKeys.keys() ?? [])]
      : []
  }
  const forbidden = (object: KubeObject, namespace: string): string[] => unlabelled(namespace, secretsIn(object))
  const review = (object: KubeObject, namespace: string) =>
    object.kind === 'MCPRemoteProxy'
      ? reviewRemoteProxy(inNamespace(object, namespace), options)
      : validateObject(object, apiGroup)
  /** With `--secrets-by-label`: Secrets that a pod must not get, including missing ones. */
  const barred = (namespace: string, names: readonly string[]): string[] =>
    forbiddenSecrets(secretsOf(namespace, names)).map(notUsable)
  const injectable = (object: KubeObject, namespace: string): InjectableConfig => {
    const { problems, valid } = known.of(object)
    if (valid === undefined) return { secretKeys: new Map(), problem: problems.join('; ') }
    const secrets = barred(namespace, [...valid.secretKeys.keys()])
    const problem = unfitForPods(valid.spec) ?? (secrets.length === 0 ? undefined : secrets.join('; '))
    return { secretKeys: valid.secretKeys, problem }
  }

  return {
    async validate(request: AdmissionRequest, signal: AbortSignal): Promise<AdmissionDecision | undefined> {
      const validation = await validateMatchers(request.object, { signal, mostMs: MOST_REVIEW_MS })
      if (validation !== 'done') return validation === 'gone' ? undefined : TOO_LONG
      return decideValidation(request, { apiGroup, missing, review, forbidden })
    },
    async mutate(request: AdmissionRequest, signal: AbortSignal): Promise<AdmissionDecision | undefined> {
      const asked = readAsked(request, keys)
      if ('allowed' in asked) return asked
      const { namespace } = request
      const { wanted, pod } = asked
      // The watch of this replica may not have received a config that was just created.
      const object =
        observed.config(namespace, wanted.config) ??
        (await lookup(types.MCPExternalAuthConfig, namespace, wanted.config))
      const validation = await known.prepare(object, { signal, mostMs: MOST_REVIEW_MS })
      if (validation !== 'done') return validation === 'gone' ? undefined : TOO_LONG
      const config = object === undefined ? undefined : injectable(object, namespace)
      // Without a config no further lookups are needed.
      const callers =
        config === undefined ? undefined : await lookup(CLUSTER_TYPES.ConfigMap, namespace, wanted.callers)
      return decideInjection({ wanted, pod, namespace }, { config, callers }, { keys, image, fixedUser, barred })
    },
  }
}

/** Why a config cannot run as a sidecar of any pod; undefined if it can. */
export function unfitForPods(spec: ExternalAuthSpec): string | undefined {
  const { type } = spec
  if (type === 'embeddedAuthServer')
    return 'an embedded authorization server needs a URL that browsers reach; use an MCPRemoteProxy'
  if (type === 'upstreamInject')
    return 'it uses tokens of callers that log in at the proxy; use an MCPRemoteProxy with an authServerRef or connections'
  const used = upstreamTokenOf(typedSpec(spec))
  return used?.source === 'connection'
    ? `it sends the account that a caller connected as "${used.provider}"; use an MCPRemoteProxy with connections`
    : undefined
}
