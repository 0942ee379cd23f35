import path from 'node:path'
import { type Change, DEPLOYMENT_CHANGES, NETWORK_POLICY_CHANGES } from './chart-changes.ts'

const BASE = 'config/deploy/operator'
/** Folders beside the base, whose manifests a value adds. */
const SECRETS = `${BASE}-watch-secrets`
const CERT_MANAGER = `${BASE}-cert-manager`
const SERVICE_MONITOR = `${BASE}-service-monitor`
export const CHART = 'charts/mcp-extauth'
/** The one copy of the definitions. A chart reads no file outside of its folder; a Kustomize base refers to any folder. */
export const DEFINITIONS = `${CHART}/files/crds`

const NAMESPACE: Change = ['extauth-system', '{{ .Values.namespace.name }}']
/** A role of the namespaced rights: of the cluster, or of the one namespace that is watched. */
const SCOPED_KIND = (kind: string): string => `{{ ternary "Cluster${kind}" "${kind}" (empty .Values.watchNamespace) }}`
const SCOPED_PLACE = '{{- with .Values.watchNamespace }}\n  namespace: {{ . }}\n  {{- end }}'

/** Only in our own group: beside another operator nothing of this is needed. */
const OURS = '{{- if eq .Values.apiGroup "extauth.dev" }}'

/** Without cert-manager the operator makes the certificate of its webhooks. */
const OWN_CERTIFICATE = '{{- if not .Values.certManager.issuerRef.name }}'

