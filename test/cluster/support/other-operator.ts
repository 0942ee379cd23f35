import type { KubeObject, ResourceType } from '../../../src/kube/index.ts'
import { ownTypes } from '../../../src/operator/index.ts'

/** The group of another operator of the same kinds. */
export const OTHER_GROUP = 'toolhive.stacklok.dev'
export const others = ownTypes(OTHER_GROUP)

export const CRDS: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  isNamespaced: false,
}

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
const text = { type: 'string' }
const conditionFields = { type: text, status: text, reason: text, message: text, lastTransitionTime: text }
const conditions = {
  type: 'array',
  items: {
    type: 'object',
    required: ['type'],
    properties: { ...conditionFields, observedGeneration: { type: 'integer' } },
  },
}

/**
 * Definitions as another operator has them: fields that we don't know, versions that we don't read, and conditions as a map by
 * type or, as older ones of that project have them, as a list of which whoever applies it owns all.
 */
export function otherDefinition(type: ResourceType, isConditionsMap: boolean): KubeObject {
  const map = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] }
  const status = {
    type: 'object',
    properties: {
      phase: { type: 'string', default: 'Pending' },
      observedGeneration: { type: 'integer' },
      conditions: isConditionsMap ? { ...conditions, ...map } : conditions,
    },
  }
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: open, status } } }
  const version = (name: string, storage: boolean): object => ({
    name,
    served: true,
    storage,
    schema,
    subresources: { status: {} },
  })
  const { group, kind, plural } = type
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, labels: { example: 'theirs' } },
    spec: {
      group,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      scope: 'Namespaced',
      versions: [version('v1alpha1', false), version('v1beta1', true)],
    },
  }
}

/** An object of that group with a finalizer of its operator's. */
export const otherObject = (kind: string, name: string, namespace: string, spec: object): KubeObject => ({
  apiVersion: `${OTHER_GROUP}/v1beta1`,
  kind,
  metadata: { name, namespace, finalizers: [`${OTHER_GROUP}/theirs`] },
  spec,
})

/** A pod that asks for the sidecar in that group's words. */
export const otherPod = (name: string, namespace: string, config: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace,
    labels: { [`${OTHER_GROUP}/inject`]: 'true' },
    annotations: {
      [`${OTHER_GROUP}/external-auth`]: config,
      [`${OTHER_GROUP}/target-port`]: '3000',
      [`${OTHER_GROUP}/callers`]: 'callers',
    },
  },
  spec: { containers: [{ name: 'server', image: 'server' }] },
})
