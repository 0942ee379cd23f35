import { expect } from 'vitest'
import type { KubeObject } from '../../../src/kube/index.ts'
import { podKeys } from '../../../src/operator/index.ts'
import { decideInjection, type InjectableConfig, readAsked } from '../../../src/operator/webhook/mutate.ts'
import type { AdmissionDecision } from '../../../src/operator/webhook/review.ts'

export const keys = podKeys('extauth.dev')
export const COMPLETE = {
  [keys.externalAuth]: 'github',
  [keys.callers]: 'callers',
  [keys.targetPort]: '3000',
}

export const pod = (
  annotations: Record<string, string> = COMPLETE,
  spec: object = {},
  labels = { [keys.inject]: 'true' },
) =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'n', labels, annotations },
    spec,
  }) satisfies KubeObject

export const CONFIG: InjectableConfig = { secretKeys: new Map([['github', new Set(['token'])]]), problem: undefined }

/** The ConfigMap of callers, with this section. */
export const callersMap = (section: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'callers', namespace: 'n' },
  data: { 'callers.yaml': JSON.stringify(section) },
})
export const ANONYMOUS = callersMap({ mode: 'anonymous' })

/** Decisions with `github` as the only config, and `callers` as the only ConfigMap. */
export const decide = (
  object: KubeObject | undefined,
  config: InjectableConfig | undefined = CONFIG,
  callers: KubeObject = ANONYMOUS,
): AdmissionDecision => {
  const request = { uid: 'u', kind: { group: '', version: 'v1', kind: 'Pod' }, namespace: 'n', operation: 'CREATE' }
  const asked = readAsked({ ...request, object, isDryRun: false }, keys)
  if ('allowed' in asked) return asked
  const { wanted } = asked
  const named = {
    config: wanted.config === 'github' ? config : undefined,
    callers: wanted.callers === 'callers' ? callers : undefined,
  }
  return decideInjection({ ...asked, namespace: 'n' }, named, { keys, image: 'proxy:1' })
}

/** Why it is refused. */
export function refusalOf(object: KubeObject, config?: InjectableConfig, callers?: KubeObject): string {
  const decision = decide(object, config, callers)
  if (decision.allowed) throw new Error('it was let in')
  return decision.message
}

interface Injected {
  readonly terminationGracePeriodSeconds?: number
  readonly initContainers: readonly {
    readonly name: string
    readonly args?: readonly string[]
    readonly restartPolicy?: string
    readonly securityContext?: object
    readonly volumeMounts?: readonly { readonly name: string; readonly readOnly: boolean }[]
  }[]
  readonly volumes: readonly { readonly name: string; readonly [source: string]: unknown }[]
}

/** The pod with the patch applied (RFC 6902, as far as it is used). */
export function injected(
  object: KubeObject,
  config?: InjectableConfig,
  callers?: KubeObject,
): KubeObject & { readonly spec: Injected } {
  const decision = decide(object, config, callers)
  if (!decision.allowed) throw new Error(decision.message)
  const copy = structuredClone(object) as unknown as Record<string, Record<string, unknown>>
  for (const { op, path, value } of (decision.patch ?? []) as { op: string; path: string; value: unknown }[]) {
    const steps = path.split('/').slice(1)
    const last = (steps.pop() ?? '').replaceAll('~1', '/').replaceAll('~0', '~')
    const parent = steps.reduce<Record<string, unknown>>((node, step) => node[step] as Record<string, unknown>, copy)
    expect([op, path]).toEqual([last in parent ? 'replace' : 'add', path])
    parent[last] = value
  }
  return copy as unknown as KubeObject & { readonly spec: Injected }
}
