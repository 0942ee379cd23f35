import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { convert } from '../../../../src/examine/convert/index.ts'
import { parseDocuments, resolveProxy } from '../../../../src/load/index.ts'

const FOLDER = path.join(import.meta.dirname, '../../../fixtures/manifests')
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'))
const textOf = (file: string): string => readFileSync(path.join(FOLDER, file), 'utf8')

function routesOf(text: string): unknown {
  const loaded = parseDocuments([{ path: 'a.yaml', text }])
  const { config, problems = [] } = resolveProxy(loaded, { listen: '127.0.0.1:0' })
  if (config === undefined) return problems.map(({ path: at, message }) => `${at}  ${message}`).toSorted()
  // Where it is written is another place.
  return JSON.parse(JSON.stringify(config.routes, (key, value: unknown) => (key === 'source' ? undefined : value)))
}

describe('every manifest of another group', () => {
  // Others refer to the reason why servers are left out.
  const kept = FILES.filter((file) => !textOf(file).includes('kind: MCPServer\n'))

  test.each(kept)('%s says the same after it', (file) => {
    const { output } = convert([{ path: file, text: textOf(file) }])
    expect(output).not.toMatch(/^apiVersion: .*stacklok/m)
    const [before, after] = [routesOf(textOf(file)), routesOf(output)]
    const renamed = (said: unknown): unknown =>
      JSON.parse(JSON.stringify(said).replaceAll('storage.redis', 'storage.kvstore'))
    expect(renamed(after)).toEqual(renamed(before))
  })

  test.each(FILES)('%s is refused where something of it can not be kept', (file) => {
    const { refused } = convert([{ path: file, text: textOf(file) }])
    const { problems } = parseDocuments([{ path: file, text: textOf(file) }])
    for (const { message } of problems) expect(refused.map(({ what }) => what)).toContain(message)
    if (problems.length === 0 && kept.includes(file) && Array.isArray(routesOf(textOf(file))))
      expect(refused.filter(({ what }) => what.includes('unknown'))).toEqual([])
  })
})

const issues = `apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPRemoteProxy
metadata: { name: issues }
spec:
  # The one that people use.
  remoteUrl: https://issues.example.com/mcp
  proxyPort: 8081
  groupRef: { name: work }
`

test('each change is a comment above the document, and comments of people stay', () => {
  expect(convert([{ path: 'a.yaml', text: issues }])).toEqual({
    refused: [],
    output: `# apiVersion was toolhive.stacklok.dev/v1beta1
# spec.port was proxyPort
# spec.auth is the former default: callers need no token
# spec.groupRef is omitted: groups belong to another controller
apiVersion: extauth.dev/v1beta1
kind: MCPRemoteProxy
metadata: { name: issues }
spec:
  # The one that people use.
  remoteUrl: https://issues.example.com/mcp
  port: 8081
  auth:
    mode: anonymous
`,
  })
})

test('restrictions stay in the output and are reported with the remedy', () => {
  const { output, refused } = convert([{ path: 'a.yaml', text: `${issues}  authzConfigRef: { name: few }\n` }])
  expect(output).toContain('authzConfigRef: { name: few }')
  expect(refused).toEqual([
    {
      where: 'a.yaml  MCPRemoteProxy/issues  spec.authzConfigRef',
      what: expect.stringContaining('refers to policies') as string,
    },
  ])
})

test('a server is left to the controller that runs it, documents of others stay, and kinds beside ours go', () => {
  const text = [
    'apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPServer\nmetadata: { name: s }\nspec: { image: x }\n',
    'apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPGroup\nmetadata: { name: g }\n',
    'apiVersion: v1\nkind: Secret\nmetadata: { name: k }\n',
  ].join('---\n')
  const { output, refused } = convert([{ path: 'a.yaml', text }])
  expect(refused.map(({ where }) => where)).toEqual(['a.yaml  MCPServer/s'])
  expect(output).toContain('# MCPServer/s is omitted: mcp-extauth runs no servers')
  expect(output).toContain('# MCPGroup/g is omitted: it belongs to another controller')
  expect(output).toContain('kind: Secret')
})

test('a list of a cluster is its items, without what the server added', () => {
  const item = {
    apiVersion: 'toolhive.stacklok.dev/v1beta1',
    kind: 'MCPOIDCConfig',
    metadata: { name: 'o', namespace: 'n', uid: 'u', resourceVersion: '7', managedFields: [] },
    spec: { type: 'inline', inline: { issuer: 'https://idp.example.com' } },
    status: { conditions: [] },
  }
  const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [item, { ...item, metadata: { name: 'p' } }] })
  const { output, refused } = convert([{ path: '-', text }])
  expect(refused).toEqual([])
  expect(output.split('---\n')).toHaveLength(2)
  expect(output).not.toMatch(/resourceVersion|managedFields|status/)
  expect(parseDocuments([{ path: 'a.yaml', text: output }]).oidcConfigs).toHaveLength(2)
})

