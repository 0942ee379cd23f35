import { readEgressRule, readProxyPolicy } from '../operator/index.ts'
import { IMAGE as DEFAULT_IMAGE } from '../compose/index.ts'
import { DEFAULT_API_GROUP } from '../load/index.ts'
import {
  API_GROUP,
  DIRECTORY,
  FILE,
  HOST,
  IMAGE,
  LIFETIME,
  LISTEN_ADDRESS,
  LISTEN_ADDRESS_OR_OFF,
  NAMESPACE,
  OBJECT_NAME,
  TEXT,
  matching,
} from './options/option-values.ts'
import type { CommandSpec, ValueKind } from './options/options.ts'

/** Name of a Kubernetes object that must be a DNS name, such as a pod. */
const POD_NAME = matching('the name of a pod', /^[a-z0-9][a-z0-9.-]{0,252}$/)
/** An egress rule of a NetworkPolicy. */
const EGRESS_RULE: ValueKind = {
  expected: 'an egress rule as JSON, {"to": [...], "ports": [{"port": 53}]}, with both',
  accepts: (text) => text.length <= 65_536 && readEgressRule(text) !== undefined,
}

const PROXY_POLICY: ValueKind = {
  expected: 'a policy as JSON, {"enabled": true, "ingressFrom": [...]}, with peers of a NetworkPolicy',
  accepts: (text) => text.length <= 65_536 && readProxyPolicy(text) !== undefined,
}

export const OPERATOR_SPEC: CommandSpec = {
  name: 'extauth operator',
  summary: 'Runs the Kubernetes operator: controller and admission webhooks. Logs go to standard error.',
  options: {
    'api-group': {
      type: 'string',
      is: API_GROUP,
      value: 'GROUP',
      help: `API group of the resources. Default ${DEFAULT_API_GROUP}.`,
    },
    namespace: {
      type: 'string',
      is: NAMESPACE,
      value: 'NAME',
      help: 'Watches this namespace only (Roles instead of ClusterRoles).',
    },
    'operator-namespace': {
      type: 'string',
      is: NAMESPACE,
      value: 'NAME',
      help: "Namespace of the Namespace of the Lease and webhook certificate. Default the pod's own.",
    },
    image: {
      type: 'string',
      is: IMAGE,
      value: 'IMAGE',
      help: `Image of proxies and sidecars. Default that of --pod-name, or ${DEFAULT_IMAGE}.`,
    },
    'pod-name': {
      type: 'string',
      is: POD_NAME,
      value: 'NAME',
      help: "The operator's own pod; its image is the default of --image.",
    },
    'platform-user': {
      type: 'boolean',
      help: 'Omits runAsUser from pods; the platform assigns a user (OpenShift).',
    },
    'dns-egress': {
      type: 'string',
      is: EGRESS_RULE,
      value: 'JSON',
      help: 'DNS egress rule for pods (JSON). Default kube-dns and the node-local cache.',
    },
    'api-server-egress': {
      type: 'string',
      is: EGRESS_RULE,
      value: 'JSON',
      help: 'API server egress rule for pods (JSON). Default ports 443 and 6443 anywhere.',
    },
    'proxy-network-policy': {
      type: 'string',
      is: PROXY_POLICY,
      value: 'JSON',
      help: 'Default NetworkPolicy of proxies (JSON): enabled, ingressFrom. Default enabled, from anywhere.',
    },
    'watch-secrets': { type: 'boolean', help: 'Watches Secrets (needs the RBAC overlay watch-secrets).' },
    'restrict-pod-template': {
      type: 'boolean',
      help: 'Rejects podTemplateSpec, serviceAccountName, awsRoleArn, image, egress, networkPolicy and variables in MCPRemoteProxy.',
    },
    'secrets-by-label': {
      type: 'boolean',
      help: 'Allows only Secrets labeled extauth.dev/usable: "true". Requires --watch-secrets.',
    },
    'write-status': {
      type: 'boolean',
      help: 'Prefixes conditions with extauth.dev/, for a group of another operator.',
    },
    'webhook-address': {
      type: 'string',
      is: LISTEN_ADDRESS_OR_OFF,
      value: 'ADDR',
      help: 'Address of the webhooks. Default :9443; off disables them.',
    },
    'webhook-service': {
      type: 'string',
      is: OBJECT_NAME,
      value: 'NAME',
      help: 'Service in front of the webhooks. Default extauth-operator.',
    },
    'webhook-names': {
      type: 'string',
      is: HOST,
      multiple: true,
      value: 'NAME',
      help: 'Additional names or addresses in the self-signed certificate.',
    },
    'webhook-cert-dir': {
      type: 'string',
      is: DIRECTORY,
      value: 'DIR',
      help: 'Directory with tls.crt and tls.key (cert-manager), instead of a self-signed certificate.',
    },
    'webhook-cert-lifetime': {
      type: 'string',
      is: LIFETIME,
      value: 'DURATION',
      help: 'Lifetime of the self-signed certificate, renewed at two thirds. Default 2160h.',
    },
    kubeconfig: {
      type: 'string',
      is: FILE,
      value: 'FILE',
      help: 'Kubeconfig outside of a cluster. Default KUBECONFIG.',
    },
    context: { type: 'string', is: TEXT, value: 'NAME', help: 'Context of the kubeconfig. Default its current one.' },
    admin: {
      type: 'string',
      is: LISTEN_ADDRESS,
      value: 'ADDR',
      help: 'Address of health, readiness and metrics. Default :8081.',
    },
  },
  notes: [
    'With two replicas, a Lease elects the one that reconciles; both serve webhooks.',
    '',
    'Exit codes: 0 stopped on request, 1 could not start or lost its leadership, 2 usage.',
  ].join('\n'),
}