/** Chart values in each file of the base. Every change must find its text, so that none gets lost. */
const CHANGES: Readonly<Record<string, readonly Change[]>> = {
  'namespace.yaml': [NAMESPACE],
  'service-account.yaml': [NAMESPACE],
  'service.yaml': [NAMESPACE],
  'pod-disruption-budget.yaml': [NAMESPACE],
  'network-policy.yaml': [NAMESPACE, ...NETWORK_POLICY_CHANGES],
  'deployment.yaml': [NAMESPACE, ...DEPLOYMENT_CHANGES],
  'rbac.yaml': [
    NAMESPACE,
    [
      'kind: ClusterRole\nmetadata:\n  name: extauth-operator\n',
      `kind: ${SCOPED_KIND('Role')}\nmetadata:\n  name: extauth-operator\n  ${SCOPED_PLACE}\n`,
    ],
    [
      'kind: ClusterRoleBinding\nmetadata:\n  name: extauth-operator\n',
      `kind: ${SCOPED_KIND('RoleBinding')}\nmetadata:\n  name: extauth-operator\n  ${SCOPED_PLACE}\n`,
    ],
    [
      'roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: extauth-operator }',
      `roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ${SCOPED_KIND('Role')}\n  name: extauth-operator`,
    ],
    [
      '---\n# Not granted where one namespace is watched',
      '{{- if and (not .Values.watchNamespace) (eq .Values.apiGroup "extauth.dev") }}\n---\n# Not granted where one namespace is watched',
    ],
    ['apiGroups: [extauth.dev]', 'apiGroups: [{{ .Values.apiGroup }}]'],
    ['  # Puts the finalizer on', `  ${OURS}\n  # Puts the finalizer on`],
    [
      '  # Writes what it found.',
      '  {{- end }}\n  {{- if or .Values.writeStatus (eq .Values.apiGroup "extauth.dev") }}\n  # Writes what it found.',
    ],
    [
      '      - mcpoidcconfigs/status\n      - mcptelemetryconfigs/status\n      - mcptoolconfigs/status\n      - mcpremoteproxies/status\n      - mcpservers/status\n      - mcpserverentries/status\n      - virtualmcpservers/status\n    verbs: [patch]\n',
      `      ${OURS}\n      - mcpoidcconfigs/status\n      - mcptelemetryconfigs/status\n      - mcptoolconfigs/status\n      - mcpremoteproxies/status\n      - mcpservers/status\n      - mcpserverentries/status\n      - virtualmcpservers/status\n      {{- end }}\n    verbs: [patch]\n  {{- end }}\n`,
    ],
    [
      'resources: [configmaps, services]\n    verbs: [list, watch, create, patch]\n',
      `resources:\n      - configmaps\n      ${OURS}\n      - services\n      {{- end }}\n    verbs: [list, watch, create, patch]\n  ${OURS}\n`,
    ],
    ['  # Sees injected pods', '  {{- end }}\n  # Sees injected pods'],
    [
      '  # One event per change',
      '  {{- if or .Values.writeStatus (eq .Values.apiGroup "extauth.dev") }}\n  # One event per change',
    ],
    ['resources: [events]\n    verbs: [create]\n', 'resources: [events]\n    verbs: [create]\n  {{- end }}\n'],
    ['---\n# These belong to no namespace.', `{{- end }}\n${OWN_CERTIFICATE}\n---\n# These belong to no namespace.`],
    [
      '---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n',
      '{{- end }}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n',
    ],
    ['  # Its own webhook certificate, and', `  ${OWN_CERTIFICATE}\n  # Its own webhook certificate, and`],
    [
      '    resourceNames: [extauth-webhook-certificate]\n    verbs: [get, update]\n',
      '    resourceNames: [extauth-webhook-certificate]\n    verbs: [get, update]\n  {{- end }}\n',
    ],
  ],
  'webhooks.yaml': [
    [
      'metadata:\n  name: extauth\n',
      'metadata:\n  name: extauth\n  {{- if .Values.certManager.issuerRef.name }}\n  annotations:\n    cert-manager.io/inject-ca-from: {{ .Values.namespace.name }}/extauth-webhook\n  {{- end }}\n',
    ],
    [
      [
        '        - key: kubernetes.io/metadata.name',
        '          operator: NotIn',
        '          values:',
        '            - extauth-system',
        '            - kube-system',
      ].join('\n'),
      [
        '        - key: kubernetes.io/metadata.name',
        '          {{- with .Values.watchNamespace }}',
        '          operator: In',
        '          values:',
        '            - {{ . }}',
        '          {{- else }}',
        '          operator: NotIn',
        '          values:',
        '            - {{ .Values.namespace.name }}',
        '            - kube-system',
        '          {{- end }}',
      ].join('\n'),
    ],
    NAMESPACE,
    // The other operator validates objects of its own definitions.
    [
      'apiVersion: admissionregistration.k8s.io/v1\nkind: Validating',
      `${OURS}\napiVersion: admissionregistration.k8s.io/v1\nkind: Validating`,
    ],
    [
      '---\napiVersion: admissionregistration.k8s.io/v1\nkind: Mutating',
      '---\n{{- end }}\napiVersion: admissionregistration.k8s.io/v1\nkind: Mutating',
    ],
    ['name: inject.extauth.dev', 'name: inject.{{ .Values.apiGroup }}'],
    ['key: extauth.dev/inject', 'key: {{ .Values.apiGroup }}/inject'],
  ],
}

const CERTIFICATE: readonly Change[] = [
  NAMESPACE,
  [
    'issuerRef:\n    kind: ClusterIssuer\n    name: internal\n',
    'issuerRef:\n    {{- toYaml .Values.certManager.issuerRef | nindent 4 }}\n',
  ],
]
const MONITOR: readonly Change[] = [
  NAMESPACE,
  [
    '    app.kubernetes.io/component: operator\nspec:',
    '    app.kubernetes.io/component: operator\n    {{- with .Values.serviceMonitor.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\nspec:',
  ],
]

const POD_MONITOR: readonly Change[] = [
  NAMESPACE,
  [
    '    app.kubernetes.io/component: mcp-remote-proxy\nspec:',
    '    app.kubernetes.io/component: mcp-remote-proxy\n    {{- with .Values.serviceMonitor.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\nspec:',
  ],
  [
    '    any: true\n',
    '    {{- with .Values.watchNamespace }}\n    matchNames: [{{ . }}]\n    {{- else }}\n    any: true\n    {{- end }}\n',
  ],
]