test('the default that a name of others brings along is written out', () => {
  const text =
    'apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPExternalAuthConfig\nmetadata: { name: a }\nspec:\n  type: awsSts\n  awsSts: { region: eu-central-1, fallbackRoleArn: "arn:aws:iam::123456789012:role/a" }\n'
  expect(convert([{ path: 'a.yaml', text }]).output).toContain('service: aws-mcp')
})

test('what fields of an authorization server meant without being written is written out, where it would mean something else', () => {
  const login = `apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPExternalAuthConfig
metadata: { name: login }
spec:
  type: embeddedAuthServer
  embeddedAuthServer:
    issuer: https://auth.example.com
    cimd:
      cacheMaxSize: 10
    upstreamProviders:
      - { name: corp, type: oidc, oidcConfig: { issuerUrl: https://id.example.com, clientId: mcp } }
`
  const { output } = convert([{ path: 'a.yaml', text: login }])
  expect(output).toContain('# spec.embeddedAuthServer.cimd.enabled is the former default\n')
  expect(output).toContain('    allowConfidentialClientRegistration: false\n')
  expect(output).toMatch(/cacheMaxSize: 10\n {6}enabled: false\n/)
  // Supported documents are not changed.
  const ours = login.replace('toolhive.stacklok.dev', 'extauth.dev')
  expect(convert([{ path: 'a.yaml', text: ours }]).output).not.toContain('allowConfidential')
})

const AUTH_SERVER = `apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPExternalAuthConfig
metadata: {name: login}
spec:
  type: embeddedAuthServer
  embeddedAuthServer:
    <<: {cimd: {enabled: true}}
    issuer: https://as.example.com
    upstreamProviders:
      - {name: a, type: oidc, oidcConfig: {issuerUrl: https://idp.example.com, clientId: x}}
`
const SHARED_IN_A_LIST = `apiVersion: v1
kind: List
items:
  - apiVersion: toolhive.stacklok.dev/v1beta1
    kind: MCPExternalAuthConfig
    metadata: {name: one}
    spec: {type: awsSts, awsSts: &sts {region: eu-west-1, fallbackRoleArn: "arn:aws:iam::123456789012:role/x"}}
  - apiVersion: toolhive.stacklok.dev/v1beta1
    kind: MCPExternalAuthConfig
    metadata: {name: two}
    spec: {type: awsSts, awsSts: {<<: *sts, service: execute-api}}
`

test.each([
  ['in a document', AUTH_SERVER],
  ['in a list', SHARED_IN_A_LIST],
])('what a merge key or an alias leads to %s means the same after it', (_where, text) => {
  const hashes = (source: string): unknown =>
    parseDocuments([{ path: 'a.yaml', text: source }]).auths.map(({ document, configHash }) => [
      document.metadata.name,
      configHash,
    ])
  const { output, refused } = convert([{ path: 'a.yaml', text }])
  expect(refused).toEqual([])
  expect(hashes(output)).toEqual(hashes(text))
  expect(output).not.toContain('enabled is what it was')
})

test('fields that a merge key brings are renamed, and documents of others keep theirs', () => {
  const text = `apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPRemoteProxy
metadata: {name: crm}
spec:
  <<: {proxyPort: 9090, remoteURL: "https://crm.example.com/mcp"}
---
# ours
apiVersion: v1
kind: ConfigMap
metadata: &name {name: a}
data: *name
`
  const { output } = convert([{ path: 'a.yaml', text }])
  expect(output).toContain('port: 9090')
  expect(output).toContain('remoteUrl: https://crm.example.com/mcp')
  expect(output).toContain('# ours')
  expect(output).toContain('data: *name')
})

test('texts that kubectl reads as something else are in quotes, whatever form they had', () => {
  const items = [
    {
      apiVersion: 'toolhive.stacklok.dev/v1beta1',
      kind: 'MCPRemoteProxy',
      metadata: { name: 'y' },
      spec: {
        remoteUrl: 'https://crm.example.com/mcp',
        headerForward: { addPlaintextHeaders: { 'X-A': 'on', no: '3_600' } },
      },
    },
  ]
  const { output } = convert([{ path: 'a.json', text: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) }])
  expect(output).toContain('name: "y"')
  expect(output).toContain('X-A: "on"')
  expect(output).toContain('"no": "3_600"')
  expect(parseDocuments([{ path: 'a.yaml', text: output }]).warnings).toEqual([])
})

const EXPORTED = `apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPRemoteProxy
metadata:
  name: crm
  uid: 1f3e
  resourceVersion: "42"
  creationTimestamp: "2026-01-01T00:00:00Z"
  finalizers: [mcpremoteproxy.toolhive.stacklok.dev/finalizer]
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    team: tools
spec: {remoteUrl: "https://crm.example.com/mcp"}
status: {phase: Ready, externalUrl: "http://crm", toolConfigHash: "", message: ok}
---
apiVersion: toolhive.stacklok.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: {name: none}
spec: {type: unauthenticated}
status: {referencingServers: [crm], workloadCount: 1}
`

