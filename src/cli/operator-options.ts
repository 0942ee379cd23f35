import { readEgressRule, readProxyPolicy } from '../operator/index.ts'
import { VERSION } from '../compose/index.ts'
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

/** Name of a Kubernetes object that is a DNS name, as pods are. */
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

/** The table of its options. */
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
      help: "Lease and webhook certificate. Default the pod's own.",
    },
    image: {
      type: 'string',
      is: IMAGE,
      value: 'IMAGE',
      help: `Of proxies and sidecars. Default that of --pod-name, or mcp-extauth:${VERSION}.`,
    },
    'pod-name': {
      type: 'string',
      is: POD_NAME,
      value: 'NAME',
      help: "The operator's own pod, whose image proxies and sidecars get.",
    },
    'platform-user': {
      type: 'boolean',
      help: 'Pods name no user: the platform gives them one (OpenShift).',
    },
    'dns-egress': {
      type: 'string',
      is: EGRESS_RULE,
      value: 'JSON',
      help: 'Where pods ask for names: an egress rule with to and ports. Default kube-dns, and the cache of the node.',
    },
    'api-server-egress': {
      type: 'string',
      is: EGRESS_RULE,
      value: 'JSON',
      help: 'Where pods reach the API server: the same. Default ports 443 and 6443 anywhere.',
    },
    'proxy-network-policy': {
      type: 'string',
      is: PROXY_POLICY,
      value: 'JSON',
      help: 'The NetworkPolicy of proxies that say nothing: enabled, ingressFrom. Default enabled, from everywhere.',
    },
    'watch-secrets': { type: 'boolean', help: 'Sees which Secrets exist (needs the RBAC overlay watch-secrets).' },
    'restrict-pod-template': {
      type: 'boolean',
      help: 'Refuses podTemplateSpec, serviceAccountName, awsRoleArn, image, egress, networkPolicy and variables of an MCPRemoteProxy.',
    },
    'secrets-by-label': {
      type: 'boolean',
      help: 'Only Secrets labelled extauth.dev/usable: "true" may be named. Goes with --watch-secrets.',
    },
    'write-status': {
      type: 'boolean',
      help: 'In a group of another operator: writes conditions named extauth.dev/….',
    },
    'webhook-address': {
      type: 'string',
      is: LISTEN_ADDRESS_OR_OFF,
      value: 'ADDR',
      help: 'Where webhooks are served. Default :9443; off for none.',
    },
    'webhook-service': {
      type: 'string',
      is: OBJECT_NAME,
      value: 'NAME',
      help: 'The Service in front of it. Default extauth-operator.',
    },
    'webhook-names': {
      type: 'string',
      is: HOST,
      multiple: true,
      value: 'NAME',
      help: 'More names or addresses in the certificate that it makes.',
    },
    'webhook-cert-dir': {
      type: 'string',
      is: DIRECTORY,
      value: 'DIR',
      help: 'tls.crt and tls.key (cert-manager) instead of a self-made certificate.',
    },
    'webhook-cert-lifetime': {
      type: 'string',
      is: LIFETIME,
      value: 'DURATION',
      help: 'Life of the self-made certificate; renewed at two thirds. Default 2160h.',
    },
    kubeconfig: {
      type: 'string',
      is: FILE,
      value: 'FILE',
      help: 'Outside of a cluster: which one. Default KUBECONFIG.',
    },
    context: { type: 'string', is: TEXT, value: 'NAME', help: 'Context of the kubeconfig. Default its current one.' },
    admin: { type: 'string', is: LISTEN_ADDRESS, value: 'ADDR', help: 'Health, readiness, metrics. Default :8081.' },
  },
  notes: [
    'Two replicas: one acts (a Lease says which), both answer webhooks.',
    '',
    'Exit codes: 0 stopped on request, 1 could not start or lost its leadership, 2 usage.',
  ].join('\n'),
}
