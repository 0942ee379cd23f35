import type { KubeClient, ResourceType } from '../../../src/kube/index.ts'
import { eventually } from './control-plane.ts'

const CRDS: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  isNamespaced: false,
}
const GROUP = 'gateway.networking.k8s.io'

/** A definition of HTTPRoute that takes any spec, as far as routes of the operator need one. */
export async function installGatewayApi(client: KubeClient): Promise<void> {
  await client.apply(CRDS, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `httproutes.${GROUP}`,
      annotations: { 'api-approved.kubernetes.io': 'https://example.com/test-only' },
    },
    spec: {
      group: GROUP,
      names: { kind: 'HTTPRoute', listKind: 'HTTPRouteList', plural: 'httproutes', singular: 'httproute' },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
            },
          },
        },
      ],
    },
  })
  await eventually(() => client.raw('GET', `/apis/${GROUP}/v1/httproutes`))
}
