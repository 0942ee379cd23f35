import type { KubeObject } from '../../kube/index.ts'
import { ownedName } from '../names.ts'
import { owned, type RemoteProxy } from './remote-proxy.ts'

/** Routes traffic from the gateways in `spec.gateway` to the Service. */
export function httpRouteOf(proxy: RemoteProxy, gateway: NonNullable<RemoteProxy['gateway']>): KubeObject {
  const { parentRefs, hostnames } = gateway
  return owned(proxy, 'gateway.networking.k8s.io/v1', 'HTTPRoute', {
    spec: {
      parentRefs,
      ...(hostnames === undefined ? {} : { hostnames }),
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' } }],
          backendRefs: [{ name: ownedName(proxy.name), port: proxy.port }],
        },
      ],
    },
  })
}

/** The same for an ingress class. */
export function ingressOf(proxy: RemoteProxy, ingress: NonNullable<RemoteProxy['ingress']>): KubeObject {
  const { className, host, tlsSecretName, annotations } = ingress
  const backend = { service: { name: ownedName(proxy.name), port: { name: 'mcp' } } }
  return owned(
    proxy,
    'networking.k8s.io/v1',
    'Ingress',
    {
      spec: {
        ...(className === undefined ? {} : { ingressClassName: className }),
        ...(tlsSecretName === undefined ? {} : { tls: [{ hosts: [host], secretName: tlsSecretName }] }),
        rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
      },
    },
    { annotations },
  )
}
