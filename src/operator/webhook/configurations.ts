import type { KubeObject } from '../../kube/index.ts'
import { OLDEST_VERSION } from '../../load/index.ts'
import { CONFIG_KINDS, REFERRING_KINDS, type OwnTypes } from '../kinds.ts'
import type { PodKeys } from '../references.ts'
import { MUTATE_PATH, VALIDATE_PATH } from './server.ts'

export interface WebhookTarget {
  /** The Service in front of the replicas; absent with `url`. */
  readonly service?: { readonly namespace: string; readonly name: string; readonly port: number }
  /** `https://host:port` instead of a Service: for development. */
  readonly url?: string
}

export interface ConfigurationOptions {
  readonly name: string
  readonly types: OwnTypes
  readonly keys: PodKeys
  readonly target: WebhookTarget
  /** PEM; empty until it is known. */
  readonly caBundle: string
  /** The operator's own namespace, which is exempt from the webhooks. */
  readonly ownNamespace: string
}

const TIMEOUT_SECONDS = 3

const clientConfig = ({ target, caBundle }: ConfigurationOptions, path: string): object => ({
  ...(target.url === undefined ? { service: { ...target.service, path } } : { url: `${target.url}${path}` }),
  ...(caBundle === '' ? {} : { caBundle: Buffer.from(caBundle).toString('base64') }),
})

const elsewhere = ({ ownNamespace }: ConfigurationOptions): object => ({
  matchExpressions: [
    { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [...new Set([ownNamespace, 'kube-system'])] },
  ],
})

/** The validating webhook: supported kinds, on CREATE and on UPDATE of a spec (kubernetes.md §4). */
export function validatingConfiguration(options: ConfigurationOptions): KubeObject {
  const { types, name } = options
  const resources = [...CONFIG_KINDS, ...REFERRING_KINDS].map((kind) => types[kind])
  const { group } = types.MCPExternalAuthConfig
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name },
    webhooks: [
      {
        name: `validate.${group}`,
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        matchPolicy: 'Equivalent',
        timeoutSeconds: TIMEOUT_SECONDS,
        clientConfig: clientConfig(options, VALIDATE_PATH),
        namespaceSelector: elsewhere(options),
        rules: [
          {
            apiGroups: [group],
            // With `Equivalent` the API server converts other versions, which an older replica does not support.
            apiVersions: [OLDEST_VERSION],
            operations: ['CREATE', 'UPDATE'],
            resources: resources.map(({ plural }) => plural).sort(),
            scope: 'Namespaced',
          },
        ],
        // Changes of labels, finalizers or status do not edit the spec: an invalid stored object blocks nothing.
        matchConditions: [
          {
            name: 'spec-changed',
            expression: "request.operation != 'UPDATE' || object.?spec != oldObject.?spec",
          },
        ],
      },
    ],
  }
}

/** The mutating webhook: only pods that request the sidecar or seem to. */
export function mutatingConfiguration(options: ConfigurationOptions): KubeObject {
  const { name, keys } = options
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name },
    webhooks: [
      {
        name: `inject.${options.types.MCPExternalAuthConfig.group}`,
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        matchPolicy: 'Equivalent',
        reinvocationPolicy: 'IfNeeded',
        timeoutSeconds: TIMEOUT_SECONDS,
        clientConfig: clientConfig(options, MUTATE_PATH),
        namespaceSelector: elsewhere(options),
        // Other values inject nothing; the webhook warns about them.
        objectSelector: {
          matchExpressions: [
            { key: keys.inject, operator: 'Exists' },
            { key: keys.inject, operator: 'NotIn', values: ['false'] },
          ],
        },
        rules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'], scope: 'Namespaced' },
        ],
      },
    ],
  }
}