test('an exported object loads whatever its controller says of it, and is converted to what people wrote', () => {
  const texts = (text: string) => [{ path: 'a.yaml', text }]
  expect(parseDocuments(texts(EXPORTED)).problems).toEqual([])
  const { output, refused } = convert(texts(EXPORTED))
  expect(refused).toEqual([])
  const written = output.replace(/^#.*\n/gm, '')
  expect(written).not.toMatch(/status|uid|resourceVersion|finalizers|last-applied/)
  expect(written).toContain('team: tools')
  expect(output).toContain('# status is omitted')
  // Supported documents have known fields.
  const ours = parseDocuments(texts(EXPORTED.replaceAll('toolhive.stacklok.dev/v1', 'extauth.dev/v1'))).problems
  expect(ours.map(({ path: at }) => at)).toContain('status.phase')
})

describe('what a cluster needs', () => {
  const proxy = (more: string) =>
    `apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPRemoteProxy\nmetadata: { name: notes }\nspec:\n  remoteUrl: https://mcp.example.com/mcp\n${more}`
  const output = (...documents: readonly string[]) =>
    convert([{ path: 'a.yaml', text: documents.join('---\n') }]).output

  test('the container of the other proxy becomes ours, without its image', () => {
    const template =
      '  podTemplateSpec: { spec: { containers: [{ name: toolhive, image: other:1, env: [] }, { name: log, image: log:1 }] } }\n'
    const found = output(proxy(template))
    expect(found).toContain('# spec.podTemplateSpec.spec.containers[0].name was toolhive\n')
    expect(found).toContain(
      '# spec.podTemplateSpec.spec.containers[0].image is omitted: "other:1" is a different program\n',
    )
    expect(found).toMatch(/name: extauth, env.*name: log, image: log:1/)
  })

  test.each([
    ['nothing says who may call', '', true],
    ['a credential is sent', '  externalAuthConfigRef: { name: token }\n', true],
    ['an MCPOIDCConfig says it', '  oidcConfigRef: { name: corp, audience: a }\n', false],
    ['callers log in', '  authServerRef: { name: login }\n', false],
    ['callers log in where the credential comes from', '  externalAuthConfigRef: { name: login }\n', false],
    ['the config is not among the files', '  externalAuthConfigRef: { name: elsewhere }\n', false],
  ])('callers without a token are written out where %s: %s %s', (_what, more, isAnonymous) => {
    const config = (name: string, type: string) =>
      `apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPExternalAuthConfig\nmetadata: { name: ${name} }\nspec: { type: ${type} }\n`
    const found = output(proxy(more), config('token', 'bearerToken'), config('login', 'embeddedAuthServer'))
    expect(found.includes('  auth:\n    mode: anonymous\n')).toBe(isAnonymous)
  })

  test('labels by which other tools find their objects are left out, those of people stay', () => {
    const labels = { 'app.kubernetes.io/instance': 'tools', 'helm.sh/chart': 'tools-1', team: 'mcp' }
    const annotations = { 'argocd.argoproj.io/tracking-id': 'tools:x' }
    const metadata = JSON.stringify({ name: 'notes', labels, annotations })
    const found = output(proxy('').replace('{ name: notes }', metadata))
    expect(found).toContain('# metadata.labels.helm.sh/chart is omitted: it marks objects of another tool\n')
    expect(found.replace(/^#.*$/gm, '')).not.toMatch(/helm|argocd|instance|annotations/)
    expect(found).toMatch(/"?team"?: "?mcp/)
  })

  test('Service names of the other controller are converted everywhere', () => {
    const route =
      'apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: { name: mcp-notes-remote-proxy }\nspec:\n  rules:\n    - backendRefs:\n        - name: mcp-notes-remote-proxy\n          port: 8080\n        - name: mcp-notes-two-remote-proxy\n'
    const ingress =
      'apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: { name: i }\nspec:\n  url: http://mcp-notes-proxy.tools.svc:8080/mcp\n'
    const service = 'apiVersion: v1\nkind: Service\nmetadata: { name: s }\nspec: { externalName: mcp-notes-proxy }\n'
    const found = output(proxy(''), route, ingress, service)
    expect(found).toContain('# the Service mcp-notes-remote-proxy is named notes-extauth here\napiVersion: gateway')
    expect(found).toContain('metadata: { name: mcp-notes-remote-proxy }')
    expect(found).toContain('- name: notes-extauth\n          port: 8080\n        - name: mcp-notes-two-remote-proxy\n')
    expect(found).toContain('# the Service mcp-notes-proxy is named notes-extauth here\n')
    expect(found).toContain('url: http://notes-extauth.tools.svc:8080/mcp')
    expect(found).toContain('externalName: mcp-notes-proxy')
    // A server of the same name has that Service, and stays with its controller.
    const server =
      'apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPServer\nmetadata: { name: notes }\nspec: { image: x }\n'
    expect(output(proxy(''), server, ingress)).toContain('url: http://mcp-notes-proxy.tools.svc')
  })
})