/** Values that a part of the chart is there with. */
const CONDITIONS: Readonly<Record<string, string>> = { 'namespace.yaml': '.Values.namespace.create' }

/** The files of the base, as they are or are about to be written. */
export interface Base {
  /** Names of the manifests in a folder, without kustomization.yaml. */
  list(folder: string): readonly string[]
  read(file: string): string
}

/** The templates of the chart, made from the Kustomize base; throws when the base no longer has what is a value here. */
export function chartTemplates(base: Base): Map<string, string> {
  const templates = new Map<string, string>()
  for (const file of base.list(BASE)) {
    const changes = CHANGES[file]
    if (changes === undefined) throw new Error(`${file} of the base is not in the chart: say what of it are values`)
    templates.set(file, under(CONDITIONS[file], changed(base.read(`${BASE}/${file}`), file, changes)))
  }
  templates.set('rbac-secrets.yaml', under('.Values.watchSecrets', scopedSecrets(base.read(`${SECRETS}/rbac.yaml`))))
  templates.set(
    'certificate.yaml',
    under(
      '.Values.certManager.issuerRef.name',
      changed(base.read(`${CERT_MANAGER}/certificate.yaml`), 'certificate.yaml', CERTIFICATE),
    ),
  )
  templates.set(
    'service-monitor.yaml',
    under(
      '.Values.serviceMonitor.create',
      changed(base.read(`${SERVICE_MONITOR}/service-monitor.yaml`), 'service-monitor.yaml', MONITOR),
    ),
  )
  templates.set(
    'pod-monitor.yaml',
    under(
      '.Values.serviceMonitor.create',
      changed(base.read(`${SERVICE_MONITOR}/pod-monitor.yaml`), 'pod-monitor.yaml', POD_MONITOR),
    ),
  )
  templates.set(
    'definitions.yaml',
    under('and .Values.crds.install (eq .Values.apiGroup "extauth.dev")', FILES_OF_DEFINITIONS),
  )
  return new Map([...templates].map(([name, text]) => [`${CHART}/templates/${name}`, NOTE + text]))
}

const FILES_OF_DEFINITIONS = `{{- range $path, $text := .Files.Glob "${path.relative(CHART, DEFINITIONS)}/extauth.dev_*.yaml" }}
---
{{ toString $text }}
{{- end }}
`

const NOTE = '{{- /* Generated by `npm run generate` from config/deploy/. */ -}}\n'
const under = (condition: string | undefined, text: string): string =>
  condition === undefined ? text : `{{- if ${condition} }}\n${text}{{- end }}\n`

function changed(text: string, file: string, changes: readonly Change[]): string {
  if (text.includes('{{')) throw new Error(`${file} of the base holds what Helm would take for a template`)
  return changes.reduce((result, [before, after]) => {
    if (!result.includes(before)) throw new Error(`${file} of the base no longer has: ${before}`)
    return result.replaceAll(before, after)
  }, text)
}

function scopedSecrets(text: string): string {
  const name = 'extauth-operator-secrets'
  return changed(text, 'rbac.yaml', [
    NAMESPACE,
    [
      `kind: ClusterRole\nmetadata:\n  name: ${name}\n`,
      `kind: ${SCOPED_KIND('Role')}\nmetadata:\n  name: ${name}\n  ${SCOPED_PLACE}\n`,
    ],
    [
      `kind: ClusterRoleBinding\nmetadata:\n  name: ${name}\n`,
      `kind: ${SCOPED_KIND('RoleBinding')}\nmetadata:\n  name: ${name}\n  ${SCOPED_PLACE}\n`,
    ],
    [
      `roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${name} }`,
      `roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ${SCOPED_KIND('Role')}\n  name: ${name}`,
    ],
  ])
}
