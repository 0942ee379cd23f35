import { IMAGE } from '../src/compose/index.ts'

/** A text of the base, and what stands for it in the chart. */
export type Change = readonly [before: string, after: string]

const lines = (...texts: readonly string[]): string => texts.join('\n')
/** A block that is there when its value is not empty. */
const withValue = (value: string, indent: number): readonly string[] => {
  const gap = ' '.repeat(indent)
  return [
    `${gap}{{- with .Values.${value} }}`,
    `${gap}${value}:`,
    `${gap}  {{- toYaml . | nindent ${indent + 2} }}`,
    `${gap}{{- end }}`,
  ]
}
const flag = (condition: string, argument: string): readonly string[] => [
  `            {{- if ${condition} }}`,
  `            - ${argument}`,
  '            {{- end }}',
]
const option = (value: string, argument: string): readonly string[] => [
  `            {{- with .Values.${value} }}`,
  `            - ${argument}`,
  '            {{- end }}',
]
/** An egress rule is one argument, for which YAML must not find anything in its JSON. */
const rule = (value: string, name: string): readonly string[] =>
  option(value, `{{ printf "--${name}=%s" (toJson .) | quote }}`)

/** Values in the Deployment. */
export const DEPLOYMENT_CHANGES: readonly Change[] = [
  ['replicas: 2', 'replicas: {{ .Values.replicas }}'],
  [`          image: ${IMAGE}`, '          image: {{ .Values.image | quote }}'],
  [
    "      annotations:\n        prometheus.io/scrape: 'true'\n        prometheus.io/port: '8081'\n",
    lines(
      '      {{- if or .Values.podAnnotations (not .Values.serviceMonitor.create) }}',
      '      annotations:',
      '        {{- if not .Values.serviceMonitor.create }}',
      "        prometheus.io/scrape: 'true'",
      "        prometheus.io/port: '8081'",
      '        {{- end }}',
      '        {{- with .Values.podAnnotations }}',
      '        {{- toYaml . | nindent 8 }}',
      '        {{- end }}',
      '      {{- end }}',
      '',
    ),
  ],
  [
    '          args: [operator]\n',
    lines(
      '          args:',
      '            - operator',
      ...option('proxyImage', '{{ printf "--image=%s" . | quote }}'),
      ...option('watchNamespace', '--namespace={{ . }}'),
      ...flag('.Values.watchSecrets', '--watch-secrets'),
      ...flag('.Values.restrictPodTemplate', '--restrict-pod-template'),
      ...flag('.Values.secretsByLabel', '--secrets-by-label'),
      ...flag('ne .Values.apiGroup "extauth.dev"', '--api-group={{ .Values.apiGroup }}'),
      ...flag('.Values.writeStatus', '--write-status'),
      ...flag('.Values.platformUser', '--platform-user'),
      ...rule('networkPolicy.dns', 'dns-egress'),
      ...rule('networkPolicy.apiServer', 'api-server-egress'),
      ...rule('networkPolicy.proxies', 'proxy-network-policy'),
      ...flag('.Values.certManager.issuerRef.name', '--webhook-cert-dir=/etc/extauth-webhook'),
      ...option('logLevel', '--log-level={{ . }}'),
      '            {{- with .Values.extraArgs }}',
      '            {{- toYaml . | nindent 12 }}',
      '            {{- end }}',
      '',
    ),
  ],
  [
    '          resources:\n            requests: { cpu: 100m, memory: 192Mi }\n            limits: { memory: 512Mi }',
    '          resources:\n            {{- toYaml .Values.resources | nindent 12 }}',
  ],
  [
    '        runAsUser: 65532\n        runAsGroup: 65532\n        fsGroup: 65532\n',
    lines(
      '        {{- if not .Values.platformUser }}',
      '        runAsUser: 65532',
      '        runAsGroup: 65532',
      '        fsGroup: 65532',
      '        {{- end }}',
      '',
    ),
  ],
  [
    '      serviceAccountName: extauth-operator\n',
    lines(
      '      serviceAccountName: extauth-operator',
      ...withValue('imagePullSecrets', 6),
      ...withValue('nodeSelector', 6),
      ...withValue('tolerations', 6),
      ...withValue('affinity', 6),
      '      {{- with .Values.priorityClassName }}',
      '      priorityClassName: {{ . }}',
      '      {{- end }}',
      '',
    ),
  ],
  [
    '            capabilities: { drop: [ALL] }\n',
    lines(
      '            capabilities: { drop: [ALL] }',
      '          {{- if .Values.certManager.issuerRef.name }}',
      '          volumeMounts:',
      '            - { name: webhook-certificate, mountPath: /etc/extauth-webhook, readOnly: true }',
      '      volumes:',
      '        - name: webhook-certificate',
      '          secret:',
      '            secretName: extauth-webhook',
      '            # 0440, or readable to whichever user the platform gives.',
      '            defaultMode: {{ ternary 292 288 .Values.platformUser }}',
      '          {{- end }}',
      '',
    ),
  ],
]

const DNS = lines(
  '    - to:',
  '        - namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: kube-system } }',
  '          podSelector: { matchLabels: { k8s-app: kube-dns } }',
  '        # NodeLocal DNSCache',
  '        - ipBlock: { cidr: 169.254.20.10/32 }',
  '      ports: [{ port: 53, protocol: UDP }, { port: 53, protocol: TCP }]',
  '',
)
const API_SERVER = lines(
  '    - to:',
  '        - ipBlock: { cidr: 0.0.0.0/0, except: [169.254.0.0/16] }',
  "        - ipBlock: { cidr: '::/0', except: ['fe80::/10'] }",
  '      ports: [{ port: 443, protocol: TCP }, { port: 6443, protocol: TCP }]',
  '',
)
const orValue = (text: string, value: string): Change => [
  text,
  lines(
    `    {{- with .Values.networkPolicy.${value} }}`,
    '    - {{- toYaml . | nindent 6 }}',
    '    {{- else }}',
    `${text}    {{- end }}`,
    '',
  ),
]

/** Values in the NetworkPolicy: DNS, and the API server. */
export const NETWORK_POLICY_CHANGES: readonly Change[] = [orValue(DNS, 'dns'), orValue(API_SERVER, 'apiServer')]
